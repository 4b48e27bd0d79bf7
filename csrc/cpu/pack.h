// Between the caller's strided tensors and the packed series of a Pair.
#pragma once

#include <cmath>
#include <limits>

#include "pair.h"

namespace softdtw {
namespace cpu {

// Scratch memory of one worker, carved from one allocation that fits every pair of the problem.
template <typename T>
struct Workspace {
  int64_t x_size, y_size;
  T *x, *y, *edge_s;
  double* edge_m;
  Scratch<T> scratch;

  static int64_t padded_rows(const Problem<T>& problem) { return round_up(problem.n, kRows); }
  static int64_t padded_columns(const Problem<T>& problem) { return round_up(problem.m + 2 * kRows, 16); }

  // With base null only counts the bytes.
  int64_t carve(const Problem<T>& problem, bool edges, bool backward, char* base) {
    int64_t used = 0;
    const auto take = [&](int64_t bytes) {
      char* const at = base + used;
      used += round_up(bytes, 64);
      return base ? at : nullptr;
    };
    const bool series = problem.cost != Cost::kMatrix;
    x_size = series ? problem.dim * padded_rows(problem) : 0;
    y_size = series ? problem.dim * padded_columns(problem) : 0;
    x = reinterpret_cast<T*>(take(x_size * sizeof(T)));
    y = reinterpret_cast<T*>(take(y_size * sizeof(T)));
    edge_m = reinterpret_cast<double*>(take(edges ? problem.m * sizeof(double) : 0));
    edge_s = reinterpret_cast<T*>(take(edges ? problem.m * sizeof(T) : 0));
    scratch.weights = reinterpret_cast<T*>(take(backward ? kSegment * 3 * kRows * sizeof(T) : 0));
    scratch.incoming = reinterpret_cast<T*>(take(backward ? problem.m * sizeof(T) : 0));
    scratch.dx = reinterpret_cast<T*>(take(backward ? x_size * sizeof(T) : 0));
    scratch.dy = reinterpret_cast<T*>(take(backward ? y_size * sizeof(T) : 0));
    return used;
  }
};

// Where float32 costs times `scale` reach this, half a unit in their last place is felt in E.
constexpr double kWideFrom = 256;

template <typename T>
Pair<T> pack(const Problem<T>& problem, int64_t b, const Extent& extent, const Workspace<T>& workspace) {
  Pair<T> pair;
  pair.cost = problem.cost;
  pair.n = extent.n;
  pair.m = extent.m;
  pair.low = extent.low;
  pair.high = extent.high;
  pair.dim = problem.dim;
  pair.scale = 1 / (problem.gamma * kLn2);
  pair.penalty = problem.warp_penalty;
  pair.matrix = problem.cost_matrix.pair(b);
  pair.x = workspace.x;
  pair.y = workspace.y;
  pair.x_stride = Workspace<T>::padded_rows(problem);
  pair.y_stride = Workspace<T>::padded_columns(problem);
  pair.wide = false;
  if (problem.cost == Cost::kMatrix) return pair;

  const View<const T> x = problem.x.pair(b), y = problem.y.pair(b);
  double farthest = 0;
  for (int64_t d = 0; d < pair.dim; ++d) {
    T* const to_x = workspace.x + d * pair.x_stride;
    T* const to_y = workspace.y + d * pair.y_stride;
    T largest = 0, least = 0;
    const auto see = [&](T value) {
      largest = value > largest ? value : largest;
      least = value < least ? value : least;
      return value;
    };
    for (int64_t i = 0; i < pair.n; ++i) to_x[i] = see(x.at(i, d));
    for (int64_t i = pair.n; i < pair.x_stride; ++i) to_x[i] = 0;
    for (int64_t j = 0; j < kRows; ++j) to_y[j] = 0;
    for (int64_t j = 0; j < pair.m; ++j) to_y[kRows + pair.m - 1 - j] = see(y.at(j, d));
    for (int64_t j = kRows + pair.m; j < pair.y_stride; ++j) to_y[j] = 0;
    const double range = double(largest) - double(least);
    farthest += problem.cost == Cost::kCityblock ? range : range * range;
  }
  if (problem.cost == Cost::kEuclidean) farthest = std::sqrt(farthest);
  pair.wide = sizeof(T) < sizeof(double) && !(farthest * pair.scale < kWideFrom);
  return pair;
}

// The gradient that arrives, times the constant of dC/dx that the sums leave out.
template <typename T>
void unpack_gradient(
    const Problem<T>& problem, int64_t b, const Pair<T>& pair, const Workspace<T>& workspace, const Gradient<T>& gradient) {
  const T factor = gradient.grad_value[b] * T(problem.cost == Cost::kSqEuclidean ? 2 : 1);
  const View<T> x = gradient.x.pair(b), y = gradient.y.pair(b);
  for (int64_t d = 0; d < pair.dim; ++d) {
    if (gradient.x.data)
      for (int64_t i = 0; i < pair.n; ++i) x.at(i, d) = factor * workspace.scratch.dx[d * pair.x_stride + i];
    if (gradient.y.data)
      for (int64_t j = 0; j < pair.m; ++j)
        y.at(j, d) = -factor * workspace.scratch.dy[d * pair.y_stride + kRows + pair.m - 1 - j];
  }
}

// A pair whose value is not a number has no gradient. Padding stays zero unless the lengths themselves are invalid.
template <typename T>
void spoil_gradient(const Problem<T>& problem, int64_t b, const Extent& extent, const Gradient<T>& gradient) {
  const T nan = std::numeric_limits<T>::quiet_NaN();
  const int64_t n = extent.valid() ? extent.n : problem.n, m = extent.valid() ? extent.m : problem.m;
  const View<T> x = gradient.x.pair(b), y = gradient.y.pair(b), cost = gradient.cost.pair(b);
  for (int64_t d = 0; d < problem.dim; ++d) {
    if (gradient.x.data)
      for (int64_t i = 0; i < n; ++i) x.at(i, d) = nan;
    if (gradient.y.data)
      for (int64_t j = 0; j < m; ++j) y.at(j, d) = nan;
  }
  if (gradient.cost.data)
    for (int64_t i = 0; i < n; ++i)
      for (int64_t j = 0; j < m; ++j)
        if (!extent.valid() || extent.in_band(int(i), int(j))) cost.at(i, j) = nan;
}

}  // namespace cpu
}  // namespace softdtw
