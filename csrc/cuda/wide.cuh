// Numbers of float64 with an exponent beside them, whose range nothing leaves; and float64 numbers put together by their bits.
#pragma once

#include "math.cuh"

namespace softdtw {

constexpr int kBias = 1023;
// 2^e; 0 and infinity out of range.
__device__ __forceinline__ double power_of_two(int e) {
  return __hiloint2double(min(max(e + kBias, 0), 2 * kBias + 1) << 20, 0);
}

// The float64 of a normal float32 in (0, 1], without the conversion unit, and as much more as `rest` says in units of 2^-29 of the
// float32's last place. 0 becomes 2^-127.
__device__ __forceinline__ double widen(float a, unsigned rest = 0) {
  const unsigned bits = __float_as_uint(a);
  return __hiloint2double((bits >> 3) + (static_cast<unsigned>(kBias - 127) << 20), (bits << 29) + rest);
}
__device__ __forceinline__ double widen(double a) { return a; }

// The float32 below a float64 in [0, 2), without the conversion unit. What is below 2^-126 becomes less than 2^-126.
__device__ __forceinline__ float narrow(double a) {
  const int high = max(__double2hiint(a) - ((kBias - 127) << 20), 0);
  return __uint_as_float(__funnelshift_l(__double2loint(a), high, 3));
}

__device__ __forceinline__ float shuffle_up(float a) { return __shfl_up_sync(kAllLanes, a, 1); }
__device__ __forceinline__ float shuffle_down(float a) { return __shfl_down_sync(kAllLanes, a, 1); }
__device__ __forceinline__ double shuffle_up(double a, int width = kWarp) {
  return __hiloint2double(
      __shfl_up_sync(kAllLanes, __double2hiint(a), 1, width), __shfl_up_sync(kAllLanes, __double2loint(a), 1, width));
}
__device__ __forceinline__ double shuffle_down(double a, int width = kWarp) {
  return __hiloint2double(
      __shfl_down_sync(kAllLanes, __double2hiint(a), 1, width), __shfl_down_sync(kAllLanes, __double2loint(a), 1, width));
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
