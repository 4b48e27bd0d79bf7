// The costs of a chunk for the linear engine (linear.cuh), as exponents of 2, and the weights that come of them.
#pragma once

#include "linear.cuh"
#include "tile.cuh"

namespace softdtw {

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

}  // namespace softdtw
