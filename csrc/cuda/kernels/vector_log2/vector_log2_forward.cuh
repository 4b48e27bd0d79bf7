// Values, by groups of lanes in integer log2: strip by strip, chunk by chunk, each group at its own pace.
#pragma once

#include "cuda/kernels/extended_range/extended_range_strip.cuh"
#include "cuda/numbers/pair_status.cuh"
#include "lane_group.cuh"

namespace softdtw {

template <class Group>
struct VectorForwardMemory : Group::Memory {
  EdgeEntry handed[GroupEdges::kGroups][GroupEdges::kSteps];  // last rows of strips, at the columns of their last lanes
};

// The group's part: `own` of its pair, in what is saved or, for the edge alone, in scratch memory. Returns the pair's status.
template <class Group>
__device__ __forceinline__ PairStatus vector_forward(
    const Problem<float>& problem, const VectorLayout& layout, VectorForwardMemory<Group>& memory, int64_t pair,
    bool wanted, char* own, float* value) {
  constexpr int kSteps = Group::kSteps, kRows = Group::kRows;
  Group group(problem, layout.has_fours, layout.forward_lanes, memory, pair, wanted);
  // The layout's strips in a strip of the group, and the lane's part of one.
  const int parts = layout.forward_lanes / layout.lanes, part = group.lane / layout.lanes;
  const int lane_of_part = group.lane & (layout.lanes - 1), last_lane_of_part = group.lane | (layout.lanes - 1);
  const int last_part = (group.extent.n - 1) / (layout.lanes * kRows);
  const auto edge_above = [&] { return layout.edge(own, max(group.strip * parts - 1, 0)); };
  typename Group::Reach reach;
  Log2State<kRows> state;
  state.start(false);
  PairStatus status = PairStatus::kGivenUp;
  const auto entry = [](int, const Log2Cell& cell, const auto& diag, const auto& up, const auto& left) {
    return cell.entry(diag, up, left);
  };
  if (group.is_active) group.fetch_all(0, nullptr, false);  // a band's first strip begins there, too
  while (__any_sync(kAllLanes, group.is_active)) {
    const int strip = group.strip, chunk = group.chunk;
    const int first_chunk = group.first_chunk();
    const bool starts = group.is_active && chunk == first_chunk;
    if (__any_sync(kAllLanes, starts)) {
      if (starts) group.begin_strip();
      reach.look_at(group);
    }
    __pipeline_wait_prior(0);
    __syncwarp();
    const bool ends_strip = chunk == group.last_chunk();
    group.fetch_other_half(group.is_active);
    if (group.is_active && !ends_strip) group.fetch_next(chunk + 1, edge_above(), strip > 0);
    group.meet_edge();
    if (!group.all_of_group(reach.holds(group) && state.is_exact)) group.is_active = false;
    if (starts) {
      state = Log2State<kRows>();
      state.start(group.is_top_lane());
      state.reference = group.edge_reference;
    }
    state.look_above(group);
    const int strip_of_part = strip * parts + part;
    if (layout.keeps && group.is_active && chunk > first_chunk)
      state.keep(layout.snapshot(own, strip_of_part, chunk - first_chunk, lane_of_part), layout.lanes);

    const auto step = [&](int t, auto is_careful) {
      if (t == kSteps / 2) group.fetch_half_of_next(group.is_active && !ends_strip);
      const int column = chunk * kSteps + t - group.lane;
      group.bring_edge(t);
      state.template step<is_careful()>(group, group.at_step(t), column, entry);
      if (lane_of_part == layout.lanes - 1) {
        const Entry<float>& last = state.left[kRows - 1];
        memory.handed[threadIdx.x / layout.lanes][t] = {
            last.s, state.reference + static_cast<int>(fminf(last.m, 2 * kLog2Most))};
      }
    };
    Entry<float> last = {NAN, NAN};
    int last_reference = 0;
    const bool is_careful = __any_sync(kAllLanes, group.is_active && (may_enter(group.lanes, chunk) || group.ends_here()));
    if (is_careful) {
      const int end = group.step_of_end();
#pragma unroll 1
      for (int t = 0; t < kSteps; ++t) {
        step(t, std::true_type());
        if (t == end) {
          last = pick(state.left, group.end_row);
          last_reference = state.reference;
        }
      }
    } else {
#pragma unroll 4
      for (int t = 0; t < kSteps; ++t) step(t, std::false_type());
    }
    state.renew(group);
    state.is_exact = state.is_exact && group.had_costs_in_range();
    const bool is_exact = is_careful && group.all_of_group(state.is_exact);  // elsewhere known with the next chunk
    __syncwarp();
    const int column = chunk * kSteps + lane_of_part - last_lane_of_part;
    if (group.is_active && lane_of_part < kSteps && strip_of_part < last_part && column >= 0 && column < group.extent.m) {
      EdgeEntry handed = memory.handed[threadIdx.x / layout.lanes][lane_of_part];
      const unsigned bits = __float_as_uint(handed.s);
      handed.m -= static_cast<int>(bits >> 23) - 127;
      handed.s = __uint_as_float((bits & 0x007fffffu) | 0x3f800000u);
      layout.edge(own, strip_of_part)[column] = handed;
    }
    if (group.is_active && group.ends_here()) {
      const int steps = group.extent.n + group.extent.m;
      const auto reference = group.penalty.without_tilt(last_reference, steps);
      const double exponent = reference + last.m - log2(static_cast<double>(last.s));
      // Of the lane with the last cell.
      if (is_exact && last.m < kLog2Most && exponent < INFINITY && fabs(exponent) >= kLeastOfAStep * steps) {
        store_value(problem, pair, reference, last.m, last.s, value);
        status = PairStatus::kIntegerLog2;
      }
      group.is_active = false;
    }
    __syncwarp();
    if (group.is_active) {
      if (ends_strip) ++group.strip;
      group.chunk = ends_strip ? group.first_chunk() : chunk + 1;
      if (ends_strip) group.fetch_all(group.chunk, edge_above(), true);
    }
  }
  return group.any_of_group(status == PairStatus::kIntegerLog2) ? PairStatus::kIntegerLog2 : PairStatus::kGivenUp;
}

template <class Group>
__global__ void __launch_bounds__(kWarp, kVectorForwardWarps) vector_forward_kernel(
    const __grid_constant__ Problem<float> problem, const __grid_constant__ VectorLayout layout, float* value, char* memory,
    int64_t stride, PairStatus* statuses) {
  __shared__ VectorForwardMemory<Group> shared;
  const int64_t place = int64_t{blockIdx.x} * (kWarp / layout.forward_lanes) + threadIdx.x / layout.forward_lanes;
  const bool exists = place < problem.batch;
  const int64_t pair = exists ? place : problem.batch - 1;
  const PairStatus status = vector_forward<Group>(problem, layout, shared, pair, exists, memory + pair * stride, value);
  if (exists && threadIdx.x % layout.forward_lanes == 0) statuses[pair] = status;
}

}  // namespace softdtw
