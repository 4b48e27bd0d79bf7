// A group of lanes whose costs are those of vectors: its rows' are in registers, and columns come in through shared memory.
#pragma once

#include "cuda/kernels/multivariate/costs/vector_cost.cuh"
#include "lane_group.cuh"

namespace softdtw {

// The groups' shared memory that both passes have. Column c is in slot c of its group's ring: those of a chunk and of the next one.
template <int kDims>
struct VectorMemory : GroupEdges {
  static constexpr int kFours = (kDims + 3) / 4, kRing = 32, kSlots = kRing * kGroups;
  float4 columns[kFours * kSlots];
};

template <class Group>
class VectorReach;
template <class Group>
class VectorSums;

template <class CostType_, int kDims_, int kRows_, class Penalty, bool kHasBand_ = false>
struct VectorGroup : LaneGroup<kRows_, Penalty, kHasBand_> {
  using Base = LaneGroup<kRows_, Penalty, kHasBand_>;
  using CostType = CostType_;
  using Memory = VectorMemory<kDims_>;
  using Column = Vector<kDims_>;
  using Reach = VectorReach<VectorGroup>;
  using Leaving = VectorSums<VectorGroup>;
  using Forward = VectorGroup;
  using Backward = VectorGroup;
  static constexpr int kDims = kDims_, kRows = kRows_, kSteps = Base::kSteps;
  using Base::chunk;
  using Base::extent;
  using Base::from_below;
  using Base::group;
  using Base::is_last_lane;
  using Base::lane;
  using Base::lanes;
  using Base::problem;
  using Base::strip;
  Memory& memory;
  const View<const float> rows, columns;
  const bool reads_fours;
  float x[kRows][kDims];

  __device__ VectorGroup(
      const Problem<float>& problem_, bool has_fours, int lanes_, Memory& memory_, int64_t own, bool wanted)
      : Base(problem_, lanes_, memory_, own, wanted),
        memory(memory_),
        rows(problem_.x.pair(own)),
        columns(problem_.y.pair(own)),
        reads_fours(kDims % 4 == 0 && has_fours) {
    // Numbers where no copies go to.
    if (kDims == kFewDims)
      for (int i = threadIdx.x; i < Memory::kFours * Memory::kSlots; i += kWarp) memory.columns[i] = float4{0, 0, 0, 0};
    __syncwarp();
  }
  // Rows past the pair's end repeat its last one: such cells hold finite numbers that no result depends on.
  __device__ __forceinline__ void begin_strip() {
#pragma unroll
    for (int k = 0; k < kRows; ++k) {
      const float* const row = rows.data + min((strip * lanes + lane) * kRows + k, extent.n - 1) * rows.row_stride;
      if (reads_fours) {
#pragma unroll
        for (int d = 0; d < kDims; d += 4) {
          const float4 four = d < problem.dim ? *reinterpret_cast<const float4*>(row + d) : float4{0, 0, 0, 0};
          const float own[4] = {four.x, four.y, four.z, four.w};
#pragma unroll
          for (int i = 0; i < 4; ++i)
            if (d + i < kDims) x[k][d + i] = own[i];
        }
      } else {
#pragma unroll
        for (int d = 0; d < kDims; ++d) x[k][d] = kDims < kFewDims || d < problem.dim ? row[d] : 0;
      }
    }
  }
  // Start to copy what a chunk needs: its columns, all or those of the last or the first kSteps that the chunk before or behind it
  // has not; and the row above the strip.
  __device__ __forceinline__ void fetch_all(int chunk_, const EdgeEntry* line, bool has_line) const {
    for (int i = lane; i < lanes + kSteps - 1; i += lanes) fetch_column(chunk_ * kSteps - (lanes - 1) + i);
    this->fetch_edge(chunk_, line, has_line);
  }
  __device__ __forceinline__ void fetch_next(int chunk_, const EdgeEntry* line, bool has_line) const {
    if (lane < kSteps) fetch_column(chunk_ * kSteps + lane);
    this->fetch_edge(chunk_, line, has_line);
  }
  __device__ __forceinline__ void fetch_before(int chunk_, const EdgeEntry* line, bool has_line) const {
    if (lane < kSteps) fetch_column(chunk_ * kSteps - (lanes - 1) + lane);
    this->fetch_edge(chunk_, line, has_line);
  }
  // What comes later than these: nothing.
  __device__ __forceinline__ void fetch_other_half(bool) const {}
  __device__ __forceinline__ void fetch_half_of_next(bool) const {}
  __device__ __forceinline__ void fetch_late(bool, int) const {}
  __device__ __forceinline__ void fetch_column(int at) const {
    const float* const column = columns.data + min(max(at, 0), extent.m - 1) * columns.row_stride;
    float4* const slot = memory.columns + group * ring() + (at & (ring() - 1));
    if (reads_fours) {
#pragma unroll
      for (int f = 0; f < Memory::kFours; ++f)
        if (4 * f < problem.dim) __pipeline_memcpy_async(slot + f * Memory::kSlots, column + 4 * f, sizeof(float4));
    } else {
#pragma unroll
      for (int d = 0; d < kDims; ++d)
        if (kDims < kFewDims || d < problem.dim)
          __pipeline_memcpy_async(
              reinterpret_cast<float*>(slot + d / 4 * Memory::kSlots) + d % 4, column + d, sizeof(float));
    }
  }
  // At a step of the chunk.
  __device__ __forceinline__ Column at_step(int t) { return column_at(chunk * kSteps + t - lane); }
  __device__ __forceinline__ Column at_step_back(int t) const { return column_at(chunk * kSteps + t - lane); }
  __device__ __forceinline__ int ring() const { return lanes * 2 > Memory::kRing ? 2 * Memory::kRing : Memory::kRing; }
  __device__ __forceinline__ Column column_at(int column) const {
    const float4* const slot = memory.columns + group * ring() + (column & (ring() - 1));
    Column vector;
#pragma unroll
    for (int f = 0; f < Memory::kFours; ++f) {
      const float4 four = slot[f * Memory::kSlots];
      const float own[4] = {four.x, four.y, four.z, four.w};
#pragma unroll
      for (int d = 0; d < 4; ++d)
        if (4 * f + d < kDims) vector.at[4 * f + d] = own[d];
    }
    return vector;
  }
  __device__ __forceinline__ float cost_at(int k, const Column& y) const {
    float shares = 0;
#pragma unroll
    for (int d = 0; d < kDims; ++d) shares = CostType::share(x[k][d] - y.at[d], shares);
    return CostType::finish(shares);
  }
  // e times the slopes of row k's cost at a column, to the sums of both.
  __device__ __forceinline__ void add_slopes(int k, const Column& y, float e, Column& row, Column& sum) const {
    float u[kDims], shares = 0;
#pragma unroll
    for (int d = 0; d < kDims; ++d) {
      u[d] = x[k][d] - y.at[d];
      shares = CostType::share(u[d], shares);
    }
    const float over = CostType::over(e, shares);
#pragma unroll
    for (int d = 0; d < kDims; ++d) {
      row.at[d] = CostType::add_slope(over, u[d], row.at[d]);
      sum.at[d] = CostType::add_slope(over, u[d], sum.at[d]);
    }
  }
  __device__ __forceinline__ Column from_below(const Column& sum) const {
    Column below;
#pragma unroll
    for (int d = 0; d < kDims; ++d) {
      below.at[d] = __shfl_down_sync(kAllLanes, sum.at[d], 1, lanes);
      if (is_last_lane()) below.at[d] = 0;
    }
    return below;
  }
};

// So far may vectors be apart for their cost to be `most`, at least.
template <class CostType>
__device__ __forceinline__ float radius_of_cost(float most, int dims) {
  if (CostType::kFactor == 2) return sqrtf(most);
  if (CostType::kOverCost) return most;
  return most * rsqrtf(static_cast<float>(dims));  // sums of absolute values, or less
}

// So far, squared, columns may be from the middle of a strip's rows for all costs to be in integer log2's range. Below 0 where none is.
template <class Group>
class VectorReach {
  float middle[Group::kDims], most;

 public:
  // Of the rows that the group has now, by all lanes.
  __device__ __forceinline__ void look_at(const Group& group) {
    float widest = 0;
#pragma unroll
    for (int d = 0; d < Group::kDims; ++d) {
      float sum = 0;
#pragma unroll
      for (int k = 0; k < Group::kRows; ++k) sum += group.x[k][d];
      for (int distance = group.lanes / 2; distance > 0; distance /= 2) sum += __shfl_xor_sync(kAllLanes, sum, distance);
      middle[d] = sum / static_cast<float>(group.lanes * Group::kRows);
    }
#pragma unroll
    for (int k = 0; k < Group::kRows; ++k) widest = greater(widest, square(group.x[k]));
    for (int distance = group.lanes / 2; distance > 0; distance /= 2)
      widest = greater(widest, __shfl_xor_sync(kAllLanes, widest, distance));
    const float deepest = group.penalty.room(kDeepestUnscaled);
    const float radius = radius_of_cost<typename Group::CostType>(deepest / group.factor, Group::kDims);
    const float rest = radius * 0.9999f - sqrtf(widest);
    most = deepest >= 0 && group.factor < INFINITY && rest >= 0 ? rest * rest : -1;
  }
  // Whether the columns of a chunk are, those that come to the first lane: all lanes of a group are to say so.
  __device__ __forceinline__ bool holds(const Group& group) const {
    return group.lane >= Group::kSteps || square(group.column_at(group.chunk * Group::kSteps + group.lane).at) <= most;
  }

 private:
  template <int kSize>
  __device__ __forceinline__ float square(const float (&vector)[kSize]) const {
    float sum = 0;
#pragma unroll
    for (int d = 0; d < Group::kDims; ++d) sum = fmaf(vector[d] - middle[d], vector[d] - middle[d], sum);
    return sum;
  }
};

// What backward leaves: a lane's sums over its rows, when a strip is done, and the first lane's of a chunk's columns.
template <class Group>
class VectorSums {
  static constexpr int kDims = Group::kDims, kSteps = Group::kSteps;
  using Column = typename Group::Column;
  const View<float> dx, dy;
  const float scale;
  Column (&sums)[kSteps];

 public:
  struct Memory {
    Column sums[GroupEdges::kGroups][kSteps];
  };

  template <class Table>
  __device__ VectorSums(const Group& group, const Gradient<float>& gradient, float scale_, Memory& memory, Table&)
      : dx(gradient.x.pair(group.pair)), dy(gradient.y.pair(group.pair)), scale(scale_), sums(memory.sums[group.group]) {}
  __device__ __forceinline__ void begin_strip(const Group&) {}
  __device__ __forceinline__ void step(const Group& group, int t, const Column& sum) {
    if (group.is_first_lane()) sums[t] = sum;
  }
  // By all lanes, once they have their sums.
  __device__ __forceinline__ void end_chunk(const Group& group) {
    const int from = group.chunk * kSteps, to = min(from + kSteps, group.extent.m);
    if (!group.is_active || dy.data == nullptr) return;
    for (int i = group.lane; from + i < to; i += group.lanes)
#pragma unroll
      for (int d = 0; d < kDims; ++d)
        if (d < group.problem.dim) dy.at(from + i, d) -= sums[i].at[d] * scale;
  }
  __device__ __forceinline__ void end_strip(const Group& group, const Column (&of_rows)[Group::kRows]) {
    if (dx.data == nullptr) return;
#pragma unroll
    for (int k = 0; k < Group::kRows; ++k) {
      const int row = (group.strip * group.lanes + group.lane) * Group::kRows + k;
      if (row < group.extent.n)
#pragma unroll
        for (int d = 0; d < kDims; ++d)
          if (d < group.problem.dim) dx.at(row, d) = of_rows[k].at[d] * scale;
    }
  }
};

}  // namespace softdtw
