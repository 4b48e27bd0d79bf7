// Float64 numbers put together by their bits.
#pragma once

#include "cuda/hardware/assembly.cuh"

namespace softdtw {

constexpr int kBias = 1023;
// 2^e; 0 and infinity out of range.
__device__ __forceinline__ double power_of_two(int e) {
  return __hiloint2double(min(max(e + kBias, 0), 2 * kBias + 1) << 20, 0);
}

// The float64 of a normal float32 in (0, 1], without the conversion unit, and as much more as `rest` says in units of 2^-29 of the
// float32's last place, and `lower` binary orders less, in place in the upper word. 0 becomes 2^-127.
__device__ __forceinline__ double widen(float a, unsigned rest = 0, int lower = 0) {
  const unsigned bits = __float_as_uint(a);
  return __hiloint2double((bits >> 3) + (static_cast<unsigned>((kBias - 127) << 20) - lower), (bits << 29) + rest);
}

}  // namespace softdtw
