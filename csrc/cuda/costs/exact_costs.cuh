// Costs of vectors in float64, from series of float32: for tiles in which rounding them to float32 would count (core/cost.h).
#pragma once

#include "core/cost.h"
#include "cuda/numbers/device_math.cuh"

namespace softdtw {

// A lane's tile, row by row: a column's coordinates are read once for all rows, several at a time. Rows and columns past the pair's end
// repeat its last ones. kIsOfSide: of a table that is seen from either end (kernels/bidirectional), of which the first rows may be missing.
template <class S, bool kIsOfSide = false>
__device__ __forceinline__ void exact_costs(
    const Problem<float>& problem, const View<const float>& x, const View<const float>& y, const Extent& extent, int row,
    int column, double (&costs)[S::kRows * S::kSteps]) {
  using Math = DeviceMath<double>;
#pragma unroll 1
  for (int t = 0; t < S::kSteps; ++t) {
    const float* const y_vector = &y.at(min(max(column + t, 0), extent.m - 1), 0);
    const float* x_vectors[S::kRows];
    double sums[S::kRows] = {};
#pragma unroll
    for (int k = 0; k < S::kRows; ++k) x_vectors[k] = &x.at(min(kIsOfSide ? max(row + k, 0) : row + k, extent.n - 1), 0);
    with_sum<Costs<Math>>(problem.cost, [&](auto type) {
#pragma unroll 4
      for (int64_t d = 0; d < problem.dim; ++d) {
        const double own = y_vector[d * y.column_stride];
#pragma unroll
        for (int k = 0; k < S::kRows; ++k) sums[k] = type.share(x_vectors[k][d * x.column_stride] - own, sums[k]);
      }
    });
#pragma unroll
    for (int k = 0; k < S::kRows; ++k) costs[k * S::kSteps + t] = finish_cost<Math>(problem.cost, sums[k]);
  }
}

}  // namespace softdtw
