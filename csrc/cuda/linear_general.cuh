// The general sweep of the linear engine: every number with an exponent of its own, for chunks that reach beyond the table or
// the band, with a warp penalty, or where the plain sweep (linear.cuh) overflowed. Slower, and nothing can leave its range.
#pragma once

#include "linear.cuh"

namespace softdtw {

// `sign` is -1 for groups of u' = u 2^e, whose numbers are u.
template <class S>
__device__ __forceinline__ Wide wide_of(const LinearGroup<S>& group, int t, int sign) {
  const auto slot = pick(group.entries, t);
  return group.general ? slot.wide() : Wide::of(slot.plain(), sign * group.unit);
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
    Wide up = lane == 0 ? wide_of(top, t, 1) : handed;
    Wide diag = corner;
    corner = up;
#pragma unroll
    for (int k = 0; k < S::kRows; ++k) {
      const auto root = tile.root_any(k, t);
      const Wide left = lefts[k];
      Wide a = (left.times(step) + diag + up.times(step)).times(Tile::weight(root));
      if (!place.holds(extent, k, t)) a = Wide();
      cell(k, t, root, a, std::true_type());
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

// (3), (4) over a chunk, from right to left; `entry(k, t)` is Wide. 1 arrives at row end_row in step end_step.
template <class S, class Tile, class Entry, class Root, class Cell, class Column>
__device__ __forceinline__ void sweep_linear_general_reversed(
    int lane, int end_row, int end_step, double step, const LinearGroup<S>& below, LinearFlow<S>& flow, Entry&& entry,
    Root&& root, Cell&& cell, Column&& column) {
  Wide rights[S::kRows], sum = Wide::of(flow.handed, -flow.handed_unit);
#pragma unroll
  for (int k = 0; k < S::kRows; ++k) rights[k] = Wide::of(flow.right[k], -flow.exponent[k]);
#pragma unroll 1
  for (int t = S::kSteps - 1; t >= 0; --t) {
    sum = shuffle_down(sum);
    if (lane == kWarp - 1)
      sum = t + 1 < S::kSteps ? wide_of(below, t + 1, -1) : Wide::of(flow.below_next, -flow.below_unit);
#pragma unroll
    for (int k = S::kRows - 1; k >= 0; --k) {
      const Wide a = entry(k, t), right = rights[k];
      Wide b = right.times(step) + sum;
      if (t == end_step && k == end_row) b = Wide::of(1 / a.a, -a.e);
      cell(k, t, a.a > 0 && b.a > 0 ? a.a * b.a * power_of_two(a.e + b.e) : 0.0);
      // A cell outside the table or the band has no entry, and takes no part.
      rights[k] = a.a > 0 ? b.times(Tile::weight(root(k, t, std::true_type()))) : Wide();
      sum = rights[k].times(step) + right;
    }
    column(t, sum);
  }
#pragma unroll
  for (int k = 0; k < S::kRows; ++k) {
    flow.right[k] = rights[k].a;
    flow.exponent[k] = -rights[k].e;
  }
  flow.handed = sum.a;
  flow.handed_unit = -sum.e;
  const Wide next = wide_of(below, 0, -1);
  flow.below_next = next.a;
  flow.below_unit = -next.e;
}

}  // namespace softdtw
