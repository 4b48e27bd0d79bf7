// The sweep of one chunk of a strip (strip.cuh), forward and reversed. Nothing here waits, loads or stores.
#pragma once

#include "tile.cuh"

namespace softdtw {

// The pair's last cell, if it is in a lane's tile: its row and step there.
template <class S>
struct Capture {
  int row = -1, step = -1;
  Entry<typename S::Scalar> entry;
};

// (1) over a chunk. `visit(k, t, diag, up, left)` computes a cell; `column(t, bottom, rows)` sees a finished step: the entry
// of the lane's last row before the step, and all rows after it. kGeneral: cells may lie outside the table.
template <bool kGeneral, class S, class Visit, class Column>
__device__ __forceinline__ void sweep(
    const Extent& extent, const Place<S>& place, int lane, const Group<S>& top, typename S::Scalar above, Lane<S>& state,
    Visit&& visit, Column&& column) {
  using T = typename S::Scalar;
#pragma unroll
  for (int t = 0; t < S::kSteps; ++t) {
    const Entry<T> bottom = state.left[S::kRows - 1];
    const T handed_m = __shfl_up_sync(kAllLanes, bottom.m, 1), handed_s = __shfl_up_sync(kAllLanes, bottom.s, 1);
    Entry<T> up = {(lane == 0 ? top.m[t] : handed_m) + above, lane == 0 ? top.s[t] : handed_s};
    Entry<T> diag = state.diag;
    state.diag = up;
#pragma unroll
    for (int k = 0; k < S::kRows; ++k) {
      const Entry<T> left = state.left[k];
      up = visit(k, t, diag, up, left);
      if (kGeneral && !place.holds(extent, k, t)) up = {Unreachable<T>::value, T(1)};
      state.left[k] = up;
      diag = left;
    }
    column(t, bottom);
  }
}

template <bool kGeneral, class S, class Recurrence>
__device__ __forceinline__ void sweep_forward(
    const Recurrence& recurrence, const Extent& extent, const Place<S>& place, int lane, const Group<S>& top,
    typename S::Scalar above, const typename S::Scalar (&costs)[S::kRows][S::kSteps], Lane<S>& state, Group<S>& bottoms,
    Capture<S>& capture) {
  using T = typename S::Scalar;
  sweep<kGeneral>(
      extent, place, lane, top, above, state,
      [&](int k, int t, Entry<T> diag, Entry<T> up, Entry<T> left) {
        return recurrence.template cell<kGeneral>(diag, up, left, costs[k][t]);
      },
      [&](int t, Entry<T> bottom) {
        bottoms.m[t] = bottom.m;
        bottoms.s[t] = bottom.s;
        if (kGeneral && t == capture.step) {
#pragma unroll
          for (int k = 0; k < S::kRows; ++k)
            if (k == capture.row) capture.entry = state.left[k];
        }
      });
}

// The same sweep, from a snapshot, keeping each cell's weights for the reversed sweep.
template <bool kGeneral, class S, class Recurrence>
__device__ __forceinline__ void sweep_weights(
    const Recurrence& recurrence, const Extent& extent, const Place<S>& place, int lane, const Group<S>& top,
    typename S::Scalar above, const typename S::Scalar (&costs)[S::kRows][S::kSteps], Lane<S>& state,
    Weights<typename S::Scalar> (&weights)[S::kRows][S::kSteps]) {
  using T = typename S::Scalar;
  sweep<kGeneral>(
      extent, place, lane, top, above, state,
      [&](int k, int t, Entry<T> diag, Entry<T> up, Entry<T> left) {
        const Entry<T> cell = recurrence.template cell<kGeneral>(diag, up, left, costs[k][t], weights[k][t]);
        if (kGeneral && !place.holds(extent, k, t)) weights[k][t] = {T(0), T(0), T(0)};
        return cell;
      },
      [](int, Entry<T>) {});
}

// What flows between chunks of the reversed sweep: shares of E on their way to cells not visited yet.
template <class S>
struct Flow {
  using T = typename S::Scalar;
  T left[S::kRows] = {};  // from the column to the right, same row
  T diag[S::kRows] = {};  // from the column to the right, row k: bound for row k - 1
  T handed = 0;           // from the lane's first row to the lane above, at the column of the step before
  T below_next = 0;       // lane 31: the first entry of the group of flows used before
};

// (3), (4) with the normalised weights: a cell's E is what its three successors hand it. `below` is what the strip below
// hands to lane 31 for columns one left of lane 31's (a group as stored), `out` what lane 0 hands to the strip above.
// kGeneral: the pair's last cell, where E is 1, may be here.
template <bool kGeneral, class S>
__device__ __forceinline__ void sweep_reversed(
    const Weights<typename S::Scalar> (&weights)[S::kRows][S::kSteps], int lane, int end_row, int end_step,
    const typename S::Scalar (&below)[S::kSteps], Flow<S>& flow, typename S::Scalar (&out)[S::kSteps],
    typename S::Scalar (&alignment)[S::kRows][S::kSteps]) {
  using T = typename S::Scalar;
#pragma unroll
  for (int t = S::kSteps - 1; t >= 0; --t) {
    const T from_lane_below = __shfl_down_sync(kAllLanes, flow.handed, 1);
    T handed = lane == kWarp - 1 ? (t + 1 < S::kSteps ? below[(t + 1) % S::kSteps] : flow.below_next) : from_lane_below;
#pragma unroll
    for (int k = S::kRows - 1; k >= 0; --k) {
      T e = flow.left[k] + handed;
      if (kGeneral && t == end_step && k == end_row) e = T(1);
      alignment[k][t] = e;
      flow.left[k] = weights[k][t].left * e;
      handed = DeviceMath<T>::fma(weights[k][t].up, e, flow.diag[k]);
      flow.diag[k] = weights[k][t].diag * e;
    }
    flow.handed = handed;
    out[t] = handed;
  }
  flow.below_next = below[0];
}

}  // namespace softdtw
