// The warps that compute a ring's costs (ring_costs.cuh).
//
// They take groups in turn, all of them one after another in a round. In a group a lane has the cells of the ring's lane of its
// number: a block of rows and as many columns and one. Vectors stand in shared memory dimension by dimension, so that lanes read
// neighbouring numbers: the blocks and the columns that lanes meet in a round, and those that come with the next one, which are
// on their way meanwhile. A barrier of these warps parts the rounds.
//
// Squared Euclidean costs of many dimensions, and what follows from them, are |x|^2 + |y|^2 - 2 x.y, which is half of the work. That
// cancels where x is near y: where the result is below a share of |x|^2 + |y|^2, a group is computed again from differences, and so
// are those that the warp has next, without an attempt.
#pragma once

#include <cuda_pipeline_primitives.h>

#include "cuda/hardware/tensor_core.cuh"
#include "ring_costs.cuh"

namespace softdtw {

// Blocks and columns take each other's place once no lane meets them any more. Dimensions are made up to a multiple with zeros.
template <int kRows>
struct StageOfVectors {
  static constexpr int kFours = kRows / 4, kBlocks = cost_ring_blocks(kRows), kColumns = kCostRingColumns;
  static constexpr int kBlockPitch = kBlocks + 1, kColumnPitch = kColumns + 4;  // those who write meet all banks
  static constexpr int kRowsApart = 4 * kFours * kBlockPitch;  // numbers of a row, from dimension to dimension
  float4* const x;
  float *const y, *const x_norms, *const y_norms;  // |x|^2 of rows, |y|^2 of columns

  __device__ StageOfVectors(RingCostMemory<kRows>& memory, int dims)
      : x(reinterpret_cast<float4*>(&memory + 1)),
        y(reinterpret_cast<float*>(x + dims * kFours * kBlockPitch)),
        x_norms(y + dims * kColumnPitch),
        y_norms(x_norms + kBlocks * kRows) {}
  __device__ __forceinline__ static int slot(int block) { return (block + kBlocks) % kBlocks; }
  // From dimension to dimension these are kFours * kBlockPitch, and kColumnPitch, apart.
  __device__ __forceinline__ const float4* block(int number) const { return x + slot(number); }
  __device__ __forceinline__ static int place(int column) { return column & (kColumns - 1); }
  __device__ __forceinline__ float* row(int d, int block, int k) const {
    return reinterpret_cast<float*>(x + (d * kFours + k / 4) * kBlockPitch + slot(block)) + k % 4;
  }
  __device__ __forceinline__ float* column(int d, int number) const { return y + d * kColumnPitch + place(number); }
  __device__ __forceinline__ float* norms_of_block(int number) const { return x_norms + slot(number) * kRows; }
  __device__ __forceinline__ float* norm_of_column(int number) const { return y_norms + place(number); }
};

template <int kRows, class CostType>
class RingCostWarp {
  using Band = HardCosts<kRows>;
  using Stage = StageOfVectors<kRows>;
  static constexpr int kGroup = kRows + 1, kWarps = cost_warps(kRows), kThreads = kWarps * kWarp;
  static_assert(kWarp + 2 * kWarps * kRows <= Stage::kColumns);
  static constexpr int kFewestProductDims = 32;
  static constexpr int kWithoutAttempt = 7;  // groups of the warp, once one has cancelled
  const Band& band;
  RingCostMemory<kRows>& memory;
  const int warp, dim, dims;
  const Stage stage;
  unsigned room = cost_ring_groups(kRows);
  int without_attempt = 0;

 public:
  __device__ RingCostWarp(const Band& band_, int warp_, int64_t dim_)
      : band(band_),
        memory(*band_.memory),
        warp(warp_),
        dim(static_cast<int>(dim_)),
        dims(static_cast<int>(cost_ring_dims(dim_))),
        stage(memory, dims) {}

  __device__ __forceinline__ void run() {
    bool has_norms = false;
    with_kind<CostType>(band.cost, [&](auto type) { has_norms = has_products<decltype(type)>(); });
    clear_dims();
    fetch_blocks(band.first_group - kWarp + 1, kWarp - 1 + kWarps);
    fetch_columns(band.column_of_newest(0), end_column(kWarps - 1) - band.column_of_newest(0));
#pragma unroll 1
    for (int first = 0; first < band.groups; first += kWarps) {
      __pipeline_commit();
      __pipeline_wait_prior(0);
      ptx::bar_sync<kThreads>();
      if (has_norms) {
        const int before = first == 0 ? kWarp - 1 : 0;
        const int first_column = first == 0 ? band.column_of_newest(0) : end_column(first - 1);
        find_norms(
            band.first_group + first - before, before + kWarps, first_column,
            end_column(first + kWarps - 1) - first_column);
        ptx::bar_sync<kThreads>();
      }
      fetch_blocks(band.first_group + first + kWarps, kWarps);
      fetch_columns(end_column(first + kWarps - 1), kWarps * kRows);
      if (first + warp < band.groups) fill(first + warp);
    }
    __pipeline_wait_prior(0);
  }

 private:
  // Of what lanes meet in group i.
  __device__ __forceinline__ int end_column(int i) const { return band.column_of_newest(i) + kWarp + kRows; }
  __device__ __forceinline__ int thread() const { return warp * kWarp + threadIdx.x; }
  template <class Type>
  __device__ __forceinline__ bool has_products() const {
    return kIsOfSquares<Type> && dim >= kFewestProductDims;
  }
  // Of vectors that have come with this round, by four threads each.
  __device__ __forceinline__ void find_norms(int first_block, int blocks, int first_column, int columns) const {
    constexpr int kOfVector = 4;
    const int rows = blocks * kRows, part = thread() % kOfVector;
#pragma unroll 1
    for (int first = 0; first < rows + columns; first += kThreads / kOfVector) {
      const int vector = min(first + thread() / kOfVector, rows + columns - 1);
      const int block = first_block + vector / kRows, column = first_column + vector - rows;
      const bool is_row = vector < rows;
      const float* from = is_row ? stage.row(part, block, vector % kRows) : stage.column(part, column);
      const int apart = kOfVector * (is_row ? Stage::kRowsApart : Stage::kColumnPitch);
      float norm = 0;
#pragma unroll 4
      for (int d = part; d < dims; d += kOfVector, from += apart) norm = fmaf(*from, *from, norm);
      norm = sum_of_group(norm);
      if (part == 0) *(is_row ? stage.norms_of_block(block) + vector % kRows : stage.norm_of_column(column)) = norm;
    }
  }
  __device__ __forceinline__ void clear_dims() const {
    for (int d = dim; d < dims; ++d) {
      for (int i = thread(); i < Stage::kBlocks * kRows; i += kThreads) *stage.row(d, i / kRows, i % kRows) = 0;
      for (int i = thread(); i < Stage::kColumns; i += kThreads) *stage.column(d, i) = 0;
    }
  }
  // So many vectors, four of them and eight dimensions by a warp at a time: whole sectors, and all banks of shared memory. at(vector): where it
  // is; to(dimension, vector): where its numbers go, `apart` from dimension to dimension.
  template <class At, class To>
  __device__ __forceinline__ void fetch(int vectors, int64_t stride, int apart, At&& at, To&& to) const {
    constexpr int kDims = 8, kVectors = kWarp / kDims;
    const int first_dim = threadIdx.x % kDims;
#pragma unroll 1
    for (int i = warp * kVectors + threadIdx.x / kDims; i < vectors; i += kWarps * kVectors) {
      const float* from = at(i) + first_dim * stride;
      float* into = to(first_dim, i);
      for (int d = first_dim; d < dim; d += kDims, from += kDims * stride, into += kDims * apart)
        __pipeline_memcpy_async(into, from, sizeof(float));
    }
  }
  __device__ __forceinline__ void fetch_blocks(int first, int count) const {
    fetch(
        count * kRows, band.of_x.column_stride, Stage::kRowsApart, [&](int i) { return band.of_x.at(first * kRows + i); },
        [&](int d, int i) { return stage.row(d, first + i / kRows, i % kRows); });
  }
  __device__ __forceinline__ void fetch_columns(int first, int count) const {
    fetch(
        count, band.of_y.column_stride, Stage::kColumnPitch, [&](int i) { return band.of_y.at(first + i); },
        [&](int d, int i) { return stage.column(d, first + i); });
  }
  __device__ __forceinline__ void fill(int i) {
    float costs[kGroup][kRows];
    with_kind<CostType>(band.cost, [&](auto type) {
      using Type = decltype(type);
      bool is_done = false;
      if constexpr (kIsOfSquares<Type>) {
        if (has_products<Type>() && --without_attempt < 0) {
          is_done = __all_sync(kAllLanes, products(i, costs));
          if (!is_done) without_attempt = kWithoutAttempt;
        }
      }
      if (!is_done) add_up(i, costs, [](float row, float column, float sum) { return Type::share(row - column, sum); });
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
  // Sums over the dimensions of the lane's cells: add(row, column, sum).
  template <class Add>
  __device__ __forceinline__ void add_up(int i, float (&sums)[kGroup][kRows], Add&& add) const {
    int places[kGroup];
#pragma unroll
    for (int r = 0; r < kGroup; ++r) {
      places[r] = Stage::place(band.first_column(i) + r);
#pragma unroll
      for (int k = 0; k < kRows; ++k) sums[r][k] = 0;
    }
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
        for (int k = 0; k < kRows; ++k) sums[r][k] = add(rows[k], column, sums[r][k]);
      }
    }
  }
  // |x - y|^2 of the lane's cells from products. Returns whether none of them has cancelled, or is beyond all numbers.
  __device__ __forceinline__ bool products(int i, float (&costs)[kGroup][kRows]) const {
    add_up(i, costs, [](float row, float column, float sum) { return fmaf(row, column, sum); });
    const float* const x_norms = stage.norms_of_block(band.block(i));
    bool is_sound = true;
#pragma unroll
    for (int r = 0; r < kGroup; ++r) {
      const float y_norm = *stage.norm_of_column(band.first_column(i) + r);
#pragma unroll
      for (int k = 0; k < kRows; ++k) {
        const float magnitude = x_norms[k] + y_norm;
        costs[r][k] = fmaf(-2.0f, costs[r][k], magnitude);
        is_sound = is_sound && fmaf(-kCancelled, magnitude, costs[r][k]) >= 0;
      }
    }
    return is_sound;
  }
};

}  // namespace softdtw
