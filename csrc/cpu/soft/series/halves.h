// Squared differences of one dimension to twice the digits of float32, from numbers in two parts.
//
// Numbers are first moved and scaled, in float64, so that a scaled cost is the square of a difference. The high part of one is a
// multiple of a power of two, of which differences of high parts are at most 2^12 times: these and their squares are exact. Low
// parts add up to 2^-9 of `box`, the largest cost, to a cost, and that is right to 2^-32 of it.
#pragma once

#include <cmath>

#include "core/cost.h"

namespace softdtw {
namespace cpu {

constexpr double kMostByHalves = 0x1p15;

// Whether pairs of a problem may have them.
inline bool has_halves(Cost cost, int64_t dim) { return cost == Cost::kSqEuclidean && dim == 1; }

class Halving {
 public:
  // Of numbers around `middle`; scaled costs are up to `box`.
  Halving(double middle, double scale, double box) : middle_(middle), root_(std::sqrt(scale)) {
    int exponent;  // differences of numbers are below 2^exponent, and so they are when rounded
    std::frexp(1.001 * std::sqrt(box), &exponent);
    rounder_ = std::ldexp(1.5, 52 + exponent - 12);
  }

  template <typename T>
  void split(const T* series, int64_t count, T* high, T* low) const {
    for (int64_t i = 0; i < count; ++i) {
      const double number = (double(series[i]) - middle_) * root_;
      const double rounded = (number + rounder_) - rounder_;
      high[i] = T(rounded);
      low[i] = T(number - rounded);
    }
  }

 private:
  double middle_, root_, rounder_;
};

}  // namespace cpu
}  // namespace softdtw
