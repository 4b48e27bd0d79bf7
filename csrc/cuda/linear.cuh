// The linear engine: equations (2), (3) and (4) in float64 with one exponent a lane. The fastest one, for problems without a band
// whose costs stay within its range; robust.cuh computes the pairs that it gives up, in the same call.
//
// Steps up and left take a factor q = exp(-p/gamma). With a[i,j] q^-(i+j) for a the factor goes to the diagonal: there it is
// t = q^-2, 1 without a penalty. A lane holds its rows as a' 2^e, one whole e for all of them. What comes from the lane above is
// multiplied by 2 to the difference of their e. A cell is then one exponential of float32 (or float64, where the problem is),
// one multiplication and two additions of positive numbers,
//     s = t diag + left + up,  a = w s,
// and its relative error stays near that of the exponential. In reverse, with r = w v and v the sum of the successors' r,
//     v = t r_diag + r_right + r_below,  r = w v,  E = s r,
// where r is relative to 2^-e of its lane, so that E needs no factor. r knows nothing of a: what a was rounded by is the error
// of one E, and does not travel on.
//
// What could go wrong is range alone. Every entry of the table is shown to lie in [2^kLowest, infinity) in its lane's unit.
// There are two sweeps. The plain one keeps a lane's unit for a chunk:
// - An entry is at least its left neighbour times w. Where the chunk and the column before it are in the table, every entry of
//   a row is therefore at least the first times the least product of kSteps weights, a bound known beforehand (stays_in_range).
// - The units of neighbouring lanes differ by what a factor can hold (is_shift), and no weight is too small for float32.
// - Infinity and NaN stay in their row, since no weight is 0: a look at the rows after the chunk finds them.
// The careful one takes any chunk for which this fails, with the end of the table or columns left of it in it: lanes renew their
// units every column, so nothing can overflow, weights have exponents of their own, and every entry in the table is looked at.
// A pair for which that fails too is given up as a whole. So is one with series so far from their origin that moving them there
// would round their differences by too much (kFarthest).
// - What is flushed to zero on its way into an entry is below 2^-1022, less than 2^-22 of 2^kLowest, and, with gradual underflow,
//   rounded by 2^-1074, less than 2^-74 of the entry: all terms of the entry share every continuation.
// - In reverse E <= 1 and s >= 2^kLowest bound every r by 2^-kLowest; and what is lost of r below 2^-1074 times s below 2^1024 is
//   less than 2^-50 of E.
#pragma once

#include "tile.cuh"

namespace softdtw {

constexpr int kBias = 1023;
constexpr int kLowest = -1000;
// In which a lane's largest entry may be when a chunk begins, as exponents of 2, and where renewing puts it.
constexpr int kWindowLow = 0, kWindowHigh = 400, kRenewed = 200;

// 2^e; 0 and infinity out of range.
__device__ __forceinline__ double power_of_two(int e) {
  return __hiloint2double(min(max(e + kBias, 0), 2 * kBias + 1) << 20, 0);
}

// Multiplies by a power of two of up to twice the exponents that a float64 has. 0 stays 0.
struct Scaling {
  const double first, second;

  __device__ __forceinline__ explicit Scaling(int e)
      : first(power_of_two(min(e / 2, kBias))), second(power_of_two(min(e - e / 2, kBias))) {}
  __device__ __forceinline__ double operator()(double a) const { return a * first * second; }
};

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

__device__ __forceinline__ double shuffle_up(double a) {
  return __hiloint2double(__shfl_up_sync(kAllLanes, __double2hiint(a), 1), __shfl_up_sync(kAllLanes, __double2loint(a), 1));
}
__device__ __forceinline__ double shuffle_down(double a) {
  return __hiloint2double(
      __shfl_down_sync(kAllLanes, __double2hiint(a), 1), __shfl_down_sync(kAllLanes, __double2loint(a), 1));
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
  static constexpr T kDeepest = sizeof(T) == 4 ? 126 : 900, kDeepestCareful = 900;
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
    __device__ __forceinline__ double careful_weight(int k) const {
      const T all = exponent(k);
      if constexpr (sizeof(T) == 8) return DeviceMath<T>::exp2(-all);
      const T whole = DeviceMath<T>::round(DeviceMath<T>::min(all, kDeepestCareful));
      return widen(DeviceMath<T>::exp2(whole - all)) * power_of_two(-static_cast<int>(whole));
    }
  };
  __device__ __forceinline__ Column column(int t) const { return {*this, t, stage.costs[t][0][lane]}; }
};

template <class S>
struct LinearLane {
  double left[S::kRows];  // the lane's rows at the column it has just left
  double diag;            // the row above them, one column before
  int exponent;           // the unit of all of them

  // Nothing is reached, but the upper left corner.
  __device__ __forceinline__ void start(double corner) {
#pragma unroll
    for (int k = 0; k < S::kRows; ++k) left[k] = 0;
    diag = corner;
    exponent = 0;
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
  // To another unit.
  __device__ __forceinline__ void become(int wanted) {
    const Scaling scaling(exponent - wanted);
#pragma unroll
    for (int k = 0; k < S::kRows; ++k) left[k] = scaling(left[k]);
    diag = scaling(diag);
    exponent = wanted;
  }
};

__device__ __forceinline__ bool is_finite_word(unsigned high) { return high < (2u * kBias + 1) << 20; }
__device__ __forceinline__ int exponent_of(unsigned high) { return static_cast<int>(high >> 20) - kBias; }
__device__ __forceinline__ bool is_in_window(unsigned high) {
  return high >= (kBias + kWindowLow) << 20 && high < (kBias + kWindowHigh) << 20;
}

// Whether the lane's entries stay in range over a chunk whose weights have exponents of at most `deepest`, as they are.
template <class S>
__device__ __forceinline__ bool stays_in_range(const LinearLane<S>& state, float deepest) {
  return exponent_of(state.lowest()) - S::kSteps * deepest > kLowest;
}

// The exponent of the largest of some numbers, given their high words' maximum and their unit.
constexpr int kNoExponent = -(1 << 30);
__device__ __forceinline__ int top_of(unsigned highest, int unit) {
  return highest > 0 ? exponent_of(highest) + unit : kNoExponent;
}

// By what the unit of the lane above, or of the edge for lane 0, exceeds the lane's own.
template <class S>
__device__ __forceinline__ int shift_from_above(const LinearLane<S>& state, int lane, bool has_top, int top_unit) {
  const int handed = __shfl_up_sync(kAllLanes, state.exponent, 1);
  return lane > 0 ? handed - state.exponent : has_top ? top_unit - state.exponent : 0;
}
// Whether power_of_two holds it: 0 in its place could lose what matters.
__device__ __forceinline__ bool is_shift(int shift) { return static_cast<unsigned>(shift + kBias - 1) < 2u * kBias; }

// One column of (2): what comes from above enters the lane's first row. `cell(k, s, a)` sees every cell.
template <class S, class Weight, class Cell>
__device__ __forceinline__ void sweep_linear_column(
    Weight&& weight, double up, double turn, LinearLane<S>& state, Cell&& cell) {
  double diag = state.diag;
  state.diag = up;
#pragma unroll
  for (int k = 0; k < S::kRows; ++k) {
    const double left = state.left[k], w = weight(k);
    // Of what a cell takes only `up` is new, so one addition a row is on the chain that runs down the rows.
    const double known = fma(turn, diag, left), a = fma(w, up, w * known);
    cell(k, known + up, a);
    state.left[k] = up = a;
    diag = left;
  }
}

// (2) over a chunk, the plain sweep. `has_top`: lane 0 finds the edge above in the stage. `factor`: what a lane multiplies with
// what it takes from the lane above, or from there. `visit(t, bottom)` returns what sees the cells of a column, of which `bottom`
// is the entry of the lane's last row before it.
template <int kUnroll, class S, class Tile, class Visit>
__device__ __forceinline__ void sweep_linear(
    const Tile& tile, bool has_top, double factor, double turn, LinearLane<S>& state, Visit&& visit) {
#pragma unroll(kUnroll)
  for (int t = 0; t < S::kSteps; ++t) {
    const double bottom = state.left[S::kRows - 1];
    double up = shuffle_up(bottom);
    if (tile.lane == 0) up = has_top ? tile.stage.entries[t] : 0;
    const auto column = tile.column(t);
    sweep_linear_column([&](int k) { return column.weight(k); }, up * factor, turn, state, visit(t, bottom));
  }
}

// The careful sweep. Returns whether all entries from column 0 on are in range.
template <class S, class Tile, class Visit>
__device__ __forceinline__ bool sweep_linear_carefully(
    const Tile& tile, int first_column, bool has_top, double turn, LinearLane<S>& state, Visit&& visit) {
  int lowest = kBias << 20;
#pragma unroll 1
  for (int t = 0; t < S::kSteps; ++t) {
    const double bottom = state.left[S::kRows - 1];
    const int bottom_unit = state.exponent;
    double up = shuffle_up(bottom);
    int unit = __shfl_up_sync(kAllLanes, bottom_unit, 1);
    if (tile.lane == 0) {
      up = has_top ? tile.stage.entries[t] : 0;
      unit = has_top ? tile.stage.units[t] : 0;
    }
    const unsigned highest = max(state.highest(), static_cast<unsigned>(__double2hiint(state.diag)));
    const int top = max(top_of(highest, state.exponent), top_of(__double2hiint(up), unit));
    const int above = top - state.exponent;
    if (top > kNoExponent && (above < kWindowLow || above > kWindowHigh)) state.become(top - kRenewed);
    up = Scaling(unit - state.exponent)(up);
    auto visitor = visit(t, bottom, bottom_unit);
    const auto column = tile.column(t);
    sweep_linear_column(
        [&](int k) { return column.careful_weight(k); }, up, turn, state,
        [&](int k, double s, double a) {
          if (first_column + t >= 0) lowest = min(lowest, __double2hiint(a));
          visitor(k, s, a);
        });
  }
  return exponent_of(lowest) > kLowest;
}

// What flows between chunks of the reversed sweep.
template <class S>
struct LinearFlow {
  double right[S::kRows] = {};  // r of the column to the right
  double diag = 0;              // r of the row below the lane's rows, in the column to the right
  double next = 0;              // lane 31: what the strip below hands over for the coming column
  int exponent = 0;             // all of them are relative to 2^-exponent

  __device__ __forceinline__ void become(int wanted) {
    const Scaling scaling(wanted - exponent);
#pragma unroll
    for (int k = 0; k < S::kRows; ++k) right[k] = scaling(right[k]);
    diag = scaling(diag);
    next = scaling(next);
    exponent = wanted;
  }
};

// One column of (3), (4), with what comes from below. `visitor` has s(k) of every cell and sees E in cell(k, e); `change(k, s, r)`
// may replace r.
template <class S, class Weight, class Visitor, class Change>
__device__ __forceinline__ void sweep_linear_column_reversed(
    Weight&& weight, double down, double turn, LinearFlow<S>& flow, Visitor& visitor, Change&& change) {
  double diag = flow.diag;
  flow.diag = down;
#pragma unroll
  for (int k = S::kRows - 1; k >= 0; --k) {
    const double right = flow.right[k], s = visitor.s(k), w = weight(k);
    const double known = fma(turn, diag, right), r = change(k, s, fma(w, down, w * known));
    visitor.cell(k, s * r);
    flow.right[k] = down = r;
    diag = right;
  }
}

// (3), (4) over a chunk that the plain sweep has computed. `has_below`: lane 31 finds in the stage what the strip below hands to
// it, for columns one left of lane 31's. `factor`: what a lane multiplies with what it takes from the lane below, or from there.
// `visit(t, column)` returns a visitor of a column, whose end() is called after it; `hand(t, r, unit)` gets r of the lane's first
// row.
template <int kUnroll, class S, class Tile, class Visit, class Hand>
__device__ __forceinline__ void sweep_linear_reversed(
    const Tile& tile, bool has_below, double factor, double turn, LinearFlow<S>& flow, Visit&& visit, Hand&& hand) {
#pragma unroll(kUnroll)
  for (int t = S::kSteps - 1; t >= 0; --t) {
    double down = shuffle_down(flow.right[0]) * factor;
    if (tile.lane == kWarp - 1) {
      down = flow.next;
      flow.next = has_below ? tile.stage.entries[t] * factor : 0;
    }
    const auto column = tile.column(t);
    auto visitor = visit(t, column);
    sweep_linear_column_reversed(
        [&](int k) { return column.weight(k); }, down, turn, flow, visitor, [](int, double, double r) { return r; });
    visitor.end();
    hand(t, flow.right[0], flow.exponent);
  }
}

// The same over any chunk, with the lane's unit in every column. The pair's last cell, where E is 1, is the lane's cell (end_row,
// end_step).
template <class S, class Tile, class Visit, class Hand>
__device__ __forceinline__ void sweep_linear_reversed_carefully(
    const Tile& tile, const int (&units)[S::kSteps][kWarp], int first_column, bool has_below, int end_row, int end_step,
    double turn, LinearFlow<S>& flow, Visit&& visit, Hand&& hand) {
#pragma unroll 1
  for (int t = S::kSteps - 1; t >= 0; --t) {
    const int unit = units[t][tile.lane], below_unit = __shfl_down_sync(kAllLanes, flow.exponent, 1);
    double down = shuffle_down(flow.right[0]);
    flow.become(unit);
    down = Scaling(unit - below_unit)(down);
    if (tile.lane == kWarp - 1) {
      down = flow.next;
      flow.next = has_below ? Scaling(unit + tile.stage.units[t])(tile.stage.entries[t]) : 0;
    }
    const auto column = tile.column(t);
    auto visitor = visit(t, column);
    const bool in_table = first_column + t >= 0;
    sweep_linear_column_reversed(
        [&](int k) { return column.careful_weight(k); }, down, turn, flow, visitor,
        [&](int k, double s, double r) { return !in_table                       ? 0
                                                : k == end_row && t == end_step ? 1 / s
                                                                                : r; });
    visitor.end();
    hand(t, flow.right[0], unit);
  }
}

}  // namespace softdtw
