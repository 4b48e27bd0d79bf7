// A lane's tile of a chunk (strip.cuh): where it lies, and the costs in it.
#pragma once

#include "core/cost.h"
#include "cuda/numbers/device_math.cuh"
#include "cuda/strips/strip.cuh"

namespace softdtw {

// Where a chunk stands: which cells a lane may hold, and what needs no check in the whole warp.
template <class S>
struct Place {
  int row, column;  // the lane's first cell
  bool in_columns;  // every lane's columns are in [0, m)
  bool in_table;    // and the rows in [0, n)
  bool in_band;     // no cell is outside the band but those left of the table; cells below or right of the table do no harm
  bool is_entered;  // nor left of the table, and the same holds for the columns just left of the chunk

  __device__ Place(const Strip<S>& strip, const Extent& extent, int chunk, int lane) {
    const int start = strip.first_column + chunk * S::kSteps;
    row = strip.first_row + lane * S::kRows;
    column = start - lane;
    const int leftmost = start - (kWarp - 1), rightmost = start + S::kSteps - 1;
    const int last_row = strip.first_row + S::kStripRows - 1;
    in_columns = leftmost >= 0 && rightmost < extent.m;
    in_table = in_columns && last_row < extent.n;
    in_band = rightmost - strip.first_row <= extent.high && max(leftmost, 1) - 1 - last_row >= extent.low;
    is_entered = in_band && leftmost >= 1;
  }
  __device__ bool holds(const Extent& extent, int k, int t) const {
    return column + t >= 0 && extent.in_band(row + k, column + t);
  }
};

// Which cells of a lane's tile are in the band: bit kRows - 1 - k + t of a word for row k in step t. Those left of the table need no bit:
// nothing comes from there.
template <class S>
class InBandBits {
  unsigned bits;

 public:
  __device__ __forceinline__ InBandBits(const Extent& extent, const Place<S>& place) {
    static_assert(S::kRows + S::kSteps <= 32);
    const int middle = place.row - place.column + S::kRows - 1;
    const int first = extent.low + middle, last = extent.high + middle;
    const unsigned from = first <= 0 ? ~0u : first > 31 ? 0 : ~0u << first;
    bits = last < 0 ? 0 : last > 30 ? from : from & ((2u << last) - 1);
  }
  __device__ __forceinline__ bool has(int k, int t) const { return (bits & 1u << (S::kRows - 1 - k + t)) != 0; }
  // Step t is then the one that was so many later.
  __device__ __forceinline__ void skip(int steps) { bits >>= steps; }
};

// Calls f(k, t) for the cells of a tile, as constants.
template <class S, class F>
__device__ __forceinline__ void for_each_cell(F&& f) {
#pragma unroll
  for (int k = 0; k < S::kRows; ++k)
#pragma unroll
    for (int t = 0; t < S::kSteps; ++t) f(k, t);
}

// Which series a pair has, found once for all its chunks. A matrix of costs is its own: x is the pair's number.
struct SeriesOfPair {
  int x, y;

  template <typename T>
  __device__ SeriesOfPair(const Problem<T>& problem, int64_t pair)
      : x(static_cast<int>(problem.x.of(pair))), y(static_cast<int>(problem.y.of(pair))) {}
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

  __device__ SeriesTile(const Problem<T>& problem, const Extent& extent_, const Place<S>& place_, const SeriesOfPair& of)
      : x(problem.x.View<const T>::pair(of.x)),
        y(problem.y.View<const T>::pair(of.y)),
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

// A lane's tile of ready-made costs, and of any. They return a bound on the largest of them, or NaN.
template <class S>
__device__ __forceinline__ typename S::Scalar load_ready_made(
    const View<const typename S::Scalar>& matrix, const Extent& extent, const Place<S>& place,
    typename S::Scalar (&costs)[S::kRows][S::kSteps]) {
  using T = typename S::Scalar;
  T largest = 0;
#pragma unroll
  for (int k = 0; k < S::kRows; ++k) {
    const T* line = matrix.data + min(place.row + k, extent.n - 1) * matrix.row_stride;
#pragma unroll
    for (int t = 0; t < S::kSteps; ++t) {
      costs[k][t] = line[min(max(place.column + t, 0), extent.m - 1) * matrix.column_stride];
      largest = max(largest, DeviceMath<T>::abs(costs[k][t]));
    }
  }
  return largest;
}
template <class S>
__device__ __forceinline__ typename S::Scalar load_costs(
    const Problem<typename S::Scalar>& problem, const Extent& extent, const Place<S>& place, const SeriesOfPair& of,
    typename S::Scalar (&costs)[S::kRows][S::kSteps]) {
  using T = typename S::Scalar;
  if (problem.cost == Cost::kMatrix) return load_ready_made(problem.cost_matrix.pair(of.x), extent, place, costs);
  for_each_cell<S>([&](int k, int t) { costs[k][t] = T(0); });
  const SeriesTile<S> series(problem, extent, place, of);
  T bound = 0;
  using Types = Costs<DeviceMath<T>>;
  with_sum<Types>(problem.cost, [&](auto type) {
    constexpr int kInFlight = std::is_same_v<decltype(type), SqEuclidean<DeviceMath<T>>> ? 4 : 1;
    series.template for_each_dim<kInFlight>([&](int64_t, const T(&rows)[S::kRows], const T(&columns)[S::kSteps]) {
      for_each_cell<S>([&](int k, int t) { costs[k][t] = type.share(rows[k] - columns[t], costs[k][t]); });
      T row = 0, column = 0;
#pragma unroll
      for (int k = 0; k < S::kRows; ++k) row = max(row, DeviceMath<T>::abs(rows[k]));
#pragma unroll
      for (int t = 0; t < S::kSteps; ++t) column = max(column, DeviceMath<T>::abs(columns[t]));
      bound = type.share(row + column, bound);
    });
  });
  with_cost<Types>(problem.cost, [&](auto type) {
    for_each_cell<S>([&](int k, int t) { costs[k][t] = type.finish(costs[k][t]); });
    bound = type.finish(bound);
  });
  return bound;
}

// Whether a tile's costs are ready-made ones (matrix_tile.cuh): such tiles say so.
template <class Tile, class = void>
constexpr bool kIsOfMatrix = false;
template <class Tile>
constexpr bool kIsOfMatrix<Tile, std::enable_if_t<Tile::kIsMatrix>> = true;

// A tile for a warp that goes over a strip chunk by chunk and does nothing else, with memory of its own.
template <class Tile>
struct TileAhead : Tile {
  struct Memory {};

  template <class... Arguments>
  __device__ TileAhead(Memory&, const Arguments&... arguments) : Tile(arguments...) {}
};

// Whether it computes costs of vectors in float64 itself: of few dimensions (few_dims_tile.cuh), or as a side of a table sees them.
template <class Tile, class = void>
constexpr bool kHasExactCosts = false;
template <class Tile>
constexpr bool kHasExactCosts<Tile, std::enable_if_t<Tile::kExactCosts>> = true;

// One of kSteps registers, chosen at run time: the general sweeps are loops, to be small rather than fast.
template <int kCount, typename Value>
__device__ __forceinline__ Value pick(const Value (&values)[kCount], int t) {
  Value value = values[0];
#pragma unroll
  for (int i = 1; i < kCount; ++i)
    if (t == i) value = values[i];
  return value;
}

// What stands kBy places further on: of the next part of a general sweep.
template <int kBy, int kCount, typename Value>
__device__ __forceinline__ void skip(Value (&values)[kCount]) {
#pragma unroll
  for (int i = 0; i + kBy < kCount; ++i) values[i] = values[i + kBy];
}

// Costs from any number of dimensions, or ready-made ones, all of a tile at once.
template <class S>
struct DenseTile {
  using T = typename S::Scalar;
  static constexpr bool kUnivariate = false;
  const Problem<T>& problem;
  const Extent& extent;
  const SeriesOfPair of;
  T costs[S::kRows][S::kSteps];
  T reach = 0;  // no cost of the tile is larger; NaN if one is NaN

  __device__ DenseTile(const Problem<T>& problem_, const Extent& extent_, const Strip<S>&, int64_t pair, int)
      : problem(problem_), extent(extent_), of(problem_, pair) {}
  __device__ __forceinline__ void fetch(const Place<S>&) {}
  __device__ __forceinline__ void use(const Place<S>& place) { reach = load_costs(problem, extent, place, of, costs); }
  __device__ __forceinline__ T cost(int k, int t) const { return costs[k][t]; }
};

// The cost of a difference, squared, and its slope but for factor_of().
template <typename T>
struct SquaredCost {
  __device__ explicit SquaredCost(Cost) {}
  __device__ __forceinline__ static T cost(T u) { return u * u; }
  __device__ __forceinline__ static T slope(T u) { return u; }
};

// Squared differences of float32 series of one dimension, from registers.
template <class S>
struct UnivariateTile {
  using T = typename S::Scalar;
  using OfDifference = SquaredCost<T>;
  static constexpr bool kUnivariate = true;
  T x[S::kRows], y[S::kSteps], next[S::kSteps];
  T reach = 0, x_lowest, x_highest;
  const T* line;
  int64_t stride;
  int last;

  __device__ UnivariateTile(const Problem<T>& problem, const Extent& extent, const Strip<S>& strip, int64_t pair, int lane)
      : line(problem.y.pair(pair).data), stride(problem.y.row_stride), last(extent.m - 1) {
    const View<const T> rows = problem.x.pair(pair);
#pragma unroll
    for (int k = 0; k < S::kRows; ++k)
      set_row(k, rows.data[min(strip.first_row + lane * S::kRows + k, extent.n - 1) * rows.row_stride]);
  }
  // Starts the loads of a chunk's columns, ahead of use.
  __device__ __forceinline__ void fetch(const Place<S>& place) {
    if (place.in_columns && stride == 1) {
#pragma unroll
      for (int t = 0; t < S::kSteps; ++t) next[t] = line[place.column + t];
    } else {
#pragma unroll
      for (int t = 0; t < S::kSteps; ++t) next[t] = line[min(max(place.column + t, 0), last) * stride];
    }
  }
  __device__ __forceinline__ void use(const Place<S>&) {
    const T widest = take_columns();
    reach = widest * widest;
  }
  __device__ __forceinline__ T difference(int k, int t) const { return x[k] - y[t]; }
  __device__ __forceinline__ T slope(int k, int t) const { return difference(k, t); }
  __device__ __forceinline__ T cost(int k, int t) const { return difference(k, t) * difference(k, t); }
  // In float64, for costs whose rounding to float32 would move the alignment.
  __device__ __forceinline__ double exact_cost(int k, int t) const {
    return exact_difference(k, t) * exact_difference(k, t);
  }

 protected:
  __device__ __forceinline__ double exact_difference(int k, int t) const {
    return static_cast<double>(x[k]) - static_cast<double>(y[t]);
  }
  __device__ UnivariateTile(const View<const T>& columns, int last_)
      : line(columns.data), stride(columns.row_stride), last(last_) {}
  // Those that were fetched. No difference is larger than what it returns; NaN if one is NaN.
  __device__ __forceinline__ T take_columns() {
    T lowest = 0, highest = 0;
#pragma unroll
    for (int t = 0; t < S::kSteps; ++t) {
      y[t] = next[t];
      lowest = t == 0 ? y[t] : lesser(lowest, y[t]);
      highest = t == 0 ? y[t] : greater(highest, y[t]);
    }
    return greater(x_highest - lowest, highest - x_lowest);
  }
  __device__ __forceinline__ void set_row(int k, T value) {
    x[k] = value;
    x_lowest = k == 0 ? x[k] : lesser(x_lowest, x[k]);
    x_highest = k == 0 ? x[k] : greater(x_highest, x[k]);
  }
};

// Of pairs that other kernels have left, where their costs are not squared Euclidean of one dimension. Series, and gradients of them, may
// be in any order.
template <class S>
struct LeftOverTile : DenseTile<S> {
  static constexpr bool kMayBeLeft = true;
  using DenseTile<S>::DenseTile;
};

// Whether a tile says that other kernels may come first.
template <class Tile, class = void>
constexpr bool kMayBeLeft = false;
template <class Tile>
constexpr bool kMayBeLeft<Tile, std::void_t<decltype(Tile::kMayBeLeft)>> = Tile::kMayBeLeft;

}  // namespace softdtw
