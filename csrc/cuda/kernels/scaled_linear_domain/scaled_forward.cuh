// Values, by groups of lanes in the scaled linear domain: strip by strip, chunk by chunk, each group at its own pace.
#pragma once

#include "cuda/numbers/pair_status.cuh"
#include "scaled_state.cuh"

namespace softdtw {

template <int kDims, int kRows>
struct ScaledForwardMemory : ScaledMemory<kDims> {
  using Base = ScaledMemory<kDims>;
  double handed[Base::kGroups][Base::kSteps];  // the strip's last row, at the columns of its last lane
  int handed_reference[Base::kGroups][Base::kSteps];
  typename ScaledState<kRows>::Spare spare;  // lanes at the start of a chunk that may have to be swept again
};

// So far may columns be from the strip's middle, squared, for weights of all its rows to be shallow, and for them to be right.
template <class Group>
struct ScaledReach {
  float middle[Group::kDims], shallow, deep;

  __device__ __forceinline__ static float beyond(float radius, float rows) {
    const float rest = radius * 0.9999f - rows;
    return rest >= 0 ? rest * rest : -1;
  }
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
    widest = sqrtf(widest);
    using CostType = typename Group::CostType;
    shallow = beyond(radius_of_cost<CostType>(kShallowScaled / group.scale, Group::kDims), widest);
    deep = beyond(radius_of_cost<CostType>(kDeepScaled / group.scale, Group::kDims), widest);
  }
  template <int kSize>
  __device__ __forceinline__ float square(const float (&vector)[kSize]) const {
    float sum = 0;
#pragma unroll
    for (int d = 0; d < Group::kDims; ++d) sum = fmaf(vector[d] - middle[d], vector[d] - middle[d], sum);
    return sum;
  }
};

// The group's part: `own` of its pair, in what is saved or, for the edge alone, in scratch memory. Returns the pair's status.
template <class CostType, int kDims, int kRows>
__device__ __forceinline__ PairStatus scaled_forward(
    const Problem<float>& problem, const ScaledLayout& layout, ScaledForwardMemory<kDims, kRows>& memory, int64_t pair,
    bool wanted, char* own, float* value) {
  using Group = ScaledGroup<CostType, kDims, kRows>;
  constexpr int kSteps = Group::kSteps;
  Group group(problem, layout, memory, pair, wanted);
  ScaledReach<Group> reach;
  ScaledState<kRows> state;
  state.start(false, 0);
  PairStatus status = PairStatus::kGivenUp;
  const bool is_light = problem.penalty_of(pair) * problem.scale_of(pair) <= kMostScaledPenalty;
  if (!is_light || !(group.mean_cost() <= kMostScaledMean)) group.is_active = false;
  while (__any_sync(kAllLanes, group.is_active)) {
    const int strip = group.strip, chunk = group.chunk;
    const bool starts = group.is_active && chunk == 0, has_edge = group.is_active && strip > 0;
    const ScaledNumber* const above = layout.edge(own, max(strip - 1, 0));
    if (__any_sync(kAllLanes, starts)) {
      if (starts) {
        group.read_rows();
        // A strip's first entry comes to the top.
        state.start(strip == 0 && group.is_first_lane(), kScaledTop + (strip > 0 ? above[0].m : 0));
      }
      reach.look_at(group);
    }
    bool is_shallow = true, is_right = true;
    group.read_columns([&](const auto& vector) {
      const float square = reach.square(vector);
      is_shallow = is_shallow && square <= reach.shallow;
      is_right = is_right && square <= reach.deep;
    });
    group.read_edge(above, has_edge);
    if (!group.all_of_group(is_right)) group.is_active = false;
    bool is_plain = __all_sync(kAllLanes, !group.is_active || (is_shallow && !group.may_enter() && !group.ends_here()));
    const bool keeps = layout.keeps && group.is_active;
    int* const kept = layout.snapshot(own, strip, chunk);
    if (keeps) state.keep(group, kept);
    __syncwarp();

    double last = 0;
    const int reference_before = state.reference, lost_before = state.lost;
    int reference = 0;  // of the last entry
    if (is_plain) {
      state.put_aside(memory.spare);
      state.start_plain(group);
      reference = group.of_lane(state.reference, group.lanes - 1);
#pragma unroll 2
      for (int t = 0; t < kSteps; ++t) {
        state.plain_step(group, t);
        if (group.is_last_lane()) memory.handed[group.group][t] = state.left[kRows - 1];
      }
      for (int i = group.lane; i < kSteps; i += group.lanes) memory.handed_reference[group.group][i] = reference;
      state.template renew<false>(group, group.has_rows());
      is_plain = __all_sync(kAllLanes, !group.is_active || state.is_exact);
      if (!is_plain) state.take_again(memory.spare, reference_before, lost_before);
      __syncwarp();
    }
    if (keeps) state.keep_reference(group, reference_before, !is_plain, kept);
    if (!is_plain) {
      const int end = group.ends_here() && group.lane == group.end_lane ? group.end_step - chunk * kSteps : -1;
#pragma unroll 1
      for (int t = 0; t < kSteps; ++t) {
        state.careful_step(group, t);
        if (group.is_last_lane()) {
          memory.handed[group.group][t] = state.left[kRows - 1];
          memory.handed_reference[group.group][t] = state.reference;
        }
        state.renew_after(group, t);
        if (t == end) {
          last = pick(state.left, group.end_row);
          reference = state.reference;
        }
      }
    }
    __syncwarp();
    if (!group.all_of_group(state.is_exact)) group.is_active = false;
    if (group.is_active && !group.is_last_strip()) {
      ScaledNumber* const below = layout.edge(own, strip);
      for (int i = group.lane; i < kSteps; i += group.lanes) {
        const int column = chunk * kSteps + i - (group.lanes - 1);
        if (column >= 0 && column < group.extent.m)
          below[column] = ScaledNumber::of(memory.handed[group.group][i], memory.handed_reference[group.group][i]);
      }
    }
    if (group.is_active && group.ends_here()) {
      if (last > 0) {
        const double exponent = reference - log2(last) - group.penalty.of_step() * (group.extent.n + group.extent.m);
        value[pair] = static_cast<float>(exponent * problem.gamma_of(pair) * kLn2);
      }
      status = PairStatus::kLinearDomain;
      group.is_active = false;
    } else if (group.is_active) {
      if (chunk == group.last_chunk()) {
        ++group.strip;
        group.chunk = 0;
      } else {
        ++group.chunk;
      }
    }
    __syncwarp();
  }
  return status;
}

template <class CostType, int kDims, int kRows>
__global__ void __launch_bounds__(kWarp, kScaledForwardWarps<kDims>) scaled_forward_kernel(
    const __grid_constant__ Problem<float> problem, const __grid_constant__ ScaledLayout layout, float* value, char* memory,
    int64_t stride, PairStatus* statuses) {
  __shared__ ScaledForwardMemory<kDims, kRows> shared;
  const int64_t place = int64_t{blockIdx.x} * layout.groups() + threadIdx.x / layout.lanes;
  const bool exists = place < problem.batch;
  const int64_t pair = exists ? place : problem.batch - 1;
  const PairStatus status =
      scaled_forward<CostType, kDims, kRows>(problem, layout, shared, pair, exists, memory + pair * stride, value);
  if (exists && threadIdx.x % layout.lanes == 0) statuses[pair] = status;
}

}  // namespace softdtw
