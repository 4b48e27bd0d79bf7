// Numbers of float64 with an exponent beside them, whose range nothing leaves.
#pragma once

#include "math.cuh"

namespace softdtw {

constexpr int kBias = 1023;
// 2^e; 0 and infinity out of range.
__device__ __forceinline__ double power_of_two(int e) {
  return __hiloint2double(min(max(e + kBias, 0), 2 * kBias + 1) << 20, 0);
}

__device__ __forceinline__ float shuffle_up(float a) { return __shfl_up_sync(kAllLanes, a, 1); }
__device__ __forceinline__ float shuffle_down(float a) { return __shfl_down_sync(kAllLanes, a, 1); }
__device__ __forceinline__ double shuffle_up(double a) {
  return __hiloint2double(__shfl_up_sync(kAllLanes, __double2hiint(a), 1), __shfl_up_sync(kAllLanes, __double2loint(a), 1));
}
__device__ __forceinline__ double shuffle_down(double a) {
  return __hiloint2double(
      __shfl_down_sync(kAllLanes, __double2hiint(a), 1), __shfl_down_sync(kAllLanes, __double2loint(a), 1));
}

// Multiplies by a power of two of up to twice the exponents that a float64 has. 0 stays 0.
struct Scaling {
  const double first, second;

  __device__ __forceinline__ explicit Scaling(int e)
      : first(power_of_two(min(e / 2, kBias))), second(power_of_two(min(e - e / 2, kBias))) {}
  __device__ __forceinline__ double operator()(double a) const { return a * first * second; }
};

// Splits a positive number into one in [1, 2), which it becomes, and a power of two, whose exponent it returns.
__device__ __forceinline__ int split_exponent(double& a) {
  const int high = __double2hiint(a);
  a = __hiloint2double((high & 0x000fffff) | kBias << 20, __double2loint(a));
  return (high >> 20) - kBias;
}

constexpr int kNoExponent = -(1 << 30);  // of 0

// a 2^e, a in [1, 2) or 0.
struct Wide {
  double a = 0;
  int e = kNoExponent;

  __device__ __forceinline__ static Wide of(double a, int e) {
    if (!(a > 0)) return {a, kNoExponent};  // 0, or a NaN to be passed on
    const int own = split_exponent(a);
    return {a, e + own};
  }
  __device__ __forceinline__ Wide times(const Wide& other) const { return of(a * other.a, e + other.e); }
  // In the unit 2^unit; 0 or infinity out of range.
  __device__ __forceinline__ double in_unit(int unit) const { return Scaling(e - unit)(a); }
};

__device__ __forceinline__ Wide operator+(const Wide& x, const Wide& y) {
  const int distance = x.e - y.e;
  const double large = distance >= 0 ? x.a : y.a, small = distance >= 0 ? y.a : x.a;
  return Wide::of(fma(small, power_of_two(-abs(distance)), large), max(x.e, y.e));
}

__device__ __forceinline__ Wide shuffle_up(const Wide& x) { return {shuffle_up(x.a), __shfl_up_sync(kAllLanes, x.e, 1)}; }
__device__ __forceinline__ Wide shuffle_down(const Wide& x) {
  return {shuffle_down(x.a), __shfl_down_sync(kAllLanes, x.e, 1)};
}

}  // namespace softdtw
