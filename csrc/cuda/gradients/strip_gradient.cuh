// From a chunk's E to gradients, for both engines: (5) in the lanes that hold the chunk, or E into a table.
//
// Few dimensions: dx: a lane owns its rows. dy: the sum for a column travels with the wavefront, from lane 31 to lane 0 and
// on to the strip above through dy itself, so every sum has one fixed order and needs no atomics. Many dimensions
// (has_table_of_gradients): E goes to a table, and dx and dy come from it as matrix products (series_gradient.cu).
#pragma once

#include <type_traits>

#include "cuda/costs/tile.cuh"
#include "cuda/select/blocks.h"
#include "series_gradient.cuh"

namespace softdtw {

// Elements of the table, rounded up so that what follows it stays aligned.
template <typename T>
int64_t table_scalars(const Problem<T>& problem) {
  return has_table_of_gradients(call_of(problem, true)) ? (problem.batch * problem.n * problem.m + 31) / 32 * 32 : 0;
}

// Backward: `sweep` goes over the strips with the gradient it is given; with many dimensions it fills a table of E, from
// which the gradients follow.
template <typename T, class Sweep>
cudaError_t run_backward(
    const Problem<T>& problem, const Gradient<T>& gradient, T* table, cudaStream_t stream, Sweep&& sweep) {
  if (!has_table_of_gradients(call_of(problem, true))) return sweep(gradient);
  if (problem.ragged()) {
    const cudaError_t error = cudaMemsetAsync(table, 0, problem.batch * problem.n * problem.m * sizeof(T), stream);
    if (error != cudaSuccess) return error;
  }
  Gradient<T> with_table = gradient;
  with_table.cost = {table, problem.n * problem.m, problem.m, 1};
  const cudaError_t error = sweep(with_table);
  return error != cudaSuccess ? error : launch_series_gradients(problem, gradient, table, stream);
}

// Which columns' sums of dy a chunk takes over from the strip below, and which it leaves for the strip above or for good.
struct Columns {
  int taken_from, taken_to, left_from, left_to;

  // Whether a lane has a sum for a column that the lanes above it go on adding to.
  __device__ __forceinline__ bool in_transit(int lane, int j) const { return lane > 0 && j >= left_from && j < left_to; }
  // The column that lane 31 meets in step `lane` of a chunk in which the lane's own first column is `first`.
  __device__ __forceinline__ static int entering(int lane, int first) { return first + 2 * lane - (kWarp - 1); }
  // Whether the strip below has left nothing in a column.
  __device__ __forceinline__ bool are_new(int j) const {
    return j >= left_from && j < left_to && !(j >= taken_from && j < taken_to);
  }
};

template <class S>
__device__ __forceinline__ void store_alignment(
    const Gradient<typename S::Scalar>& gradient, const Extent& extent, int64_t pair, const Place<S>& place,
    typename S::Scalar scale, const typename S::Scalar (&alignment)[S::kRows][S::kSteps]) {
  const auto out = gradient.cost.pair(pair);
  for_each_cell<S>([&](int k, int t) {
    if (place.row + k < extent.n && place.column + t < extent.m && place.holds(extent, k, t))
      out.at(place.row + k, place.column + t) = alignment[k][t] * scale;
  });
}

// Takes the E of a tile cell by cell, from right to left, and column by column, and leaves the gradients. Univariate: sums
// in registers, for squared differences. `scale` is what E times the tile's difference is multiplied by.
//
// Chunks in which E is 0 may be left out, by leave_out() in their place. Before them, if any was not, put_away() puts the sums
// on their way up the lanes where they would have arrived, which is where they belong if nothing is added; after them
// take_up() goes on with what is there. Their places are those of the chunk before and of the one after.
template <class S>
struct UnivariateSink {
  using T = typename S::Scalar;
  static constexpr bool kUnivariate = true;
  T* const dx;
  T* const dy;
  const Columns columns;
  const T scale;
  const int lane;
  T rows[S::kRows] = {}, column = 0, carry = 0, from_below[S::kSteps] = {};
  T* line = nullptr;
  int left_to = 0;

  __device__ UnivariateSink(
      const Problem<T>&, const Gradient<T>& gradient, const Extent&, int64_t pair, int lane_, const Columns& columns_,
      T scale_, T* /* carries */)
      : dx(gradient.x.data == nullptr ? nullptr : gradient.x.pair(pair).data),
        dy(gradient.y.data == nullptr ? nullptr : gradient.y.pair(pair).data),
        columns(columns_),
        scale(scale_),
        lane(lane_) {}
  __device__ __forceinline__ void begin(const Place<S>& place) {
    start(place);
    const int from = columns.taken_from - place.column;
    const unsigned taken = lane == kWarp - 1 && dy != nullptr ? max(0, columns.taken_to - columns.taken_from) : 0;
#pragma unroll
    for (int t = 0; t < S::kSteps; ++t) from_below[t] = static_cast<unsigned>(t - from) < taken ? __ldcg(&line[t]) : T(0);
  }
  __device__ __forceinline__ void start(const Place<S>& place) {
    line = dy + place.column;
    left_to = lane == 0 && dy != nullptr ? columns.left_to - place.column : 0;
  }
  // What the strip below leaves in a column that this one's lane 31 takes over.
  __device__ __forceinline__ T left_below(int j) const {
    return dy != nullptr && j >= columns.taken_from && j < columns.taken_to ? __ldcg(dy + j) : T(0);
  }
  template <class Tile>
  __device__ __forceinline__ void cell(const Tile& tile, int k, int t, T e) {
    const T slope = tile.slope(k, t);
    rows[k] = DeviceMath<T>::fma(e, slope, rows[k]);
    column = DeviceMath<T>::fma(e, slope, column);
  }
  __device__ __forceinline__ void step(int t) { step(t, from_below[t]); }
  __device__ __forceinline__ void step(int t, T from_strip_below) {
    const T from_lane_below = __shfl_down_sync(kAllLanes, carry, 1);
    carry = DeviceMath<T>::fma(column, -scale, lane == kWarp - 1 ? from_strip_below : from_lane_below);
    column = 0;
    if (t < left_to) line[t] = carry;
  }
  __device__ __forceinline__ void end(const Place<S>&, bool) {}
  __device__ __forceinline__ void put_away(const Place<S>& place) {
    if (dy != nullptr && columns.in_transit(lane, place.column)) dy[place.column] = carry;
  }
  __device__ __forceinline__ void take_up(const Place<S>& place) {
    const int j = place.column + S::kSteps;
    carry = dy != nullptr && columns.in_transit(lane, j) ? __ldcg(dy + j) : T(0);
  }
  __device__ __forceinline__ void leave_out(const Place<S>& place) {
    const int j = columns.entering(lane, place.column);
    if (dy != nullptr && lane < S::kSteps && columns.are_new(j)) dy[j] = 0;
  }
  __device__ __forceinline__ void finish(const Strip<S>& strip, const Extent& extent) {
    const int row = strip.first_row + lane * S::kRows;
    if (dx == nullptr) return;
#pragma unroll
    for (int k = 0; k < S::kRows; ++k)
      if (row + k < extent.n) dx[row + k] = rows[k] * scale;
  }
};

// Any number of dimensions, any cost. kIsDimensionMajor: rows of gradients lie next to each other.
template <class S, bool kIsDimensionMajor>
struct DenseSink {
  using T = typename S::Scalar;
  static constexpr bool kUnivariate = false;
  const Problem<T>& problem;
  const Gradient<T>& gradient;
  const Extent& extent;
  const int64_t pair;
  const SeriesOfPair of;
  const int lane;
  const Columns columns;
  const T scale;
  T* const carries;
  T alignment[S::kRows][S::kSteps], carry = 0;
  bool has_carries = false;

  __device__ DenseSink(
      const Problem<T>& problem_, const Gradient<T>& gradient_, const Extent& extent_, int64_t pair_, int lane_,
      const Columns& columns_, T scale_, T* carries_)
      : problem(problem_),
        gradient(gradient_),
        extent(extent_),
        pair(pair_),
        of(problem_, pair_),
        lane(lane_),
        columns(columns_),
        scale(scale_),
        carries(carries_) {}
  __device__ __forceinline__ void begin(const Place<S>&) {}
  template <class Tile>
  __device__ __forceinline__ void cell(const Tile&, int k, int t, T e) {
    alignment[k][t] = e;
  }
  __device__ __forceinline__ void step(int) {}
  __device__ __forceinline__ void end(const Place<S>& place, bool first_visit) {
    if (is_over_cost(problem.cost))
      with_cost<Costs<DeviceMath<T>>>(problem.cost, [&](auto type) { divide_by_costs(type, place); });
    if (gradient.cost.data != nullptr) {
      // A table of E is scaled where it is multiplied, a gradient of ready-made costs is final.
      const T factor = problem.cost == Cost::kMatrix ? scale : T(factor_of(problem.cost));
      return store_alignment(gradient, extent, pair, place, factor, alignment);
    }
    with_sum<Costs<DeviceMath<T>>>(problem.cost, [&](auto sum) { accumulate(sum, place, first_visit); });
    has_carries = true;
  }
  __device__ __forceinline__ void put_away(const Place<S>& place) {
    if (!columns.in_transit(lane, place.column)) return;
    for_each_line(
        [&](const Line& line, int64_t d) { line[place.column] = problem.dim == 1 ? carry : carries[d * kWarp + lane]; });
  }
  __device__ __forceinline__ void take_up(const Place<S>& place) {
    const int j = place.column + S::kSteps;
    const bool is_there = columns.in_transit(lane, j);
    for_each_line([&](const Line& line, int64_t d) {
      const T sum = is_there ? __ldcg(&line[j]) : T(0);
      if (problem.dim == 1)
        carry = sum;
      else
        carries[d * kWarp + lane] = sum;
    });
    has_carries = true;
  }
  __device__ __forceinline__ void leave_out(const Place<S>& place) {
    if (gradient.cost.data != nullptr) {
      for_each_cell<S>([&](int k, int t) { alignment[k][t] = 0; });
      return store_alignment(gradient, extent, pair, place, T(1), alignment);
    }
    const int j = columns.entering(lane, place.column);
    if (lane < S::kSteps && columns.are_new(j)) for_each_line([&](const Line& line, int64_t) { line[j] = 0; });
  }
  __device__ __forceinline__ void finish(const Strip<S>&, const Extent&) {}

 private:
  // E becomes what slopes are multiplied by: E / C.
  template <class Type>
  __device__ __forceinline__ void divide_by_costs(Type, const Place<S>& place) {
    if constexpr (Type::kOverCost) {
      T costs[S::kRows][S::kSteps] = {};
      SeriesTile<S>(problem, extent, place, of)
          .template for_each_dim<1>([&](int64_t, const T(&rows)[S::kRows], const T(&others)[S::kSteps]) {
            for_each_cell<S>([&](int k, int t) { costs[k][t] = Type::share(rows[k] - others[t], costs[k][t]); });
          });
      for_each_cell<S>(
          [&](int k, int t) { alignment[k][t] = over_cost<DeviceMath<T>>(alignment[k][t], Type::finish(costs[k][t])); });
    }
  }
  // One number of a gradient's vectors, from a row on.
  struct Line {
    T* first;
    int64_t stride;

    __device__ __forceinline__ T& operator[](int64_t i) const { return first[kIsDimensionMajor ? i : i * stride]; }
  };
  __device__ __forceinline__ Line line_of(const View<T>& out, int row, int64_t d) const {
    return {out.pair(pair).data + d * out.column_stride + (kIsDimensionMajor ? row : row * out.row_stride), out.row_stride};
  }
  // (5) for a chunk: dx += E dC/dx for the lane's rows, dy passed up the lanes; Sum has the slopes (core/cost_types.h).
  template <class Sum>
  __device__ __forceinline__ void accumulate(Sum, const Place<S>& place, bool first_visit) {
    const SeriesTile<S> series(problem, extent, place, of);
    // Counted from the lane's first row or column; none of the columns for lanes that neither take over nor leave.
    const int rows_left = extent.n - place.row;
    const int taken_from = columns.taken_from - place.column;
    const unsigned taken = lane == kWarp - 1 ? max(0, columns.taken_to - columns.taken_from) : 0;
    const int left_to = lane == 0 ? columns.left_to - place.column : 0;
    series.template for_each_dim<1>([&](int64_t d, const T(&rows)[S::kRows], const T(&others)[S::kSteps]) {
      T row_sums[S::kRows] = {}, column_sums[S::kSteps] = {};
#pragma unroll
      for (int t = 0; t < S::kSteps; ++t)
#pragma unroll
        for (int k = 0; k < S::kRows; ++k) {
          const T slope = Sum::slope(rows[k] - others[t]);
          row_sums[k] = DeviceMath<T>::fma(alignment[k][t], slope, row_sums[k]);
          column_sums[t] = DeviceMath<T>::fma(alignment[k][t], slope, column_sums[t]);
        }
      if (gradient.x.data != nullptr) {
        const Line line = line_of(gradient.x, place.row, d);
#pragma unroll
        for (int k = 0; k < S::kRows; ++k)
          if (k < rows_left) line[k] = DeviceMath<T>::fma(row_sums[k], scale, first_visit ? T(0) : line[k]);
      }
      if (gradient.y.data != nullptr) {
        const Line line = line_of(gradient.y, place.column, d);
        T sum = series.dim == 1 ? carry : (has_carries ? carries[d * kWarp + lane] : T(0));
        T from_below[S::kSteps];
#pragma unroll
        for (int t = 0; t < S::kSteps; ++t)
          from_below[t] = static_cast<unsigned>(t - taken_from) < taken ? __ldcg(&line[t]) : T(0);
#pragma unroll
        for (int t = S::kSteps - 1; t >= 0; --t) {
          const T from_lane_below = __shfl_down_sync(kAllLanes, sum, 1);
          sum = DeviceMath<T>::fma(column_sums[t], -scale, lane == kWarp - 1 ? from_below[t] : from_lane_below);
          if (t < left_to) line[t] = sum;
        }
        if (series.dim == 1)
          carry = sum;
        else
          carries[d * kWarp + lane] = sum;
      }
    });
  }
  // Of dy, if it is summed up here.
  template <class Visit>
  __device__ __forceinline__ void for_each_line(Visit&& visit) const {
    if (gradient.y.data == nullptr) return;
    for (int64_t d = 0; d < problem.dim; ++d) visit(line_of(gradient.y, 0, d), d);
  }
};

template <class S, class Tile>
using SinkOf = std::conditional_t<Tile::kUnivariate, UnivariateSink<S>, DenseSink<S, !kMayBeLeft<Tile>>>;

template <class S>
__device__ __forceinline__ Columns columns_of(const Surroundings<S>& around, const Extent& extent) {
  return {
      around.is_last ? extent.m : around.below.first_column, around.is_last ? 0 : around.below.end_column,
      around.strip.first_column, around.strip.end_column};
}

// What E times the difference is multiplied by. A pair whose value is not a number has no gradient either.
template <typename T>
__device__ __forceinline__ T gradient_scale(const Problem<T>& problem, const Gradient<T>& gradient, int64_t pair) {
  const T scale = isfinite(gradient.value[pair]) ? gradient.arriving(pair) : T(NAN);
  return scale * T(factor_of(problem.cost));
}

// By so many threads, or by all of a block.
template <typename T>
__device__ __noinline__ void invalid_backward(
    const Problem<T>& problem, const Gradient<T>& gradient, int64_t pair, int thread, int threads) {
  spoil_gradient(problem, gradient, problem.extent(pair), pair, thread, threads);
}
template <typename T>
__device__ __forceinline__ void invalid_backward(const Problem<T>& problem, const Gradient<T>& gradient, int64_t pair) {
  invalid_backward(problem, gradient, pair, threadIdx.y * blockDim.x + threadIdx.x, blockDim.x * blockDim.y);
}

}  // namespace softdtw
