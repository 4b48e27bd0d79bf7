// What the steps into the cells of a lane's tile cost, for soft sweeps, one dimension: what the types of the measures have in common. Each
// of them is in the file of its kernels.
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

}  // namespace softdtw
