// One warp computes its pairs' values (banded.cuh).
#pragma once

#include "ring.cuh"

namespace softdtw {

constexpr int kGroupsBetweenLooks = 8;
constexpr int kRingSlack = 40;  // binary orders that a pair may be behind where a look says that it will leave the range

// As of the linear domain. Of the pair's frontier, all of its lanes.
template <int kRows>
__device__ __forceinline__ bool is_promising(const RingPair<kRows>& pair, const RingState<kRows>& state, int groups) {
  int highest = state.highest_exponent();
  for (int distance = pair.lanes / 2; distance > 0; distance /= 2)
    highest = max(highest, __shfl_xor_sync(kAllLanes, highest, distance));
  const int top = pair.penalty.top(), used = top - highest;
  return used <= top - kLeast && (used - kRingSlack) * pair.foreseen <= groups * (top - kLeast);
}

// Returns the last entry of the pair to the lane that holds it, else 0; 0 where the pair is given up.
template <class Weight, int kRows>
__device__ __forceinline__ double ring_forward(RingPair<kRows>& pair, const RingLayout& layout, int* kept) {
  constexpr int kGroups = RingLayout::groups_of_chunk(kRows);
  pair.take_rows(pair.block(0));
  RingSweep<RingPair<kRows>, RingCells<Weight, kRows>> sweep(pair, 0);
  RingState<kRows>& state = sweep.cells.state;
  state.start();
  double last = 0;
  bool holds = pair.fits;  // by the pair's own looks alone, whatever its neighbours in the warp do
  for (int i = 0; i < pair.most_groups; ++i) {
    if (kept != nullptr && i % kGroups == 0 && i > 0 && i < pair.groups)
      state.keep(kept + (i / kGroups - 1) * layout.words_of_chunk(false), pair.lanes, pair.lane);
    if (i % kGroupsBetweenLooks == kGroupsBetweenLooks - 1) {
      const bool is_promised = is_promising(pair, state, i);
      holds = holds && (is_promised || i >= pair.groups);
      if (!__any_sync(kAllLanes, holds && i < pair.groups)) break;
    }
    sweep.turn(i);
    const bool ends = i == pair.groups - 1;
    if (i == 0 || (i >= pair.fewest_groups - 1 && __any_sync(kAllLanes, ends))) {
      const int end = ends && pair.is_block_of_last_row(i) ? pair.last_step : -1;
      sweep.template group<true>(i, [&](int r) {
        if (r == end) last = pick(state.left, (pair.extent.n - 1) % kRows);
      });
    } else {
      sweep.template group<false>(i, [](int) {});
    }
  }
  return holds ? last : 0;
}

// Returns whether the lane's pair is taken.
template <int kRows>
__device__ bool banded_forward(
    const Problem<float>& problem, const RingLayout& layout, int64_t first_pair, float* memory, float* value, char* saved,
    int64_t stride) {
  const int64_t own = RingPair<kRows>::number(layout, first_pair);
  RingPair<kRows> pair(problem, layout, min(own, problem.batch - 1), own < problem.batch);
  if (!__any_sync(kAllLanes, pair.fits)) return false;
  char* const kept_of_pair = saved == nullptr || !pair.fits ? nullptr : saved + pair.pair * stride;
  pair.read_series(problem, layout, memory, reinterpret_cast<float*>(kept_of_pair));
  int* const kept =
      kept_of_pair == nullptr || !pair.fits ? nullptr : reinterpret_cast<int*>(kept_of_pair) + layout.words_of_series();
  const double last =
      pair.all_shallow() ? ring_forward<ShallowWeight>(pair, layout, kept) : ring_forward<DeepWeight>(pair, layout, kept);
  const bool accepted = pair.fits && last >= power_of_two(kLeast);
  if (accepted) {
    const double exponent = pair.penalty.top() - log2(last) - pair.penalty.of_step() * (pair.extent.n + pair.extent.m);
    value[pair.pair] = static_cast<float>(exponent * problem.gamma_of(pair.pair) * kLn2);
  }
  return pair.any_of_pair(accepted);
}

}  // namespace softdtw
