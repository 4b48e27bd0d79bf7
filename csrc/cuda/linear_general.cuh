// The general sweep of the linear engine: every number with an exponent of its own, for chunks that reach beyond the table or
// the band, with a warp penalty, or where the plain sweep (linear.cuh) overflowed. Slower, and nothing can leave its range.
#pragma once

#include "linear.cuh"

namespace softdtw {

template <class S>
__device__ __forceinline__ Wide wide_of(const LinearGroup<S>& group, int t) {
  const auto slot = pick(group.entries, t);
  return group.general ? slot.wide() : Wide::of(slot.plain(), group.unit);
}

// Brings a group that the general sweep left to one unit, that of its largest number, where that keeps every number.
template <class S>
__device__ __forceinline__ void flatten(LinearGroup<S>& group) {
  using T = typename S::Scalar;
  int highest = kNoExponent, lowest = kBias << 20;
#pragma unroll
  for (int t = 0; t < S::kSteps; ++t) {
    const Wide x = group.entries[t].wide();
    highest = max(highest, x.e);
    if (x.a > 0) lowest = min(lowest, x.e);
  }
  if (highest == kNoExponent || highest - lowest > kRange) return;
#pragma unroll
  for (int t = 0; t < S::kSteps; ++t) {
    const Wide x = group.entries[t].wide();
    group.entries[t] = Slot<T>::of(x.a * power_of_two(x.e - highest));
  }
  group.unit = highest;
  group.general = false;
}

// (2) over a chunk, `step` the penalty's factor. `cell` and `column` as in the plain sweep.
template <class S, class Tile, class Cell, class Column>
__device__ __forceinline__ void sweep_linear_general(
    const Extent& extent, const Place<S>& place, int lane, const Tile& tile, const LinearGroup<S>& top, double step,
    LinearLane<S>& state, Cell&& cell, Column&& column) {
  Wide lefts[S::kRows], corner = Wide::of(state.diag, state.above);
#pragma unroll
  for (int k = 0; k < S::kRows; ++k) lefts[k] = Wide::of(state.left[k], state.exponent[k]);
#pragma unroll 1
  for (int t = 0; t < S::kSteps; ++t) {
    const Wide bottom = lefts[S::kRows - 1];
    const Wide handed = shuffle_up(bottom);
    Wide up = lane == 0 ? wide_of(top, t) : handed;
    Wide diag = corner;
    corner = up;
#pragma unroll
    for (int k = 0; k < S::kRows; ++k) {
      const Wide left = lefts[k];
      Wide a = (left.times(step) + diag + up.times(step)).times(tile.weight_any(k, t));
      if (!place.holds(extent, k, t)) a = Wide();
      cell(k, t, a);
      lefts[k] = up = a;
      diag = left;
    }
    column(t, bottom);
  }
#pragma unroll
  for (int k = 0; k < S::kRows; ++k) {
    state.left[k] = lefts[k].a;
    state.exponent[k] = lefts[k].e;
  }
  state.diag = corner.a;
  state.above = corner.e;
}

}  // namespace softdtw
