// Hard DTW, (9): the best path as spans, and the gradient along it, for host and device.
//
// (9)  R[0,0] = 0,  R[i,0] = R[0,j] = inf,  R[i,j] = C[i,j] + min(R[i-1,j-1], R[i-1,j] + p, R[i,j-1] + p)
//      value = R[N,M], and dvalue / dC[i,j] = 1 on the best path, 0 elsewhere.
// Open ends: R[0,j] = 0 and value = min over j of R[N,j]. Of equal predecessors the diagonal one is taken before the upper
// one, and that before the left one; of equal ends the first. A sweep notes the predecessor of every cell in two bits
// (Step); walking back from the end turns them into spans: the columns that the path meets in each row. Nothing else of a
// path is kept, and no cell of it is visited to find the rows that it meets in a column.
#pragma once

#include <cmath>

#include "problem.h"

namespace softdtw {

enum Step : int { kDiagonal = 0, kUp = 1, kLeft = 2 };

// Columns [first, last] of a row. Rows beyond a pair's length have the empty span [M, M - 1], of the padded M.
struct Span {
  int32_t first, last;
};

template <typename T>
struct HardGradient : Gradient<T> {
  const Span* spans = nullptr;  // (B, N)
};

// The rows [first, last] that the path meets in a column: spans only move to the right.
SOFTDTW_HD Span rows_of_column(const Span* spans, int rows, int column) {
  int low = 0, high = rows;  // the first row whose span ends at the column or later
  while (low < high) {
    const int middle = (low + high) / 2;
    if (spans[middle].last >= column)
      high = middle;
    else
      low = middle + 1;
  }
  const int first = low;
  high = rows;  // the first row whose span begins after the column
  while (low < high) {
    const int middle = (low + high) / 2;
    if (spans[middle].first > column)
      high = middle;
    else
      low = middle + 1;
  }
  return {first, low - 1};
}

// What dC/d(difference) is multiplied by besides the difference (its sign, for cityblock) in every coordinate.
template <typename T>
SOFTDTW_HD T slope_of_cell(const Problem<T>& problem, const View<const T>& x, const View<const T>& y, int row, int column) {
  if (problem.cost == Cost::kSqEuclidean) return T(2);
  if (problem.cost == Cost::kCityblock) return T(1);
  T sum = 0;
  for (int64_t d = 0; d < problem.dim; ++d) {
    const T difference = x.at(row, d) - y.at(column, d);
    sum += difference * difference;
  }
  return sum > T(0) ? T(1) / std::sqrt(sum) : T(0);
}

// (5) for one row of x (kForX) or of y, with E = 1 on the path. What there is of a pair whose value is not a number, without_value() says; padding
// gets 0 unless the lengths themselves are out of range.
template <bool kForX, typename T>
SOFTDTW_HD void path_gradient(const Problem<T>& problem, const HardGradient<T>& gradient, int64_t pair, int index) {
  const View<T> out = (kForX ? gradient.x : gradient.y).pair(pair);
  const Extent extent = problem.extent(pair);
  const bool inside = index < (kForX ? extent.n : extent.m);
  const bool finite = std::isfinite(gradient.value[pair]);
  if (!extent.valid() || !inside || !finite) {
    const T fill = extent.valid() && !inside ? T(0) : gradient.without_value(pair);
    for (int64_t d = 0; d < problem.dim; ++d) out.at(index, d) = fill;
    return;
  }
  const Span* const spans = gradient.spans + pair * problem.n;
  const Span others = kForX ? spans[index] : rows_of_column(spans, extent.n, index);
  const View<const T> x = problem.x.pair(pair), y = problem.y.pair(pair);
  const T scale = kForX ? gradient.arriving(pair) : -gradient.arriving(pair);
  constexpr int kDims = 4;
  for (int64_t d0 = 0; d0 < problem.dim; d0 += kDims) {
    T sums[kDims] = {};
    for (int other = others.first; other <= others.last; ++other) {
      const int row = kForX ? index : other, column = kForX ? other : index;
      const T slope = slope_of_cell(problem, x, y, row, column);
      for (int k = 0; k < kDims; ++k) {
        if (d0 + k >= problem.dim) break;
        const T difference = x.at(row, d0 + k) - y.at(column, d0 + k);
        const T share = problem.cost == Cost::kCityblock ? T((difference > T(0)) - (difference < T(0))) : difference;
        sums[k] += slope * share;
      }
    }
    for (int k = 0; k < kDims; ++k)
      if (d0 + k < problem.dim) out.at(index, d0 + k) = sums[k] * scale;
  }
}

// The same for one row of ready-made costs.
template <typename T>
SOFTDTW_HD void path_gradient_of_cost(
    const Problem<T>& problem, const HardGradient<T>& gradient, int64_t pair, int row, int from, int stride) {
  const View<T> out = gradient.cost.pair(pair);
  const Extent extent = problem.extent(pair);
  const bool finite = std::isfinite(gradient.value[pair]);
  const Span span = gradient.spans[pair * problem.n + row];
  for (int column = from; column < problem.m; column += stride) {
    T entry = 0;
    if (!extent.valid())
      entry = gradient.without_value(pair);
    else if (row < extent.n && column < extent.m && !finite)
      entry = extent.in_band(row, column) ? gradient.without_value(pair) : T(0);
    else if (row < extent.n && column >= span.first && column <= span.last)
      entry = gradient.arriving(pair);
    out.at(row, column) = entry;
  }
}

}  // namespace softdtw
