// A pair's series as the sweeps of hard DTW read them.
#pragma once

#include "cpu/soft/pair.h"

namespace softdtw {
namespace cpu {

// Series where a pair is to point to, packed.
template <typename T>
struct HardSeries {
  T *x, *y;
  double *wide_x, *wide_y;  // of one dimension

  void carve(Parts& parts, const Problem<T>& problem) {
    const bool is_wide = problem.cost != Cost::kMatrix && problem.dim == 1;
    x = parts.take<T>(problem.dim * problem.n);
    y = parts.take<T>(problem.dim * problem.m);
    wide_x = parts.take<double>(is_wide ? problem.n + kHardSlack : 0);
    wide_y = parts.take<double>(is_wide ? problem.m + kHardSlack : 0);
  }
};

// What a problem says of its pair b, and its series.
template <typename T>
void pack_pair(const Problem<T>& problem, int64_t b, const HardSeries<T>& to, HardPair<T>& pair) {
  pair.cost = problem.cost;
  pair.dim = problem.dim;
  pair.penalty = problem.penalty_of(b);
  pair.x = to.x, pair.y = to.y;
  pair.x_stride = problem.n, pair.y_stride = problem.m;
  pair.wide_x = pair.wide_y = nullptr;
  if (problem.cost == Cost::kMatrix) {
    pair.matrix = problem.cost_matrix.pair(b);
    return;
  }
  const View<const T> from_x = problem.x.pair(b), from_y = problem.y.pair(b);
  for (int64_t d = 0; d < problem.dim; ++d) {
    for (int64_t i = 0; i < pair.extent.n; ++i) to.x[d * problem.n + i] = from_x.at(i, d);
    for (int64_t j = 0; j < pair.extent.m; ++j) to.y[d * problem.m + pair.extent.m - 1 - j] = from_y.at(j, d);
  }
  if (problem.dim != 1) return;
  double spoiled = 0;  // NaN after a number that is none, or infinite
  for (int64_t i = 0; i < pair.extent.n; ++i) spoiled += (to.wide_x[i] = to.x[i]) - to.x[i];
  for (int64_t j = 0; j < pair.extent.m; ++j) spoiled += (to.wide_y[j] = to.y[j]) - to.y[j];
  if (spoiled == 0) pair.wide_x = to.wide_x, pair.wide_y = to.wide_y;
}

}  // namespace cpu
}  // namespace softdtw
