// The scaled linear domain: the linear domain (linear_domain.cuh) in units that move, for sums over paths that fall by thousands of
// binary orders from the table's first cell to its last.
//
// A lane's entries are a = A 2^r, A being the table's as linear_domain.cuh has them, but for its 2^kTop, and r a whole number of the
// lane's own, its reference. The lane is renewed from time to time: its largest entry comes to 2^kScaledTop, which rounds
// nothing. What the lane above hands down is multiplied by a power of two, which rounds nothing either.
//
// By (*) of linear_domain.cuh no entry is larger than the largest of those that it comes from, so what gradual underflow takes, 3 * 2^-1075
// of a lane's unit in each cell, does not grow inside the lane. So entries that are 2^kScaledLeast and more where a lane is renewed, or
// where they are handed down, are right to 2^-100. A pair is given up where one is not, or where one is infinite, or where
// references of neighbours are too far apart for what is handed down: each by a look at upper words. Cells outside of the table do no harm.
//
// B of reverse is b = B 2^-r, so that E = a b / A[N,M]. What b loses is 2^-1075 in units in which no a exceeds 2^kScaledMost.
//
// With a warp penalty p, in exponents of 2, products with 1 / (q c) are larger than entries by up to 2^p.
#pragma once

#include "core/cost.h"
#include "cuda/numbers/linear_domain.cuh"

namespace softdtw {

constexpr int kScaledTop = 400, kScaledLeast = -960, kScaledMost = 1000;
constexpr int kFarthestReferences = 1000;   // of neighbours
constexpr double kMostScaledPenalty = 200;  // in exponents of 2
// Costs in exponents of 2 that weights hold: of those that one exponential of float32 holds, and of those that it does not.
constexpr float kShallowScaled = 122, kDeepScaled = 780;
// And between rows and their mean: of pairs with more most rows of a lane are too far apart.
constexpr float kMostScaledMean = 16;

__device__ __forceinline__ int upper_word(int exponent) { return (exponent + kBias) << 20; }
__device__ __forceinline__ int exponent_of(int upper_word) { return (upper_word >> 20) - kBias; }

// A number s 2^-m on its way between lanes of different strips. s is in [1, 2], or 0.
struct ScaledNumber {
  float s;
  int m;

  // Of a 2^-reference, a not negative.
  __device__ __forceinline__ static ScaledNumber of(double a, int reference) {
    const unsigned high = static_cast<unsigned>(__double2hiint(a)), low = static_cast<unsigned>(__double2loint(a));
    if (high >> 20 == 0) return {0, 0};
    const unsigned bits = (127u << 23) + ((high & 0xfffffu) << 3) + ((low >> 29) + (low >> 28 & 1));
    return {__uint_as_float(bits), reference - exponent_of(static_cast<int>(high))};
  }
  // In the unit of a reference.
  __device__ __forceinline__ double in(int reference) const {
    return s == 0 ? 0 : static_cast<double>(s) * power_of_two(reference - m);
  }
};

// The weights v of a cost that comes in its own unit.
template <bool kIsDeep>
struct ScaledWeight {
  float value;
  int whole;  // of deep ones, its lowest bits

  template <class Penalty>
  __device__ __forceinline__ static ScaledWeight of(float cost, float scale, const Penalty& penalty) {
    const float exponent = fmaf(cost, -scale, -penalty.tilt());
    if (!kIsDeep) return {DeviceMath<float>::exp2(exponent), 0};
    const float shifted = exponent + Whole<float>::rounder;
    return {DeviceMath<float>::exp2(exponent - (shifted - Whole<float>::rounder)), __float_as_int(shifted)};
  }
  template <class Penalty>
  __device__ __forceinline__ double get(const Penalty& penalty) const {
    const double a = widen(value, kIsDeep ? kTooLowAroundOne : kTooLowBelowOne, penalty.whole());
    if (!kIsDeep) return a;
    return __hiloint2double(__double2hiint(a) + static_cast<int>(static_cast<unsigned>(whole) << 20), __double2loint(a));
  }
};

// So far may vectors be apart for their cost to be `most`, at least.
template <class CostType>
__device__ __forceinline__ float radius_of_cost(float most, int dims) {
  if (CostType::kFactor == 2) return sqrtf(most);
  if (CostType::kOverCost) return most;
  return most * rsqrtf(static_cast<float>(dims));  // sums of absolute values, or less
}

}  // namespace softdtw
