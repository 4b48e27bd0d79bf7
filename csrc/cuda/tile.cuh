// A lane's tile of a chunk (strip.cuh): where it lies, the costs in it, and the lane's state from one chunk to the next.
#pragma once

#include "strip.cuh"

namespace softdtw {

// Where a chunk stands: which cells a lane may hold, and what needs no check in the whole warp.
template <class S>
struct Place {
  int row, column;  // the lane's first cell
  bool in_table;    // every cell of the chunk is in rows [0, n) and columns [0, m)
  bool in_band;     // no cell is left of the table or outside the band; cells below or right of the table do no harm

  __device__ Place(const Strip<S>& strip, const Extent& extent, int chunk, int lane) {
    const int start = strip.first_column + chunk * S::kSteps;
    row = strip.first_row + lane * S::kRows;
    column = start - lane;
    const int leftmost = start - (kWarp - 1), rightmost = start + S::kSteps - 1;
    const int last_row = strip.first_row + S::kStripRows - 1;
    in_table = leftmost >= 0 && rightmost < extent.m && last_row < extent.n;
    in_band = leftmost >= 0 && rightmost - strip.first_row <= extent.high && leftmost - last_row >= extent.low;
  }
  __device__ bool holds(const Extent& extent, int k, int t) const {
    return column + t >= 0 && extent.in_band(row + k, column + t);
  }
};

// One coordinate of the kRows rows of x and the kSteps columns of y that a lane's tile meets. Rows and columns past the
// pair's end repeat its last ones: such cells hold finite numbers that no result depends on, and padding is never read.
template <class S>
struct SeriesTile {
  using T = typename S::Scalar;
  const View<const T> x, y;
  const Extent& extent;
  const Place<S>& place;
  const int64_t dim;
  const bool direct;  // no clamping, neighbours in time are neighbours in memory

  __device__ SeriesTile(const Problem<T>& problem, const Extent& extent_, const Place<S>& place_, int64_t pair)
      : x(problem.x.pair(pair)),
        y(problem.y.pair(pair)),
        extent(extent_),
        place(place_),
        dim(problem.dim),
        direct(place_.in_table && problem.x.row_stride == 1 && problem.y.row_stride == 1) {}

  // Calls f(d, rows, columns) for every coordinate, with the loads of kInFlight coordinates in flight.
  template <int kInFlight, class F>
  __device__ __forceinline__ void for_each_dim(F&& f) const {
    const T* x_line = x.data;
    const T* y_line = y.data;
    if (direct) {
      x_line += place.row;
      y_line += place.column;
#pragma unroll(kInFlight)
      for (int64_t d = 0; d < dim; ++d, x_line += x.column_stride, y_line += y.column_stride) {
        T rows[S::kRows], columns[S::kSteps];
#pragma unroll
        for (int k = 0; k < S::kRows; ++k) rows[k] = x_line[k];
#pragma unroll
        for (int t = 0; t < S::kSteps; ++t) columns[t] = y_line[t];
        f(d, rows, columns);
      }
    } else {
#pragma unroll 1
      for (int64_t d = 0; d < dim; ++d, x_line += x.column_stride, y_line += y.column_stride) {
        T rows[S::kRows], columns[S::kSteps];
#pragma unroll
        for (int k = 0; k < S::kRows; ++k) rows[k] = x_line[min(place.row + k, extent.n - 1) * x.row_stride];
#pragma unroll
        for (int t = 0; t < S::kSteps; ++t) columns[t] = y_line[min(max(place.column + t, 0), extent.m - 1) * y.row_stride];
        f(d, rows, columns);
      }
    }
  }
};

// A lane's tile of costs, in the unit of the problem (in that of m, for a ready-made matrix). Returns a bound on the
// largest of them, or NaN.
template <class S>
__device__ __forceinline__ typename S::Scalar load_costs(
    const Problem<typename S::Scalar>& problem, const Extent& extent, const Place<S>& place, int64_t pair,
    typename S::Scalar (&costs)[S::kRows][S::kSteps]) {
  using T = typename S::Scalar;
  if (problem.cost == Cost::kMatrix) {
    const View<const T> matrix = problem.cost_matrix.pair(pair);
    const T scale = static_cast<T>(problem.scale);
    T largest = 0;
#pragma unroll
    for (int k = 0; k < S::kRows; ++k) {
      const T* line = matrix.data + min(place.row + k, extent.n - 1) * matrix.row_stride;
#pragma unroll
      for (int t = 0; t < S::kSteps; ++t) {
        costs[k][t] = limit_cost(line[min(max(place.column + t, 0), extent.m - 1) * matrix.column_stride] * scale);
        largest = max(largest, DeviceMath<T>::abs(costs[k][t]));
      }
    }
    return largest;
  }
#pragma unroll
  for (int k = 0; k < S::kRows; ++k)
#pragma unroll
    for (int t = 0; t < S::kSteps; ++t) costs[k][t] = T(0);
  const SeriesTile<S> series(problem, extent, place, pair);
  T bound = 0;
  const auto add = [&](auto share) {
    series.template for_each_dim<S::kSteps == 8 ? 4 : 2>(
        [&](int64_t, const T(&rows)[S::kRows], const T(&columns)[S::kSteps]) {
#pragma unroll
          for (int k = 0; k < S::kRows; ++k)
#pragma unroll
            for (int t = 0; t < S::kSteps; ++t) costs[k][t] = share(rows[k] - columns[t], costs[k][t]);
          T row = 0, column = 0;
#pragma unroll
          for (int k = 0; k < S::kRows; ++k) row = max(row, DeviceMath<T>::abs(rows[k]));
#pragma unroll
          for (int t = 0; t < S::kSteps; ++t) column = max(column, DeviceMath<T>::abs(columns[t]));
          bound = share(row + column, bound);
        });
  };
  if (problem.cost == Cost::kCityblock)
    add([](T difference, T sum) { return sum + DeviceMath<T>::abs(difference); });
  else
    add([](T difference, T sum) { return DeviceMath<T>::fma(difference, difference, sum); });
  if (problem.cost == Cost::kEuclidean) {
#pragma unroll
    for (int k = 0; k < S::kRows; ++k)
#pragma unroll
      for (int t = 0; t < S::kSteps; ++t) costs[k][t] = DeviceMath<T>::sqrt(costs[k][t]);
    bound = DeviceMath<T>::sqrt(bound);
  }
  return bound;
}

// A lane's state between chunks, s in [1, 2): its rows at the column it has just left, and the neighbour row's entry one
// column before.
template <class S>
struct Lane {
  using T = typename S::Scalar;
  Entry<T> left[S::kRows];
  Entry<T> diag;
  T reference;

  // All of it, word by word, the lanes side by side.
  template <class Word, class F>
  __device__ __forceinline__ static void each_word(Word& state, F&& f) {
#pragma unroll
    for (int k = 0; k < S::kRows; ++k) {
      f(2 * k, state.left[k].m);
      f(2 * k + 1, state.left[k].s);
    }
    f(2 * S::kRows, state.diag.m);
    f(2 * S::kRows + 1, state.diag.s);
    f(2 * S::kRows + 2, state.reference);
  }
};

// The edge above a chunk, for lane 0; the other lanes get theirs from the lane above.
template <class S>
__device__ __forceinline__ Group<S> no_group() {
  Group<S> group;
#pragma unroll
  for (int t = 0; t < S::kSteps; ++t) {
    group.m[t] = Unreachable<typename S::Scalar>::value;
    group.s[t] = 1;
  }
  group.reference = 0;
  return group;
}

// Renews the lane's reference so that its smallest m becomes 0. A lane that no path has reached yet takes over the reference
// of the nearest lane above that one has.
template <class S>
__device__ __forceinline__ void renew_reference(Lane<S>& state, int lane, typename S::Scalar top_reference) {
  using T = typename S::Scalar;
  normalise(state.diag);
  T lowest = state.diag.m;
#pragma unroll
  for (int k = 0; k < S::kRows; ++k) {
    normalise(state.left[k]);
    lowest = DeviceMath<T>::min(lowest, state.left[k].m);
  }
  const bool reached = !is_unreachable(lowest);
  const T before = state.reference;
  T renewed = reached ? before + lowest : (lane == 0 ? top_reference : before);
  const unsigned reached_lanes = __ballot_sync(kAllLanes, reached) | 1u;
  const T nearest = __shfl_sync(kAllLanes, renewed, 31 - __clz(reached_lanes & ((2u << lane) - 1u)));
  if (!reached) renewed = nearest;
  const T shift = reached ? renewed - before : T(0);
#pragma unroll
  for (int k = 0; k < S::kRows; ++k) state.left[k].m -= shift;
  state.diag.m -= shift;
  state.reference = renewed;
}

// What turns an m of the lane above (of the edge, for lane 0) into this lane's unit.
template <typename T>
__device__ __forceinline__ T reference_above(int lane, T own, T top_reference) {
  const T above = __shfl_up_sync(kAllLanes, own, 1);
  return (lane == 0 ? top_reference : above) - own;
}

}  // namespace softdtw
