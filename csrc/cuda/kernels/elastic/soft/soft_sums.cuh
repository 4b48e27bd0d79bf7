// (13) in the lanes that hold a chunk: from the masses of steps to gradients of series and gap costs.
//
// As in gradients/strip_gradient.cuh a lane owns the sums of its rows, and those of a column travel from lane 31 to lane 0 and on to the
// strip above, through the gradients themselves. What a cell adds to the row above a lane is summed up apart, and goes there in
// the end; what it adds to the column before waits for the next step. Where that row is another strip's, both strips add to a zero.
#pragma once

#include "cuda/gradients/strip_gradient.cuh"
#include "measures/soft_tile.cuh"
#include "soft_strips.h"

namespace softdtw {

// Which steps of a chunk take a column over from the strip below, and which leave one: in lane 31 and in lane 0, so many from the first on.
struct ColumnSteps {
  int taken_from = 0, left_from = 0;
  unsigned taken = 0, left = 0;

  __device__ __forceinline__ bool takes(int t) const { return static_cast<unsigned>(t - taken_from) < taken; }
  __device__ __forceinline__ bool leaves(int t) const { return static_cast<unsigned>(t - left_from) < left; }
};

// Sums of columns on their way: to an array that has one number for each of a pair's columns, `initial` where nothing has been added.
template <class S>
struct ColumnSums {
  using T = typename S::Scalar;
  T* const line;  // null if there is none
  const T initial;
  T carry, from_below[S::kSteps];

  __device__ ColumnSums(T* line_, T initial_) : line(line_), initial(initial_), carry(initial_) {}
  __device__ __forceinline__ void begin(const ColumnSteps& steps, int column) {
#pragma unroll
    for (int t = 0; t < S::kSteps; ++t)
      from_below[t] = line != nullptr && steps.takes(t) ? __ldcg(line + column + t) : initial;
  }
  __device__ __forceinline__ void step(const ColumnSteps& steps, int lane, int column, int t, T sum) {
    const T from_lane_below = __shfl_down_sync(kAllLanes, carry, 1);
    carry = sum + (lane == kWarp - 1 ? pick(from_below, t) : from_lane_below);
    if (line != nullptr && steps.leaves(t)) line[column + t] = carry;
  }
  __device__ __forceinline__ void put_away(bool is_there, int j) {
    if (line != nullptr && is_there) line[j] = carry;
  }
  __device__ __forceinline__ void take_up(bool is_there, int j) {
    carry = line != nullptr && is_there ? __ldcg(line + j) : initial;
  }
  __device__ __forceinline__ void leave_out(bool is_new, int j) {
    if (line != nullptr && is_new) line[j] = initial;
  }
};

// kAll: with times, and what a pair has one number of.
template <class Tile, bool kAll, class S = typename Tile::S>
struct SoftSums {
  using T = typename S::Scalar;
  static constexpr int kAbove = Tile::kLooksUp ? 1 : 0;
  static constexpr bool kHasTimes = kAll && Tile::kCountsOnward;
  const ElasticTable<T>& problem;
  const ElasticGradient<T>& gradient;
  const int64_t pair;
  const int lane, first;
  const Columns columns;
  const T scale;
  ColumnSums<S> of_y, of_y_gaps, of_y_times;
  double cost = 0, parameter = 0;
  T of_border = 0;  // what goes along row 0 of a summed border
  T rows[S::kRows + kAbove] = {}, times[S::kRows + kAbove] = {}, masses[S::kRows] = {};
  T column = 0, column_before = 0, column_mass = 0, column_times = 0;  // of the step; of the next one
  typename Tile::Column now, before;
  ColumnSteps steps;

  __device__ SoftSums(
      const ElasticTable<T>& problem_, const ElasticGradient<T>& gradient_, int64_t pair_, int lane_,
      const Columns& columns_, T scale_)
      : problem(problem_),
        gradient(gradient_),
        pair(pair_),
        lane(lane_),
        first(problem_.shift()),
        columns(columns_),
        scale(scale_),
        of_y(gradient_.y.data == nullptr ? nullptr : gradient_.y.pair(pair_).data - first, T(0)),
        of_y_gaps(line_of(gradient_.y_gaps), scale_),
        of_y_times(problem_.x_times.data == nullptr ? nullptr : line_of(gradient_.y_times), T(0)) {}

  __device__ __forceinline__ void begin(int own_column) {
    steps = ColumnSteps();
    if (lane == kWarp - 1) {
      const int from = max(columns.taken_from, first);
      steps.taken_from = from - own_column;
      steps.taken = max(0, columns.taken_to - from);
    }
    if (lane == 0) {
      const int from = max(columns.left_from, first);
      steps.left_from = from - own_column;
      steps.left = max(0, columns.left_to - from);
    }
    of_y.begin(steps, own_column);
    if constexpr (Tile::kHasGaps) of_y_gaps.begin(steps, own_column);
    if constexpr (kHasTimes) of_y_times.begin(steps, own_column);
  }
  // The column of a step.
  __device__ __forceinline__ void enter(const Tile& tile, int t) {
    now = tile.series.column(t);
    if constexpr (Tile::kLooksBack) before = tile.series.column(t - 1);
  }
  // `onward`: the mass of the diagonal step out of the cell, if that is into another row of the lane.
  __device__ __forceinline__ void cell(const Tile& tile, int k, int t, const Steps<T>& step_masses, T onward) {
    tile.add_slopes(k, t, step_masses, onward, *this);
    if constexpr (kAll) tile.add_costs(k, t, step_masses, onward, *this);
    if constexpr (Tile::kHasGaps) {
      masses[k] += step_masses.diagonal;
      column_mass += step_masses.diagonal;
    }
  }
  // Of the row above the lane.
  __device__ __forceinline__ void above(const Tile& tile, int t, T onward) {
    if constexpr (Tile::kCountsOnward) tile.add_slopes(-1, t, Steps<T>{0, 0, 0}, onward, *this);
    if constexpr (Tile::kCountsOnward && kAll) tile.add_costs(-1, t, Steps<T>{0, 0, 0}, onward, *this);
  }
  // Of row 0 of a summed border, by the first strip's first lane: what comes up into its columns goes on to the left.
  __device__ __forceinline__ void along_border(const Tile& tile, int j, T handed) {
    of_border += handed;
    if (j > 0) add_cost(of_border, tile.gaps.at_column(j));
  }
  __device__ __forceinline__ void step(int own_column, int t) {
    of_y.step(steps, lane, own_column, t, column * scale);
    column = column_before;
    column_before = 0;
    if constexpr (Tile::kHasGaps) {
      of_y_gaps.step(steps, lane, own_column, t, column_mass * -scale);
      column_mass = 0;
    }
    if constexpr (kHasTimes) {
      of_y_times.step(steps, lane, own_column, t, column_times * scale);
      column_times = 0;
    }
  }
  // Of add_slopes(): d distance / d x of row k, which is that to y with the other sign, times a mass.
  __device__ __forceinline__ void add_difference(int k, T slope) {
    rows[k + kAbove] += slope;
    column -= slope;
  }
  // Of add_costs(), in float64, for the value less this is divided by gamma. What is not on any path may cost infinity.
  __device__ __forceinline__ void add_cost(T mass, double own) {
    if (mass > T(0)) cost += static_cast<double>(mass) * own;
  }
  __device__ __forceinline__ void add_times(int k, T slope) {
    times[k + kAbove] += slope;
    column_times -= slope;
  }

  // As of UnivariateSink.
  __device__ __forceinline__ void put_away(int own_column) {
    const bool is_there = own_column >= first && columns.in_transit(lane, own_column);
    for_each_sum([&](auto& sum) { sum.put_away(is_there, own_column); });
  }
  __device__ __forceinline__ void take_up(int own_column) {
    const int j = own_column + S::kSteps;
    const bool is_there = j >= first && columns.in_transit(lane, j);
    column = column_before = 0;
    for_each_sum([&](auto& sum) { sum.take_up(is_there, j); });
  }
  __device__ __forceinline__ void leave_out(int own_column) {
    const int j = Columns::entering(lane, own_column);
    const bool is_new = lane < S::kSteps && j >= first && columns.are_new(j);
    for_each_sum([&](auto& sum) { sum.leave_out(is_new, j); });
  }
  __device__ __forceinline__ void finish(const Strip<S>& strip, const Extent& extent) {
    const int row = strip.first_row + lane * S::kRows;
    if (gradient.x.data != nullptr) put_rows(rows, gradient.x.pair(pair).data, row, extent.n);
    if constexpr (kHasTimes)
      if (gradient.x_times != nullptr && problem.x_times.data != nullptr)
        put_rows(times, gradient.x_times + pair * problem.n, row, extent.n);
    if constexpr (Tile::kHasGaps)
      if (gradient.x_gaps != nullptr) {
        T* const line = gradient.x_gaps + pair * problem.n + row;
#pragma unroll
        for (int k = 0; k < S::kRows; ++k)
          if (row + k < extent.n) line[k] = DeviceMath<T>::fma(masses[k], -scale, scale);
      }
  }

  // The strip's part, by the whole warp.
  __device__ __forceinline__ void put_numbers(SoftNumbers& numbers) {
    for (int distance = kWarp / 2; distance > 0; distance /= 2) {
      cost += __shfl_xor_sync(kAllLanes, cost, distance);
      parameter += __shfl_xor_sync(kAllLanes, parameter, distance);
    }
    if (lane == 0) numbers = {cost, parameter};
  }

 private:
  template <class F>
  __device__ __forceinline__ void for_each_sum(F&& f) {
    f(of_y);
    if constexpr (Tile::kHasGaps) f(of_y_gaps);
    if constexpr (kHasTimes) f(of_y_times);
  }
  __device__ __forceinline__ T* line_of(T* of_pairs) const {
    return of_pairs == nullptr ? nullptr : of_pairs + pair * problem.m - first;
  }
  __device__ __forceinline__ void put_rows(const T (&sums)[S::kRows + kAbove], T* line, int row, int end) const {
    T last = sums[S::kRows - 1 + kAbove];
    if constexpr (Tile::kLooksUp) {
      const T from_below = __shfl_down_sync(kAllLanes, sums[0], 1);
      if (lane < kWarp - 1) last += from_below;
      if (lane == 0 && row > 0) atomicAdd(line + row - 1, sums[0] * scale);
    }
#pragma unroll
    for (int k = 0; k < S::kRows; ++k) {
      if (row + k >= end) continue;
      if (Tile::kLooksUp && k == S::kRows - 1 && lane == kWarp - 1)
        atomicAdd(line + row + k, last * scale);
      else
        line[row + k] = (k == S::kRows - 1 ? last : sums[k + kAbove]) * scale;
    }
  }
};

// The answer for a pair without a gradient, by all threads of a block.
template <typename T>
__device__ __noinline__ void spoil_steps(const ElasticTable<T>& problem, const ElasticGradient<T>& gradient, int64_t pair) {
  const int64_t thread = threadIdx.y * blockDim.x + threadIdx.x, threads = blockDim.x * blockDim.y;
  const Extent extent = static_cast<const ElasticProblem<T>&>(problem).extent(pair);
  spoil_gradient(problem, gradient, extent, pair, thread, threads);
  const auto fill = [&](T* of_pairs, int64_t length, int64_t own) {
    if (of_pairs == nullptr) return;
    for (int64_t i = thread; i < own; i += threads) of_pairs[pair * length + i] = gradient.without_value(pair);
  };
  const int64_t n = extent.valid() ? extent.n : problem.n, m = extent.valid() ? extent.m : problem.m;
  fill(gradient.x_times, problem.n, n);
  fill(gradient.y_times, problem.m, m);
  fill(gradient.x_gaps, problem.n, n);
  fill(gradient.y_gaps, problem.m, m);
}

}  // namespace softdtw
