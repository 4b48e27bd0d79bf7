// A group of lanes whose costs come ready-made, of a matrix that is turned: its rows lie side by side in memory. A lane's own eight
// costs at a column are 32 bytes, a sector.
//
// What lanes meet in a chunk stands in shared memory step by step, each lane's own, askew in the matrix as the lanes are. Cells past the
// pair's last row are 0 there; those of columns that the pair does not have are of others, or 0. No result depends on either.
#pragma once

#include <utility>

#include "cuda/kernels/vector_log2/lane_group.cuh"
#include "matrix_pieces.cuh"

namespace softdtw {

// Rows and columns for each other: the same problem.
inline Problem<float> turned(const Problem<float>& problem) {
  Problem<float> other = problem;
  std::swap(other.n, other.m);
  std::swap(other.x, other.y);
  std::swap(other.x_lengths, other.y_lengths);
  std::swap(other.cost_matrix.row_stride, other.cost_matrix.column_stride);
  return other;
}
inline Gradient<float> turned(const Gradient<float>& gradient) {
  Gradient<float> other = gradient;
  std::swap(other.cost.row_stride, other.cost.column_stride);
  return other;
}

// The costs of a chunk. A lane's two fours of a step lie side by side: apart, a copy would fetch its sector twice. After every four lanes
// comes a gap, so that eight of them read from all banks.
template <int kRows>
class ChunkOfMatrix {
  static constexpr int kSteps = VectorLayout::kSteps, kFours = kRows / 4, kLanesTogether = 4;
  float4 fours[kSteps][kWarp * kFours + kWarp / kLanesTogether];

 public:
  __device__ __forceinline__ float4& four(int t, int lane, int which) {
    return fours[t][lane * kFours + lane / kLanesTogether + which];
  }
  __device__ __forceinline__ float& cost(int t, int lane, int row) {
    return reinterpret_cast<float*>(&four(t, lane, row / 4))[row % 4];
  }
  // A lane's own, from a row on, of all steps.
  __device__ __forceinline__ void clear(int from_row) {
    for (int t = 0; t < kSteps; ++t)
      for (int row = from_row; row < kRows; ++row) cost(t, threadIdx.x, row) = 0;
  }
  __device__ __forceinline__ Vector<kRows> at_step(int t) {
    Vector<kRows> column;
#pragma unroll
    for (int f = 0; f < kFours; ++f) {
      const float4 own = four(t, threadIdx.x, f);
      column.at[4 * f] = own.x;
      column.at[4 * f + 1] = own.y;
      column.at[4 * f + 2] = own.z;
      column.at[4 * f + 3] = own.w;
    }
    return column;
  }
};

// What both passes have.
template <int kRows_, class Penalty, bool kHasBand>
struct MatrixGroup : LaneGroup<kRows_, Penalty, kHasBand> {
  using Base = LaneGroup<kRows_, Penalty, kHasBand>;
  using Column = Vector<kRows_>;
  static constexpr int kRows = kRows_, kSteps = Base::kSteps;
  // Costs of either sign. Within a chunk m falls by no more than 16 of the least.
  static constexpr float kDeepest = 32768, kFall = 2 * kSteps * kDeepest;
  struct Memory : GroupEdges {
    ChunkOfMatrix<kRows> costs;
  };
  Memory& memory;
  const View<const float> matrix;
  const bool reads_fours;

  __device__ MatrixGroup(const Problem<float>& problem_, int lanes_, Memory& memory_, int64_t own, bool wanted)
      : Base(problem_, lanes_, memory_, own, wanted),
        memory(memory_),
        matrix(problem_.cost_matrix.pair(own)),
        reads_fours(has_fours(problem_.cost_matrix)) {
    memory.costs.clear(0);
    __syncwarp();
  }
  __device__ __forceinline__ void begin_strip() {}
  __device__ __forceinline__ float cost_at(int k, const Column& costs) const { return costs.at[k]; }

 protected:
  // Starts copies for so many steps.
  template <int kCount>
  __device__ __forceinline__ void fetch_costs(int chunk_, int from) const {
    MatrixPieces(*this, matrix, chunk_ * kSteps + from)
        .template for_each<kCount>(
            reads_fours,
            [&](int owner, int half, int t, const float* at) {
              __pipeline_memcpy_async(&memory.costs.four(from + t, owner, half), at, sizeof(float4));
            },
            [&](int owner, int row, int t, const float* at) {
              __pipeline_memcpy_async(&memory.costs.cost(from + t, owner, row), at, sizeof(float));
            });
  }
};

}  // namespace softdtw
