// The linear engine: equation (2) as it stands, in float64 with an exponent of its own for every row. For forward passes that
// keep nothing, where it is the faster one.
//
// A lane holds a[i,j] as a' 2^e with one e per row, renewed every chunk so that a' in the column just left is in [1, 2). What
// a row takes from the row above is multiplied by one factor, 2 to the difference of their exponents: a' = w (left + f (up +
// diag)). A cell is then one exponential (float32, or float64 where the problem is), two multiplications and two additions of
// positive numbers, and its relative error stays near that of the exponential.
//
// What could go wrong is range alone, and that no path's number is lost is checked, never assumed:
// - Within a chunk a row's entry is at least its left neighbour times w. Where every cell of a chunk and the column before it
//   are in the table and the band, a' starts at 1 or more, so a' >= 2^-960, where the product of the weights of kSteps cells
//   of a row is (Tile::in_range, a bound).
// - What comes from the row above and is flushed to zero is below 2^-1022, in the unit of the cell that it would have been
//   added to, which is at least 2^-960: it adds less than 2^-62 of the cell, and both terms share every continuation.
// - A row may rise without a bound where the row above does, so a' may overflow. Infinity and NaN stay in their row to the
//   chunk's end, since a cell is no smaller than its left neighbour times a positive weight: is_finite looks there.
// A chunk that begins left of the table takes the same sweep with every cell checked against 2^-960 (kChecked); rows that no
// path has reached yet hold 0. A chunk that fails a check, that a cell outside the band may touch, or that has a penalty takes
// the general sweep, where every number has an exponent of its own (linear_general.cuh). A pair with costs out of range is
// rejected as a whole: its warps stop and robust.cuh computes it, in the same call.
#pragma once

#include "strip_memory.cuh"
#include "tile.cuh"
#include "wide.cuh"

namespace softdtw {

constexpr int kRange = 960;

// The float64 of a normal float32 in (0, 1], without the conversion unit. 0 becomes 2^-127, which the checks reject.
__device__ __forceinline__ double widen(float a) {
  const unsigned bits = __float_as_uint(a);
  return __hiloint2double((bits >> 3) + (static_cast<unsigned>(kBias - 127) << 20), bits << 29);
}
__device__ __forceinline__ double widen(double a) { return a; }

// The weights of a tile.
template <class S, class Tile_>
struct LinearTile : Tile_ {
  using T = typename S::Scalar;
  using Tile = Tile_;
  const T scale;
  bool in_range = false;  // the product of the weights of kSteps cells of a row is at least 2^-kRange

  __device__ LinearTile(const Problem<T>& problem, const Extent& extent, const Strip<S>& strip, int64_t pair, int lane)
      : Tile(problem, extent, strip, pair, lane, static_cast<T>(sqrt(problem.scale_of(pair)))),
        scale(static_cast<T>(problem.cost == Cost::kMatrix ? 1.0 : problem.scale_of(pair))) {}

  // The costs of a chunk as exponents.
  __device__ __forceinline__ void use(const Place<S>& place) {
    Tile::use(place);
    constexpr T kDeepest = sizeof(T) == 4 ? 126 : 900, kLongest = kRange;
    if constexpr (Tile::kUnivariate) {
      in_range = this->reach <= min(kDeepest, kLongest / S::kSteps);
    } else {
      T longest = 0, largest = 0;
#pragma unroll
      for (int k = 0; k < S::kRows; ++k) {
        T sum = 0;
#pragma unroll
        for (int t = 0; t < S::kSteps; ++t) {
          const T exponent = this->costs[k][t] *= scale;
          sum += max(exponent, T(0));
          largest = max(largest, DeviceMath<T>::abs(exponent));
        }
        longest = max(longest, sum);
      }
      in_range = this->reach < T(INFINITY) && largest <= kDeepest && longest <= kLongest;
    }
  }
  __device__ __forceinline__ double weight(int k, int t) const { return widen(DeviceMath<T>::exp2(-this->cost(k, t))); }
  __device__ __forceinline__ double weight_any(int k, int t) const {
    return widen(DeviceMath<T>::exp2(-this->cost_any(k, t)));
  }
};

template <class S>
struct LinearLane {
  double left[S::kRows];   // the lane's rows at the column it has just left
  int exponent[S::kRows];  // their units
  double diag;             // the row above them, one column before
  int above;               // its unit; in a plain chunk that of the lane above's last row

  // Nothing is reached, but R[0,0] = 0 in the upper left corner.
  __device__ __forceinline__ void start(bool holds_corner) {
#pragma unroll
    for (int k = 0; k < S::kRows; ++k) left[k] = 0, exponent[k] = 0;
    diag = holds_corner ? 1 : 0;
    above = 0;
  }
  // Unsigned, since a NaN may have a sign.
  __device__ __forceinline__ bool is_finite() const {
    unsigned highest = __double2hiint(left[0]);
#pragma unroll
    for (int k = 1; k < S::kRows; ++k) highest = max(highest, static_cast<unsigned>(__double2hiint(left[k])));
    return highest < (2u * kBias + 1) << 20;
  }
};

// A group of columns, as the strips hand them to each other: numbers relative to one unit, or, where the general sweep left
// them, each with an exponent of its own.
template <class S>
struct LinearGroup {
  using T = typename S::Scalar;
  Slot<T> entries[S::kSteps];
  int unit = 0;
  bool general = false, exists = false;

  __device__ __forceinline__ LinearGroup() {
#pragma unroll
    for (int t = 0; t < S::kSteps; ++t) entries[t] = Slot<T>::of(0.0);
  }
  __device__ __forceinline__ void read(const Slot<T>* from, const void* header, bool near) {
    constexpr int kWords = S::kSteps * sizeof(Slot<T>) / sizeof(double);
    double words[kWords];
    load_group(reinterpret_cast<const double*>(from), near, words);
#pragma unroll
    for (int t = 0; t < S::kSteps; ++t)
      if constexpr (sizeof(T) == 4)
        entries[t] = {words[t]};
      else
        entries[t] = {words[2 * t], words[2 * t + 1]};
    const int2 both = load(static_cast<const int2*>(header), near);
    unit = both.x;
    general = both.y != 0;
    exists = true;
  }
};

// Renews a lane's units. kChecked: a lane that no path has reached yet takes over the unit of the nearest lane above that one
// has, or of the edge above.
template <bool kChecked, class S>
__device__ __forceinline__ void renew(LinearLane<S>& state, int lane, const LinearGroup<S>& top) {
  const bool reached = !kChecked || state.left[S::kRows - 1] > 0;
  if (reached) {
#pragma unroll
    for (int k = 0; k < S::kRows; ++k) state.exponent[k] += split_exponent(state.left[k]);
  }
  if (kChecked) {
    if (lane == 0 && !reached) state.exponent[S::kRows - 1] = top.exists ? top.unit : 0;
    const unsigned lanes = __ballot_sync(kAllLanes, reached) | 1u;
    const int nearest = __shfl_sync(kAllLanes, state.exponent[S::kRows - 1], 31 - __clz(lanes & ((2u << lane) - 1u)));
#pragma unroll
    for (int k = 0; k < S::kRows; ++k)
      if (!reached) state.exponent[k] = nearest;
  }
  const int handed = __shfl_up_sync(kAllLanes, state.exponent[S::kRows - 1], 1);
  const int above = lane > 0 ? handed : top.exists ? top.unit : state.exponent[0];
  // Where diag is 0 any factor but infinity will do.
  state.diag *= power_of_two(min(state.above - above, kBias));
  state.above = above;
}

// What the rows of a lane multiply with what they take from the row above, for a chunk.
template <class S>
struct Factors {
  double row[S::kRows];

  __device__ __forceinline__ Factors(const int (&exponent)[S::kRows], int above) {
#pragma unroll
    for (int k = 0; k < S::kRows; ++k) row[k] = power_of_two((k > 0 ? exponent[k > 0 ? k - 1 : 0] : above) - exponent[k]);
  }
};

// (2) over a chunk. `cell(k, t, a)` sees every cell of a checked sweep, `column(t, bottom)` every step, with the entry of the
// lane's last row before it. False if a check failed.
template <bool kChecked, class S, class Tile, class Cell, class Column>
__device__ __forceinline__ bool sweep_linear(
    int lane, int column_of_lane, const Tile& tile, const LinearGroup<S>& top, const Factors<S>& factors,
    LinearLane<S>& state, Cell&& cell, Column&& column) {
  int lowest = kBias << 20;
#pragma unroll
  for (int t = 0; t < S::kSteps; ++t) {
    const double bottom = state.left[S::kRows - 1];
    const double handed = shuffle_up(bottom);
    double up = lane == 0 ? top.entries[t].plain() : handed;
    double diag = state.diag;
    state.diag = up;
#pragma unroll
    for (int k = 0; k < S::kRows; ++k) {
      const double left = state.left[k];
      // left and diag come from the column before, so their sum is off the chain that runs down the rows.
      const double a = tile.weight(k, t) * fma(factors.row[k], up, fma(factors.row[k], diag, left));
      if (kChecked && column_of_lane + t >= 0) lowest = min(lowest, __double2hiint(a));
      if (kChecked) cell(k, t, a);
      state.left[k] = up = a;
      diag = left;
    }
    column(t, bottom);
  }
  return state.is_finite() && lowest >= (kBias - kRange) << 20;
}

}  // namespace softdtw
