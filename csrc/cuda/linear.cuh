// The linear engine: equations (2) to (4) as they stand, in float64 with an exponent of its own per lane.
//
// A lane holds a[i,j] as a' 2^reference, renewed every chunk so that its largest entry is near 1. A cell is then one
// exponential (float32, or float64 where the problem is), two multiplications and two additions of positive numbers, and its
// relative error stays near that of the exponential. Backward needs no weights: with f = w b / a[N,M] (scaled by
// 2^reference, so that a' f' is free of units) each predecessor's E is its own a' times the sum of its successors' f'.
//
// What could go wrong is range alone, and it is checked for every cell that a path can reach:
// - No a' is ever below 2^-kRange. In a chunk that a cell outside the table or the band may touch, every cell is looked at
//   (the slow sweep). Elsewhere a cell is at least its left neighbour times w, so it is enough that every few columns
//   (kCheck of a Tile) the lane's entries are above 2^(bound - kRange), where 2^-bound bounds the product of the weights of a
//   row's cells up to the next check.
// - A neighbour lane's entry that is flushed to zero when it is brought to this lane's exponent is below 2^-1022, and the
//   cell that it would have been added to is at least 2^-960: what it adds is below 2^-62 of the cell. The share of E that
//   it misses is as small, since both terms share every continuation.
// - Overflow, and every NaN, stays: a cell is no smaller than a positive weight times each of its predecessors, so an
//   infinity reaches the pair's last cell, whose value is looked at.
// - f' <= 1 / (a' of any predecessor), so it cannot overflow, and where it is flushed to zero E is below 2^-50.
// A pair that fails a check is rejected as a whole: its warps stop and robust.cuh computes it, in the same call.
#pragma once

#include "tile.cuh"

namespace softdtw {

constexpr int kRange = 960, kBias = 1023;

// The float64 of a normal float32 in (0, 1], without the conversion unit. 0 becomes 2^-127, which the checks reject.
__device__ __forceinline__ double widen(float a) {
  const unsigned bits = __float_as_uint(a);
  return __hiloint2double((bits >> 3) + (static_cast<unsigned>(kBias - 127) << 20), bits << 29);
}
__device__ __forceinline__ double widen(double a) { return a; }

// 2^e; 0 and infinity out of range.
__device__ __forceinline__ double power_of_two(int e) {
  return __hiloint2double(min(max(e + kBias, 0), 2 * kBias + 1) << 20, 0);
}

__device__ __forceinline__ double shuffle_up(double a) {
  return __hiloint2double(
      __shfl_up_sync(kAllLanes, __double2hiint(a), 1), __shfl_up_sync(kAllLanes, __double2loint(a), 1));
}
__device__ __forceinline__ double shuffle_down(double a) {
  return __hiloint2double(
      __shfl_down_sync(kAllLanes, __double2hiint(a), 1), __shfl_down_sync(kAllLanes, __double2loint(a), 1));
}

// A snapshot's word: in float32 problems the upper 32 bits of a positive float64, rounded to 21 bits of mantissa, an error
// that does not add up, since every chunk starts from its own snapshot.
__device__ __forceinline__ void pack(double a, unsigned& word) {
  word = static_cast<unsigned>((__double_as_longlong(a) + (1ll << 30)) >> 31);
}
__device__ __forceinline__ void pack(double a, double& word) { word = a; }
__device__ __forceinline__ double unpack(unsigned word) {
  return __longlong_as_double(static_cast<long long>(word) << 31);
}
__device__ __forceinline__ double unpack(double word) { return word; }
template <typename T>
using PackedWord = std::conditional_t<sizeof(T) == 4, unsigned, double>;

// The weights of a tile. In float32 one exponential reaches down to 2^-126; kSquared takes it of half the exponent and
// squares it in float64, for costs up to twice as large.
template <class S, class Tile_, bool kSquared>
struct LinearTile : Tile_ {
  using T = typename S::Scalar;
  using Tile = Tile_;
  static constexpr bool kHalved = kSquared && sizeof(T) == 4;
  static constexpr int kCheck = Tile::kUnivariate && kHalved ? 4 : 8;
  const T scale;
  T bound;  // of the sum of kCheck costs that follow each other in a row, as exponents of 2; NaN if one is NaN

  __device__ LinearTile(const Problem<T>& problem, const Extent& extent, const Strip<S>& strip, int64_t pair, int lane)
      : Tile(problem, extent, strip, pair, lane, static_cast<T>(sqrt(problem.scale * (kHalved ? 0.5 : 1.0)))),
        scale(static_cast<T>((problem.cost == Cost::kMatrix ? 1.0 : problem.scale) * (kHalved ? 0.5 : 1.0))) {}

  // What the tile's differences are multiplied by.
  __device__ __forceinline__ T unit() const {
    if constexpr (Tile::kUnivariate)
      return this->factor;
    else
      return T(1);
  }
  // The costs of a chunk as exponents (halved, if kHalved).
  __device__ __forceinline__ void use(const Place<S>& place) {
    Tile::use(place);
    constexpr T kDeepest = sizeof(T) == 4 ? 126 : 900;
    if constexpr (Tile::kUnivariate) {
      bound = this->reach * (kHalved ? 2 * kCheck : kCheck);
      if (!(this->reach <= kDeepest)) bound = NAN;
    } else {
      T sums = 0, largest = 0;
#pragma unroll
      for (int k = 0; k < S::kRows; ++k)
#pragma unroll
        for (int first = 0; first < S::kSteps; first += kCheck) {
          T sum = 0;
#pragma unroll
          for (int t = first; t < first + kCheck; ++t) {
            const T exponent = this->costs[k][t] *= scale;
            sum += max(exponent, T(0));
            largest = max(largest, DeviceMath<T>::abs(exponent));
          }
          sums = max(sums, sum);
        }
      bound = sums * (kHalved ? 2 : 1);
      if (!(this->reach * scale < T(INFINITY) && largest <= kDeepest)) bound = NAN;
    }
  }
  // The root of the weight, if kHalved.
  __device__ __forceinline__ T root(int k, int t) const { return DeviceMath<T>::exp2(-this->cost(k, t)); }
  __device__ __forceinline__ static double weight(T root) {
    const double wide = widen(root);
    return kHalved ? wide * wide : wide;
  }
};

template <class S>
struct LinearLane {
  double left[S::kRows];  // the lane's rows at the column it has just left
  double diag;            // the row above them, one column before
  int reference;
};

// The high word of the lane's smallest entry; positive float64 order as their high words do.
template <class S>
__device__ __forceinline__ int lowest_of(const LinearLane<S>& state) {
  int lowest = __double2hiint(state.left[0]);
#pragma unroll
  for (int k = 1; k < S::kRows; ++k) lowest = min(lowest, __double2hiint(state.left[k]));
  return lowest;
}

// Renews the lane's exponent so that its largest entry is in [1, 2). A lane that no path has reached yet takes over that of
// the nearest lane above that one has; in the first chunk that is the edge's.
template <bool kReached, class S>
__device__ __forceinline__ void renew(LinearLane<S>& state, int lane, int top_reference) {
  int highest = __double2hiint(state.diag);
#pragma unroll
  for (int k = 0; k < S::kRows; ++k) highest = max(highest, __double2hiint(state.left[k]));
  const int exponent = (highest >> 20) - kBias;
  if (kReached || highest > 0) {
    const double factor = power_of_two(-exponent);
#pragma unroll
    for (int k = 0; k < S::kRows; ++k) state.left[k] *= factor;
    state.diag *= factor;
    state.reference += exponent;
  }
  if (!kReached) {
    if (lane == 0 && highest == 0) state.reference = top_reference;
    const unsigned reached = __ballot_sync(kAllLanes, highest > 0) | 1u;
    const int nearest = __shfl_sync(kAllLanes, state.reference, 31 - __clz(reached & ((2u << lane) - 1u)));
    if (highest == 0) state.reference = nearest;
  }
}

// The columns of the edge above a chunk, for lane 0.
template <class S>
struct LinearTop {
  double entries[S::kSteps];
  int reference = 0;

  __device__ __forceinline__ LinearTop() {
#pragma unroll
    for (int t = 0; t < S::kSteps; ++t) entries[t] = 0;
  }
  __device__ __forceinline__ void read(const Edge<S>& edge, int g) {
    load_group(reinterpret_cast<const double*>(edge.group(g)), entries);
    reference = __ldcg(reinterpret_cast<const int*>(edge.references + g));
  }
};

// What brings the entries of the lane above (of the edge, for lane 0) to this lane's exponent.
__device__ __forceinline__ double factor_above(int lane, int own, int top_reference) {
  const int above = __shfl_up_sync(kAllLanes, own, 1);
  return power_of_two((lane == 0 ? top_reference : above) - own);
}

// (2) over a chunk. `cell(k, t, root, a)` sees every cell and `column(t, bottom)` every step, with the entry of the lane's
// last row before it. False where a check failed. kGeneral:
// cells may lie outside the table or the band, and every cell is checked; `step` is the penalty's factor.
template <bool kGeneral, class S, class Tile, class Cell, class Column>
__device__ __forceinline__ bool sweep_linear(
    const Extent& extent, const Place<S>& place, int lane, const Tile& tile, const LinearTop<S>& top, double above, double step,
    LinearLane<S>& state, Cell&& cell, Column&& column) {
  const int floor = kGeneral ? (kBias - kRange) << 20
                             : (kBias - kRange + 1 + static_cast<int>(min(tile.bound, typename S::Scalar(kRange)))) << 20;
  bool right = tile.bound <= kRange;
#pragma unroll
  for (int t = 0; t < S::kSteps; ++t) {
    if (!kGeneral && t % Tile::kCheck == 0) right = right && lowest_of(state) >= floor;
    const double bottom = state.left[S::kRows - 1];
    const double handed = shuffle_up(bottom);
    double up = (lane == 0 ? top.entries[t] : handed) * above;
    double diag = state.diag;
    state.diag = up;
#pragma unroll
    for (int k = 0; k < S::kRows; ++k) {
      const auto root = tile.root(k, t);
      const double weight = Tile::weight(root);
      const double sum = kGeneral ? fma(step, state.left[k], diag) : state.left[k] + diag;
      diag = state.left[k];
      double a = fma(weight, kGeneral ? step * up : up, weight * sum);
      if (kGeneral) {
        const bool holds = place.holds(extent, k, t);
        right = right && (!holds || __double2hiint(a) >= floor);
        if (!holds) a = 0;
      }
      cell(k, t, root, a);
      state.left[k] = up = a;
    }
    column(t, bottom);
  }
  return right;
}

// (3), (4) over a chunk, from right to left. On entry `right` is f' of the column to the right; `below[t]` what the strip
// below hands to lane 31 for the column one left of its own, `below_next` that of the group before, `handed` what this lane
// handed to the lane above in the step before. `out` is what lane 0 hands to the strip above, `alignment` is E.
template <class S>
struct LinearFlow {
  double right[S::kRows] = {};
  double handed = 0, below_next = 0;
};

template <bool kGeneral, class S, class Tile, class Cell, class Column>
__device__ __forceinline__ void sweep_linear_reversed(
    const double (&entries)[S::kRows][S::kSteps], const typename S::Scalar (&roots)[S::kRows][S::kSteps], int lane, int end_row,
    int end_step, double above, double step, double rescale, const double (&below)[S::kSteps], LinearFlow<S>& flow,
    Cell&& cell, Column&& column) {
#pragma unroll
  for (int t = S::kSteps - 1; t >= 0; --t) {
    const double from_lane_below = shuffle_down(flow.handed);
    double sum = lane == kWarp - 1 ? (t + 1 < S::kSteps ? below[(t + 1) % S::kSteps] : flow.below_next) : from_lane_below;
    if (t == S::kSteps - 1) sum *= rescale;
#pragma unroll
    for (int k = S::kRows - 1; k >= 0; --k) {
      double b = kGeneral ? fma(step, flow.right[k], sum) : flow.right[k] + sum;
      if (kGeneral && t == end_step && k == end_row) b = 1 / entries[k][t];
      cell(k, t, entries[k][t] * b);
      // A cell outside the table or the band has no entry, and takes no part.
      const double f = kGeneral && entries[k][t] == 0 ? 0.0 : Tile::weight(roots[k][t]) * b;
      sum = kGeneral ? fma(step, f, flow.right[k]) : f + flow.right[k];
      flow.right[k] = f;
    }
    flow.handed = sum * above;
    column(t, flow.handed);
  }
  flow.below_next = below[0];
}

}  // namespace softdtw
