// A group of lanes that has a pair: which one, where in the table it is, and what comes in to a chunk from the strip above.
#pragma once

#include <cuda_pipeline_primitives.h>

#include "cuda/kernels/integer_log2/integer_log2.cuh"
#include "vector_log2_layout.cuh"

namespace softdtw {

// So many numbers.
template <int kCount>
struct Vector {
  float at[kCount];
};

// The row above a strip, at the columns of its first lane, of a chunk and of the next one. Columns of the groups of a warp.
struct GroupEdges {
  static constexpr int kSteps = VectorLayout::kSteps, kGroups = VectorLayout::kMostGroups;
  EdgeEntry edge[2][kGroups][kSteps];
};

// All the group's lanes are in the same chunk of the same strip; they take one strip after the other. To integer log2 it is what a
// ShortPair is, but that a strip's first lane has the strip above it, and its last one the strip below. Where costs come from, those
// that derive from it say.
template <int kRows_, class Penalty, bool kHasBand_>
struct LaneGroup {
  static constexpr int kRows = kRows_, kSteps = VectorLayout::kSteps;
  static constexpr bool kHasBand = kHasBand_;
  const Problem<float>& problem;
  GroupEdges& edges;
  const int lanes, lane, group;
  const int64_t pair;
  Extent extent;
  const float factor;
  const Penalty penalty;
  int strips, end_lane, end_row, end_step, end_chunk;  // of the pair; the last cell's, in the last strip
  bool is_active;
  int strip = 0, chunk = 0;
  // Of the strip above a first lane: m is relative to this in a chunk; and its entry at a step.
  int edge_reference = 0;
  Entry<float> edge_entry = {0, 1};
  float flow_below = 0;  // E that flows up into a last lane, at a step

  __device__ LaneGroup(const Problem<float>& problem_, int lanes_, GroupEdges& edges_, int64_t own, bool wanted)
      : problem(problem_),
        edges(edges_),
        lanes(lanes_),
        lane(threadIdx.x & (lanes_ - 1)),
        group(threadIdx.x / lanes_),
        pair(own),
        extent(problem_.extent(own)),
        factor(static_cast<float>(problem_.scale_of(own))),
        penalty(problem_.penalty_of(own) * problem_.scale_of(own)),
        is_active(wanted && extent.valid()) {
    if (!extent.valid()) extent.n = extent.m = 1;
    const int last = extent.n - 1, of_strip = lanes * kRows;
    strips = last / of_strip + 1;
    end_lane = last % of_strip / kRows;
    end_row = last % kRows;
    end_step = extent.m - 1 + end_lane;
    end_chunk = end_step / kSteps;
    // Numbers where no copies go to.
    static_assert(GroupEdges::kGroups * kSteps == kWarp);
    for (auto& edge : edges.edge) edge[threadIdx.x / kSteps][threadIdx.x % kSteps] = {1, 0};
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

  // Starts to copy the row above the strip, if there is one, for a chunk. The copies are there once the lane has waited for them, and
  // then the warp for its lanes.
  __device__ __forceinline__ void fetch_edge(int chunk_, const EdgeEntry* line, bool has_line) const {
    if (has_line && lane < kSteps)
      __pipeline_memcpy_async(
          &edges.edge[chunk_ & 1][group][lane], line + min(chunk_ * kSteps + lane, extent.m - 1), sizeof(EdgeEntry));
    __pipeline_commit();
  }
  // Of a chunk whose edge has arrived; then of its steps. At the table's upper end it is nothing.
  __device__ __forceinline__ void meet_edge() {
    int from = 0;  // a step that has an entry
    if (kHasBand && strip > 0) {
      const int above = strip * lanes * kRows - 1, before = chunk * kSteps;
      from = max(above + extent.low - before, 0);
      if (from >= kSteps || before > above + extent.high) return;
    }
    edge_reference = (strip > 0 ? edges.edge[chunk & 1][group][from].m : 0) - static_cast<int>(kLog2Floor);
  }
  __device__ __forceinline__ void bring_edge(int t) {
    const EdgeEntry entry = edges.edge[chunk & 1][group][t];
    edge_entry = {static_cast<float>(entry.m - edge_reference), entry.s};
    if (kHasBand && is_first_lane() && !is_in_band(chunk * kSteps + t, -1)) edge_entry = {Unreachable<float>::value, 1};
  }
  // Of the chunk that was swept.
  __device__ __forceinline__ bool had_costs_in_range() const { return true; }
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
};

}  // namespace softdtw
