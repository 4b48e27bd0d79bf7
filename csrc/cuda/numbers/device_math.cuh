// Device arithmetic for the recurrence (recurrence.h): the hardware's approximations in float32, full precision in float64.
#pragma once

#include "core/recurrence.h"
#include "cuda/hardware/assembly.cuh"

namespace softdtw {

template <typename T>
struct DeviceMath;

template <>
struct DeviceMath<float> {
  using V = float;
  __device__ static __forceinline__ float exp2(float a) { return ptx::ex2_approx(a); }
  __device__ static __forceinline__ float exp2_of_fraction(float a) { return exp2(a); }
  __device__ static __forceinline__ float power(float whole) { return exp2(whole); }
  __device__ static __forceinline__ float log2(float a) { return ptx::lg2_approx(a); }
  __device__ static __forceinline__ float rough_reciprocal(float a) { return ptx::rcp_approx(a); }
  // One Newton step after the approximation.
  __device__ static __forceinline__ float reciprocal(float a) {
    const float r = rough_reciprocal(a);
    return fmaf(fmaf(-a, r, 1.0f), r, r);
  }
  __device__ static __forceinline__ float quotient(float a, float b) { return a * reciprocal(b); }
  // Quotients, whose remainders make good what the approximation is off by.
  __device__ static __forceinline__ Weights<float> divide(float a, float b, float by) {
    const float inverse = rough_reciprocal(by), x = a * inverse, y = b * inverse;
    return {fmaf(fmaf(-x, by, a), inverse, x), fmaf(fmaf(-y, by, b), inverse, y)};
  }
  __device__ static __forceinline__ float sqrt(float a) { return ptx::sqrt_approx(a); }
  __device__ static __forceinline__ float round(float a) { return rintf(a); }
  __device__ static __forceinline__ float min(float a, float b) { return fminf(a, b); }
  __device__ static __forceinline__ float max(float a, float b) { return fmaxf(a, b); }
  __device__ static __forceinline__ float abs(float a) { return fabsf(a); }
  __device__ static __forceinline__ float fma(float a, float b, float c) { return fmaf(a, b, c); }
};

template <>
struct DeviceMath<double> {
  using V = double;
  // The polynomial whose greatest relative error in [-1/2, 1/2] is least, 3e-18: half of what exp2() takes.
  __device__ static __forceinline__ double exp2_of_fraction(double a) {
    constexpr double kCoefficients[] = {4.435282706957277e-10, 7.074105613508143e-09,  1.0178198021671931e-07,
                                        1.32154330896764e-06,  1.5252733489988525e-05, 1.5403530462514432e-4,
                                        1.3333558146789923e-3, 9.618129107588335e-3,   5.5504108664819925e-2,
                                        0.24022650695910155,   0.6931471805599453,     1.0};
    double result = kCoefficients[0];
#pragma unroll
    for (int i = 1; i < 12; ++i) result = ::fma(result, a, kCoefficients[i]);
    return result;
  }
  // By its bits; 0 below 2^-1022, and NaN passes on.
  __device__ static __forceinline__ double power(double whole) {
    const double result = __hiloint2double(::max(__double2int_rz(whole) + 1023, 0) << 20, 0);
    return whole == whole ? result : whole;
  }
  __device__ static __forceinline__ double reciprocal(double a) { return 1.0 / a; }
  __device__ static __forceinline__ double quotient(double a, double b) { return a * reciprocal(b); }
  __device__ static __forceinline__ Weights<double> divide(double a, double b, double by) {
    const double inverse = 1.0 / by;
    return {a * inverse, b * inverse};
  }
  __device__ static __forceinline__ double sqrt(double a) { return ::sqrt(a); }
  __device__ static __forceinline__ double round(double a) { return rint(a); }
  __device__ static __forceinline__ double min(double a, double b) { return fmin(a, b); }
  __device__ static __forceinline__ double max(double a, double b) { return fmax(a, b); }
  __device__ static __forceinline__ double abs(double a) { return fabs(a); }
  __device__ static __forceinline__ double fma(double a, double b, double c) { return ::fma(a, b, c); }
};

// The lesser and the greater of two numbers; NaN if one is NaN.
__device__ __forceinline__ float lesser(float a, float b) {
#if __CUDA_ARCH__ >= 800
  return ptx::min_nan(a, b);
#else
  return a <= b || a != a ? a : b;
#endif
}
__device__ __forceinline__ float greater(float a, float b) {
#if __CUDA_ARCH__ >= 800
  return ptx::max_nan(a, b);
#else
  return a >= b || a != a ? a : b;
#endif
}

__device__ __forceinline__ double lesser(double a, double b) { return a <= b || a != a ? a : b; }
__device__ __forceinline__ double greater(double a, double b) { return a >= b || a != a ? a : b; }

// The smallest m that no longer counts as reached by a path.
template <typename T>
__device__ __forceinline__ bool is_unreachable(T m) {
  return m >= Unreachable<T>::value * T(0.5);
}

// m in another type.
template <typename To, typename From>
__device__ __forceinline__ To convert_m(From m) {
  return is_unreachable(m) ? Unreachable<To>::value : static_cast<To>(m);
}

// Brings s back to [1, 2). A NaN or inf of s makes m NaN.
template <typename M>
__device__ __forceinline__ void normalise(Entry<float, M>& entry) {
  const unsigned bits = __float_as_uint(entry.s);
  const float exponent = __uint_as_float(bits >> 23 | 0x4b000000u) - (8388608.0f + 127.0f);
  entry.m -= exponent + (entry.s - entry.s);
  entry.s = __uint_as_float((bits & 0x007fffffu) | 0x3f800000u);
}

__device__ __forceinline__ void normalise(Entry<double>& entry) {
  const long long bits = __double_as_longlong(entry.s);
  entry.m -= static_cast<double>(static_cast<int>(bits >> 52) - 1023) + (entry.s - entry.s);
  entry.s = __longlong_as_double((bits & 0x000fffffffffffffll) | 0x3ff0000000000000ll);
}

}  // namespace softdtw
