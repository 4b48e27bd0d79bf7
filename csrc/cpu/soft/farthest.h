// Bounds of the costs of a pair: by the box that holds all vectors, and by balls around its middle.
#pragma once

#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

#include "pair.h"

namespace softdtw {
namespace cpu {

// A box's bound may be several times that of balls: of noise of 8 dimensions it is three times. Where it is more than so many times
// a limit, that of balls is not looked at.
constexpr double kBoxOverBalls = 4;

// A ball for the vectors of x and one for those of y: by the triangle inequality no cost is above that of the sum of their radii.
template <typename T>
double farthest_of_balls(const Pair<T>& pair, const std::vector<T>& middle) {
  const auto square_of_radius = [&](const T* series, int64_t stride, int64_t count) {
    std::vector<T> sums(count);
    for (int64_t d = 0; d < pair.dim; ++d)
      with_sum<Costs<PlainMath<T>>>(pair.cost, [&](auto sum) {
        for (int64_t i = 0; i < count; ++i) sums[i] = sum.share(series[d * stride + i] - middle[d], sums[i]);
      });
    return double(*std::max_element(sums.begin(), sums.end()));
  };
  const double x = square_of_radius(pair.x, pair.x_stride, pair.n);
  const double y = square_of_radius(pair.y + kRows, pair.y_stride, pair.m);
  switch (pair.cost) {
    case Cost::kSqEuclidean:
      return x + 2 * std::sqrt(x * y) + y;
    case Cost::kEuclidean:
      return std::sqrt(x) + std::sqrt(y);
    case Cost::kCityblock:
      return x + y;
    default:
      return std::numeric_limits<double>::infinity();
  }
}

}  // namespace cpu
}  // namespace softdtw
