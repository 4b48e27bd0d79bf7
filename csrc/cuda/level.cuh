// The level engine: equations (2), (3) and (4) as they stand, in float64 and in one unit for a whole pair. The fastest one, for
// series of one dimension and moderate length without a band or a penalty.
//
// A sum over paths that leaves float64's range does so for two reasons: it has ever more terms, and every step multiplies by a
// weight w <= 1. The first is taken out, by dividing every step up or left by c and every diagonal one by c^2. The entries are
//     A[i,j] = a[i,j] c^-(i+j) 2^kTop = v (A[i-1,j] + A[i,j-1] + A[i-1,j-1] / c),   v = w / c,
// where 1/c goes into the exponent of the weight, so that it costs nothing. c = 2^kTilt, with
//     2 / c + 1 / c^2 < 1,                                                                                             (*)
// wherefore no entry is larger than the largest of those that it comes from: nothing overflows, whatever the weights are. All
// paths to a cell have i + j in common, so E = A B / A[N,M] with
//     B[i,j] = V[i+1,j] + V[i,j+1] + V[i+1,j+1] / c,   V = v B,   B[N,M] = 1,
// which (*) bounds by 1 as well.
//
// What is lost to gradual underflow is at most 3 * 2^-1075 a cell, on its way into the cell's entry. Of that, A[N,M] gets what
// B says, at most all of it: of n m < 2^21 cells less than 2^-1052. So an A[N,M] of 2^kLeast is right to 2^-50, and this is all that
// there is to look at: a pair whose last entry is below is given up. Reverse computes B / A[N,M] <= 2^-kLeast; what that loses is
// again 2^-1075 a cell, and times A <= 2^kTop nothing to E.
//
// A weight has float32's 24 bits, an entry that waits for backward its upper 21: the error of the E that come from it.
//
// Pairs are given up, too, whose costs are beyond what the weights can hold, or whose series are so far from their origin that
// moving them there would round their differences by too much. robust.cuh computes them in the same call.
#pragma once

#include "wide.cuh"

namespace softdtw {

constexpr float kTilt = 1.28125f;                     // few bits, so that no path's weight is off by the rounding of it
constexpr double kDiagonal = 0.41143886953849121113;  // 1 / c
static_assert(2 * kDiagonal + kDiagonal * kDiagonal < 0.993);
constexpr int kTop = 1000, kLeast = -1000;
constexpr float kFarthestFromOrigin = 32;

// The weights v of squared differences in exponents of 2, in two parts: what takes long, and has been started before it is
// needed, and the rest. Those of costs that one float32 exponential holds:
struct ShallowWeight {
  static constexpr float kDeepest = 124;
  float value, difference;

  __device__ __forceinline__ static ShallowWeight of(float difference) {
    return {DeviceMath<float>::exp2(DeviceMath<float>::fma(-difference, difference, -kTilt)), difference};
  }
  __device__ __forceinline__ double get() const { return widen(value); }
};

// And those of larger ones, whose whole part goes to the float64's exponent.
struct DeepWeight {
  static constexpr float kDeepest = 1000;
  float fraction;
  int whole;  // its lowest bits
  float difference;

  __device__ __forceinline__ static DeepWeight of(float difference) {
    const float exponent = DeviceMath<float>::fma(-difference, difference, -kTilt);
    const float shifted = fmaxf(exponent, -kDeepest - 8) + Whole<float>::rounder;
    return {DeviceMath<float>::exp2(exponent - (shifted - Whole<float>::rounder)), __float_as_int(shifted), difference};
  }
  __device__ __forceinline__ double get() const {
    const double a = widen(fraction);
    return __hiloint2double(__double2hiint(a) + static_cast<int>(static_cast<unsigned>(whole) << 20), __double2loint(a));
  }
};

// Entries between columns, as they wait for backward: the upper words of float64 numbers.
__device__ __forceinline__ int rounded_upper_word(double a) {
  return __double2hiint(a) + static_cast<int>(static_cast<unsigned>(__double2loint(a)) >> 31);
}
__device__ __forceinline__ double of_upper_word(int word) { return __hiloint2double(word, 0); }

// The float32 next to a product in [0, 1], by its upper word; 2^-126 is added, so that it is a normal one.
__device__ __forceinline__ float float_of_product(double a, double b) {
  const double sum = fma(a, b, power_of_two(-126));
  return __int_as_float(((__double2hiint(sum) - ((kBias - 127) << 20)) << 3) + 4);
}

}  // namespace softdtw
