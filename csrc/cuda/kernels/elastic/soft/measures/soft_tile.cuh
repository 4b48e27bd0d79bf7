// What the steps into the cells of a lane's tile cost, for soft sweeps, one dimension: what the types of the measures have in common. Each
// of them is in the file of its kernels.
//
// A tile has its `series` (soft_columns.cuh); use(place), after which it is at a chunk whose columns are in shared memory; reach(), which no
// cost of the chunk exceeds, NaN if one is NaN; and cells<R>(place, scale), which give the costs of the chunk's cells in the number
// format R, one of SoftDtw's: enter(t) for each column in turn, then steps(k, t) for each of its rows in turn. Costs come split: added to m, multiplied
// with s. Where steps up cost the same in a whole row, and those to the left in a column, they are split once.
//
// kForwardBlocks, kBackwardBlocks: of four warps each, that a multiprocessor has to hold in float32. With gap costs fewer are faster:
// the compiler keeps in memory what does not fit the registers that are left for a lane.
//
// For gradients (soft_sums.cuh) a tile has kLooksUp, whether costs depend on the row above; kLooksBack, whether on the column before;
// kCountsOnward, whether the diagonal step out of a cell costs what the cell's own vectors say, too; kHasGaps, whether the caller gives gap
// costs; and what masses of steps, D, U and L, say of series, add_slopes(), and of the expected cost and the parameter, add_costs().
#pragma once

#include "cuda/numbers/extended_range_state.cuh"
#include "soft_columns.cuh"

namespace softdtw {

// Split costs, or the masses of a cell's steps.
template <class V>
struct Steps {
  V diagonal, up, left;
};

// mass with the sign of `difference`, 0 where that is 0: mass times the slope of its absolute value.
template <typename T>
__device__ __forceinline__ T with_sign_of(T difference, T mass) {
  return difference > T(0) ? mass : difference < T(0) ? -mass : T(0);
}

// Numbers with their gap costs, l, split, and with their times if there are any; without they are the columns' places.
template <class S>
struct GapSource {
  using T = typename S::Scalar;
  struct alignas(16) Column {
    T y, time;
    Entry<T> gap;
  };
  struct Loaded {
    T y, time, gap;
  };
  struct Ranges {
    Range<T> y, times, gaps;
    __device__ __forceinline__ void add(const Loaded& column) {
      y.add(column.y);
      times.add(column.time);
      gaps.add(DeviceMath<T>::abs(column.gap));
    }
    __device__ __forceinline__ void join_lanes() {
      y.join_lanes();
      times.join_lanes();
      gaps.join_lanes();
    }
  };
  const NumberSource<S> numbers;
  const NumbersView<const T> gaps, times;
  const T scale;

  __device__ GapSource(const ElasticTable<T>& problem, const ElasticPlace& at, int64_t pair, T scale_)
      : numbers(problem, at, pair),
        gaps(problem.y_gaps.of(problem.y.of(pair))),
        times(problem.y_times.data == nullptr ? problem.y_times : problem.y_times.of(problem.y.of(pair))),
        scale(scale_) {}
  __device__ __forceinline__ T gap(int column) const { return gaps.at(numbers.at.column(column)); }
  __device__ __forceinline__ Loaded load(int column) const {
    const T time = times.data == nullptr ? static_cast<T>(column) : times.at(numbers.at.column(column));
    return {numbers.load(column).y, time, gap(column)};
  }
  __device__ __forceinline__ Column of(const Loaded& column) const {
    return {column.y, column.time, Recurrences<S>::Plain::split(column.gap, scale)};
  }
};

// Gap costs as the caller gives them: u of the tile's rows, split, and l of columns.
template <class S>
struct SoftGaps {
  using T = typename S::Scalar;
  using Plain = typename Recurrences<S>::Plain;
  using Series = GapSource<S>;
  const ElasticTable<T>& problem;
  const Series columns;
  const int64_t pair;
  const int row;
  Entry<T> rows[S::kRows];
  T of_rows = 0;

  __device__ SoftGaps(const ElasticTable<T>& problem_, const Series& columns_, int64_t pair_, int row_, T scale)
      : problem(problem_), columns(columns_), pair(pair_), row(row_) {
#pragma unroll
    for (int k = 0; k < S::kRows; ++k) {
      const T own = of_row(k);
      rows[k] = Plain::split(own, scale);
      of_rows = greater(of_rows, DeviceMath<T>::abs(own));
    }
  }
  __device__ __forceinline__ T reach(const typename Series::Ranges& ranges) const {
    return greater(of_rows, ranges.gaps.highest);
  }
  __device__ __forceinline__ T of_row(int k) const {
    return problem.x_gaps.of(problem.x.of(pair)).at(columns.numbers.at.row(row + k));
  }
  // Of any column of the table.
  __device__ __forceinline__ T at_column(int column) const { return columns.gap(column); }
  template <class R>
  __device__ __forceinline__ typename R::Cell split_row(int k, decltype(R::scale) scale) const {
    if constexpr (R::kIsGeneral)
      return R::split(of_row(k), scale);
    else
      return rows[k];
  }
  template <class R>
  __device__ __forceinline__ typename R::Cell split_column(
      const typename Series::Column& own, int column, decltype(R::scale) scale) const {
    if constexpr (R::kIsGeneral)
      return R::split(at_column(column), scale);
    else
      return own.gap;
  }
  template <class Sums>
  __device__ __forceinline__ void add_costs(int k, int column, const Steps<T>& masses, Sums& sums) const {
    sums.add_cost(masses.up, of_row(k));
    sums.add_cost(masses.left, at_column(column));
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
          holds ? DeviceMath<T>::exp2_of_fraction(static_cast<T>(whole - within)) : T(1)};
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

}  // namespace softdtw
