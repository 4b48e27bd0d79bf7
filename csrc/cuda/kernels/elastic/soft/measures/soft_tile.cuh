// What the steps into the cells of a lane's tile cost, for soft sweeps: a type for each family of measures, one dimension.
//
// A tile has fetch() and use() as in costs/tile.cuh; `reach`, which no cost of the chunk exceeds, NaN if one is NaN; and cells<R>(scale), which
// give the costs of a chunk's cells in the number format R, one of SoftDtw's: enter(t) for each column in turn, then steps(k, t) for each of
// its rows in turn. Costs come split: added to m, multiplied with s. Where steps up cost the same in a whole row, and those to the left in
// a column, they are split once.
//
// kForwardBlocks: of four warps each, that a multiprocessor has to hold in float32. With four of them the compiler keeps in memory
// what does not fit the registers that are left for a lane, which is most where gap costs are given.
//
// For gradients (soft_sums.cuh) a tile has kLooksUp, whether costs depend on the row above; kCountsOnward, whether the diagonal step out of a
// cell costs what the cell's own vectors say, too; kHasGaps, whether the caller gives gap costs; and what masses of steps, D, U and L, say of
// series, add_slopes(), and of the expected cost and the parameter, add_costs().
#pragma once

#include "cuda/kernels/elastic/elastic_table.cuh"
#include "cuda/kernels/elastic/strips/elastic_distances.cuh"
#include "cuda/numbers/extended_range_state.cuh"

namespace softdtw {

// Split costs, or the masses of a cell's steps.
template <class V>
struct Steps {
  V diagonal, up, left;
};

// The lowest and the highest of some numbers; NaN if one is NaN.
template <typename T>
struct Range {
  T lowest, highest;

  __device__ __forceinline__ void start(T number) { lowest = highest = number; }
  __device__ __forceinline__ void add(T number) {
    lowest = lesser(lowest, number);
    highest = greater(highest, number);
  }
  // What a number of the one and a number of the other are apart at most.
  __device__ __forceinline__ T apart(const Range& other) const {
    return greater(highest - other.lowest, other.highest - lowest);
  }
};

// mass with the sign of `difference`, 0 where that is 0: mass times the slope of its absolute value.
template <typename T>
__device__ __forceinline__ T with_sign_of(T difference, T mass) {
  return difference > T(0) ? mass : difference < T(0) ? -mass : T(0);
}

// What there is one number of for each column: of a chunk, and kBefore before it.
template <class S, int kBefore, typename T>
__device__ __forceinline__ void load_columns(
    const NumbersView<const T>& line, const ElasticPlace& at, const Place<S>& place, T (&columns)[S::kSteps + kBefore]) {
  if (place.in_columns && line.stride == 1 && place.column >= at.shift + kBefore) {
    const T* const from = line.data + place.column - at.shift - kBefore;
#pragma unroll
    for (int t = 0; t < S::kSteps + kBefore; ++t) columns[t] = from[t];
  } else {
#pragma unroll
    for (int t = 0; t < S::kSteps + kBefore; ++t) columns[t] = line.at(at.column(place.column + t - kBefore));
  }
}

// A pair's series: rows of the tile, kAbove above it among them, and columns of a chunk, the one before it among them.
template <class S, int kAbove>
struct SoftSeries {
  using T = typename S::Scalar;
  T x[S::kRows + kAbove], y[S::kSteps], next[S::kSteps], y_before = 0, next_before = 0;
  Range<T> of_rows, of_columns;
  const T* const line;
  const int64_t stride;
  const ElasticPlace at;

  __device__ SoftSeries(const ElasticTable<T>& problem, const ElasticPlace& at_, int64_t pair, int row)
      : line(problem.y.pair(pair).data), stride(problem.y.row_stride), at(at_) {
    load_rows<S, kAbove>(problem.x.pair(pair).data, problem.x.row_stride, at, row, x);
    of_rows.start(x[0]);
#pragma unroll
    for (int k = 1; k < S::kRows + kAbove; ++k) of_rows.add(x[k]);
  }
  __device__ __forceinline__ void fetch(const Place<S>& place) {
    if (place.in_columns && stride == 1 && place.column > at.shift) {
      const T* const from = line + place.column - at.shift;
#pragma unroll
      for (int t = 0; t < S::kSteps; ++t) next[t] = from[t];
      if (kAbove > 0) next_before = from[-1];
    } else {
#pragma unroll
      for (int t = 0; t < S::kSteps; ++t) next[t] = line[at.column(place.column + t) * stride];
      if (kAbove > 0) next_before = line[at.column(place.column - 1) * stride];
    }
  }
  __device__ __forceinline__ void use() {
    of_columns.start(next[0]);
#pragma unroll
    for (int t = 0; t < S::kSteps; ++t) {
      y[t] = next[t];
      of_columns.add(y[t]);
    }
    if (kAbove == 0) return;
    y_before = next_before;
    of_columns.add(y_before);
  }
  // Rows from -kAbove, columns from -1.
  __device__ __forceinline__ T row(int k) const { return x[k + kAbove]; }
  __device__ __forceinline__ T column(int t) const { return t < 0 ? y_before : pick(y, t); }
  template <typename V>
  __device__ __forceinline__ V difference(int k, int t) const {
    return static_cast<V>(row(k)) - static_cast<V>(column(t));
  }
  __device__ __forceinline__ T widest() const { return of_rows.apart(of_columns); }
};

// Gap costs as the caller gives them: u of the tile's rows, split, and l of a chunk's columns.
template <class S>
struct SoftGaps {
  using T = typename S::Scalar;
  using Plain = typename Recurrences<S>::Plain;
  const ElasticTable<T>& problem;
  const ElasticPlace at;
  const int64_t pair;
  const int row;
  Entry<T> rows[S::kRows];
  T columns[S::kSteps], of_rows = 0, reach = 0;

  __device__ SoftGaps(const ElasticTable<T>& problem_, const ElasticPlace& at_, int64_t pair_, int row_, T scale)
      : problem(problem_), at(at_), pair(pair_), row(row_) {
#pragma unroll
    for (int k = 0; k < S::kRows; ++k) {
      const T own = of_row(k);
      rows[k] = Plain::split(own, scale);
      of_rows = greater(of_rows, DeviceMath<T>::abs(own));
    }
  }
  __device__ __forceinline__ void use(const Place<S>& place) {
    load_columns<S, 0>(problem.y_gaps.of(problem.y.of(pair)), at, place, columns);
    reach = of_rows;
#pragma unroll
    for (int t = 0; t < S::kSteps; ++t) reach = greater(reach, DeviceMath<T>::abs(columns[t]));
  }
  __device__ __forceinline__ T of_row(int k) const { return problem.x_gaps.of(problem.x.of(pair)).at(at.row(row + k)); }
  __device__ __forceinline__ T of_column(int t) const { return pick(columns, t); }
  template <class R>
  __device__ __forceinline__ typename R::Cell split_row(int k, decltype(R::scale) scale) const {
    if constexpr (R::kIsGeneral)
      return R::split(of_row(k), scale);
    else
      return rows[k];
  }
  template <class R>
  __device__ __forceinline__ typename R::Cell split_column(int t, decltype(R::scale) scale) const {
    return R::split(of_column(t), scale);
  }
  // Of any column of the table.
  __device__ __forceinline__ T at_column(int column) const {
    return problem.y_gaps.of(problem.y.of(pair)).at(at.column(column));
  }
  template <class Sums>
  __device__ __forceinline__ void add_costs(int k, int t, const Steps<T>& masses, Sums& sums) const {
    sums.add_cost(masses.up, of_row(k));
    sums.add_cost(masses.left, of_column(t));
  }
};

// All gaps cost 1.
template <class S>
struct SoftUnitGaps {
  using T = typename S::Scalar;
  const Entry<T> all;
  static constexpr T reach = 1;

  __device__ SoftUnitGaps(const ElasticTable<T>&, const ElasticPlace&, int64_t, int, T scale)
      : all(Recurrences<S>::Plain::split(T(1), scale)) {}
  __device__ __forceinline__ void use(const Place<S>&) {}
  __device__ __forceinline__ T of_column(int) const { return 1; }
  template <class R>
  __device__ __forceinline__ typename R::Cell split_row(int, decltype(R::scale)) const {
    return {all.m, all.s};
  }
  template <class R>
  __device__ __forceinline__ typename R::Cell split_column(int, decltype(R::scale)) const {
    return {all.m, all.s};
  }
  __device__ __forceinline__ T at_column(int) const { return 1; }
  template <class Sums>
  __device__ __forceinline__ void add_costs(int, int, const Steps<T>& masses, Sums& sums) const {
    sums.add_cost(masses.up, T(1));
    sums.add_cost(masses.left, T(1));
  }
};

// Row 0 of a summed border, above the first strip: for its first lane, whose columns begin with 0.
template <class S>
struct SoftBorder {
  using T = typename S::Scalar;
  double sum = 0;  // before the chunk, as an exponent of 2

  // By that lane alone. left(t): l of its columns.
  template <class Left>
  __device__ __forceinline__ void put(
      const Extent& extent, const Place<S>& place, double scale, ExtendedTop<S>& top, Left&& left) {
    const double base = DeviceMath<double>::round(sum < Unreachable<double>::value ? sum : 0);
    Entry<T, double> entries[S::kSteps];
    bool is_wide = false;
#pragma unroll
    for (int t = 0; t < S::kSteps; ++t) {
      if (place.column + t > 0) sum += static_cast<double>(left(t)) * scale;
      const bool holds = extent.in_band(-1, place.column + t) && !(sum >= Unreachable<double>::value / 2);
      const double within = sum - base, whole = DeviceMath<double>::round(within);
      entries[t] = {
          holds ? floor_of_m<S>() + whole : Unreachable<double>::value,
          holds ? DeviceMath<T>::exp2(static_cast<T>(whole - within)) : T(1)};
      is_wide = is_wide || (holds && !(DeviceMath<double>::abs(within) < Whole<T>::limit));
    }
    T groups[2 * S::kSteps];
#pragma unroll
    for (int t = 0; t < S::kSteps; ++t) {
      if (sizeof(T) == 4 && is_wide)
        ExtendedTop<S>::write(groups, t, entries[t]);
      else
        ExtendedTop<S>::write(groups, t, Entry<T>{convert_m<T>(entries[t].m), entries[t].s});
    }
#pragma unroll
    for (int t = 0; t < S::kSteps; ++t) {
      top.m[t] = groups[t];
      top.s[t] = groups[S::kSteps + t];
    }
    top.reference = base - floor_of_m<S>();
    top.complete();
  }
};

// Edit.
template <class S_>
struct SoftEdit {
  using S = S_;
  using T = typename S::Scalar;
  static constexpr int kForwardBlocks = 3;
  static constexpr bool kLooksUp = false, kCountsOnward = false, kHasGaps = true;
  SoftSeries<S, 0> series;
  SoftGaps<S> gaps;
  T reach = 0;

  __device__ SoftEdit(const ElasticTable<T>& problem, const ElasticPlace& at, int64_t pair, int row, T scale)
      : series(problem, at, pair, row), gaps(problem, at, pair, row, scale) {}
  __device__ __forceinline__ void fetch(const Place<S>& place) { series.fetch(place); }
  __device__ __forceinline__ void use(const Place<S>& place) {
    series.use();
    gaps.use(place);
    reach = greater(series.widest(), gaps.reach);
  }
  template <class R>
  struct Cells {
    using V = decltype(R::scale);
    const SoftEdit& tile;
    const V scale;
    typename R::Cell left;

    __device__ __forceinline__ void enter(int t) { left = tile.gaps.template split_column<R>(t, scale); }
    __device__ __forceinline__ Steps<typename R::Cell> steps(int k, int t) {
      const V distance = DeviceMath<V>::abs(tile.series.template difference<V>(k, t));
      return {R::split(distance, scale), tile.gaps.template split_row<R>(k, scale), left};
    }
  };
  template <class R>
  __device__ __forceinline__ Cells<R> cells(const Place<S>&, decltype(R::scale) scale) const {
    return {*this, scale, {}};
  }

  template <class Sums>
  __device__ __forceinline__ void add_slopes(int k, int t, const Steps<T>& masses, T, Sums& sums) const {
    sums.add_difference(k, with_sign_of(series.template difference<T>(k, t), masses.diagonal));
  }
  template <class Sums>
  __device__ __forceinline__ void add_costs(int k, int t, const Steps<T>& masses, T, Sums& sums) const {
    sums.add_cost(masses.diagonal, DeviceMath<double>::abs(series.template difference<double>(k, t)));
    gaps.add_costs(k, t, masses, sums);
  }
};

// Edr and Lcss: a match is free, all else costs the same.
template <class S_>
struct SoftThreshold {
  using S = S_;
  using T = typename S::Scalar;
  static constexpr int kForwardBlocks = 4;
  static constexpr bool kLooksUp = false, kCountsOnward = false, kHasGaps = false;
  SoftSeries<S, 0> series;
  SoftUnitGaps<S> gaps;
  const T epsilon;
  const bool is_lcss;
  const Entry<T> apart;
  T reach = 0;

  __device__ SoftThreshold(const ElasticTable<T>& problem, const ElasticPlace& at, int64_t pair, int row, T scale)
      : series(problem, at, pair, row),
        gaps(problem, at, pair, row, scale),
        epsilon(static_cast<T>(problem.parameter_of(pair))),
        is_lcss(problem.measure == Measure::kLcss),
        apart(Recurrences<S>::Plain::split(is_lcss ? T(2) : T(1), scale)) {}
  __device__ __forceinline__ void fetch(const Place<S>& place) { series.fetch(place); }
  __device__ __forceinline__ void use(const Place<S>&) {
    series.use();
    const T widest = series.widest();
    reach = T(2) + (widest - widest);  // NaN where a distance may be infinite
  }
  __device__ __forceinline__ bool is_match(int k, int t) const {
    const T distance = DeviceMath<T>::abs(series.template difference<T>(k, t));
    return is_lcss ? distance <= epsilon : distance < epsilon;
  }

  template <class R>
  struct Cells {
    const SoftThreshold& tile;

    __device__ __forceinline__ void enter(int) {}
    __device__ __forceinline__ Steps<typename R::Cell> steps(int k, int t) {
      const bool match = tile.is_match(k, t);
      const T distance = tile.series.template difference<T>(k, t);
      typename R::Cell diagonal = {match ? T(0) : tile.apart.m, match ? T(1) : tile.apart.s};
      if constexpr (R::kIsGeneral) diagonal.s += distance - distance;
      return {diagonal, tile.gaps.template split_row<R>(k, 0), tile.gaps.template split_column<R>(t, 0)};
    }
  };
  template <class R>
  __device__ __forceinline__ Cells<R> cells(const Place<S>&, decltype(R::scale)) const {
    return {*this};
  }

  template <class Sums>
  __device__ __forceinline__ void add_slopes(int, int, const Steps<T>&, T, Sums&) const {}
  template <class Sums>
  __device__ __forceinline__ void add_costs(int k, int t, const Steps<T>& masses, T, Sums& sums) const {
    sums.add_cost(masses.diagonal, is_match(k, t) ? T(0) : is_lcss ? T(2) : T(1));
    gaps.add_costs(k, t, masses, sums);
  }
};

// Twed. a = |x - y| + unit |t - s|; without times the places are those, and exact.
template <class S_>
struct SoftTwed {
  using S = S_;
  using T = typename S::Scalar;
  static constexpr int kForwardBlocks = 3;
  static constexpr bool kLooksUp = true, kCountsOnward = true, kHasGaps = true;
  SoftSeries<S, 1> series;
  SoftGaps<S> gaps;
  T x_times[S::kRows + 1], y_times[S::kSteps + 1];  // the row above, the column before
  const T unit;
  Range<T> of_rows;
  T reach = 0;

  __device__ SoftTwed(const ElasticTable<T>& problem, const ElasticPlace& at, int64_t pair, int row, T scale)
      : series(problem, at, pair, row),
        gaps(problem, at, pair, row, scale),
        unit(problem.x_times.data != nullptr ? T(1) : static_cast<T>(problem.parameter_of(pair))) {
    if (problem.x_times.data != nullptr)
      load_rows<S, 1>(problem.x_times.of(problem.x.of(pair)).data, problem.x_times.stride, at, row, x_times);
    else
#pragma unroll
      for (int k = 0; k <= S::kRows; ++k) x_times[k] = static_cast<T>(row + k - 1);
    of_rows.start(x_times[0]);
#pragma unroll
    for (int k = 1; k <= S::kRows; ++k) of_rows.add(x_times[k]);
  }
  __device__ __forceinline__ void fetch(const Place<S>& place) { series.fetch(place); }
  __device__ __forceinline__ void use(const Place<S>& place) {
    series.use();
    gaps.use(place);
    const ElasticTable<T>& problem = gaps.problem;
    Range<T> of_columns;
    if (problem.x_times.data != nullptr) {
      load_columns<S, 1>(problem.y_times.of(problem.y.of(gaps.pair)), gaps.at, place, y_times);
      of_columns.start(y_times[0]);
#pragma unroll
      for (int t = 1; t <= S::kSteps; ++t) of_columns.add(y_times[t]);
    } else {
      const T before = static_cast<T>(place.column - 1);
#pragma unroll
      for (int t = 0; t <= S::kSteps; ++t) y_times[t] = before + static_cast<T>(t);
      of_columns = {before, y_times[S::kSteps]};
    }
    const T widest = DeviceMath<T>::fma(of_rows.apart(of_columns), DeviceMath<T>::abs(unit), series.widest());
    reach = greater(widest + widest, gaps.reach);
  }
  template <typename V>
  __device__ __forceinline__ V between_times(int k, int t) const {
    return static_cast<V>(x_times[k + 1]) - static_cast<V>(pick(y_times, t + 1));
  }
  template <typename V>
  __device__ __forceinline__ V match(int k, int t) const {
    const V distance = DeviceMath<V>::abs(series.template difference<V>(k, t));
    return DeviceMath<V>::fma(DeviceMath<V>::abs(between_times<V>(k, t)), static_cast<V>(unit), distance);
  }

  // a[i-1,j-1] is what was computed a column ago, for the row above among others.
  template <class R>
  struct Cells {
    using V = decltype(R::scale);
    const SoftTwed& tile;
    const V scale;
    V before[S::kRows], above = 0;
    typename R::Cell left;

    __device__ __forceinline__ Cells(const SoftTwed& tile_, const Place<S>& place, V scale_) : tile(tile_), scale(scale_) {
#pragma unroll
      for (int k = 0; k < S::kRows; ++k) before[k] = tile.template match<V>(k - 1, -1);
      if (place.row == 0 && place.column == 0) before[0] = 0;
    }
    __device__ __forceinline__ void enter(int t) {
      above = tile.template match<V>(-1, t);
      left = tile.gaps.template split_column<R>(t, scale);
    }
    __device__ __forceinline__ Steps<typename R::Cell> steps(int k, int t) {
      const V own = tile.template match<V>(k, t), both = own + before[k];
      before[k] = above;
      above = own;
      return {R::split(both, scale), tile.gaps.template split_row<R>(k, scale), left};
    }
  };
  template <class R>
  __device__ __forceinline__ Cells<R> cells(const Place<S>& place, decltype(R::scale) scale) const {
    return Cells<R>(*this, place, scale);
  }

  // a of a cell counts for the diagonal step into it, and for the one out of it, `onward`.
  template <class Sums>
  __device__ __forceinline__ void add_slopes(int k, int t, const Steps<T>& masses, T onward, Sums& sums) const {
    const T mass = masses.diagonal + onward;
    sums.add_difference(k, with_sign_of(series.template difference<T>(k, t), mass));
    if constexpr (Sums::kHasTimes) sums.add_times(k, with_sign_of(between_times<T>(k, t), mass));
  }
  template <class Sums>
  __device__ __forceinline__ void add_costs(int k, int t, const Steps<T>& masses, T onward, Sums& sums) const {
    sums.add_cost(masses.diagonal + onward, match<double>(k, t));
    if (k >= 0) gaps.add_costs(k, t, masses, sums);
  }
};

// Msm.
template <class S_>
struct SoftMsm {
  using S = S_;
  using T = typename S::Scalar;
  using Type = Msm<T>;
  static constexpr int kForwardBlocks = 4;
  static constexpr bool kLooksUp = true, kCountsOnward = false, kHasGaps = false;
  SoftSeries<S, 1> series;
  const T parameter;
  T reach = 0;

  __device__ SoftMsm(const ElasticTable<T>& problem, const ElasticPlace& at, int64_t pair, int row, T)
      : series(problem, at, pair, row), parameter(static_cast<T>(problem.parameter_of(pair))) {}
  __device__ __forceinline__ void fetch(const Place<S>& place) { series.fetch(place); }
  __device__ __forceinline__ void use(const Place<S>&) {
    series.use();
    reach = series.widest() + DeviceMath<T>::abs(parameter);  // gap(v; a, b) is at most |v - b|
  }
  template <typename V>
  __device__ __forceinline__ Steps<V> costs(int k, int t) const {
    const V apart = series.template difference<V>(k, t), c = static_cast<V>(parameter);
    const V above = static_cast<V>(series.row(k - 1)) - static_cast<V>(series.row(k));
    const V before = static_cast<V>(series.column(t - 1)) - static_cast<V>(series.column(t));
    return {DeviceMath<V>::abs(apart), c + gap(above, -apart), c + gap(before, apart)};
  }

  template <class R>
  struct Cells {
    using V = decltype(R::scale);
    const SoftMsm& tile;
    const V scale;

    __device__ __forceinline__ void enter(int) {}
    __device__ __forceinline__ Steps<typename R::Cell> steps(int k, int t) {
      const Steps<V> costs = tile.template costs<V>(k, t);
      return {R::split(costs.diagonal, scale), R::split(costs.up, scale), R::split(costs.left, scale)};
    }
  };
  template <class R>
  __device__ __forceinline__ Cells<R> cells(const Place<S>&, decltype(R::scale) scale) const {
    return {*this, scale};
  }

  template <class Sums>
  __device__ __forceinline__ void add_slopes(int k, int t, const Steps<T>& masses, T, Sums& sums) const {
    const T x = series.row(k), y = series.column(t);
    sums.add_difference(k, with_sign_of(x - y, masses.diagonal));
    const auto of_up = Type::slopes(x, series.row(k - 1), y);
    sums.rows[k + 1] = DeviceMath<T>::fma(masses.up, of_up.v, sums.rows[k + 1]);
    sums.rows[k] = DeviceMath<T>::fma(masses.up, of_up.a, sums.rows[k]);
    sums.column = DeviceMath<T>::fma(masses.up, of_up.b, sums.column);
    const auto of_left = Type::slopes(y, series.column(t - 1), x);
    sums.rows[k + 1] = DeviceMath<T>::fma(masses.left, of_left.b, sums.rows[k + 1]);
    sums.column = DeviceMath<T>::fma(masses.left, of_left.v, sums.column);
    sums.column_before = DeviceMath<T>::fma(masses.left, of_left.a, sums.column_before);
  }
  template <class Sums>
  __device__ __forceinline__ void add_costs(int k, int t, const Steps<T>& masses, T, Sums& sums) const {
    const Steps<double> own = costs<double>(k, t);
    sums.add_cost(masses.diagonal, own.diagonal);
    sums.add_cost(masses.up, own.up);
    sums.add_cost(masses.left, own.left);
    sums.parameter += static_cast<double>(masses.up) + static_cast<double>(masses.left);
  }

 private:
  // Msm::gap() of the ends less v.
  template <typename V>
  __device__ __forceinline__ static V gap(V p, V q) {
    using Math = DeviceMath<V>;
    return Math::max(Math::max(Math::min(p, q), -Math::max(p, q)), V(0));
  }
};

// Weighted: one cost for all steps, and a weight for each diagonal that a tile meets.
template <class S_>
struct SoftWeighted {
  using S = S_;
  using T = typename S::Scalar;
  using Type = Weighted<T>;
  static constexpr int kForwardBlocks = 4;
  static constexpr bool kLooksUp = false, kCountsOnward = false, kHasGaps = false;
  static constexpr int kDiagonals = S::kRows + S::kSteps - 1;
  SoftSeries<S, 0> series;
  const double parameter;
  const int64_t longest;
  int first = 0;  // row less column of the lowest diagonal
  T weights[kDiagonals], reach = 0;

  __device__ SoftWeighted(const ElasticTable<T>& problem, const ElasticPlace& at, int64_t pair, int row, T)
      : series(problem, at, pair, row),
        parameter(problem.parameter_of(pair)),
        longest(max(at.last_row, at.last_column) + 1) {}
  __device__ __forceinline__ void fetch(const Place<S>& place) { series.fetch(place); }
  __device__ __forceinline__ void use(const Place<S>& place) {
    series.use();
    first = place.row - place.column - (S::kSteps - 1);
#pragma unroll
    for (int i = 0; i < kDiagonals; ++i) weights[i] = weight(first + i);
    const T widest = series.widest();
    reach = widest * widest + (weights[0] - weights[0]);
  }
  __device__ __forceinline__ T weight_of(int k, int t) const { return pick(weights, k - t + S::kSteps - 1); }

  template <class R>
  struct Cells {
    using V = decltype(R::scale);
    const SoftWeighted& tile;
    const V scale;

    __device__ __forceinline__ void enter(int) {}
    __device__ __forceinline__ Steps<typename R::Cell> steps(int k, int t) {
      const V apart = tile.series.template difference<V>(k, t);
      const typename R::Cell cost = R::split(static_cast<V>(tile.weight_of(k, t)) * (apart * apart), scale);
      return {cost, cost, cost};
    }
  };
  template <class R>
  __device__ __forceinline__ Cells<R> cells(const Place<S>&, decltype(R::scale) scale) const {
    return {*this, scale};
  }

  template <class Sums>
  __device__ __forceinline__ void add_slopes(int k, int t, const Steps<T>& masses, T, Sums& sums) const {
    sums.add_difference(k, all(masses) * (2 * weight_of(k, t) * series.template difference<T>(k, t)));
  }
  template <class Sums>
  __device__ __forceinline__ void add_costs(int k, int t, const Steps<T>& masses, T, Sums& sums) const {
    const double apart = series.template difference<double>(k, t), own = apart * apart;
    const T mass = all(masses);
    sums.add_cost(mass, static_cast<double>(weight_of(k, t)) * own);
    sums.parameter += static_cast<double>(mass) * own * Type::slope(first + S::kSteps - 1 + k - t, parameter, longest);
  }

 private:
  __device__ __forceinline__ static T all(const Steps<T>& masses) { return masses.diagonal + masses.up + masses.left; }
  // In float32 the exponential's argument alone is float64, of which a fraction is left.
  __device__ __forceinline__ T weight(int k) const {
    if constexpr (sizeof(T) == 8) {
      return Type::weight(k, parameter, longest);
    } else {
      constexpr double kLog2OfE = 1.44269504088896340736;
      const double exponent =
          -parameter * kLog2OfE * (static_cast<double>(k < 0 ? -k : k) - static_cast<double>(longest) / 2);
      const double whole = DeviceMath<double>::round(exponent);
      const T fraction = DeviceMath<T>::exp2(static_cast<T>(exponent - whole));
      return T(1) / DeviceMath<T>::fma(fraction, DeviceMath<T>::exp2(static_cast<T>(whole)), T(1));
    }
  }
};

}  // namespace softdtw
