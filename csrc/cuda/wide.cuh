// Numbers of float64 with an exponent beside them, whose range nothing leaves, and the slots of memory that hold them.
#pragma once

#include "math.cuh"

namespace softdtw {

constexpr int kBias = 1023;
// 2^e; 0 and infinity out of range.
__device__ __forceinline__ double power_of_two(int e) {
  return __hiloint2double(min(max(e + kBias, 0), 2 * kBias + 1) << 20, 0);
}

__device__ __forceinline__ double shuffle_up(double a) {
  return __hiloint2double(__shfl_up_sync(kAllLanes, __double2hiint(a), 1), __shfl_up_sync(kAllLanes, __double2loint(a), 1));
}
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
  __device__ __forceinline__ Wide times(double factor) const { return of(a * factor, e); }
};

__device__ __forceinline__ Wide operator+(const Wide& x, const Wide& y) {
  const int distance = x.e - y.e;
  const double large = distance >= 0 ? x.a : y.a, small = distance >= 0 ? y.a : x.a;
  return Wide::of(fma(small, power_of_two(-abs(distance)), large), max(x.e, y.e));
}

// A number in a unit, or one that has its own.
__device__ __forceinline__ Wide with_unit(double a, int unit) { return {a, unit}; }
__device__ __forceinline__ Wide with_unit(const Wide& x, int) { return x; }

__device__ __forceinline__ Wide shuffle_up(const Wide& x) { return {shuffle_up(x.a), __shfl_up_sync(kAllLanes, x.e, 1)}; }
// A number in memory, in 8 bytes for float32 problems and 16 for float64: either a float64 in a unit that is kept elsewhere,
// or a Wide, in the first case with a float32 fraction. The reader knows which.
template <typename T>
struct Slot;

template <>
struct Slot<float> {
  double word;

  __device__ __forceinline__ static Slot of(double a) { return {a}; }
  __device__ __forceinline__ static Slot of(const Wide& x) {
    return {__hiloint2double(x.e, __float_as_int(__double2float_rz(x.a)))};  // rounding up to 2 would leave [1, 2)
  }
  __device__ __forceinline__ double plain() const { return word; }
  __device__ __forceinline__ Wide wide() const {
    return Wide::of(__int_as_float(__double2loint(word)), __double2hiint(word));
  }
};

template <>
struct Slot<double> {
  double a, e;

  __device__ __forceinline__ static Slot of(double a) { return {a, 0}; }
  __device__ __forceinline__ static Slot of(const Wide& x) { return {x.a, static_cast<double>(x.e)}; }
  __device__ __forceinline__ double plain() const { return a; }
  __device__ __forceinline__ Wide wide() const { return Wide::of(a, static_cast<int>(e)); }
};

}  // namespace softdtw
