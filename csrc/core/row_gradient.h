// The gradient of one row of x or y, cell by cell: for kernels that need no more than that, and for paths of hard DTW.
#pragma once

#include "cost.h"

namespace softdtw {

// Of `count` threads that share a row's dimensions, the `number`th.
struct ShareOfDims {
  int number = 0, count = 1;
};

// (5) for one row of x (kForX) or of y, cell by cell: E is e_of(row, column) beside others [from, to] of the other side. kDims: so
// many dimensions at once; 1: there is one.
template <bool kForX, class Math, int kDims = 4, typename T, class E>
SOFTDTW_HD void row_gradient(
    const Problem<T>& problem, const Gradient<T>& gradient, int64_t pair, int own, int from, int to, E&& e_of,
    ShareOfDims share = {}) {
  const View<const T> x = problem.x.pair(pair), y = problem.y.pair(pair);
  const View<T> out = (kForX ? gradient.x : gradient.y).pair(pair);
  const int64_t dims = kDims == 1 ? 1 : problem.dim;
  for (int64_t d0 = share.number * kDims; d0 < dims; d0 += share.count * kDims) {
    T sums[kDims] = {};
    for (int other = from; other <= to; ++other) {
      const int row = kForX ? own : other, column = kForX ? other : own;
      T factor = e_of(row, column) * T(factor_of(problem.cost));
      if (is_over_cost(problem.cost)) factor = over_cost<Math>(factor, cost_of_vectors<Math>(problem, x, y, row, column));
      for (int k = 0; k < kDims; ++k)
        if (d0 + k < dims) sums[k] += factor * slope_of<Math>(problem.cost, x.at(row, d0 + k) - y.at(column, d0 + k));
    }
    const T scale = kForX ? gradient.arriving(pair) : -gradient.arriving(pair);
    for (int k = 0; k < kDims; ++k)
      if (d0 + k < dims) out.at(own, d0 + k) = sums[k] * scale;
  }
}

}  // namespace softdtw
