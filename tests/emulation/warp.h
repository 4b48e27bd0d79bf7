// One warp of a CUDA kernel on the host: 32 lanes as coroutines that meet in every function of the whole warp. With it the device
// code of the strips runs where there is no GPU. Only what that code uses is here, and one warp at a time.
#pragma once

#include <setjmp.h>
#include <ucontext.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <vector>

#define __device__
#define __host__
#define __forceinline__ inline
#define __noinline__
#define __shared__ static

struct Index {
  int x, y;
};
inline Index threadIdx{0, 0}, blockDim{32, 1};

struct float4 {
  float x, y, z, w;
};
struct int4 {
  int x, y, z, w;
};
struct double2 {
  double x, y;
};
struct float2 {
  float x, y;
};
struct int2 {
  int x, y;
};
inline int2 make_int2(int x, int y) { return {x, y}; }
inline float2 make_float2(float x, float y) { return {x, y}; }
inline double2 make_double2(double x, double y) { return {x, y}; }
inline float4 make_float4(float x, float y, float z, float w) { return {x, y, z, w}; }
inline int4 make_int4(int x, int y, int z, int w) { return {x, y, z, w}; }

class Warp {
 public:
  static constexpr int kLanes = 32;

  static Warp& the_one() {
    static Warp warp;
    return warp;
  }
  // Runs a function in every lane, to its end.
  void run(std::function<void()> function) {
    function_ = std::move(function);
    for (int i = 0; i < kLanes; ++i) {
      stacks_[i].resize(1 << 18);
      state_[i] = kNew;
      turn_[i] = 0;
      getcontext(&starts_[i]);
      starts_[i].uc_stack.ss_sp = stacks_[i].data();
      starts_[i].uc_stack.ss_size = stacks_[i].size();
      makecontext(&starts_[i], enter, 0);
    }
    lane_ = threadIdx.x = 0;
    swapcontext(&caller_, &starts_[0]);
  }
  // Every lane brings a word; then each sees all of them. Two sets in turn: a lane may be one meeting ahead of another.
  const uint64_t* meet(uint64_t word) {
    uint64_t* const words = words_[turn_[lane_]];
    turn_[lane_] ^= 1;
    words[lane_] = word;
    if (_setjmp(places_[lane_]) == 0) pass_on();
    return words;
  }

 private:
  enum State { kNew, kUnderway, kDone };

  static void enter() {
    Warp& warp = the_one();
    warp.state_[warp.lane_] = kUnderway;
    warp.function_();
    warp.state_[warp.lane_] = kDone;
    if (warp.lane_ == kLanes - 1) setcontext(&warp.caller_);
    warp.pass_on();
  }
  // To the next lane: contexts begin, and jumps, which are cheaper, go on.
  void pass_on() {
    lane_ = threadIdx.x = (lane_ + 1) % kLanes;
    if (state_[lane_] == kNew) setcontext(&starts_[lane_]);
    if (state_[lane_] == kUnderway) _longjmp(places_[lane_], 1);
    std::fputs("a lane waits for one that has come to its end\n", stderr);
    std::abort();
  }

  ucontext_t caller_, starts_[kLanes];
  jmp_buf places_[kLanes];
  std::vector<char> stacks_[kLanes];
  State state_[kLanes];
  int lane_ = 0, turn_[kLanes];
  uint64_t words_[2][kLanes];
  std::function<void()> function_;
};

template <class To, class From>
To bit_cast_to(From from) {
  To to{};
  std::memcpy(&to, &from, std::min(sizeof to, sizeof from));
  return to;
}

template <class T>
T __shfl_sync(unsigned, T value, int lane, int width = Warp::kLanes) {
  const int from = (threadIdx.x & ~(width - 1)) + (lane & (width - 1));
  return bit_cast_to<T>(Warp::the_one().meet(bit_cast_to<uint64_t>(value))[from]);
}
template <class T>
T __shfl_up_sync(unsigned lanes, T value, int by, int width = Warp::kLanes) {
  const int own = threadIdx.x;
  return __shfl_sync(lanes, value, own % width >= by ? own - by : own);
}
template <class T>
T __shfl_down_sync(unsigned lanes, T value, int by, int width = Warp::kLanes) {
  const int own = threadIdx.x;
  return __shfl_sync(lanes, value, own % width + by < width ? own + by : own);
}
template <class T>
T __shfl_xor_sync(unsigned lanes, T value, int with) {
  return __shfl_sync(lanes, value, threadIdx.x ^ with);
}
inline unsigned __ballot_sync(unsigned, bool vote) {
  const uint64_t* const votes = Warp::the_one().meet(vote);
  unsigned ballot = 0;
  for (int i = 0; i < Warp::kLanes; ++i) ballot |= static_cast<unsigned>(votes[i]) << i;
  return ballot;
}
inline bool __all_sync(unsigned lanes, bool vote) { return __ballot_sync(lanes, vote) == 0xffffffffu; }
inline bool __any_sync(unsigned lanes, bool vote) { return __ballot_sync(lanes, vote) != 0; }
inline void __syncwarp() { Warp::the_one().meet(0); }

inline unsigned __float_as_uint(float a) { return bit_cast_to<unsigned>(a); }
inline float __uint_as_float(unsigned a) { return bit_cast_to<float>(a); }
inline int __float_as_int(float a) { return bit_cast_to<int>(a); }
inline float __int_as_float(int a) { return bit_cast_to<float>(a); }
inline long long __double_as_longlong(double a) { return bit_cast_to<long long>(a); }
inline double __longlong_as_double(long long a) { return bit_cast_to<double>(a); }
inline double __hiloint2double(int high, int low) {
  return bit_cast_to<double>(static_cast<uint64_t>(static_cast<unsigned>(high)) << 32 | static_cast<unsigned>(low));
}
inline int __double2hiint(double a) { return static_cast<int>(bit_cast_to<uint64_t>(a) >> 32); }
inline int __double2loint(double a) { return static_cast<int>(bit_cast_to<uint64_t>(a)); }
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
inline int __vimin3_s32(int a, int b, int c) { return std::min(a, std::min(b, c)); }
inline int __viaddmax_s32(int a, int b, int c) { return std::max(a + b, c); }
inline int __popc(unsigned a) { return __builtin_popcount(a); }
inline int __clz(int a) { return a == 0 ? 32 : __builtin_clz(static_cast<unsigned>(a)); }
template <class T>
T __ldcg(const T* address) {
  return *address;
}
template <class T>
T __ldcs(const T* address) {
  return *address;
}
inline void __nanosleep(int) {
  std::fputs("a warp waits for another one, and there is none\n", stderr);
  std::abort();
}
inline void __pipeline_memcpy_async(void* to, const void* from, size_t bytes) { std::memcpy(to, from, bytes); }
inline void __pipeline_commit() {}
inline void __pipeline_wait_prior(int) {}

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
inline double min(double a, double b) { return std::fmin(a, b); }
inline double max(double a, double b) { return std::fmax(a, b); }
inline int64_t min(int64_t a, int b) { return min(a, static_cast<int64_t>(b)); }
inline int64_t min(int a, int64_t b) { return min(static_cast<int64_t>(a), b); }
inline unsigned min(unsigned a, int b) { return min(a, static_cast<unsigned>(b)); }
using std::abs;
using std::isfinite;

inline bool is_patient = false;  // see strips.cpp
inline int stages_left_out = 0;  // so far, by the robust engine's backward pass
