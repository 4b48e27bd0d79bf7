// CUDA on top of machine.h: the types, functions and words of it that the package's device code uses.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <type_traits>

#include "machine.h"

#define __device__
#define __host__
#define __global__
#define __forceinline__ inline
#define __noinline__
#define __grid_constant__
#define __launch_bounds__(...)
#define __align__(bytes) __attribute__((aligned(bytes)))
#define __builtin_assume(condition)
#define emulation_architecture 900

template <class T>
struct alignas(4 * sizeof(T)) Four {
  T x, y, z, w;
};
template <class T>
struct alignas(2 * sizeof(T)) Two {
  T x, y;
};
using float4 = Four<float>;
using int4 = Four<int>;
using uint4 = Four<unsigned>;
using float2 = Two<float>;
using double2 = Two<double>;
using int2 = Two<int>;
using uint2 = Two<unsigned>;
inline int2 make_int2(int x, int y) { return {x, y}; }
inline float2 make_float2(float x, float y) { return {x, y}; }
inline double2 make_double2(double x, double y) { return {x, y}; }
inline float4 make_float4(float x, float y, float z, float w) { return {x, y, z, w}; }
inline int4 make_int4(int x, int y, int z, int w) { return {x, y, z, w}; }
inline uint4 make_uint4(unsigned x, unsigned y, unsigned z, unsigned w) { return {x, y, z, w}; }

namespace emulation {

template <class To, class From>
To bit_cast_to(From from) {
  To to{};
  std::memcpy(&to, &from, std::min(sizeof to, sizeof from));
  return to;
}

template <class T>
const uint64_t* meet(const char* function, T word) {
  return machine().meet(function, bit_cast_to<uint64_t>(word));
}

}  // namespace emulation

template <class T>
T __shfl_sync(unsigned, T value, int lane, int width = emulation::kLanes) {
  const int from = (emulation::machine().lane() & ~(width - 1)) + (lane & (width - 1));
  return emulation::bit_cast_to<T>(emulation::meet("shfl", value)[from]);
}
template <class T>
T __shfl_up_sync(unsigned lanes, T value, int by, int width = emulation::kLanes) {
  const int own = emulation::machine().lane();
  return __shfl_sync(lanes, value, own % width >= by ? own - by : own);
}
template <class T>
T __shfl_down_sync(unsigned lanes, T value, int by, int width = emulation::kLanes) {
  const int own = emulation::machine().lane();
  return __shfl_sync(lanes, value, own % width + by < width ? own + by : own);
}
template <class T>
T __shfl_xor_sync(unsigned lanes, T value, int with) {
  return __shfl_sync(lanes, value, emulation::machine().lane() ^ with);
}
inline unsigned __ballot_sync(unsigned, bool vote) {
  const uint64_t* const votes = emulation::meet("vote", static_cast<uint64_t>(vote));
  unsigned ballot = 0;
  for (int i = 0; i < emulation::kLanes; ++i) ballot |= static_cast<unsigned>(votes[i]) << i;
  return ballot;
}
inline bool __all_sync(unsigned lanes, bool vote) { return __ballot_sync(lanes, vote) == 0xffffffffu; }
inline bool __any_sync(unsigned lanes, bool vote) { return __ballot_sync(lanes, vote) != 0; }
inline void __syncwarp() { emulation::meet("syncwarp", 0); }
inline void __syncthreads() { emulation::machine().barrier(0, 0); }
template <class T>
T __reduce_max_sync(unsigned, T value) {
  const uint64_t* const values = emulation::meet("reduce", value);
  T most = emulation::bit_cast_to<T>(values[0]);
  for (int i = 1; i < emulation::kLanes; ++i) most = std::max(most, emulation::bit_cast_to<T>(values[i]));
  return most;
}
template <class T>
T __reduce_min_sync(unsigned, T value) {
  const uint64_t* const values = emulation::meet("reduce", value);
  T least = emulation::bit_cast_to<T>(values[0]);
  for (int i = 1; i < emulation::kLanes; ++i) least = std::min(least, emulation::bit_cast_to<T>(values[i]));
  return least;
}

inline unsigned __float_as_uint(float a) { return emulation::bit_cast_to<unsigned>(a); }
inline float __uint_as_float(unsigned a) { return emulation::bit_cast_to<float>(a); }
inline int __float_as_int(float a) { return emulation::bit_cast_to<int>(a); }
inline float __int_as_float(int a) { return emulation::bit_cast_to<float>(a); }
inline long long __double_as_longlong(double a) { return emulation::bit_cast_to<long long>(a); }
inline double __longlong_as_double(long long a) { return emulation::bit_cast_to<double>(a); }
inline double __hiloint2double(int high, int low) {
  return emulation::bit_cast_to<double>(
      static_cast<uint64_t>(static_cast<unsigned>(high)) << 32 | static_cast<unsigned>(low));
}
inline int __double2hiint(double a) { return static_cast<int>(emulation::bit_cast_to<uint64_t>(a) >> 32); }
inline int __double2loint(double a) { return static_cast<int>(emulation::bit_cast_to<uint64_t>(a)); }
inline long long __double2ll_rn(double a) { return std::llrint(a); }
inline int __double2int_rz(double a) {
  return std::isnan(a) ? INT32_MIN : static_cast<int>(std::min(std::max(a, -2147483648.0), 2147483647.0));
}
inline float __double2float_rz(double a) {
  const float nearest = static_cast<float>(a);
  return std::fabs(static_cast<double>(nearest)) > std::fabs(a) ? std::nextafter(nearest, 0.0f) : nearest;
}
inline unsigned __funnelshift_l(unsigned low, unsigned high, int by) {
  return static_cast<unsigned>((static_cast<uint64_t>(high) << 32 | low) << by >> 32);
}
// The kernels give these the bits of floats. A NaN that a GPU computes is the largest of them, the host's one of the smallest.
inline int bits_on_gpu(int bits) { return static_cast<unsigned>(bits) > 0xff800000u ? 0x7fffffff : bits; }
inline int __vimin3_s32(int a, int b, int c) { return std::min(bits_on_gpu(a), std::min(bits_on_gpu(b), bits_on_gpu(c))); }
inline int __viaddmax_s32(int a, int minus_b, int c) { return std::max(bits_on_gpu(a) - bits_on_gpu(-minus_b), c); }
inline int __viaddmin_s32(int a, int b, int c) { return std::min(bits_on_gpu(a) + b, bits_on_gpu(c)); }
inline int __popc(unsigned a) { return __builtin_popcount(a); }
inline int __ffs(int a) { return __builtin_ffs(a); }
inline int __clz(int a) { return a == 0 ? 32 : __builtin_clz(static_cast<unsigned>(a)); }

template <class T>
T __ldg(const T* address) {
  return *address;
}
template <class T>
T __ldcg(const T* address) {
  return *address;
}
template <class T>
T __ldcs(const T* address) {
  return *address;
}
inline void __nanosleep(int) { emulation::machine().yield(); }
inline void __threadfence_block() {}
inline void __threadfence() {}

// One thread at a time runs, so these are whole as they are.
template <class T, class Change>
T atomic(T* word, Change&& change) {
  const emulation::Unwatched unwatched;
  const T before = *word, after = change(before);
  if (before != after) emulation::machine().tell();
  return *word = after, before;
}
template <class T>
T atomicAdd(T* word, std::common_type_t<T> by) {
  return atomic(word, [&](T before) { return static_cast<T>(before + by); });
}
template <class T>
T atomicMax(T* word, std::common_type_t<T> other) {
  return atomic(word, [&](T before) { return std::max(before, other); });
}
template <class T>
T atomicExch(T* word, std::common_type_t<T> next) {
  return atomic(word, [&](T) { return next; });
}
template <class T>
T atomicCAS(T* word, std::common_type_t<T> expected, std::common_type_t<T> next) {
  return atomic(word, [&](T before) { return before == expected ? next : before; });
}

inline size_t __cvta_generic_to_shared(const void* address) {
  return static_cast<const char*>(address) - emulation::shared_memory;
}
inline void* __cvta_shared_to_generic(size_t address) { return emulation::shared_memory + address; }
inline bool __isShared(const void* address) { return __cvta_generic_to_shared(address) < sizeof emulation::shared_memory; }

// CUDA's, in the global namespace. Of two floating-point numbers one may be NaN, and the result is the other one.
template <class T>
T min(T a, T b) {
  return b < a ? b : a;
}
template <class T>
T max(T a, T b) {
  return a < b ? b : a;
}
inline float min(float a, float b) { return std::fmin(a, b); }
inline float max(float a, float b) { return std::fmax(a, b); }
inline float rsqrtf(float a) { return 1 / std::sqrt(a); }
inline double min(double a, double b) { return std::fmin(a, b); }
inline double max(double a, double b) { return std::fmax(a, b); }
inline int64_t min(int64_t a, int b) { return min(a, static_cast<int64_t>(b)); }
inline int64_t min(int a, int64_t b) { return min(static_cast<int64_t>(a), b); }
inline int64_t max(int64_t a, int b) { return max(a, static_cast<int64_t>(b)); }
inline int64_t max(int a, int64_t b) { return max(static_cast<int64_t>(a), b); }
inline unsigned min(unsigned a, int b) { return min(a, static_cast<unsigned>(b)); }
using std::abs;
using std::isfinite;
using std::isinf;
using std::isnan;
