// An entry of the extended range in the 8 bytes that edges and snapshots have for one.
#pragma once

namespace softdtw {

// An entry s 2^-m of the general sweep in the 8 bytes of one of float32, where m is beyond what the plain sweep's holds: m in 47
// bits, 16 bits of s, and the sign, which others do not have. m is a whole number of 46 bits, or, beyond those, the upper 46
// bits of a float64.
struct PackedEntry {
  unsigned low, high;

  static constexpr double kLimit = 35184372088832.0;  // 2^45
  static constexpr unsigned long long kIsFloat = 1ull << 46, kMask = kIsFloat - 1;

  __device__ __forceinline__ static PackedEntry of(double m, float s) {
    const unsigned long long bits = fabs(m) < kLimit
                                        ? static_cast<unsigned long long>(__double2ll_rn(m)) & kMask
                                        : static_cast<unsigned long long>(__double_as_longlong(m)) >> 18 | kIsFloat;
    const unsigned fraction = min(((__float_as_uint(s) & 0x007fffffu) + 64) >> 7, 0xffffu);
    return {static_cast<unsigned>(bits), 0x80000000u | fraction << 15 | static_cast<unsigned>(bits >> 32)};
  }
  __device__ __forceinline__ double m() const {
    const unsigned long long bits = static_cast<unsigned long long>(high & 0x7fffu) << 32 | low;
    return bits & kIsFloat ? __longlong_as_double(static_cast<long long>(bits << 18))
                           : static_cast<double>(static_cast<long long>(bits << 18) >> 18);
  }
  __device__ __forceinline__ float s() const { return __uint_as_float(0x3f800000u | (high >> 15 & 0xffffu) << 7); }
  __device__ __forceinline__ bool exists() const { return high >> 31; }
};

}  // namespace softdtw
