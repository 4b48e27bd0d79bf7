// Between the caller's strided tensors and the packed series of a Pair.
#pragma once

#include <cmath>
#include <limits>

#include "cpu/soft/pair.h"
#include "farthest.h"
#include "halves.h"

namespace softdtw {
namespace cpu {

// What a sweep of dtype T needs for one pair, carved from one allocation that fits every pair of the problem.
template <typename T>
struct Workspace {
  struct Needs {
    bool edge, table, backward;
  };

  int64_t x_size, y_size;
  T *x, *y, *edge_s;
  Halves<T> x_halves, y_halves;  // null if no pair of the problem can have them
  double* edge_m;
  char* table;
  StripState* states;
  Scratch<T> scratch;  // but for the weights, which belong to a thread

  // From a coordinate to the next, for so many numbers: an odd number of cache lines, so that a vector's coordinates do not meet
  // in a few sets of the cache.
  static int64_t stride_of(int64_t count) {
    constexpr int64_t kLine = 64 / sizeof(T);
    return (ceil_div(count, kLine) | 1) * kLine;
  }

  static int64_t weights_bytes() { return kSegment * 3 * kRows * sizeof(T); }

  // With base null only counts the bytes. base is aligned to 64.
  template <typename Input>
  int64_t carve(const Problem<Input>& problem, Needs needs, char* base) {
    Parts parts{base};
    const bool series = problem.cost != Cost::kMatrix;
    x_size = series ? problem.dim * stride_of(round_up(problem.n, kRows)) : 0;
    y_size = series ? problem.dim * stride_of(problem.m + 2 * kRows) : 0;
    x = parts.take<T>(x_size);
    y = parts.take<T>(y_size);
    x_halves = y_halves = {};
    if (sizeof(T) < sizeof(double) && has_halves(problem.cost, problem.dim)) {
      x_halves = {parts.take<T>(x_size), parts.take<T>(x_size)};
      y_halves = {parts.take<T>(y_size), parts.take<T>(y_size)};
    }
    states = parts.take<StripState>(table_shape(problem).strips());
    edge_m = parts.take<double>(needs.edge ? problem.m : 0);
    edge_s = parts.take<T>(needs.edge ? problem.m : 0);
    table = parts.take<char>(needs.table ? Table<T>::bytes(table_shape(problem)) : 0);
    scratch = {};
    scratch.incoming = parts.take<T>(needs.backward ? problem.m : 0);
    scratch.dx = parts.take<T>(needs.backward ? x_size : 0);
    scratch.dy = parts.take<T>(needs.backward ? y_size : 0);
    return parts.used;
  }
};

// Where float32 costs times `scale` reach this, half a unit in their last place is felt in E. A sum of many coordinates is off by
// more.
constexpr double kWideFrom = 256;
constexpr double kDimsOfHalfAUnit = 8;

// A matrix product gives them where it loses no more than that, and where there are enough coordinates to gain by it.
constexpr double kMostByProducts = 0x1p26;
constexpr int64_t kDimsByProducts = 16;

template <typename T, typename Input>
Pair<T> pack(const Problem<Input>& problem, int64_t b, const Extent& extent, const Workspace<T>& workspace) {
  Pair<T> pair;
  pair.cost = problem.cost;
  pair.n = extent.n;
  pair.m = extent.m;
  pair.low = extent.low;
  pair.high = extent.high;
  pair.dim = problem.dim;
  pair.scale = problem.scale_of(b);
  pair.penalty = problem.penalty_of(b);
  pair.matrix.set(problem.cost_matrix.pair(b));
  pair.x = workspace.x;
  pair.y = workspace.y;
  pair.x_stride = problem.dim ? workspace.x_size / problem.dim : 0;
  pair.y_stride = problem.dim ? workspace.y_size / problem.dim : 0;
  pair.wide = pair.bounded = pair.by_products = false;
  if (problem.cost == Cost::kMatrix) return pair;

  const View<const Input> x = problem.x.pair(b), y = problem.y.pair(b);
  double farthest = 0;
  std::vector<T> middle(sizeof(T) < sizeof(double) ? pair.dim : 0);  // of the box that holds all vectors
  for (int64_t d = 0; d < pair.dim; ++d) {
    T* const to_x = workspace.x + d * pair.x_stride;
    T* const to_y = workspace.y + d * pair.y_stride;
    T largest = T(x.at(0, d)), least = largest;
    const auto see = [&](T value) {
      largest = value > largest ? value : largest;
      least = value < least ? value : least;
      return value;
    };
    // Cells beyond the table get costs like those of its first and last rows and columns: not larger ones, which might look as if
    // the range of the dtype had been left.
    for (int64_t i = 0; i < pair.n; ++i) to_x[i] = see(x.at(i, d));
    for (int64_t i = pair.n; i < pair.x_stride; ++i) to_x[i] = to_x[pair.n - 1];
    for (int64_t j = 0; j < pair.m; ++j) to_y[kRows + pair.m - 1 - j] = see(y.at(j, d));
    for (int64_t j = 0; j < kRows; ++j) to_y[j] = to_y[kRows];
    for (int64_t j = kRows + pair.m; j < pair.y_stride; ++j) to_y[j] = to_y[kRows + pair.m - 1];
    const double range = double(largest) - double(least);
    farthest = add_share<PlainMath<double>>(pair.cost, range, farthest);
    if (sizeof(T) < sizeof(double)) middle[d] = T(least + range / 2);
  }
  const double box = finish_cost<PlainMath<double>>(pair.cost, farthest) * pair.scale;
  const double limit = kWideFrom / std::max(1.0, double(pair.dim) / kDimsOfHalfAUnit);
  if (sizeof(T) == sizeof(double) || box < limit) return pair;
  const Vectors<T> rows = {pair.x, pair.x_stride, pair.n}, columns = {pair.y + kRows, pair.y_stride, pair.m};
  if (pair.dim > 1 && box < kBoxOverBalls * limit &&
      farthest_of_balls(pair.cost, rows, columns, middle) * pair.scale < limit)
    return pair;
  pair.wide = true;
  pair.bounded = box < Whole<double>::limit;
  pair.by_products = pair.cost == Cost::kSqEuclidean && pair.dim >= kDimsByProducts && box < kMostByProducts;
  if (workspace.x_halves.high && box < kMostByHalves) {
    pair.x_halves = workspace.x_halves;
    pair.y_halves = workspace.y_halves;
    const Halving halving(middle[0], pair.scale, box);
    halving.split(pair.x, pair.x_stride, pair.x_halves.high, pair.x_halves.low);
    halving.split(pair.y, pair.y_stride, pair.y_halves.high, pair.y_halves.low);
  }
  return pair;
}

// The gradient that arrives, times the constant of dC/dx that the sums leave out.
template <typename T, typename Input>
void unpack_gradient(
    const Problem<Input>& problem, int64_t b, const Pair<T>& pair, const Scratch<T>& scratch,
    const Gradient<Input>& gradient) {
  const T factor = T(gradient.arriving(b)) * T(factor_of(problem.cost));
  const View<Input> x = gradient.x.pair(b), y = gradient.y.pair(b);
  for (int64_t d = 0; d < pair.dim; ++d) {
    if (gradient.x.data)
      for (int64_t i = 0; i < pair.n; ++i) x.at(i, d) = Input(factor * scratch.dx[d * pair.x_stride + i]);
    if (gradient.y.data)
      for (int64_t j = 0; j < pair.m; ++j)
        y.at(j, d) = Input(-factor * scratch.dy[d * pair.y_stride + kRows + pair.m - 1 - j]);
  }
}

}  // namespace cpu
}  // namespace softdtw
