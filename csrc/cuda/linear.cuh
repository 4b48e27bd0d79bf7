// The linear engine: equations (2), (3) and (4) as they stand, with one exponent a row. The fastest one, for problems without a
// band or a penalty whose costs stay within its range; robust.cuh computes the pairs that it gives up, in the same call.
//
// A lane holds each of its rows as a' 2^e. What a row takes from the row above is multiplied by f, 2 to the difference of their
// e. A cell is then one exponential, two multiplications and two additions of positive numbers,
//     s = left + f (up + diag),  a = w s,
// and its relative error stays near that of the exponential. In reverse, with r = w v and v the sum of the successors' r,
//     v = right + f (down + diag),  r = w v,  E = a v,
// where r is relative to 2^-e of its row, so that E needs no factor, and f is that of the row below. r knows nothing of a: what
// a was rounded by is the error of one E, and does not travel on.
//
// What could go wrong is range alone. There are three sweeps of a chunk, each tried where the one before does not hold:
// - kPlain: in the problem's own type, for chunks inside the table. Every row begins near 2^kRenewed.
// - kWide: in float64, also for chunks in which lanes enter the table, or which hold its last cell.
// - kCareful: every number has an exponent of its own (wide.cuh), and nothing can leave its range.
// The first two hold if, looked at afterwards, every entry was at least 2^kLowest in its row's unit and no row became infinite:
// - Infinity and NaN stay in their row, since no weight of a row that keeps above 2^kLowest is 0: the last column shows them.
// - What is flushed to zero on its way into an entry a = w s, with gradual underflow, is at most three times 2^(kLowest - 48) of s
//   itself, since s >= a: all terms of the entry share every continuation. (The factors are powers of two within the range, by
//   `fits`, or, in kWide, 0 where `are_negligible` shows afterwards that what they stand for was below 2^-kFarBelow of s.)
// - In reverse E <= 1 and a >= 2^kLowest bound v by 2^-kLowest, and r with it. What is lost of r, half a unit of gradual
//   underflow, is times a what E loses: at most 2^-22 in float32, as much as rounding an E of 1 does.
// - From one chunk to the next a row's unit moves by no more than its entries did in the chunk, that is, by less than the range.
// A pair is given up as a whole where a cost is beyond kDeepestCareful, or too many chunks are not plain, or its rows are so far
// apart that what backward keeps cannot hold them (kFarthestUnits), or its series are so far from their origin that moving them
// there would round their differences by too much (kFarthest).
#pragma once

#include <climits>

#include "tile.cuh"
#include "wide.cuh"

namespace softdtw {

// How a chunk is swept.
constexpr int kPlain = 0, kWide = 1, kCareful = 2;

constexpr int kFarBelow = 40, kLowestBesideFar = -60, kFarthestUnits = 30000;

// What a plain sweep may count on in its type. `word` orders as positive numbers do.
template <typename Number>
struct Range;

template <>
struct Range<float> {
  static constexpr int kBias = 127, kLowest = -100, kRenewed = 20, kLargestShift = 126;
  static constexpr int kExponentShift = 23, kInfinity = 0x7f800000;

  __device__ __forceinline__ static int word(float a) { return __float_as_int(a); }
};

template <>
struct Range<double> {
  static constexpr int kBias = softdtw::kBias, kLowest = -900, kRenewed = 50, kLargestShift = 700;
  static constexpr int kExponentShift = 20, kInfinity = 0x7ff00000;

  __device__ __forceinline__ static int word(double a) { return __double2hiint(a); }
};

// 2^e, |e| <= kLargestShift.
template <typename Number>
__device__ __forceinline__ Number scaling_factor(int e) {
  if constexpr (sizeof(Number) == 4)
    return __int_as_float((e << 23) + (127 << 23));
  else
    return __hiloint2double((e << 20) + (kBias << 20), 0);
}

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
// costs, or, of series of one dimension, all lanes the columns of y; and one lane the columns that come from the strip above or
// below.
template <class S, bool kUnivariate>
struct LinearStage {
  using T = typename S::Scalar;
  static constexpr int kWindow = 64;  // columns of y, kept twice, so that those of a lane lie next to each other
  static_assert(kWarp + 2 * S::kSteps <= kWindow);
  static constexpr int kScalars = kUnivariate ? 2 * kWindow : S::kSteps * S::kRows * kWarp;
  T scalars[kScalars];
  T plain[S::kSteps];      // the columns for a plain sweep
  double wide[S::kSteps];  // and for the others
  int units[S::kSteps];    // of the latter

  template <typename Number>
  __device__ __forceinline__ Number entry(int t) const {
    if constexpr (sizeof(Number) == sizeof(T))
      return plain[t];
    else
      return wide[t];
  }
  __device__ __forceinline__ void set_entry(int t, T for_plain, double for_others, int unit) {
    plain[t] = for_plain;
    wide[t] = for_others;
    units[t] = unit;
  }
  // Where there is no strip above or below, or it has no columns left.
  __device__ __forceinline__ void clear_entries(int lane) {
    if (lane < S::kSteps) set_entry(lane, 0, 0, 0);
  }
};

// The weights of a lane's part of a chunk.
template <class S, bool kUnivariate>
struct LinearColumns {
  using T = typename S::Scalar;
  // Of exponents, what a wide and a careful sweep can take.
  static constexpr T kDeepest = sizeof(T) == 4 ? 240 : 900, kDeepestCareful = 900;
  LinearStage<S, kUnivariate>& stage;
  const int lane;
  T x[S::kRows];  // of one dimension
  int first;      // the place of the first column of y in the window

  struct Column {
    const LinearColumns& columns;
    const int t;
    const T y;  // of one dimension

    // For UnivariateSink.
    __device__ __forceinline__ T difference(int k, int) const { return columns.x[k] - y; }
    __device__ __forceinline__ T exponent(int k) const {
      if constexpr (kUnivariate) {
        const T d = difference(k, 0);
        return d * d;
      } else {
        return columns.cost(k, t);
      }
    }
    template <typename Number>
    __device__ __forceinline__ Number weight(int k) const {
      if constexpr (sizeof(Number) == sizeof(T)) {
        return DeviceMath<T>::exp2(-exponent(k));
      } else {  // down to 2^-kDeepest
        const double root = widen(DeviceMath<T>::exp2(T(-0.5) * exponent(k)));
        return root * root;
      }
    }
    // For exponents of up to kDeepestCareful.
    __device__ __forceinline__ Wide careful_weight(int k) const {
      const T all = exponent(k), whole = DeviceMath<T>::round(all);
      return Wide::of(widen(DeviceMath<T>::exp2(whole - all)), -static_cast<int>(whole));
    }
  };
  __device__ __forceinline__ T& cost(int k, int t) const { return stage.scalars[(t * S::kRows + k) * kWarp + lane]; }
  __device__ __forceinline__ Column column(int t) const {
    return {*this, t, kUnivariate ? stage.scalars[first + t] : T(0)};
  }
  // The largest exponent.
  __device__ __forceinline__ T deepest() const {
    T largest = 0;
    if constexpr (kUnivariate) {
      T lowest = x[0], highest = x[0];
#pragma unroll
      for (int k = 1; k < S::kRows; ++k) lowest = min(lowest, x[k]), highest = max(highest, x[k]);
#pragma unroll
      for (int t = 0; t < S::kSteps; ++t) {
        const T y = column(t).y;
        largest = max(largest, max(highest - y, y - lowest));
      }
      return largest * largest;
    } else {
#pragma unroll
      for (int t = 0; t < S::kSteps; ++t)
#pragma unroll
        for (int k = 0; k < S::kRows; ++k) largest = max(largest, cost(k, t));
      return largest;
    }
  }
};

// The costs of float32 series of one dimension: the series are moved by an origin near both and multiplied by a factor, so that
// the squares of their differences are exponents. Lanes share the columns of y, of which every chunk brings kSteps new ones.
template <class S>
struct LinearSeries {
  using T = typename S::Scalar;
  static constexpr bool kUnivariate = true;
  static constexpr T kFarthest = 32;       // from the origin
  static constexpr T kLargestMean = 4.2f;  // of a sample's exponents: beyond it too many chunks are not plain
  using Columns = LinearColumns<S, true>;
  Columns columns;
  const T* const line;
  const int64_t stride;
  const int last;
  const T origin, factor;
  T next;         // of the lanes that bring new columns
  bool is_exact;  // enough: all that the lane has met is near the origin, and a number

  // `column`: the first of kWarp columns that are there before the new ones.
  __device__ LinearSeries(
      const Problem<T>& problem, const Extent& extent, const Strip<S>& strip, int64_t pair, int lane,
      LinearStage<S, true>& stage, int column)
      : columns{stage, lane},
        line(problem.y.pair(pair).data),
        stride(problem.y.row_stride),
        last(extent.m - 1),
        origin(line[0]),
        factor(unit(problem, pair)) {
    const View<const T> rows = problem.x.pair(pair);
    T farthest = 0;
#pragma unroll
    for (int k = 0; k < S::kRows; ++k) {
      columns.x[k] = scaled(rows.data[min(strip.first_row + lane * S::kRows + k, extent.n - 1) * rows.row_stride]);
      farthest = greater(farthest, DeviceMath<T>::abs(columns.x[k]));
    }
    is_exact = farthest <= kFarthest;
    next = y(column + lane);
    keep(column + lane);
  }
  // What a difference is multiplied by.
  __device__ __forceinline__ static T unit(const Problem<T>& problem, int64_t pair) {
    return static_cast<T>(sqrt(problem.scale_of(pair)));
  }
  // Starts the load of the columns from `column` on.
  __device__ __forceinline__ void fetch(int column) {
    if (columns.lane < S::kSteps) next = y(column + columns.lane);
  }
  // A chunk, for which those were fetched.
  __device__ __forceinline__ void enter(const Place<S>& place, int column) {
    if (columns.lane < S::kSteps) keep(column + columns.lane);
    columns.first = place.column & (LinearStage<S, true>::kWindow - 1);
  }
  // Whether linear is likely to be faster than robust: by a sample of the costs, for all lanes together.
  __device__ __forceinline__ bool is_promising() const {
    constexpr int kColumns = 4;  // of every lane
    T sum = 0;
#pragma unroll
    for (int i = 0; i < kColumns; ++i) {
      const T sample = scaled(y(static_cast<int>(int64_t{kColumns * columns.lane + i} * last / (kColumns * kWarp))));
#pragma unroll
      for (int k = 0; k < S::kRows; ++k) sum = DeviceMath<T>::fma(columns.x[k] - sample, columns.x[k] - sample, sum);
    }
#pragma unroll
    for (int distance = kWarp / 2; distance > 0; distance /= 2) sum += __shfl_xor_sync(kAllLanes, sum, distance);
    return !(sum > kLargestMean * kColumns * S::kRows * kWarp);
  }

 private:
  __device__ __forceinline__ T y(int column) const { return line[min(max(column, 0), last) * stride]; }
  __device__ __forceinline__ T scaled(T a) const { return (a - origin) * factor; }
  __device__ __forceinline__ void keep(int column) {
    constexpr int kWindow = LinearStage<S, true>::kWindow;
    const T scaled_next = scaled(next);
    is_exact = is_exact && DeviceMath<T>::abs(scaled_next) <= kFarthest;
    columns.stage.scalars[column & (kWindow - 1)] = scaled_next;
    columns.stage.scalars[(column & (kWindow - 1)) + kWindow] = scaled_next;
  }
};

// Those of all others.
template <class S>
struct LinearDense {
  using T = typename S::Scalar;
  static constexpr bool kUnivariate = false;
  using Columns = LinearColumns<S, false>;
  Columns columns;
  DenseTile<S> costs;
  const T scale;
  bool is_exact = false;  // no cost is negative or not a number, or too large

  __device__ LinearDense(
      const Problem<T>& problem, const Extent& extent, const Strip<S>& strip, int64_t pair, int lane,
      LinearStage<S, false>& stage, int)
      : columns{stage, lane},
        costs(problem, extent, strip, pair, lane),
        scale(static_cast<T>(problem.cost == Cost::kMatrix ? 1.0 : problem.scale_of(pair))) {}
  __device__ __forceinline__ static T unit(const Problem<T>&, int64_t) { return 1; }
  __device__ __forceinline__ void fetch(int) {}
  __device__ __forceinline__ void enter(const Place<S>& place, int) {
    costs.use(place);
    T largest = 0;
    bool positive = true;
#pragma unroll
    for (int t = 0; t < S::kSteps; ++t)
#pragma unroll
      for (int k = 0; k < S::kRows; ++k) {
        const T exponent = costs.cost(k, t) * scale;
        largest = max(largest, exponent);
        positive = positive && exponent >= 0;
        columns.cost(k, t) = exponent;
      }
    is_exact = costs.reach < T(INFINITY) && largest <= Columns::kDeepestCareful && positive;
  }
  __device__ __forceinline__ bool is_promising() const { return true; }
};

// A lane between two columns. Between chunks, in the problem's type, rows are renewed, or 0 where no path has reached them.
template <class S, typename Number = typename S::Scalar>
struct LinearLane {
  using Limits = Range<Number>;
  Number left[S::kRows];   // the lane's rows at the column it has just left
  int exponent[S::kRows];  // their units
  Number diag;             // the row above them, one column before
  int above;               // its unit; once it has become one, that of the lane above's last row, or of the edge

  __device__ __forceinline__ LinearLane() {}
  template <typename Other>
  __device__ __forceinline__ explicit LinearLane(const LinearLane<S, Other>& other) : diag(other.diag), above(other.above) {
#pragma unroll
    for (int k = 0; k < S::kRows; ++k) left[k] = other.left[k], exponent[k] = other.exponent[k];
  }
  // Nothing is reached, but the upper left corner.
  __device__ __forceinline__ void start(Number corner) {
#pragma unroll
    for (int k = 0; k < S::kRows; ++k) left[k] = 0, exponent[k] = kNoExponent;
    diag = corner;
    above = 0;
  }
  // Numbers of [1, 2), or 0.
  __device__ __forceinline__ void take(const Wide (&rows)[S::kRows], const Wide& corner) {
#pragma unroll
    for (int k = 0; k < S::kRows; ++k) left[k] = static_cast<Number>(rows[k].a), exponent[k] = rows[k].e;
    diag = static_cast<Number>(corner.a);
    above = corner.e;
  }
  __device__ __forceinline__ Wide row(int k) const { return Wide::of(left[k], exponent[k]); }
  __device__ __forceinline__ Wide corner() const { return Wide::of(diag, above); }

  // Gives every row, none of which is 0, a unit of which it is about 2^kRenewed.
  __device__ __forceinline__ void renew() {
    constexpr int kShift = Limits::kExponentShift, kExponent = Limits::kBias + Limits::kRenewed;
#pragma unroll
    for (int k = 0; k < S::kRows; ++k) {
      const int word = Limits::word(left[k]), moved = (word >> kShift) - kExponent;
      exponent[k] += moved;
      if constexpr (sizeof(Number) == 4)
        left[k] = __int_as_float((word & ((1 << kShift) - 1)) | kExponent << kShift);
      else  // by arithmetic: nvcc 13.0 loses the lower half of one that is put together
        left[k] *= scaling_factor<Number>(-moved);
    }
  }
  // The same where all rows may be 0.
  __device__ __forceinline__ void renew_if_reached() {
    if (left[S::kRows - 1] > 0) renew();
  }
  // Lanes that no path has reached yet take the unit of the nearest lane above that one has, or of the edge above, `top_unit`.
  __device__ __forceinline__ void adopt(int lane, int top_unit) {
    const bool reached = left[S::kRows - 1] > 0;
    int unit = lane == 0 && !reached ? top_unit : exponent[S::kRows - 1];
    const unsigned lanes = __ballot_sync(kAllLanes, reached) | 1u;
    unit = __shfl_sync(kAllLanes, unit, 31 - __clz(lanes & ((2u << lane) - 1u)));
    if (reached) return;
#pragma unroll
    for (int k = 0; k < S::kRows; ++k) exponent[k] = unit;
  }
  // Takes over the unit of the row above. False where the row above does not fit into it.
  __device__ __forceinline__ bool become(int unit_above) {
    const int shift = above - unit_above;
    above = unit_above;
    if (diag == 0) return true;
    if constexpr (sizeof(Number) == 4) {
      diag *= scaling_factor<Number>(shift);
      return abs(shift) <= Limits::kLargestShift;
    } else {
      diag = Scaling(shift)(diag);
      return true;
    }
  }
  // What the unit of a row's neighbour above exceeds its own by.
  __device__ __forceinline__ int shift(int k) const { return (k > 0 ? exponent[k > 0 ? k - 1 : 0] : above) - exponent[k]; }
  // After a chunk, whether what rows handed down whose factors are 0 was next to nothing: an entry is at most the chunk's last,
  // divided by the weights since.
  __device__ __forceinline__ bool are_negligible(int deepest) const {
    bool all = true;
#pragma unroll
    for (int k = 1; k < S::kRows; ++k) {
      const int last = (Limits::word(left[k - 1]) >> Limits::kExponentShift) - Limits::kBias;
      all = all && (shift(k) >= -Limits::kLargestShift || shift(k) + last + 2 * S::kSteps * deepest + kFarBelow <= 0);
    }
    return all;
  }
  // How far units are from that of the lane's first row; rows that are not reached have none.
  __device__ __forceinline__ int farthest_unit() const {
    int farthest = diag > 0 && left[0] > 0 ? abs(above - exponent[0]) : 0;
#pragma unroll
    for (int k = 1; k < S::kRows; ++k) farthest = max(farthest, left[k] > 0 ? abs(exponent[k] - exponent[0]) : 0);
    return farthest;
  }
  __device__ __forceinline__ bool is_finite() const { return is_below(Limits::kBias + 1); }
  __device__ __forceinline__ bool is_below(int exponent) const {
    unsigned highest = Limits::word(left[0]);  // unsigned, since a NaN may have a sign
#pragma unroll
    for (int k = 1; k < S::kRows; ++k) highest = max(highest, static_cast<unsigned>(Limits::word(left[k])));
    return highest < static_cast<unsigned>(Limits::kBias + exponent) << Limits::kExponentShift;
  }
};

// What the rows of a lane multiply with what they take from the row above, for a chunk. kMayBeFar: a row may be so far below the
// next one that its factor is 0.
template <class S, typename Number, bool kMayBeFar>
struct Factors {
  using Limits = Range<Number>;
  Number row[S::kRows];
  bool fit;  // whether these are the factors
  bool some_are_far = false;
  unsigned far_units = 0;  // how far below the next ones the rows left out are, in 16 bits each

  __device__ __forceinline__ Factors() {}
  __device__ __forceinline__ Factors(const int (&units)[S::kRows], int above) {
    int lowest = above - units[0], highest = lowest;
#pragma unroll
    for (int k = 0; k < S::kRows; ++k) {
      const int shift = (k > 0 ? units[k > 0 ? k - 1 : 0] : above) - units[k];
      highest = max(highest, shift);
      if constexpr (kMayBeFar) {
        row[k] = power_of_two(shift);
        if (k > 0) some_are_far = some_are_far || shift < -Limits::kLargestShift;
      } else {
        row[k] = scaling_factor<Number>(shift);
        lowest = min(lowest, shift);
      }
    }
    fit = highest <= Limits::kLargestShift && lowest >= -Limits::kLargestShift;
  }
  // For the lane of the pair's first rows, in a plain sweep of float32: makes the factors of rows 0 that are far above the row
  // above. Nothing is above the first row, so no row that hands down to a far one rises by more than the factors in between say
  // (`rise`, in a chunk's steps); what is left out is less than 2^-kFarBelow of 2^kLowestBesideFar.
  __device__ __forceinline__ void leave_far_rows_out(const int (&units)[S::kRows]) {
    constexpr int kAtFirst = Limits::kRenewed + 1, kSteps = 4;  // 2^kSteps: twice the columns of a chunk
    static_assert(1 << kSteps == 2 * S::kSteps);
    int rise = kAtFirst;
    fit = true;
#pragma unroll
    for (int k = 1; k < S::kRows; ++k) {
      const int shift = units[k - 1] - units[k];
      fit = fit && shift <= Limits::kLargestShift;
      if (shift >= -Limits::kLargestShift) {
        rise = max(kAtFirst, rise + shift + kSteps) + 1;
        continue;
      }
      fit = fit && shift + rise + 1 <= kLowestBesideFar - kFarBelow && far_units < 1u << 16 && shift > -(1 << 16);
      far_units = far_units << 16 | static_cast<unsigned>(-shift);
      row[k] = 0;
      rise = kAtFirst;
    }
  }
};

// The smallest of a chunk's entries, as the word of one.
template <typename Number>
struct Lowest {
  int word = INT_MAX;

  __device__ __forceinline__ void meet(Number a) { word = min(word, Range<Number>::word(a)); }
  __device__ __forceinline__ bool is_enough() const { return is_above(Range<Number>::kLowest); }
  __device__ __forceinline__ bool is_above(int exponent) const {
    return word >= (Range<Number>::kBias + exponent) << Range<Number>::kExponentShift;
  }
};

// (2) over a chunk. Lane 0 finds the edge above in the stage. `visit(t, bottom)` returns what sees the cells of a column, as
// cell(k, a), of which `bottom` is the entry of the lane's last row before it; `after(t)` is called after a column. Columns left
// of step `first` are left of the table: nothing reaches them.
template <int kUnroll, class S, typename Number, bool kMayBeFar, class Columns, class Visit, class After>
__device__ __forceinline__ void sweep_linear(
    const Columns& columns, const Factors<S, Number, kMayBeFar>& factors, int first, LinearLane<S, Number>& state,
    Lowest<Number>& lowest, Visit&& visit, After&& after) {
#pragma unroll(kUnroll)
  for (int t = 0; t < S::kSteps; ++t) {
    const Number bottom = state.left[S::kRows - 1];
    Number up = shuffle_up(bottom);
    if (columns.lane == 0) up = columns.stage.template entry<Number>(t);
    const auto column = columns.column(t);
    auto cell = visit(t, bottom);
    Number diag = state.diag;
    state.diag = up;
#pragma unroll
    for (int k = 0; k < S::kRows; ++k) {
      const Number left = state.left[k];
      // left and diag come from the column before, so their sum is off the chain that runs down the rows.
      const Number s = DeviceMath<Number>::fma(factors.row[k], up, DeviceMath<Number>::fma(factors.row[k], diag, left));
      state.left[k] = up = column.template weight<Number>(k) * s;
      if (!kMayBeFar || t >= first) lowest.meet(up);
      cell(k, up);
      diag = left;
    }
    after(t);
  }
}

// The careful sweep, of a lane's rows and the row above them. `visit(t, bottom)` returns what sees the cells of a column, as
// cell(k, a). Cells left of the table are 0: nothing reaches them.
template <class S, class Columns, class Visit>
__device__ __forceinline__ void sweep_linear_carefully(
    const Columns& columns, Wide (&lefts)[S::kRows], Wide& corner, Visit&& visit) {
#pragma unroll 1
  for (int t = 0; t < S::kSteps; ++t) {
    const Wide bottom = lefts[S::kRows - 1];
    Wide up = shuffle_up(bottom);
    if (columns.lane == 0) up = Wide::of(columns.stage.wide[t], columns.stage.units[t]);
    const auto column = columns.column(t);
    auto cell = visit(t, bottom);
    Wide diag = corner;
    corner = up;
#pragma unroll
    for (int k = 0; k < S::kRows; ++k) {
      const Wide left = lefts[k];
      lefts[k] = up = (left + diag + up).times(column.careful_weight(k));
      cell(k, up);
      diag = left;
    }
  }
}

// What flows between chunks of the reversed sweep.
template <class S, typename Number = typename S::Scalar>
struct LinearFlow {
  using Limits = Range<Number>;
  Number right[S::kRows];  // r of the column to the right, relative to 2^-exponent
  int exponent[S::kRows];
  Number diag;  // r of the row below the lane's rows, in the column to the right
  Number next;  // lane 31: what the strip below hands over for the coming column
  int below;    // both are relative to 2^-below

  __device__ __forceinline__ LinearFlow() : diag(0), next(0), below(0) {
#pragma unroll
    for (int k = 0; k < S::kRows; ++k) right[k] = 0, exponent[k] = 0;
  }
  // In other units; what leaves the range becomes 0 or infinite.
  template <typename Other>
  __device__ __forceinline__ LinearFlow(const LinearFlow<S, Other>& other, const int (&wanted)[S::kRows], int wanted_below)
      : below(wanted_below) {
#pragma unroll
    for (int k = 0; k < S::kRows; ++k) {
      right[k] = static_cast<Number>(Scaling(wanted[k] - other.exponent[k])(other.right[k]));
      exponent[k] = wanted[k];
    }
    const Scaling scaling(wanted_below - other.below);
    diag = static_cast<Number>(scaling(other.diag));
    next = static_cast<Number>(scaling(other.next));
  }
  __device__ __forceinline__ void clear() {
#pragma unroll
    for (int k = 0; k < S::kRows; ++k) right[k] = 0;
    diag = next = 0;
  }
  __device__ __forceinline__ bool is_finite() const {
    unsigned highest = max(Limits::word(diag), Limits::word(next));
#pragma unroll
    for (int k = 0; k < S::kRows; ++k) highest = max(highest, static_cast<unsigned>(Limits::word(right[k])));
    return highest < Limits::kInfinity;
  }
  // Units that are no farther from those of now than a plain sweep moves them.
  __device__ __forceinline__ void move(const int (&wanted)[S::kRows], int wanted_below) {
#pragma unroll
    for (int k = 0; k < S::kRows; ++k) {
      right[k] *= scaling_factor<Number>(wanted[k] - exponent[k]);
      exponent[k] = wanted[k];
    }
    const Number scaling = scaling_factor<Number>(wanted_below - below);
    diag *= scaling;
    next *= scaling;
    below = wanted_below;
  }
  __device__ __forceinline__ Wide row(int k) const { return Wide::of(right[k], -exponent[k]); }
  __device__ __forceinline__ void take(const LinearFlow<S, double>& other) {
    Wide rows[S::kRows];
#pragma unroll
    for (int k = 0; k < S::kRows; ++k) rows[k] = other.row(k);
    take(rows, Wide::of(other.diag, -other.below), Wide::of(other.next, -other.below));
  }
  // Numbers of [1, 2), or 0, but for one of the last two.
  __device__ __forceinline__ void take(const Wide (&rows)[S::kRows], const Wide& corner, const Wide& coming) {
#pragma unroll
    for (int k = 0; k < S::kRows; ++k) {
      right[k] = static_cast<Number>(rows[k].a);
      exponent[k] = -rows[k].e;
    }
    below = -max(corner.e, coming.e);  // what is flushed here adds to the same cells as the other
    diag = static_cast<Number>(corner.in_unit(-below));
    next = static_cast<Number>(coming.in_unit(-below));
  }
};

// (3), (4) over a chunk that sweep_linear has computed. Lane 31 finds in the stage what the strip below hands to it, for columns
// one left of lane 31's. `below`: the factor of the row below the lane's. `visit(t, column)` returns a visitor of a column, which
// knows a(k) of its cells, takes E in cell(k, e), and whose end() is called after it; `hand(t, r)` gets r of the lane's first row.
// The pair's last cell, where E is 1, may be here if kMayBeFar, as the lane's cell (end_row, end_step).
template <int kUnroll, class S, typename Number, bool kMayBeFar, class Columns, class Visit, class Hand>
__device__ __forceinline__ void sweep_linear_reversed(
    const Columns& columns, const Factors<S, Number, kMayBeFar>& factors, Number below, int end_row, int end_step,
    LinearFlow<S, Number>& flow, Visit&& visit, Hand&& hand) {
#pragma unroll(kUnroll)
  for (int t = S::kSteps - 1; t >= 0; --t) {
    Number down = shuffle_down(flow.right[0]);
    if (columns.lane == kWarp - 1) {
      down = flow.next;
      flow.next = columns.stage.template entry<Number>(t);
    }
    const auto column = columns.column(t);
    auto visitor = visit(t, column);
    Number diag = flow.diag;
    flow.diag = down;
#pragma unroll
    for (int k = S::kRows - 1; k >= 0; --k) {
      const Number right = flow.right[k], factor = k + 1 < S::kRows ? factors.row[(k + 1) % S::kRows] : below;
      const Number a = visitor.template a<Number>(k);
      Number v = DeviceMath<Number>::fma(factor, down, DeviceMath<Number>::fma(factor, diag, right));
      if (kMayBeFar && k == end_row && t == end_step) v = 1 / a;
      flow.right[k] = down = column.template weight<Number>(k) * v;
      visitor.cell(k, a * v);
      diag = right;
    }
    visitor.end();
    hand(t, flow.right[0]);
  }
}

// The same over any chunk, with exponents of their own: the visitor's careful_a(k) is wide, and so is what `hand` gets.
template <class S, class Columns, class Visit, class Hand>
__device__ __forceinline__ void sweep_linear_reversed_carefully(
    const Columns& columns, int first_column, int end_row, int end_step, LinearFlow<S>& flow, Visit&& visit, Hand&& hand) {
  Wide rights[S::kRows], corner = Wide::of(flow.diag, -flow.below), next = Wide::of(flow.next, -flow.below);
#pragma unroll
  for (int k = 0; k < S::kRows; ++k) rights[k] = flow.row(k);
#pragma unroll 1
  for (int t = S::kSteps - 1; t >= 0; --t) {
    Wide down = shuffle_down(rights[0]);
    if (columns.lane == kWarp - 1) {
      down = next;
      next = Wide::of(columns.stage.wide[t], columns.stage.units[t]);
    }
    const auto column = columns.column(t);
    auto visitor = visit(t, column);
    Wide diag = corner;
    corner = down;
#pragma unroll
    for (int k = S::kRows - 1; k >= 0; --k) {
      const Wide right = rights[k], a = visitor.careful_a(k);
      Wide v = right + down + diag;
      if (k == end_row && t == end_step) v = Wide::of(1 / a.a, -a.e);
      if (first_column + t < 0) v = Wide();
      visitor.cell(k, a.times(v).in_unit(0));
      rights[k] = down = v.times(column.careful_weight(k));
      diag = right;
    }
    visitor.end();
    hand(t, rights[0]);
  }
  flow.take(rights, corner, next);
}

}  // namespace softdtw
