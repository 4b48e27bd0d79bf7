// The whole table of (11): rows 0 to N and columns 0 to M, the border among them, and what the steps into its cells cost.
#pragma once

#include "core/elastic.h"
#include "cuda/numbers/device_math.cuh"

namespace softdtw {

SOFTDTW_HD Extent with_border(const Extent& extent) { return {extent.n + 1, extent.m + 1, extent.low, extent.high}; }

// A problem as a table of strips (strip.cuh): rows 1 to N, and columns 1 to M, or of a summed border 0 to M, so that row 0 alone is
// none of it.
template <typename T>
struct ElasticTable : ElasticProblem<T> {
  explicit ElasticTable(const ElasticProblem<T>& problem) : ElasticProblem<T>(problem) {}

  SOFTDTW_HD int shift() const { return this->sum_border ? 1 : 0; }  // of columns in the table
  SOFTDTW_HD Extent extent(int64_t b) const {
    const Extent own = ElasticProblem<T>::extent(b);
    return own.valid() ? Extent{own.n, own.m + shift(), own.low + shift(), own.high + shift()} : own;
  }
  // For the sizes of what is laid out by the table's.
  Problem<T> sizes() const {
    Problem<T> grown = *this;
    grown.m += shift();
    if (grown.bandwidth >= 0) grown.bandwidth += shift();
    return grown;
  }
};

// Where a pair's series lie in its table.
struct ElasticPlace {
  int shift, last_row, last_column;

  template <typename T>
  __device__ ElasticPlace(const ElasticTable<T>& problem, const Extent& extent)
      : shift(problem.shift()), last_row(extent.n - 1), last_column(extent.m - 1 - problem.shift()) {}
  __device__ __forceinline__ int row(int of_table) const { return min(max(of_table, 0), last_row); }
  __device__ __forceinline__ int column(int of_table) const { return min(max(of_table - shift, 0), last_column); }
};

// What there is one number of for each row of a tile, and of the one above: of a series, its times or gaps.
template <class S, int kAbove, typename T>
__device__ __forceinline__ void load_rows(
    const T* line, int64_t stride, const ElasticPlace& at, int row, T (&rows)[S::kRows + kAbove]) {
#pragma unroll
  for (int k = 0; k < S::kRows + kAbove; ++k) rows[k] = line[at.row(row + k - kAbove) * stride];
}

// Where a kernel keeps what it knows of every cell: neighbours on an anti-diagonal side by side. For a given row the columns in the
// band follow on each other, so their diagonals differ modulo `columns`.
struct ElasticLayout {
  int64_t rows;
  int columns;

  template <typename T>
  explicit ElasticLayout(const ElasticProblem<T>& problem) : rows(problem.n + 1), columns(static_cast<int>(problem.m + 1)) {
    if (problem.bandwidth < 0 || problem.bandwidths || problem.x_lengths || problem.y_lengths) return;
    const int64_t shift = problem.m > problem.n ? problem.m - problem.n : problem.n - problem.m;
    const int64_t radius = problem.bandwidth < columns ? problem.bandwidth : columns;
    if (shift + 2 * radius + 1 < columns) columns = static_cast<int>(shift + 2 * radius + 1);
  }
  SOFTDTW_HD int64_t cells() const { return rows * columns; }
  SOFTDTW_HD int64_t at(int i, int j) const { return (i + j) % columns * rows + i; }
};

// Ready-made costs, as ElasticCells has those of measures.
struct Ready {};

template <class Math, typename T>
class ElasticCells<Ready, Math, T> {
 public:
  SOFTDTW_HD ElasticCells(const ElasticProblem<T>& problem, int64_t pair)
      : diagonal_(problem.diagonal.pair(pair)), up_(problem.up.pair(pair)), left_(problem.left.pair(pair)) {}

  SOFTDTW_HD StepCosts<T> operator()(int i, int j) const { return {sound(diagonal_.at(i, j)), up(i, j), left(i, j)}; }
  SOFTDTW_HD T gap_of_row(int i) const { return up(i, 0); }
  SOFTDTW_HD T gap_of_column(int j) const { return left(0, j); }

 private:
  // A step that costs less than any other spoils its pair.
  SOFTDTW_HD static T sound(T cost) { return cost == -T(INFINITY) ? T(NAN) : cost; }
  SOFTDTW_HD T up(int i, int j) const { return sound(up_.at(i, j)); }
  SOFTDTW_HD T left(int i, int j) const { return sound(left_.at(i, j)); }

  const View<const T> diagonal_, up_, left_;
};

// Rows and columns from 0, the border. A step that is not there costs infinity.
template <class Type, typename T>
class StepsInto {
 public:
  __device__ StepsInto(const ElasticProblem<T>& problem, int64_t pair)
      : cells_(problem, pair), has_sums_(problem.sum_border) {}

  __device__ StepCosts<T> operator()(int i, int j) const {
    if (i > 0 && j > 0) return cells_(i - 1, j - 1);
    const T none = T(INFINITY);
    const bool goes_up = has_sums_ && i > 0, goes_left = has_sums_ && j > 0;
    return {none, goes_up ? cells_.gap_of_row(i - 1) : none, goes_left ? cells_.gap_of_column(j - 1) : none};
  }

 private:
  const ElasticCells<Type, DeviceMath<T>, T> cells_;
  const bool has_sums_;
};

// f(type) with AnyMeasure or Ready.
template <typename T, class F>
auto with_type(const ElasticProblem<T>& problem, F&& f) {
  return problem.measure == Measure::kMatrix ? f(Ready{}) : f(AnyMeasure{});
}

}  // namespace softdtw
