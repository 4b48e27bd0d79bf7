// The extended range: equations (1), (3) and (4) on entries s 2^-m with a whole m per cell (recurrence.h), right for every
// gamma and every cost.
//
// A lane keeps m relative to a reference of its own, a whole float64 that is renewed every stage, or before it is time to
// (sweeping_warp.cuh). Where all that a lane holds and meets until then stays within 2^22 of floor_of_m() (bounds on costs, a look
// at m after a chunk), m is float32 and exact, since float32 holds whole numbers up to 2^24. Any other chunk, and one that a cell outside the
// band touches, takes the general sweep, with m in float64. So the only roundings are those of s, of the costs, of m beyond
// 2^53, and of what is saved beyond 2^45 of m (PackedEntry).
#pragma once

#include "core/cost.h"
#include "cuda/hardware/handoff.cuh"
#include "device_math.cuh"
#include "packed_entry.cuh"

namespace softdtw {

template <class S, typename M>
struct Lane {
  using Cell = Entry<typename S::Scalar, M>;
  Cell left[S::kRows];  // the lane's rows at the column it has just left
  Cell diag;            // the row above them, one column before

  __device__ __forceinline__ Cell& at(int i) { return i < S::kRows ? left[i < S::kRows ? i : 0] : diag; }
  __device__ __forceinline__ const Cell& at(int i) const { return i < S::kRows ? left[i < S::kRows ? i : 0] : diag; }
};

// Where a lane's smallest m is brought to by a renewal. In float32 the middle of [2^23, 2^24), where the bits of two whole numbers, as
// integers, differ by what the numbers do (power_of_difference).
template <class S>
__device__ __forceinline__ constexpr typename S::Scalar floor_of_m() {
  return sizeof(typename S::Scalar) == 4 ? 12582912 : 0;
}

// m of a cell that no path reaches, in the plain sweep.
template <class S>
__device__ __forceinline__ constexpr typename S::Scalar nowhere() {
  return Unreachable<typename S::Scalar>::value;
}

// The columns of the edge above a chunk, for lane 0: m relative to the reference, as the plain sweep left it, or packed, if
// `wide`.
template <class S>
struct ExtendedTop {
  using T = typename S::Scalar;
  T m[S::kSteps], s[S::kSteps];
  double reference = -floor_of_m<S>();
  bool exists = false, wide = false;

  __device__ __forceinline__ ExtendedTop() {
#pragma unroll
    for (int t = 0; t < S::kSteps; ++t) {
      m[t] = nowhere<S>();
      s[t] = 1;
    }
  }
  template <class Edge>
  __device__ __forceinline__ void read(const Edge& edge, int g, bool near) {
    load_group(edge.group(g), near, m);
    load_group(edge.group(g) + S::kSteps, near, s);
    reference = load(edge.references + g, near);
    complete();
  }
  template <class Slot>
  __device__ __forceinline__ void read(const Slot& slot) {
    load_group(slot.entries, true, m);
    load_group(slot.entries + S::kSteps, true, s);
    reference = slot.reference;
    complete();
  }
  __device__ __forceinline__ void complete() {
    exists = true;
    if constexpr (sizeof(T) == 4) wide = packed(0).exists();
  }
  __device__ __forceinline__ PackedEntry packed(int t) const {
    return {__float_as_uint(static_cast<float>(m[t])), __float_as_uint(static_cast<float>(s[t]))};
  }
  // An entry for an edge, from the plain sweep or the general one.
  __device__ __forceinline__ static void write(T* group, int t, const Entry<T>& entry) {
    group[t] = entry.m;
    group[S::kSteps + t] = entry.s;
  }
  __device__ __forceinline__ static void write(T* group, int t, Entry<float, double> entry) {
    normalise(entry);
    const PackedEntry packed = PackedEntry::of(entry.m, entry.s);
    group[t] = __uint_as_float(packed.low);
    group[S::kSteps + t] = __uint_as_float(packed.high);
  }
};

// Brings every s of a lane to [1, 2). Once a chunk: a number that travels with the wavefront, from lane to lane and from strip
// to strip, then passes no more than kSteps + 1 columns of lanes between two such times, in which s stays far from the ends of
// float32's range. Once a stage would not do, since strips hand over in step with their stages.
template <class S, typename M>
__device__ __forceinline__ void normalise(Lane<S, M>& state) {
#pragma unroll
  for (int i = 0; i <= S::kRows; ++i) normalise(state.at(i));
}

// Renews the lane's reference so that its smallest m becomes floor_of_m(). A lane that no path has reached yet takes over the reference
// of the nearest lane above that one has.
template <class S, typename M>
__device__ __forceinline__ void renew(Lane<S, M>& state, double& reference, int lane, double top_reference) {
  M lowest = Unreachable<M>::value;
#pragma unroll
  for (int i = 0; i <= S::kRows; ++i) lowest = DeviceMath<M>::min(lowest, state.at(i).m);
  const bool reached = !is_unreachable(lowest);
  const unsigned reached_lanes = __ballot_sync(kAllLanes, reached);
  if (reached) {
    const M by = lowest - static_cast<M>(floor_of_m<S>());
#pragma unroll
    for (int i = 0; i <= S::kRows; ++i) state.at(i).m -= by;
    reference += static_cast<double>(by);
  }
  if (reached_lanes != kAllLanes) {
    if (lane == 0 && !reached) reference = top_reference;
    const double nearest = __shfl_sync(kAllLanes, reference, 31 - __clz((reached_lanes | 1u) & ((2u << lane) - 1u)));
    if (!reached) reference = nearest;
  }
}

// From here on a reference above is far below a lane's own. What comes from there would lose digits of m: beyond 2^53, or 2^45 in
// an edge (PackedEntry), to which all lanes of a strip may add up.
template <class S>
constexpr double kFarAbove = sizeof(typename S::Scalar) == 4 ? 4294967296.0 : 1099511627776.0;  // 2^32, 2^40

// Lowers the lane's reference to the lowest one above it. What loses digits of m instead is far worse than something above it.
template <class S, typename M>
__device__ __forceinline__ void lower(Lane<S, M>& state, double& reference, int lane, const ExtendedTop<S>& top) {
  double lowest = lane == 0 && top.exists ? fmin(reference, top.reference) : reference;
#pragma unroll 1
  for (int distance = 1; distance < kWarp; distance *= 2)
    lowest = fmin(lowest, __shfl_up_sync(kAllLanes, lowest, distance));
#pragma unroll
  for (int i = 0; i <= S::kRows; ++i) state.at(i).m += reference - lowest;
  reference = lowest;
}

// Whether float32 holds every m of the lane exactly, and of a stage that adds less than another half of the limit. Entries of
// the lane above that are too large for that count as unreachable: they are too small to matter next to entries that all are
// below the limit.
template <class S, typename M>
__device__ __forceinline__ bool is_narrow(const Lane<S, M>& state) {
  constexpr M kLimit = static_cast<M>(floor_of_m<S>()) + static_cast<M>(Whole<typename S::Scalar>::limit / 2);
  bool all = true;
#pragma unroll
  for (int i = 0; i <= S::kRows; ++i)
    all = all && (state.at(i).m < kLimit || is_unreachable(state.at(i).m));  // not if one is NaN
  return all;
}

// From here on a reference above is so far above that what comes from there cannot count.
template <typename T>
constexpr T kMostShift = 2 * Whole<T>::limit;

// Whether a chunk left m exact. Costs, and so what m rises by, are bounded beforehand; what m falls by, where far better entries come
// from above, is not. It falls by a lot in the first columns of structured series: a column's sum of costs is far above the alignments that
// a few more columns allow. In units of the limit, 2^22: with the costs of one chunk, 0.28 at most (need_exact_costs() bounds one, and a
// penalty), m has been above floor_of_m() - 5/8 - 0.28 meanwhile. So it has stayed above 2^23, 1 below, and entries that the lane below
// has left out (shift_of), 2 above its reference, stay above its lowest m, which is below 1/2. Nor may m have left [2^23, 2^24) upwards, as
// that of a lane that has entered the table far above its reference.
template <bool kByBits, class S>
__device__ __forceinline__ bool is_exact(const Lane<S, float>& state) {
  constexpr float kLimit = Whole<float>::limit, kFloor = floor_of_m<S>();
  constexpr float kMost = kFloor + (kByBits ? kLimit * 3 / 4 : kLimit), kMostFall = kLimit * 5 / 8;
  constexpr float kRise = (S::kRows + S::kSteps) * kMostRounded * 3 / 2;  // of a chunk: costs, and a penalty of half of one
  static_assert(!kByBits || kFloor - kMostFall - kRise >= kLimit * 2, "m stays in [2^23, 2^24)");
  constexpr float kLeftOut = kMostShift<float>;
  static_assert(kLeftOut - kMostFall - kRise > kLimit / 2 + 256, "what shift_of leaves out does not count");
  float lowest = state.left[0].m;
  // Without a jump, which would part the sweep's last instructions from the others.
  bool all = true;
#pragma unroll
  for (int k = 0; k < S::kRows; ++k) {
    const float m = state.left[k].m;
    lowest = fminf(lowest, m);
    all = all & ((m < kMost) | (m >= nowhere<S>() / 2));
  }
  return all & (lowest > kFloor - kMostFall);
}
// Of float64: where an m has been below -2^53, the costs of the chunk, which are small next to that (Width::plain), cannot have brought
// all that comes from it back. Seen afterwards, since the sweep begins before all that comes from above is there.
template <bool kByBits, class S>
__device__ __forceinline__ bool is_exact(const Lane<S, double>& state) {
  double lowest = state.left[0].m;
#pragma unroll
  for (int k = 1; k < S::kRows; ++k) lowest = DeviceMath<double>::min(lowest, state.left[k].m);
  return !(lowest <= -kFarAbove<S>);  // NaN stays NaN
}

// Between the two widths of m; narrowing only what is_narrow accepts.
template <class S, typename To, typename From>
__device__ __forceinline__ Lane<S, To> convert(const Lane<S, From>& state) {
  Lane<S, To> result;
#pragma unroll
  for (int i = 0; i <= S::kRows; ++i) result.at(i) = {convert_m<To>(state.at(i).m), state.at(i).s};
  return result;
}

// What the plain sweep adds to m of the row above a lane. Sums beyond 2^24 are rounded; they do not count either.
template <class S>
__device__ __forceinline__ typename S::Scalar shift_of(double above) {
  using T = typename S::Scalar;
  return above >= kMostShift<T> ? nowhere<S>() : static_cast<T>(above);
}

// (1) over a chunk. `visit(k, t, diag, up, left)` computes a cell; `column(t, bottom)` sees every step, with the entry of the
// lane's last row before it.
template <class S, class Visit, class Column>
__device__ __forceinline__ void sweep_extended(
    int lane, const ExtendedTop<S>& top, typename S::Scalar shift, Lane<S, typename S::Scalar>& state, Visit&& visit,
    Column&& column) {
  using T = typename S::Scalar;
  using Cell = Entry<T>;
#pragma unroll
  for (int t = 0; t < S::kSteps; ++t) {
    const Cell bottom = state.left[S::kRows - 1];
    const T handed_m = __shfl_up_sync(kAllLanes, bottom.m, 1), handed_s = __shfl_up_sync(kAllLanes, bottom.s, 1);
    Cell up = {(lane == 0 ? top.m[t] : handed_m) + shift, lane == 0 ? top.s[t] : handed_s};
    Cell diag = state.diag;
    state.diag = up;
#pragma unroll
    for (int k = 0; k < S::kRows; ++k) {
      const Cell left = state.left[k];
      state.left[k] = up = visit(k, t, diag, up, left);
      diag = left;
    }
    column(t, bottom);
  }
}

// What the sum of a cell needs that does not depend on any s: the powers of two that bring its terms to the same m, and the
// cost's share.
template <typename T>
struct Terms {
  T left, diag, up, own;
};

// Whether the plain sweep that runs ahead takes powers of two from the bits of m, in two integer operations, where the hardware has
// them: the exponential unit takes four times as long.
#if __CUDA_ARCH__ >= 900
constexpr bool kHasFastBits = true;
#else
constexpr bool kHasFastBits = false;
#endif

// The smallest of three m, whole numbers in [2^23, 2^24) or unreachable, and 2^(low - m), 0 below 2^-126, by their bits.
__device__ __forceinline__ float lowest_of(float a, float b, float c) {
  return __int_as_float(__vimin3_s32(__float_as_int(a), __float_as_int(b), __float_as_int(c)));
}
__device__ __forceinline__ float power_of_difference(float low, float m) {
  const int difference = __viaddmax_s32(__float_as_int(low), -__float_as_int(m), -127);
  return __int_as_float(difference * (1 << 23) + 0x3f800000);
}

// The terms of a cell, and its m; `own` is its cost, split.
template <bool kByBits, typename T>
__device__ __forceinline__ Terms<T> terms_of(T diag, T up, T left, const Entry<T>& own, T& m) {
  if constexpr (kByBits) {
    const T low = lowest_of(left, diag, up);
    m = low + own.m;
    return {power_of_difference(low, left), power_of_difference(low, diag), power_of_difference(low, up), own.s};
  } else {
    const T low = DeviceMath<T>::min(DeviceMath<T>::min(left, diag), up);
    m = low + own.m;
    return {DeviceMath<T>::power(low - left), DeviceMath<T>::power(low - diag), DeviceMath<T>::power(low - up), own.s};
  }
}

// A cell's s, and with it the weights. Powers of two round nothing, so this is what SoftDtw::cell computes, to the bit.
template <typename T>
__device__ __forceinline__ T sum_of(const Terms<T>& terms, T diag, T up, T left) {
  const T both = DeviceMath<T>::fma(diag, terms.diag, left * terms.left);
  return DeviceMath<T>::fma(up, terms.up, both) * terms.own;
}
template <typename T>
__device__ __forceinline__ T sum_of(const Terms<T>& terms, T diag, T up, T left, Weights<T>& weights) {
  const T from_left = left * terms.left, from_up = up * terms.up;
  const T sum = DeviceMath<T>::fma(diag, terms.diag, from_left) + from_up;
  weights = DeviceMath<T>::divide(from_up, from_left, sum);
  return sum * terms.own;
}

// The plain sweep with every m some steps ahead of its s. `split cost(k, t)` is a cell's cost, split, `sum(k, t, terms, diag, up,
// left)` its s.
template <bool kByBits, class S, class SplitCost, class Sum, class Column>
__device__ __forceinline__ void sweep_ahead(
    int lane, const ExtendedTop<S>& top, typename S::Scalar shift, Lane<S, typename S::Scalar>& state,
    SplitCost&& split_cost, Sum&& sum, Column&& column) {
  using T = typename S::Scalar;
  constexpr int kAhead = 2, kHeld = kAhead + 1;
  Terms<T> terms[kHeld][S::kRows];
  T bottom[kHeld];  // m of the lane's last row before the step
  const auto look_ahead = [&](int t) {
    bottom[t % kHeld] = state.left[S::kRows - 1].m;
    const T handed = __shfl_up_sync(kAllLanes, bottom[t % kHeld], 1);
    T up = (lane == 0 ? top.m[t] : handed) + shift, diag = state.diag.m;
    state.diag.m = up;
#pragma unroll
    for (int k = 0; k < S::kRows; ++k) {
      const T left = state.left[k].m;
      terms[t % kHeld][k] = terms_of<kByBits>(diag, up, left, split_cost(k, t), up);
      state.left[k].m = up;
      diag = left;
    }
  };
#pragma unroll
  for (int t = 0; t < kAhead; ++t) look_ahead(t);
#pragma unroll
  for (int t = 0; t < S::kSteps; ++t) {
    if (t + kAhead < S::kSteps) look_ahead(t + kAhead);
    const T last = state.left[S::kRows - 1].s;
    const T handed = __shfl_up_sync(kAllLanes, last, 1);
    T up = lane == 0 ? top.s[t] : handed, diag = state.diag.s;
    state.diag.s = up;
#pragma unroll
    for (int k = 0; k < S::kRows; ++k) {
      const T left = state.left[k].s;
      up = sum(k, t, terms[t % kHeld][k], diag, up, left);
      state.left[k].s = up;
      diag = left;
    }
    column(t, Entry<T>{bottom[t % kHeld], last});
  }
}

// What flows between chunks of the reversed sweep: shares of E on their way to cells not visited yet.
template <class S>
struct ExtendedFlow {
  using T = typename S::Scalar;
  T left[S::kRows] = {};  // from the column to the right, same row
  T diag[S::kRows] = {};  // from the column to the right, row k: bound for row k - 1
  T handed = 0;           // from the lane's first row to the lane above, at the column of the step before
  T below_next = 0;       // lane 31: the first entry of the group of flows used before

  // The largest of them; NaN if one is NaN.
  __device__ __forceinline__ T most() const {
    T most = greater(handed, below_next);
#pragma unroll
    for (int k = 0; k < S::kRows; ++k) most = greater(most, greater(left[k], diag[k]));
    return most;
  }
};

// What does not count of E, where it flows from stage to stage.
template <typename T>
constexpr T kLeftOut = sizeof(T) == 4 ? T(5.421011e-20) : T(2.938736e-39);  // 2^-64, 2^-128

// (3), (4) with the normalised weights, `weights(k, t)`: a cell's E is what its three successors hand it. `below` is what the
// strip below hands to lane 31 for columns one left of lane 31's (a group as stored). `cell(k, t, e)` sees every cell,
// `column(t, handed)` every step, with what lane 0 hands to the strip above. kGeneral: cells outside the table take no part, and the pair's last
// cell, where E is 1, may be here.
template <bool kGeneral, class S, class Where, class Shares, class Cell, class Column>
__device__ __forceinline__ void sweep_extended_reversed(
    Shares&& weights, const Extent& extent, const Where& place, int lane, int end_row, int end_step,
    const typename S::Scalar (&below)[S::kSteps], ExtendedFlow<S>& flow, Cell&& cell, Column&& column) {
  using T = typename S::Scalar;
#pragma unroll
  for (int t = S::kSteps - 1; t >= 0; --t) {
    const T from_lane_below = __shfl_down_sync(kAllLanes, flow.handed, 1);
    T handed = lane == kWarp - 1 ? (t + 1 < S::kSteps ? below[(t + 1) % S::kSteps] : flow.below_next) : from_lane_below;
#pragma unroll
    for (int k = S::kRows - 1; k >= 0; --k) {
      T e = flow.left[k] + handed;
      if (kGeneral && t == end_step && k == end_row) e = T(1);
      if (kGeneral && !place.holds(extent, k, t)) e = T(0);
      cell(k, t, e);
      const Weights<T> share = weights(k, t);
      flow.left[k] = share.left * e;
      handed = DeviceMath<T>::fma(share.up, e, flow.diag[k]);
      // The rest, of which rounding may leave a little less than nothing.
      flow.diag[k] = DeviceMath<T>::max(DeviceMath<T>::fma(-share.up, e, DeviceMath<T>::fma(-share.left, e, e)), T(0));
    }
    flow.handed = handed;
    column(t, handed);
  }
  flow.below_next = below[0];
}

}  // namespace softdtw
