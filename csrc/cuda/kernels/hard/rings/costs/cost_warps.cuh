// The warps that compute a ring's costs (ring_costs.cuh), from differences, so that none is lost where x is near y.
//
// They take groups in turn, all of them one after another in a round. In a group a lane has the cells of the ring's lane of its
// number: a block of rows and as many columns and one. Vectors stand in shared memory dimension by dimension, so that lanes read
// neighbouring numbers: the blocks and the columns that lanes meet in a round, and those that come with the next one, which are
// on their way meanwhile. A barrier of these warps parts the rounds.
#pragma once

#include <cuda_pipeline_primitives.h>

#include "ring_costs.cuh"

namespace softdtw {

// Blocks and columns take each other's place once no lane meets them any more. Dimensions are made up to a multiple with zeros.
template <int kRows>
struct StageOfVectors {
  static constexpr int kFours = kRows / 4, kBlocks = cost_ring_blocks(kRows), kColumns = kCostRingColumns;
  static constexpr int kBlockPitch = kBlocks + 1,
                       kColumnPitch = kColumns + 1;  // lanes that write dimensions meet other banks
  float4* const x;
  float* const y;

  __device__ StageOfVectors(RingCostMemory<kRows>& memory, int dims)
      : x(reinterpret_cast<float4*>(&memory + 1)), y(reinterpret_cast<float*>(x + dims * kFours * kBlockPitch)) {}
  __device__ __forceinline__ static int slot(int block) { return (block + kBlocks) % kBlocks; }
  // From dimension to dimension these are kFours * kBlockPitch, and kColumnPitch, apart.
  __device__ __forceinline__ const float4* block(int number) const { return x + slot(number); }
  __device__ __forceinline__ static int place(int column) { return column & (kColumns - 1); }
  __device__ __forceinline__ float* row(int d, int block, int k) const {
    return reinterpret_cast<float*>(x + (d * kFours + k / 4) * kBlockPitch + slot(block)) + k % 4;
  }
  __device__ __forceinline__ float* column(int d, int number) const { return y + d * kColumnPitch + place(number); }
  static int64_t bytes(int dims) { return dims * (kFours * kBlockPitch * sizeof(float4) + kColumnPitch * sizeof(float)); }
};

template <int kRows>
class RingCostWarp {
  using Band = HardCosts<kRows>;
  using Stage = StageOfVectors<kRows>;
  static constexpr int kGroup = kRows + 1, kWarps = cost_warps(kRows), kThreads = kWarps * kWarp;
  static_assert(kWarp + 2 * kWarps * kRows <= Stage::kColumns);
  const Band& band;
  RingCostMemory<kRows>& memory;
  const int warp, dim, dims;
  const Stage stage;
  unsigned room = cost_ring_groups(kRows);

 public:
  __device__ RingCostWarp(const Band& band_, int warp_, int64_t dim_)
      : band(band_),
        memory(*band_.memory),
        warp(warp_),
        dim(static_cast<int>(dim_)),
        dims(static_cast<int>(cost_ring_dims(dim_))),
        stage(memory, dims) {}

  template <class CostType>
  __device__ __forceinline__ void run() {
    clear_dims();
    fetch_blocks(band.first_group - kWarp + 1, kWarp - 1 + kWarps);
    fetch_columns(newest_column(0), end_column(kWarps - 1) - newest_column(0));
#pragma unroll 1
    for (int first = 0; first < band.groups; first += kWarps) {
      __pipeline_commit();
      __pipeline_wait_prior(0);
      ptx::bar_sync<kThreads>();
      fetch_blocks(band.first_group + first + kWarps, kWarps);
      fetch_columns(end_column(first + kWarps - 1), kWarps * kRows);
      if (first + warp < band.groups) fill<CostType>(first + warp);
    }
    __pipeline_wait_prior(0);
  }

 private:
  // Columns that lanes meet in group i: from the newest block's lane on.
  __device__ __forceinline__ int newest_column(int i) const { return (band.first_group + i) * kRows + band.extent.low - 1; }
  __device__ __forceinline__ int end_column(int i) const { return newest_column(i) + kWarp + kRows; }
  __device__ __forceinline__ int thread() const { return warp * kWarp + threadIdx.x; }
  __device__ __forceinline__ void clear_dims() const {
    for (int d = dim; d < dims; ++d) {
      for (int i = thread(); i < Stage::kBlocks * kRows; i += kThreads) *stage.row(d, i / kRows, i % kRows) = 0;
      for (int i = thread(); i < Stage::kColumns; i += kThreads) *stage.column(d, i) = 0;
    }
  }
  // Calls copy(vector, dimension) for all dimensions of so many vectors, neighbouring threads with neighbouring dimensions.
  template <class Copy>
  __device__ __forceinline__ void for_each_number(int vectors, Copy&& copy) const {
    int vector = thread() / dim, d = thread() % dim;
    const int next_vector = kThreads / dim, next_d = kThreads % dim;
    while (vector < vectors) {
      copy(vector, d);
      vector += next_vector, d += next_d;
      if (d >= dim) d -= dim, ++vector;
    }
  }
  __device__ __forceinline__ void fetch_blocks(int first, int count) const {
    for_each_number(count * kRows, [&](int i, int d) {
      const float* const from = band.of_x.at(first * kRows + i) + d * band.of_x.column_stride;
      __pipeline_memcpy_async(stage.row(d, first + i / kRows, i % kRows), from, sizeof(float));
    });
  }
  __device__ __forceinline__ void fetch_columns(int first, int count) const {
    for_each_number(count, [&](int i, int d) {
      const float* const from = band.of_y.at(first + i) + d * band.of_y.column_stride;
      __pipeline_memcpy_async(stage.column(d, first + i), from, sizeof(float));
    });
  }
  template <class CostType>
  __device__ __forceinline__ void fill(int i) {
    float costs[kGroup][kRows] = {};
    int places[kGroup];
#pragma unroll
    for (int r = 0; r < kGroup; ++r) places[r] = Stage::place(band.first_column(i) + r);
    with_kind<CostType>(band.cost, [&](auto type) {
      using Type = decltype(type);
      const float4* block = stage.block(band.block(i));
      const float* line = stage.y;
#pragma unroll(kRows == 4 ? 4 : 2)
      for (int d = 0; d < dims; ++d, block += Stage::kFours * Stage::kBlockPitch, line += Stage::kColumnPitch) {
        float rows[kRows];
#pragma unroll
        for (int q = 0; q < Stage::kFours; ++q) {
          const float4 four = block[q * Stage::kBlockPitch];
          rows[4 * q] = four.x, rows[4 * q + 1] = four.y, rows[4 * q + 2] = four.z, rows[4 * q + 3] = four.w;
        }
#pragma unroll
        for (int r = 0; r < kGroup; ++r) {
          const float column = line[places[r]];
#pragma unroll
          for (int k = 0; k < kRows; ++k) costs[r][k] = Type::share(rows[k] - column, costs[r][k]);
        }
      }
#pragma unroll
      for (int r = 0; r < kGroup; ++r)
#pragma unroll
        for (int k = 0; k < kRows; ++k) costs[r][k] = Type::finish(costs[r][k]);
    });
    memory.groups.acquire(room, i + 1);
    GroupOfCosts<kRows>& group = memory.groups.slot(i);
#pragma unroll
    for (int r = 0; r < kGroup; ++r)
#pragma unroll
      for (int q = 0; q < Stage::kFours; ++q)
        group.cells[r][q][threadIdx.x] = {costs[r][4 * q], costs[r][4 * q + 1], costs[r][4 * q + 2], costs[r][4 * q + 3]};
    memory.groups.commit(i);
  }
};

}  // namespace softdtw
