// The linear engine: equations (2) to (4) as they stand, in float64 with an exponent of its own for every row.
//
// A lane holds a[i,j] as a' 2^e with one e per row, renewed every chunk so that a' in the column just left is in [1, 2). What
// a row takes from the row above is multiplied by one factor, 2 to the difference of their exponents: a' = w (left + f (up +
// diag)). A cell is then one exponential (float32, or float64 where the problem is), two multiplications and two additions of
// positive numbers, and its relative error stays near that of the exponential. Backward needs no weights: with
// u = w b / a[N,M], scaled by 2^e, each predecessor's E is its own a' times the sum of its successors' u'.
//
// What could go wrong is range alone, and that no path's number is lost is checked, never assumed:
// - Within a chunk a row's entry is at least its left neighbour times w. Where every cell of a chunk and the column before it
//   are in the table and the band, a' starts at 1 or more, so a' >= 2^-960, where the product of the weights of kSteps cells
//   of a row is (Tile::in_range, a bound).
// - What comes from the row above and is flushed to zero is below 2^-1022, in the unit of the cell that it would have been
//   added to, which is at least 2^-960: it adds less than 2^-62 of the cell. The share of E that it misses is as small, since
//   both terms share every continuation.
// - A row may rise without a bound where the row above does, so a' may overflow. Infinity and NaN stay in their row to the
//   chunk's end, since a cell is no smaller than its left neighbour times a positive weight: is_finite looks there.
// - u' <= 1 / (a' of any predecessor, in the cell's unit), so it cannot overflow, and where it is flushed to zero E is below
//   2^-50.
// A chunk that begins left of the table takes the same sweep with every cell checked against 2^-960 (kChecked); rows that no
// path has reached yet hold 0. A chunk that fails a check, that a cell outside the band may touch, or that has a penalty takes
// the general sweep, where every number has an exponent of its own (linear_general.cuh). A pair with costs out of range is
// rejected as a whole: its warps stop and robust.cuh computes it, in the same call.
#pragma once

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

// The weights of a tile. In float32 one exponential reaches down to 2^-126; kSquared takes it of half the exponent and
// squares it in float64, for costs up to twice as large.
template <class S, class Tile_, bool kSquared>
struct LinearTile : Tile_ {
  using T = typename S::Scalar;
  using Tile = Tile_;
  static constexpr bool kHalved = kSquared && sizeof(T) == 4;
  static constexpr bool kKeepsRoots = !Tile::kUnivariate;  // in backward; otherwise they are computed again
  const T scale;
  bool in_range = false;  // the product of the weights of kSteps cells of a row is at least 2^-kRange

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
    constexpr T kDeepest = sizeof(T) == 4 ? 126 : 900, kLongest = kHalved ? kRange / 2 : kRange;
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
  // The root of the weight, if kHalved.
  __device__ __forceinline__ T root(int k, int t) const { return DeviceMath<T>::exp2(-this->cost(k, t)); }
  __device__ __forceinline__ T root_any(int k, int t) const { return DeviceMath<T>::exp2(-this->cost_any(k, t)); }
  __device__ __forceinline__ static double weight(T root) {
    const double wide = widen(root);
    return kHalved ? wide * wide : wide;
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
    for (int k = 0; k < S::kRows; ++k)
      row[k] = power_of_two((k > 0 ? exponent[k > 0 ? k - 1 : 0] : above) - exponent[k]);
  }
};

// (2) over a chunk. `cell(k, t, root, a, checked)` sees every cell and `column(t, bottom)` every step, with the entry of the
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
      const auto root = tile.root(k, t);
      const double left = state.left[k];
      // left and diag come from the column before, so their sum is off the chain that runs down the rows.
      const double a = Tile::weight(root) * fma(factors.row[k], up, fma(factors.row[k], diag, left));
      if (kChecked && column_of_lane + t >= 0) lowest = min(lowest, __double2hiint(a));
      cell(k, t, root, a, std::bool_constant<kChecked>());
      state.left[k] = up = a;
      diag = left;
    }
    column(t, bottom);
  }
  return state.is_finite() && lowest >= (kBias - kRange) << 20;
}

// What flows between chunks of the reversed sweep: u' = u 2^e.
template <class S>
struct LinearFlow {
  double right[S::kRows] = {};  // of the column to the right
  int exponent[S::kRows] = {};  // their e
  double handed = 0;            // from the lane's first row to the lane above, in the step before
  int handed_unit = 0;
  double below_next = 0;  // lane 31: the first of the group of flows used before
  int below_unit = 0;
};

// No number that is not 0 rises by more than this between neighbouring chunks.
constexpr int kMostRise = kRange + 40;

// (3), (4) over a chunk, from right to left, `entry(k, t)` and `root(k, t)` as the sweep left them. `below` is what the strip
// below hands to lane 31 for columns one left of its own. `cell(k, t, E)` sees every cell, `column(t, handed)` every step,
// with what the lane hands to the lane above, whose unit is `above`. kChecked: cells left of the table are 0 and take no part,
// and 1 arrives at row end_row in step end_step.
template <bool kChecked, class S, class Tile, class Entry, class Root, class Cell, class Column>
__device__ __forceinline__ void sweep_linear_reversed(
    int lane, int end_row, int end_step, const int (&exponent)[S::kRows], int above, const Factors<S>& factors,
    const LinearGroup<S>& below, LinearFlow<S>& flow, Entry&& entry, Root&& root, Cell&& cell, Column&& column) {
#pragma unroll
  for (int k = 0; k < S::kRows; ++k) {
    flow.right[k] *= power_of_two(min(exponent[k] - flow.exponent[k], kMostRise));
    flow.exponent[k] = exponent[k];
  }
  const int own = exponent[S::kRows - 1];
  const int unit_below = __shfl_down_sync(kAllLanes, flow.handed_unit, 1);
  const double rescale = power_of_two(min(own - (lane == kWarp - 1 ? flow.below_unit : unit_below), kMostRise));
  const double group_scale = below.exists ? power_of_two(min(own - below.unit, kMostRise)) : 0;
#pragma unroll
  for (int t = S::kSteps - 1; t >= 0; --t) {
    double handed = shuffle_down(flow.handed);
    if (lane == kWarp - 1)
      handed = t + 1 < S::kSteps ? below.entries[(t + 1) % S::kSteps].plain() * group_scale : flow.below_next;
    if (t == S::kSteps - 1) handed *= rescale;
    double b = flow.right[S::kRows - 1] + handed;
#pragma unroll
    for (int k = S::kRows - 1; k >= 0; --k) {
      const double a = entry(k, t);
      if (kChecked && t == end_step && k == end_row) b = 1 / a;
      if (kChecked && a == 0) b = 0;
      cell(k, t, a * b);
      const double u = Tile::weight(root(k, t, std::false_type())) * b;
      // What the row above gets: from its right neighbour, and from this row's two columns.
      const double right = k > 0 ? flow.right[k > 0 ? k - 1 : 0] : 0;
      b = fma(factors.row[k], u, fma(factors.row[k], flow.right[k], right));
      flow.right[k] = u;
    }
    flow.handed = b;
    column(t, flow.handed);
  }
  flow.handed_unit = above;
  flow.below_next = below.entries[0].plain();
  flow.below_unit = below.unit;
}

}  // namespace softdtw
