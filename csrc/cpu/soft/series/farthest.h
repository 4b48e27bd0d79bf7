// Bounds of the costs of a pair: by the box that holds all vectors, and by balls around its middle.
#pragma once

#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

#include "core/cost.h"

namespace softdtw {
namespace cpu {

// A box's bound may be several times that of balls: of noise of 8 dimensions it is three times. Where it is more than so many times
// a limit, that of balls is not looked at.
constexpr double kBoxOverBalls = 4;

// Coordinate d of vector i is at first[d * stride + i].
template <typename T>
struct Vectors {
  const T* first;
  int64_t stride, count;
};

// A ball for the vectors of x and one for those of y: by the triangle inequality no cost is above that of the sum of their radii.
template <typename T>
double farthest_of_balls(Cost cost, const Vectors<T>& x, const Vectors<T>& y, const std::vector<T>& middle) {
  const auto largest_sum = [&](const Vectors<T>& vectors) {
    std::vector<T> sums(vectors.count);
    for (size_t d = 0; d < middle.size(); ++d)
      with_sum<Costs<PlainMath<T>>>(cost, [&](auto sum) {
        const T* const own = vectors.first + int64_t(d) * vectors.stride;
        for (int64_t i = 0; i < vectors.count; ++i) sums[i] = sum.share(own[i] - middle[d], sums[i]);
      });
    return double(*std::max_element(sums.begin(), sums.end()));
  };
  const double of_x = largest_sum(x), of_y = largest_sum(y);
  switch (cost) {
    case Cost::kSqEuclidean:
      return of_x + 2 * std::sqrt(of_x * of_y) + of_y;
    case Cost::kEuclidean:
      return std::sqrt(of_x) + std::sqrt(of_y);
    case Cost::kCityblock:
      return of_x + of_y;
    default:
      return std::numeric_limits<double>::infinity();
  }
}

}  // namespace cpu
}  // namespace softdtw
