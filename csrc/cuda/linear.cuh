// The linear engine: equations (2), (3) and (4) in float64 with one exponent a row. The fastest one, for problems without a band
// or a penalty whose costs stay within its range; robust.cuh computes the pairs that it gives up, in the same call.
//
// A lane holds each of its rows as a' 2^e. What a row takes from the row above is multiplied by f, 2 to the difference of their
// e. A cell is then one exponential of float32 (or float64, where the problem is), one multiplication and two additions of
// positive numbers,
//     s = left + f (up + diag),  a = w s,
// and its relative error stays near that of the exponential. In reverse, with r = w v and v the sum of the successors' r,
//     v = right + f (down + diag),  r = w v,  E = s r,
// where r is relative to 2^-e of its row, so that E needs no factor, and f is that of the row below. r knows nothing of a: what
// a was rounded by is the error of one E, and does not travel on.
//
// What could go wrong is range alone. There are two sweeps. The plain one keeps the rows' units for a chunk, after it has been
// shown that every entry of the table will be in [2^kLowest, infinity) in its row's unit:
// - An entry is at least its left neighbour times w. Where the chunk and the column before it are in the table, every entry of
//   a row is therefore at least the first, which is 1 or more, times kSteps weights, none of which is below 2^-kDeepest.
// - Lanes that begin with column 0 in the chunk have their last row looked at there, the smallest entry of that column
//   (kLowestFirst). Left of the table nothing is reached, and entries are 0.
// - The units of neighbouring rows differ by no more than a factor can hold. A row may be further below the next one, and its
//   factor 0, if after the chunk its entries turn out to have been less than 2^-kFarBelow of the next row's (are_negligible:
//   an entry is at most the chunk's last, divided by the weights since).
// - Infinity and NaN stay in their row, since no weight is 0: a look at the rows after the chunk finds them.
// - What is flushed to zero on its way into an entry is below 2^-1022, less than 2^-22 of 2^kLowest, and, with gradual underflow,
//   rounded by 2^-1074, less than 2^-74 of the entry: all terms of the entry share every continuation.
// - In reverse E <= 1 and s >= 2^kLowest bound every r by 2^-kLowest; those that come from the chunk to the right in its units
//   are looked at in this chunk's. What is lost of r below 2^-1074 times s below 2^1024 is less than 2^-50 of E.
// The careful sweep takes any chunk for which this fails: every number has an exponent of its own (wide.cuh), and nothing can
// leave its range. A pair is given up as a whole where a cost is beyond kDeepestCareful, or many are beyond kDeepest, or its rows
// are so far apart that what backward keeps cannot hold them (kFarthestUnits), or its series are so far from their origin that
// moving them there would round their differences by too much (kFarthest).
#pragma once

#include "tile.cuh"
#include "wide.cuh"

namespace softdtw {

constexpr int kLowest = -1000, kLargestShift = 700, kFarBelow = 74, kLowestFirst = kLowest + 300;
constexpr int kFarthestUnits = 30000;
// When a plain chunk begins, a row is in [1, 2^kWindowHigh], or is renewed, to be near 2^kRenewed.
constexpr int kWindowHigh = 300, kRenewed = 200;

// The float64 of a normal float32 in (0, 1], without the conversion unit. 0 becomes 2^-127.
__device__ __forceinline__ double widen(float a) {
  const unsigned bits = __float_as_uint(a);
  return __hiloint2double((bits >> 3) + (static_cast<unsigned>(kBias - 127) << 20), bits << 29);
}
__device__ __forceinline__ double widen(double a) { return a; }

// The float32 below a float64 in [0, 2), without the conversion unit. What is below 2^-126 becomes less than 2^-126.
__device__ __forceinline__ float narrow(double a) {
  const int high = max(__double2hiint(a) - ((kBias - 127) << 20), 0);
  return __uint_as_float(__funnelshift_l(__double2loint(a), high, 3));
}

// What a warp keeps of a chunk in shared memory, so that the sweeps are loops over its columns: every lane its own part of the
// costs, and one lane the columns that come from the strip above or below.
template <class S, class Tile>
struct LinearStage {
  using T = typename S::Scalar;
  static constexpr int kPerColumn = Tile::kUnivariate ? 1 : S::kRows;  // a lane's scalars: of y, or costs
  T costs[S::kSteps][kPerColumn][kWarp];
  double entries[S::kSteps];
  int units[S::kSteps];  // of the entries
};

// The weights of a tile, of which `Tile` has the costs.
template <class S, class Tile_>
struct LinearTile : Tile_ {
  using T = typename S::Scalar;
  using Tile = Tile_;
  using Stage = LinearStage<S, Tile>;
  static constexpr T kFarthest = 32;  // from the origin, in units of which the square is a factor of 2 in w
  static constexpr T kDeepest = 110, kDeepestCareful = 900;
  // A careful sweep costs several times a plain one, and, in float32, more than the robust engine: a pair that needs many is given
  // up.
  static constexpr int kTooManyDeepLanes = sizeof(T) == 4 ? 8 : kWarp + 1, kPatience = sizeof(T) == 4 ? 8 : 1 << 24;
  Stage& stage;
  const int lane;
  const T scale;
  T deepest = 0;          // a bound on the exponents of the weights
  bool is_exact = false;  // enough, and no cost is negative or not a number

  __device__ LinearTile(
      const Problem<T>& problem, const Extent& extent, const Strip<S>& strip, int64_t pair, int lane_, Stage& stage_)
      : Tile(problem, extent, strip, pair, lane_, root_of_scale(problem, pair)),
        stage(stage_),
        lane(lane_),
        scale(static_cast<T>(problem.cost == Cost::kMatrix ? 1.0 : problem.scale_of(pair))) {}

  // What the differences of series of one dimension are multiplied by.
  __device__ __forceinline__ static T root_of_scale(const Problem<T>& problem, int64_t pair) {
    return static_cast<T>(sqrt(problem.scale_of(pair)));
  }
  // The costs of a chunk as exponents.
  __device__ __forceinline__ void use(const Place<S>& place) {
    Tile::use(place);
    if constexpr (Tile::kUnivariate) {
      deepest = this->reach;
      is_exact = deepest <= kDeepestCareful && this->farthest <= kFarthest;
#pragma unroll
      for (int t = 0; t < S::kSteps; ++t) stage.costs[t][0][lane] = this->y[t];
    } else {
      deepest = 0;
      bool positive = true;
#pragma unroll
      for (int t = 0; t < S::kSteps; ++t)
#pragma unroll
        for (int k = 0; k < S::kRows; ++k) {
          const T exponent = this->costs[k][t] * scale;
          deepest = max(deepest, exponent);
          positive = positive && exponent >= 0;
          stage.costs[t][k][lane] = exponent;
        }
      is_exact = this->reach < T(INFINITY) && deepest <= kDeepestCareful && positive;
    }
  }

  // A column of the tile.
  struct Column {
    const LinearTile& tile;
    const int t;
    const T y;  // of one dimension

    // For UnivariateSink.
    __device__ __forceinline__ T difference(int k, int) const { return tile.x[k] - y; }
    __device__ __forceinline__ T exponent(int k) const {
      if constexpr (Tile::kUnivariate) {
        const T d = difference(k, 0);
        return d * d;
      } else {
        return tile.stage.costs[t][k][tile.lane];
      }
    }
    __device__ __forceinline__ double weight(int k) const { return widen(DeviceMath<T>::exp2(-exponent(k))); }
    // For exponents of up to kDeepestCareful.
    __device__ __forceinline__ Wide careful_weight(int k) const {
      const T all = exponent(k), whole = DeviceMath<T>::round(all);
      return Wide::of(widen(DeviceMath<T>::exp2(whole - all)), -static_cast<int>(whole));
    }
  };
  __device__ __forceinline__ Column column(int t) const { return {*this, t, stage.costs[t][0][lane]}; }
};

template <class S>
struct LinearLane {
  double left[S::kRows];   // the lane's rows at the column it has just left
  int exponent[S::kRows];  // their units
  double diag;             // the row above them, one column before
  int above;               // its unit; in a plain chunk that of the lane above's last row, or of the edge

  // Nothing is reached, but the upper left corner.
  __device__ __forceinline__ void start(double corner) {
#pragma unroll
    for (int k = 0; k < S::kRows; ++k) left[k] = 0, exponent[k] = kNoExponent;
    diag = corner;
    above = 0;
  }
  // The high words of the largest and the smallest row, which order as the numbers do; unsigned, since a NaN may have a sign.
  __device__ __forceinline__ unsigned highest() const {
    unsigned word = __double2hiint(left[0]);
#pragma unroll
    for (int k = 1; k < S::kRows; ++k) word = max(word, static_cast<unsigned>(__double2hiint(left[k])));
    return word;
  }
  __device__ __forceinline__ unsigned lowest() const {
    unsigned word = __double2hiint(left[0]);
#pragma unroll
    for (int k = 1; k < S::kRows; ++k) word = min(word, static_cast<unsigned>(__double2hiint(left[k])));
    return word;
  }
  // False if a row has no unit.
  __device__ __forceinline__ bool renew() {
    bool all = true;
#pragma unroll
    for (int k = 0; k < S::kRows; ++k) {
      all = all && left[k] > 0;
      if (left[k] > 0) exponent[k] += split_exponent(left[k]) - kRenewed;
      left[k] *= power_of_two(kRenewed);
    }
    return all;
  }
  // Takes over the unit of the row above.
  __device__ __forceinline__ void become(int unit_above) {
    diag = Scaling(above - unit_above)(diag);
    above = unit_above;
  }
  // What the unit of a row's neighbour above exceeds its own by.
  __device__ __forceinline__ int shift(int k) const { return (k > 0 ? exponent[k > 0 ? k - 1 : 0] : above) - exponent[k]; }
  // Whether factors can hold the shifts; and whether some rows are so far below the next one that theirs may become 0.
  __device__ __forceinline__ bool has_factors(bool& some_are_far) const {
    bool all = abs(shift(0)) <= kLargestShift;
    some_are_far = false;
#pragma unroll
    for (int k = 1; k < S::kRows; ++k) {
      all = all && shift(k) <= kLargestShift;
      some_are_far = some_are_far || shift(k) < -kLargestShift;
    }
    return all;
  }
  // After a chunk, whether what such rows handed down was next to nothing.
  __device__ __forceinline__ bool are_negligible(int deepest) const {
    bool all = true;
#pragma unroll
    for (int k = 1; k < S::kRows; ++k) {
      const int last = (__double2hiint(left[k - 1]) >> 20) - kBias;
      all = all && (shift(k) >= -kLargestShift || shift(k) + last + 2 * S::kSteps * deepest + kFarBelow <= 0);
    }
    return all;
  }
  // How far units are from that of the lane's first row; rows that are not reached have none.
  __device__ __forceinline__ bool is_compact() const {
    int farthest = diag > 0 && left[0] > 0 ? abs(above - exponent[0]) : 0;
#pragma unroll
    for (int k = 1; k < S::kRows; ++k) farthest = max(farthest, left[k] > 0 ? abs(exponent[k] - exponent[0]) : 0);
    return farthest <= kFarthestUnits;
  }
};

__device__ __forceinline__ bool is_finite_word(unsigned high) { return high < (2u * kBias + 1) << 20; }
__device__ __forceinline__ bool is_in_window(unsigned lowest, unsigned highest) {
  return lowest >= kBias << 20 && highest < (kBias + kWindowHigh) << 20;
}

// What the rows of a lane multiply with what they take from the row above, for a chunk.
template <class S>
struct Factors {
  double row[S::kRows];

  __device__ __forceinline__ explicit Factors(const LinearLane<S>& state) {
#pragma unroll
    for (int k = 0; k < S::kRows; ++k)
      row[k] = power_of_two((k > 0 ? state.exponent[k > 0 ? k - 1 : 0] : state.above) - state.exponent[k]);
  }
};

// (2) over a chunk, the plain sweep. `has_top`: lane 0 finds the edge above in the stage. `visit(t, bottom)` returns what sees
// the cells of a column, as cell(k, s), of which `bottom` is the entry of the lane's last row before it; `after(t)` is called
// after a column.
template <int kUnroll, class S, class Tile, class Visit, class After>
__device__ __forceinline__ void sweep_linear(
    const Tile& tile, bool has_top, const Factors<S>& factors, LinearLane<S>& state, Visit&& visit, After&& after) {
#pragma unroll(kUnroll)
  for (int t = 0; t < S::kSteps; ++t) {
    const double bottom = state.left[S::kRows - 1];
    double up = shuffle_up(bottom);
    if (tile.lane == 0) up = has_top ? tile.stage.entries[t] : 0;
    const auto column = tile.column(t);
    auto cell = visit(t, bottom);
    double diag = state.diag;
    state.diag = up;
#pragma unroll
    for (int k = 0; k < S::kRows; ++k) {
      const double left = state.left[k];
      // left and diag come from the column before, so their sum is off the chain that runs down the rows.
      const double s = fma(factors.row[k], up, fma(factors.row[k], diag, left));
      cell(k, s);
      state.left[k] = up = column.weight(k) * s;
      diag = left;
    }
    after(t);
  }
}

// Gives lanes that no path has reached yet the unit of the nearest lane above that one has, or of the edge above, `top_unit`.
template <class S>
__device__ __forceinline__ void adopt_units(LinearLane<S>& state, int lane, int top_unit) {
  const bool reached = state.left[S::kRows - 1] > 0;
  int unit = lane == 0 && !reached ? top_unit : state.exponent[S::kRows - 1];
  const unsigned lanes = __ballot_sync(kAllLanes, reached) | 1u;
  unit = __shfl_sync(kAllLanes, unit, 31 - __clz(lanes & ((2u << lane) - 1u)));
  if (reached) return;
#pragma unroll
  for (int k = 0; k < S::kRows; ++k) state.exponent[k] = unit;
}

// The careful sweep. `visit(t, bottom)` returns what sees the cells of a column, as cell(k, s, a). Cells left of the table are 0:
// nothing reaches them.
template <class S, class Tile, class Visit>
__device__ __forceinline__ void sweep_linear_carefully(
    const Tile& tile, bool has_top, LinearLane<S>& state, Visit&& visit) {
  Wide lefts[S::kRows], corner = Wide::of(state.diag, state.above);
#pragma unroll
  for (int k = 0; k < S::kRows; ++k) lefts[k] = Wide::of(state.left[k], state.exponent[k]);
#pragma unroll 1
  for (int t = 0; t < S::kSteps; ++t) {
    const Wide bottom = lefts[S::kRows - 1];
    Wide up = shuffle_up(bottom);
    if (tile.lane == 0) up = has_top ? Wide::of(tile.stage.entries[t], tile.stage.units[t]) : Wide();
    const auto column = tile.column(t);
    auto cell = visit(t, bottom);
    Wide diag = corner;
    corner = up;
#pragma unroll
    for (int k = 0; k < S::kRows; ++k) {
      const Wide left = lefts[k], s = left + diag + up;
      lefts[k] = up = s.times(column.careful_weight(k));
      cell(k, s, up);
      diag = left;
    }
  }
#pragma unroll
  for (int k = 0; k < S::kRows; ++k) {
    state.left[k] = lefts[k].a;
    state.exponent[k] = lefts[k].e;
  }
  state.diag = corner.a;
  state.above = corner.e;
}

// What flows between chunks of the reversed sweep.
template <class S>
struct LinearFlow {
  double right[S::kRows];  // r of the column to the right, relative to 2^-exponent
  int exponent[S::kRows];
  double diag;  // r of the row below the lane's rows, in the column to the right
  double next;  // lane 31: what the strip below hands over for the coming column
  int below;    // both are relative to 2^-below

  __device__ __forceinline__ LinearFlow() : diag(0), next(0), below(0) {
#pragma unroll
    for (int k = 0; k < S::kRows; ++k) right[k] = 0, exponent[k] = 0;
  }
  __device__ __forceinline__ void clear() {
#pragma unroll
    for (int k = 0; k < S::kRows; ++k) right[k] = 0;
    diag = next = 0;
  }
  __device__ __forceinline__ bool is_finite() const {
    unsigned highest = max(__double2hiint(diag), __double2hiint(next));
#pragma unroll
    for (int k = 0; k < S::kRows; ++k) highest = max(highest, static_cast<unsigned>(__double2hiint(right[k])));
    return is_finite_word(highest);
  }
  __device__ __forceinline__ void become(const int (&wanted)[S::kRows], int wanted_below) {
#pragma unroll
    for (int k = 0; k < S::kRows; ++k) {
      right[k] = Scaling(wanted[k] - exponent[k])(right[k]);
      exponent[k] = wanted[k];
    }
    const Scaling scaling(wanted_below - below);
    diag = scaling(diag);
    next = scaling(next);
    below = wanted_below;
  }
};

// (3), (4) over a chunk that the plain sweep has computed. `has_below`: lane 31 finds in the stage what the strip below hands to
// it, for columns one left of lane 31's. `below`: the factor of the row below the lane's. `visit(t, column)` returns a visitor of
// a column, which knows s(k) of its cells, takes E in cell(k, e), and whose end() is called after it; `hand(t, r)` gets r of the
// lane's first row. kEnds: the pair's last cell, where E is 1, may be here, as the lane's cell (end_row, end_step).
template <int kUnroll, bool kEnds, class S, class Tile, class Visit, class Hand>
__device__ __forceinline__ void sweep_linear_reversed(
    const Tile& tile, bool has_below, const Factors<S>& factors, double below, int end_row, int end_step,
    LinearFlow<S>& flow, Visit&& visit, Hand&& hand) {
#pragma unroll(kUnroll)
  for (int t = S::kSteps - 1; t >= 0; --t) {
    double down = shuffle_down(flow.right[0]);
    if (tile.lane == kWarp - 1) {
      down = flow.next;
      flow.next = has_below ? tile.stage.entries[t] : 0;
    }
    const auto column = tile.column(t);
    auto visitor = visit(t, column);
    double diag = flow.diag;
    flow.diag = down;
#pragma unroll
    for (int k = S::kRows - 1; k >= 0; --k) {
      const double right = flow.right[k], factor = k + 1 < S::kRows ? factors.row[(k + 1) % S::kRows] : below;
      const double s = visitor.s(k);
      double r = column.weight(k) * fma(factor, down, fma(factor, diag, right));
      if (kEnds && k == end_row && t == end_step) r = 1 / s;
      visitor.cell(k, s * r);
      flow.right[k] = down = r;
      diag = right;
    }
    visitor.end();
    hand(t, flow.right[0]);
  }
}

// The same over any chunk, with exponents of their own: the visitor's wide_s(k) is wide, and so is what `hand` gets.
template <class S, class Tile, class Visit, class Hand>
__device__ __forceinline__ void sweep_linear_reversed_carefully(
    const Tile& tile, int first_column, bool has_below, int end_row, int end_step, LinearFlow<S>& flow, Visit&& visit,
    Hand&& hand) {
  Wide rights[S::kRows], corner = Wide::of(flow.diag, -flow.below), next = Wide::of(flow.next, -flow.below);
#pragma unroll
  for (int k = 0; k < S::kRows; ++k) rights[k] = Wide::of(flow.right[k], -flow.exponent[k]);
#pragma unroll 1
  for (int t = S::kSteps - 1; t >= 0; --t) {
    Wide down = shuffle_down(rights[0]);
    if (tile.lane == kWarp - 1) {
      down = next;
      next = has_below ? Wide::of(tile.stage.entries[t], tile.stage.units[t]) : Wide();
    }
    const auto column = tile.column(t);
    auto visitor = visit(t, column);
    Wide diag = corner;
    corner = down;
#pragma unroll
    for (int k = S::kRows - 1; k >= 0; --k) {
      const Wide right = rights[k], s = visitor.wide_s(k);
      Wide r = (right + down + diag).times(column.careful_weight(k));
      if (k == end_row && t == end_step) r = Wide::of(1 / s.a, -s.e);
      if (first_column + t < 0) r = Wide();
      visitor.cell(k, s.times(r).in_unit(0));
      rights[k] = down = r;
      diag = right;
    }
    visitor.end();
    hand(t, rights[0]);
  }
#pragma unroll
  for (int k = 0; k < S::kRows; ++k) {
    flow.right[k] = rights[k].a;
    flow.exponent[k] = -rights[k].e;
  }
  flow.below = -max(corner.e, next.e);  // what is flushed here adds to the same cells as the other
  flow.diag = corner.in_unit(-flow.below);
  flow.next = next.in_unit(-flow.below);
}

}  // namespace softdtw
