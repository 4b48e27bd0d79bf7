// A group of lanes whose costs come ready-made, of a matrix that is turned: its rows lie side by side in memory. A lane's own eight
// costs at a column are 32 bytes, a sector; and so are, in backward, their gradients.
//
// What a lane meets in a chunk stands in shared memory step by step, each lane's own, askew in the matrix as the lanes are. Half of it
// is copied while the other half is swept. Two lanes side by side copy for both of them, so that one instruction takes whole sectors. Cells past the pair's last row are 0 there; those
// of columns that the pair does not have are of others, or 0. No result depends on either.
#pragma once

#include <utility>

#include "cuda/kernels/vector_log2/lane_group.cuh"

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

// Of a turned matrix: whether four costs, or their gradients, can be moved at a time.
template <typename T>
__device__ __forceinline__ bool has_fours(const View<T>& matrix) {
  return matrix.row_stride == 1 && ((matrix.column_stride | matrix.batch_stride) & 3) == 0 &&
         (reinterpret_cast<uintptr_t>(matrix.data) & 15) == 0;
}

// What a lane moves of the cells that its warp's lanes have in some steps. As fours, where all are there, it moves those of two lanes
// side by side, each a half; or else of eight lanes, of each the same of its rows.
template <class Group, typename T>
class MatrixPieces {
  static constexpr int kRows = Group::kRows, kHalves = kRows / 4;
  static_assert(kRows == 8);
  const Group& group;
  const View<T> matrix;            // of the strip's first row on
  const int first_of_eight, rows;  // lane of the warp; rows from the strip's first one on
  const int first_column;          // in the first step, of the group's first lane

  __device__ __forceinline__ int lane_of(int thread) const { return thread & (group.lanes - 1); }

 public:
  __device__ MatrixPieces(const Group& group_, const View<T>& of_pair, int first_column_ = 0)
      : group(group_),
        matrix{&of_pair.at(group_.strip * group_.lanes * kRows, 0), 0, of_pair.row_stride, of_pair.column_stride},
        first_of_eight(threadIdx.x / kRows * kRows),
        rows(group_.extent.n - group_.strip * group_.lanes * kRows),
        first_column(first_column_) {}

  // Calls four(lane of the warp, its half, step, where it is in the matrix) or cell(lane of the warp, its row, step, where it is).
  template <int kCount, class Four, class Cell>
  __device__ __forceinline__ void for_each(bool are_fours, Four&& four, Cell&& cell) const {
    const int lane = lane_of(first_of_eight), most = first_column - lane;
    if (are_fours && (lane + kRows) * kRows <= rows && most >= kRows - 1 && most + kCount <= group.extent.m) {
      const int owner = threadIdx.x / kHalves * kHalves, half = threadIdx.x % kHalves;
      T* at = &matrix.at(0, first_column - lane_of(owner)) + lane_of(owner) * kRows + 4 * half;
#pragma unroll
      for (int t = 0; t < kCount; ++t) {
#pragma unroll
        for (int i = 0; i < kHalves; ++i) four(owner + i, half, t, at + i * (kRows - matrix.column_stride));
        at += matrix.column_stride;
      }
    } else {
      const int k = threadIdx.x % kRows;
      T* at = &matrix.at(lane * kRows + k, most);
#pragma unroll 1
      for (int t = 0; t < kCount; ++t) {
#pragma unroll
        for (int i = 0; i < kRows; ++i)
          if ((lane + i) * kRows + k < rows && static_cast<unsigned>(most + t - i) < static_cast<unsigned>(group.extent.m))
            cell(first_of_eight + i, k, t, at + i * (kRows * matrix.row_stride - matrix.column_stride));
        at += matrix.column_stride;
      }
    }
  }
  // Writes 0 to all of the strip but the columns from `from` to `to` of the group's first lane, and those that others had meanwhile.
  __device__ __forceinline__ void clear(bool are_fours, int from, int to) const {
    for (int first = 4 * group.lane; first < min(group.lanes * kRows, rows); first += 4 * group.lanes) {
      const int lane = first / kRows;
      T* const at = &matrix.at(first, 0);
      const auto fill = [&](int column, int end) {
        if (are_fours && first + 4 <= rows)
          for (; column < end; ++column) *reinterpret_cast<float4*>(at + column * matrix.column_stride) = float4{0, 0, 0, 0};
        else
          for (; column < end; ++column)
            for (int i = 0; i < min(4, rows - first); ++i) matrix.at(first + i, column) = 0;
      };
      fill(0, min(from - lane, group.extent.m));
      fill(max(to - lane, 0), group.extent.m);
    }
  }
};

// A lane's costs step by step, two fours each.
template <int kRows>
struct MatrixMemory : GroupEdges {
  float4 costs[kSteps][kRows / 4][kWarp];
};

template <class Group>
class MatrixGradient;

// kIsForward: half a chunk is copied at a time. In backward, which needs its costs once, all of them, when it has rebuilt the chunk before.
template <int kRows_, class Penalty, bool kHasBand_ = false, bool kIsForward = true>
struct MatrixGroup : LaneGroup<kRows_, Penalty, kHasBand_> {
  using Base = LaneGroup<kRows_, Penalty, kHasBand_>;
  static constexpr int kRows = kRows_, kSteps = Base::kSteps, kAtOnce = kIsForward ? kSteps / 2 : kSteps;
  using Memory = MatrixMemory<kRows>;
  using Column = Vector<kRows>;
  using Leaving = MatrixGradient<MatrixGroup>;
  using Forward = MatrixGroup<kRows_, Penalty, kHasBand_, true>;
  using Backward = MatrixGroup<kRows_, Penalty, kHasBand_, false>;
  using Base::chunk;
  using Base::extent;
  using Base::from_below;
  using Base::lane;
  using Base::lanes;
  using Base::strip;
  // Costs of either sign. Within a chunk m falls by no more than 16 of the least.
  static constexpr float kDeepest = 32768, kFall = 2 * kSteps * kDeepest;
  // A matrix is looked at cell by cell, while it is swept.
  struct Reach {
    __device__ __forceinline__ void look_at(const MatrixGroup&) {}
    __device__ __forceinline__ static bool holds(const MatrixGroup&) { return true; }
  };
  Memory& memory;
  const View<const float> matrix;
  const bool reads_fours;
  const float most;   // that a cost may be, in size and in exponents of 2
  float largest = 0;  // of costs as they come, NaN if one is

  __device__ MatrixGroup(
      const Problem<float>& problem_, bool, int lanes_, Memory& memory_, int64_t own, bool wanted)
      : Base(problem_, lanes_, memory_, own, wanted),
        memory(memory_),
        matrix(problem_.cost_matrix.pair(own)),
        reads_fours(has_fours(problem_.cost_matrix)),
        most(this->penalty.room(kDeepest)) {
    constexpr int kAll = sizeof(memory.costs) / sizeof(float4);
    for (int i = threadIdx.x; i < kAll; i += kWarp) (&memory.costs[0][0][0])[i] = float4{0, 0, 0, 0};
    __syncwarp();
  }
  __device__ __forceinline__ void begin_strip() {}
  // The first chunk of a strip; of the one after or before another one what comes early.
  __device__ __forceinline__ void fetch_all(int chunk_, const EdgeEntry* line, bool has_line) {
    clear_rows();
    fetch_costs(chunk_, 0);
    this->fetch_edge(chunk_, line, has_line);
  }
  __device__ __forceinline__ void fetch_next(int chunk_, const EdgeEntry* line, bool has_line) const {
    this->fetch_edge(chunk_, line, has_line);
  }
  __device__ __forceinline__ void fetch_before(int chunk_, const EdgeEntry* line, bool has_line) const {
    this->fetch_edge(chunk_, line, has_line);
  }
  // In forward: at the beginning of the chunk, and half way.
  __device__ __forceinline__ void fetch_other_half(bool wanted) const {
    if (!wanted) return;
    fetch_costs(chunk, kAtOnce);
    __pipeline_commit();
  }
  __device__ __forceinline__ void fetch_half_of_next(bool wanted) const {
    __pipeline_wait_prior(0);
    __syncwarp();
    if (!wanted) return;
    fetch_costs(chunk + 1, 0);
    __pipeline_commit();
  }
  // In backward.
  __device__ __forceinline__ void fetch_late(bool wanted, int chunk_) const {
    __syncwarp();
    if (!wanted) return;
    fetch_costs(chunk_, 0);
    __pipeline_commit();
  }
  __device__ __forceinline__ Column at_step(int t) {
    Column costs;
#pragma unroll
    for (int f = 0; f < kRows / 4; ++f) {
      const float4 four = memory.costs[t][f][threadIdx.x];
      const float own[4] = {four.x, four.y, four.z, four.w};
#pragma unroll
      for (int i = 0; i < 4; ++i) {
        costs.at[4 * f + i] = own[i];
        if (kIsForward) largest = greater(largest, fabsf(own[i]));
      }
    }
    return costs;
  }
  __device__ __forceinline__ Column at_step_back(int) const { return {}; }
  __device__ __forceinline__ float cost_at(int k, const Column& costs) const { return costs.at[k]; }
  __device__ __forceinline__ bool had_costs_in_range() const { return largest * this->factor <= most; }
  // E of the column's cells.
  __device__ __forceinline__ void add_slopes(int k, const Column&, float e, Column&, Column& sum) const { sum.at[k] = e; }
  __device__ __forceinline__ Column from_below(const Column&) const { return {}; }

 private:
  __device__ __forceinline__ void fetch_costs(int chunk_, int from_step) const {
    MatrixPieces(*this, matrix, chunk_ * kSteps + from_step)
        .template for_each<kAtOnce>(
            reads_fours,
            [&](int owner, int half, int t, const float* at) {
              __pipeline_memcpy_async(&memory.costs[from_step + t][half][owner], at, sizeof(float4));
            },
            [&](int owner, int k, int t, const float* at) {
              __pipeline_memcpy_async(
                  reinterpret_cast<float*>(&memory.costs[from_step + t][k / 4][owner]) + k % 4, at, sizeof(float));
            });
  }
  // What is to stay 0 in the last strip.
  __device__ __forceinline__ void clear_rows() {
    const int left = extent.n - (strip * lanes + lane) * kRows;
    if (!this->is_last_strip() || left >= kRows) return;
    for (auto& step : memory.costs)
      for (int k = max(left, 0); k < kRows; ++k) reinterpret_cast<float*>(&step[k / 4][threadIdx.x])[k % 4] = 0;
  }
};

// What backward leaves: E of all cells. A chunk's stands in the place of the shares that it has flowed by. Cells that E does not come to
// are 0; in a problem with lengths or bands all are before.
template <class Group>
class MatrixGradient {
  static constexpr int kSteps = Group::kSteps, kRows = Group::kRows;
  using Table = Log2Table<kRows>;

 public:
  struct Memory {
    float4 last[kRows / 4][kWarp];  // of a chunk's last step
  };

 private:
  const View<float> matrix;
  const bool writes_fours;
  const float scale;
  Memory& memory;
  Table& table;
  int end_of_visited = 0;  // a column, of the first lane

  __device__ __forceinline__ float4& four_of(int owner, int four, int t) const {
    return t < kSteps - 1 ? table.shares[t][four][owner] : memory.last[four][owner];
  }

 public:
  __device__ MatrixGradient(
      const Group& group, const Gradient<float>& gradient, float scale_, Memory& memory_, Table& table_)
      : matrix(gradient.cost.pair(group.pair)),
        writes_fours(has_fours(gradient.cost)),
        scale(scale_),
        memory(memory_),
        table(table_) {}
  __device__ __forceinline__ void begin_strip(const Group& group) { end_of_visited = (group.chunk + 1) * kSteps; }
  __device__ __forceinline__ void step(const Group&, int t, const typename Group::Column& e) {
#pragma unroll
    for (int f = 0; f < kRows / 4; ++f)
      four_of(threadIdx.x, f, t) = float4{e.at[4 * f], e.at[4 * f + 1], e.at[4 * f + 2], e.at[4 * f + 3]};
  }
  // By all lanes, once they have their E.
  __device__ __forceinline__ void end_chunk(const Group& group) {
    if (!group.is_active) return;
    MatrixPieces(group, matrix, group.chunk * kSteps)
        .template for_each<kSteps>(
            writes_fours,
            [&](int owner, int half, int t, float* at) {
              const float4 e = four_of(owner, half, t);
              *reinterpret_cast<float4*>(at) = {e.x * scale, e.y * scale, e.z * scale, e.w * scale};
            },
            [&](int owner, int k, int t, float* at) {
              *at = reinterpret_cast<const float*>(&four_of(owner, k / 4, t))[k % 4] * scale;
            });
  }
  __device__ __forceinline__ void end_strip(const Group& group, const typename Group::Column (&)[kRows]) {
    if (group.problem.ragged()) return;
    MatrixPieces(group, matrix).clear(writes_fours, group.chunk * kSteps, end_of_visited);
  }
};

}  // namespace softdtw
