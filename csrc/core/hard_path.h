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

#include "row_gradient.h"

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
  const auto first_row = [&](auto&& is_there) {
    int low = 0, high = rows;
    while (low < high) {
      const int middle = (low + high) / 2;
      if (is_there(spans[middle]))
        high = middle;
      else
        low = middle + 1;
    }
    return low;
  };
  const int end = first_row([&](const Span& span) { return span.first > column; });
  return {first_row([&](const Span& span) { return span.last >= column; }), end - 1};
}

// (5) for one row of x (kForX) or of y, with E = 1 on the path. What there is of a pair whose value is not a number,
// without_value() says; padding gets 0 unless the lengths themselves are out of range. rows_of(spans, rows, column): as
// rows_of_column().
template <bool kForX, int kDims = 4, typename T, class RowsOf>
SOFTDTW_HD void path_gradient(
    const Problem<T>& problem, const HardGradient<T>& gradient, int64_t pair, int index, RowsOf&& rows_of,
    ShareOfDims share = {}) {
  const Extent extent = problem.extent(pair);
  const bool inside = index < (kForX ? extent.n : extent.m);
  if (!extent.valid() || !inside || !std::isfinite(gradient.value[pair])) {
    const View<T> out = (kForX ? gradient.x : gradient.y).pair(pair);
    const T fill = extent.valid() && !inside ? T(0) : gradient.without_value(pair);
    for (int64_t d = share.number; d < problem.dim; d += share.count) out.at(index, d) = fill;
    return;
  }
  const Span* const spans = gradient.spans + pair * problem.n;
  const Span others = kForX ? spans[index] : rows_of(spans, extent.n, index);
  const auto on_path = [](int, int) { return T(1); };
  row_gradient<kForX, PlainMath<T>, kDims>(problem, gradient, pair, index, others.first, others.last, on_path, share);
}
template <bool kForX, typename T>
SOFTDTW_HD void path_gradient(
    const Problem<T>& problem, const HardGradient<T>& gradient, int64_t pair, int index, ShareOfDims share = {}) {
  const auto search = [](const Span* spans, int rows, int column) { return rows_of_column(spans, rows, column); };
  path_gradient<kForX>(problem, gradient, pair, index, search, share);
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
