// 32 lanes of one warp as coroutines on the host.
#pragma once
#include <ucontext.h>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <cstdlib>
#include <vector>
#include <algorithm>
#include <functional>
#define __device__
#define __host__
#define __global__
#define __forceinline__ inline
#define __grid_constant__
#define __launch_bounds__(...)
#define __shared__ static
struct dim3_ { int x, y; };
inline dim3_ threadIdx{0, 0}, blockIdx{0, 0}, blockDim{32, 1};
struct float4 { float x, y, z, w; };
struct double2 { double x, y; };
struct int2 { int x, y; };
struct int4 { int x, y, z, w; };
inline int2 make_int2(int a, int b) { return {a, b}; }
struct Warp {
  ucontext_t main, lane[32];
  std::vector<char> stacks[32];
  bool done[32];
  int current = 0;
  uint64_t slots[2][32];
  int parity[32];
  std::function<void()> body;
  static Warp& get() { static Warp w; return w; }
  static void entry() { Warp& w = get(); w.body(); w.done[w.current] = true; swapcontext(&w.lane[w.current], &w.main); }
  void run(std::function<void()> f) {
    body = f;
    for (int l = 0; l < 32; ++l) {
      stacks[l].resize(1 << 18); done[l] = false; parity[l] = 0;
      getcontext(&lane[l]); lane[l].uc_stack.ss_sp = stacks[l].data(); lane[l].uc_stack.ss_size = stacks[l].size(); lane[l].uc_link = nullptr;
      makecontext(&lane[l], entry, 0);
    }
    bool any = true;
    while (any) {
      any = false;
      for (int l = 0; l < 32; ++l) if (!done[l]) { current = l; threadIdx.x = l; swapcontext(&main, &lane[l]); any = any || !done[l]; }
    }
  }
  void sync() { swapcontext(&lane[current], &main); }
  uint64_t exchange(uint64_t v, std::function<uint64_t(uint64_t*)> f) {
    const int p = parity[current]; parity[current] ^= 1;
    slots[p][current] = v; sync(); return f(slots[p]);
  }
};
template <class T> uint64_t bits_(T v) { uint64_t b = 0; memcpy(&b, &v, sizeof v); return b; }
template <class T> T from_(uint64_t b) { T v; memcpy(&v, &b, sizeof v); return v; }
template <class T> T __shfl_sync(unsigned, T v, int src) { return from_<T>(Warp::get().exchange(bits_(v), [=](uint64_t* s) { return s[src & 31]; })); }
template <class T> T __shfl_up_sync(unsigned, T v, int d) { int l = threadIdx.x; return from_<T>(Warp::get().exchange(bits_(v), [=](uint64_t* s) { return s[l >= d ? l - d : l]; })); }
template <class T> T __shfl_down_sync(unsigned, T v, int d) { int l = threadIdx.x; return from_<T>(Warp::get().exchange(bits_(v), [=](uint64_t* s) { return s[l + d < 32 ? l + d : l]; })); }
inline unsigned __ballot_sync(unsigned, bool v) { return (unsigned)Warp::get().exchange(v, [](uint64_t* s) { unsigned r = 0; for (int i = 0; i < 32; ++i) r |= (unsigned)(s[i] & 1) << i; return (uint64_t)r; }); }
inline bool __all_sync(unsigned m, bool v) { return __ballot_sync(m, v) == 0xffffffffu; }
inline bool __any_sync(unsigned m, bool v) { return __ballot_sync(m, v) != 0; }
inline void __syncwarp() { Warp::get().exchange(0, [](uint64_t*) { return (uint64_t)0; }); }
inline void __syncthreads() { __syncwarp(); }
inline unsigned __float_as_uint(float a) { return from_<unsigned>(bits_(a)); }
inline float __uint_as_float(unsigned a) { return from_<float>(bits_(a)); }
inline int __float_as_int(float a) { return from_<int>(bits_(a)); }
inline float __int_as_float(int a) { return from_<float>(bits_(a)); }
inline double __hiloint2double(int h, int l) { return from_<double>((uint64_t)(unsigned)h << 32 | (unsigned)l); }
inline int __double2hiint(double a) { return (int)(bits_(a) >> 32); }
inline int __double2loint(double a) { return (int)bits_(a); }
inline long long __double_as_longlong(double a) { return from_<long long>(bits_(a)); }
inline double __longlong_as_double(long long a) { return from_<double>(bits_(a)); }
inline long long __double2ll_rn(double a) { return llrint(a); }
inline int __double2int_rz(double a) { return std::isnan(a) ? INT32_MIN : a <= -2147483648.0 ? INT32_MIN : a >= 2147483647.0 ? INT32_MAX : (int)a; }
inline float __double2float_rz(double a) { float f = (float)a; if (std::fabs((double)f) > std::fabs(a)) f = std::nextafterf(f, 0.f); return f; }
inline unsigned __funnelshift_l(unsigned lo, unsigned hi, int s) { return (unsigned)((((uint64_t)hi << 32 | lo) << s) >> 32); }
inline int __clz(int a) { return a == 0 ? 32 : __builtin_clz((unsigned)a); }
inline int __popc(unsigned a) { return __builtin_popcount(a); }
template <class T> T __ldcg(const T* a) { return *a; }
template <class T> T __ldcs(const T* a) { return *a; }
template <class T> T atomicAdd(T* a, T b) { T o = *a; *a += b; return o; }
inline void __nanosleep(int) { fprintf(stderr, "waits\n"); abort(); }
#define MM(T) inline T min(T a, T b) { return b < a ? b : a; } inline T max(T a, T b) { return a < b ? b : a; }
MM(int) MM(unsigned) MM(long) MM(float) MM(double)
inline double min(float a, double b) { return std::fmin(a, b); }
inline int min(int a, unsigned b) { return min(a, (int)b); }
inline int max(int a, unsigned b) { return (int)max((unsigned)a, b); }
inline unsigned max(unsigned a, int b) { return max(a, (unsigned)b); }
inline size_t __cvta_generic_to_shared(const void* a) { return (size_t)a; }
using std::isfinite; using std::abs;
typedef int cudaError_t; typedef int cudaStream_t;
enum { cudaSuccess = 0 };
inline void __pipeline_memcpy_async(void* to, const void* from, size_t n) { memcpy(to, from, n); }
inline void __pipeline_commit() {}
inline void __pipeline_wait_prior(int) {}
