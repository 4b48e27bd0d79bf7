// A group of lanes that has a pair: which one, the rows of its strip, and what comes in to a chunk through shared memory.
#pragma once

#include <cuda_pipeline_primitives.h>

#include "cuda/kernels/integer_log2/integer_log2.cuh"
#include "cuda/kernels/multivariate/costs/vector_cost.cuh"
#include "vector_log2_layout.cuh"

namespace softdtw {

// So many numbers, of a column or of its gradient.
template <int kDims>
struct Vector {
  float at[kDims];
};

// The groups' shared memory that both passes have. Column c is in slot c of its group's ring: those of a chunk and of the next one.
template <int kDims>
struct VectorMemory {
  static constexpr int kSteps = VectorLayout::kSteps, kGroups = VectorLayout::kMostGroups;
  static constexpr int kFours = (kDims + 3) / 4, kRing = 32, kSlots = kRing * kGroups;
  float4 columns[kFours * kSlots];
  EdgeEntry edge[2][kGroups]
                [kSteps];  // the row above a strip, at the columns of its first lane, of a chunk and of the next one
};

// The vectors of a lane's rows in one strip after the other; all the group's lanes are in the same chunk. To integer log2 it is what a
// ShortPair is, but that a strip's first lane has the strip above it, and its last one the strip below.
template <class CostType_, int kDims_, int kRows_, class Penalty, bool kHasBand_ = false>
struct VectorGroup {
  using CostType = CostType_;
  using Memory = VectorMemory<kDims_>;
  using Column = Vector<kDims_>;
  static constexpr int kDims = kDims_, kRows = kRows_, kSteps = VectorLayout::kSteps;
  static constexpr bool kHasBand = kHasBand_;
  const Problem<float>& problem;
  Memory& memory;
  const int lanes, lane, group;
  const int64_t pair;
  Extent extent;
  const float factor;
  const Penalty penalty;
  const View<const float> rows, columns;
  const bool reads_fours;
  float x[kRows][kDims];
  int strips, end_lane, end_row, end_step, end_chunk;  // of the pair; the last cell's, in the last strip
  bool is_active;
  int strip = 0, chunk = 0;
  // Of the strip above a first lane: m is relative to this in a chunk; and its entry at a step.
  int edge_reference = 0;
  Entry<float> edge_entry = {0, 1};
  float flow_below = 0;  // E that flows up into a last lane, at a step

  __device__ VectorGroup(
      const Problem<float>& problem_, bool has_fours, int lanes_, Memory& memory_, int64_t own, bool wanted)
      : problem(problem_),
        memory(memory_),
        lanes(lanes_),
        lane(threadIdx.x & (lanes_ - 1)),
        group(threadIdx.x / lanes_),
        pair(own),
        extent(problem_.extent(own)),
        factor(static_cast<float>(problem_.scale_of(own))),
        penalty(problem_.penalty_of(own) * problem_.scale_of(own)),
        rows(problem_.x.pair(own)),
        columns(problem_.y.pair(own)),
        reads_fours(kDims % 4 == 0 && has_fours),
        is_active(wanted && extent.valid()) {
    if (!extent.valid()) extent.n = extent.m = 1;
    const int last = extent.n - 1, of_strip = lanes * kRows;
    strips = last / of_strip + 1;
    end_lane = last % of_strip / kRows;
    end_row = last % kRows;
    end_step = extent.m - 1 + end_lane;
    end_chunk = end_step / kSteps;
    // Numbers where no copies go to.
    static_assert(Memory::kGroups * kSteps == kWarp);
    for (auto& edge : memory.edge) edge[threadIdx.x / kSteps][threadIdx.x % kSteps] = {1, 0};
    if (kDims == kFewDims)
      for (int i = threadIdx.x; i < Memory::kFours * Memory::kSlots; i += kWarp) memory.columns[i] = float4{0, 0, 0, 0};
    __syncwarp();
  }
  __device__ __forceinline__ bool is_first_lane() const { return lane == 0; }
  __device__ __forceinline__ bool is_last_lane() const { return lane == lanes - 1; }
  __device__ __forceinline__ bool is_top_lane() const { return lane == 0 && strip == 0; }  // of the table
  __device__ __forceinline__ bool is_last_strip() const { return strip == strips - 1; }
  // Of the strip: with a band from where the row above it is in the band to where its last row leaves it.
  __device__ __forceinline__ int first_chunk() const { return first_chunk_of(strip * lanes * kRows); }
  __device__ __forceinline__ int first_chunk_of(int first_row) const {
    return kHasBand ? max(first_row + extent.low - 1, 0) / kSteps : 0;
  }
  __device__ __forceinline__ int last_chunk() const {
    if (is_last_strip()) return end_chunk;
    int last = extent.m - 1;
    if (kHasBand) last = min(last, (strip + 1) * lanes * kRows - 1 + extent.high);
    return (last + lanes - 1) / kSteps;
  }
  // Of the lane's row k; row -1 is the last one of the lane above.
  __device__ __forceinline__ bool is_in_band(int column, int k) const {
    const int apart = column - (strip * lanes + lane) * kRows - extent.low;
    return static_cast<unsigned>(apart - k) <= static_cast<unsigned>(extent.high - extent.low);
  }
  __device__ __forceinline__ bool ends_here() const { return is_last_strip() && chunk == end_chunk; }
  // The step of a chunk in which the lane meets the pair's last cell; else -1.
  __device__ __forceinline__ int step_of_end() const {
    return ends_here() && lane == end_lane ? end_step - chunk * kSteps : -1;
  }

  // Rows past the pair's end repeat its last one: such cells hold finite numbers that no result depends on.
  __device__ __forceinline__ void read_rows() {
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
  // has not; and the row above the strip, if there is one. The copies are there once the lane has waited for them, and then the warp
  // for its lanes.
  __device__ __forceinline__ void fetch_all(int chunk_, const EdgeEntry* line, bool has_line) const {
    for (int i = lane; i < lanes + kSteps - 1; i += lanes) fetch_column(chunk_ * kSteps - (lanes - 1) + i);
    fetch_edge(chunk_, line, has_line);
  }
  __device__ __forceinline__ void fetch_next(int chunk_, const EdgeEntry* line, bool has_line) const {
    if (lane < kSteps) fetch_column(chunk_ * kSteps + lane);
    fetch_edge(chunk_, line, has_line);
  }
  __device__ __forceinline__ void fetch_before(int chunk_, const EdgeEntry* line, bool has_line) const {
    if (lane < kSteps) fetch_column(chunk_ * kSteps - (lanes - 1) + lane);
    fetch_edge(chunk_, line, has_line);
  }
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
  __device__ __forceinline__ void fetch_edge(int chunk_, const EdgeEntry* line, bool has_line) const {
    if (has_line && lane < kSteps)
      __pipeline_memcpy_async(
          &memory.edge[chunk_ & 1][group][lane], line + min(chunk_ * kSteps + lane, extent.m - 1), sizeof(EdgeEntry));
    __pipeline_commit();
  }
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
  // Of a chunk whose edge has arrived; then of its steps. At the table's upper end it is nothing.
  __device__ __forceinline__ void meet_edge() {
    int from = 0;  // a step that has an entry
    if (kHasBand && strip > 0) {
      const int above = strip * lanes * kRows - 1, before = chunk * kSteps;
      from = max(above + extent.low - before, 0);
      if (from >= kSteps || before > above + extent.high) return;
    }
    edge_reference = (strip > 0 ? memory.edge[chunk & 1][group][from].m : 0) - static_cast<int>(kLog2Floor);
  }
  __device__ __forceinline__ void bring_edge(int t) {
    const EdgeEntry entry = memory.edge[chunk & 1][group][t];
    edge_entry = {static_cast<float>(entry.m - edge_reference), entry.s};
    if (kHasBand && is_first_lane() && !is_in_band(chunk * kSteps + t, -1)) edge_entry = {Unreachable<float>::value, 1};
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
  __device__ __forceinline__ unsigned votes_of_group(bool vote) const {
    const int first = threadIdx.x & ~(lanes - 1);
    return __ballot_sync(kAllLanes, vote) >> first & (0xffffffffu >> (kWarp - lanes));
  }
  __device__ __forceinline__ bool any_of_group(bool vote) const { return votes_of_group(vote) != 0; }
  __device__ __forceinline__ bool all_of_group(bool vote) const { return votes_of_group(!vote) == 0; }
  template <typename Number>
  __device__ __forceinline__ Number of_lane(Number a, int from) const {
    return __shfl_sync(kAllLanes, a, from, lanes);
  }
  __device__ __forceinline__ Entry<float> from_above(const Entry<float>& entry) const {
    const Entry<float> above = {__shfl_up_sync(kAllLanes, entry.m, 1, lanes), __shfl_up_sync(kAllLanes, entry.s, 1, lanes)};
    return is_first_lane() ? edge_entry : above;
  }
  __device__ __forceinline__ int from_above(int reference) const {
    const int above = __shfl_up_sync(kAllLanes, reference, 1, lanes);
    return is_first_lane() ? edge_reference : above;
  }
  __device__ __forceinline__ float from_below(float e) const {
    const float below = __shfl_down_sync(kAllLanes, e, 1, lanes);
    return is_last_lane() ? flow_below : below;
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

}  // namespace softdtw
