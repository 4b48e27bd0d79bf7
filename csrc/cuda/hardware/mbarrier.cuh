// How warps of a block wait for each other, through a barrier in shared memory.
#pragma once

#include "cuda/numbers/device_math.cuh"
#include "handoff.cuh"

namespace softdtw {

// Opens once for every phase, when kArrivals lanes have arrived; those who wait, wait for every phase in turn, so nobody can be
// two ahead.
template <int kArrivals>
struct Gate {
  unsigned long long word;

  __device__ __forceinline__ unsigned address() const { return static_cast<unsigned>(__cvta_generic_to_shared(&word)); }
#if __CUDA_ARCH__ >= 800
  __device__ __forceinline__ void start() {
    asm volatile("mbarrier.init.shared.b64 [%0], %1;" ::"r"(address()), "n"(kArrivals) : "memory");
  }
  // So that it can be started again.
  __device__ __forceinline__ void stop() { asm volatile("mbarrier.inval.shared.b64 [%0];" ::"r"(address()) : "memory"); }
  __device__ __forceinline__ void arrive() {
    asm volatile("{ .reg .b64 state; mbarrier.arrive.shared.b64 state, [%0]; }" ::"r"(address()) : "memory");
  }
  __device__ __forceinline__ bool is_open(int phase) const {
    unsigned open;
    asm volatile("{ .reg .pred p; mbarrier.test_wait.parity.shared.b64 p, [%1], %2; selp.u32 %0, 1, 0, p; }"
                 : "=r"(open)
                 : "r"(address()), "r"(phase & 1)
                 : "memory");
    return open != 0;
  }
#if __CUDA_ARCH__ >= 900
  // The same, after a while in which it might open.
  __device__ __forceinline__ bool opens(int phase) const {
    unsigned open;
    asm volatile("{ .reg .pred p; mbarrier.try_wait.parity.shared.b64 p, [%1], %2; selp.u32 %0, 1, 0, p; }"
                 : "=r"(open)
                 : "r"(address()), "r"(phase & 1)
                 : "memory");
    return open != 0;
  }
#else
  __device__ __forceinline__ bool opens(int phase) const { return is_open(phase); }
#endif
#else
  __device__ __forceinline__ void start() { word = 0; }
  __device__ __forceinline__ void stop() {}
  __device__ __forceinline__ void arrive() {
    __threadfence_block();
    atomicAdd(&word, 1ull);
  }
  __device__ __forceinline__ bool opens(int phase) const { return is_open(phase); }
  __device__ __forceinline__ bool is_open(int phase) const {
    return look_at<true>(&word) >= static_cast<unsigned long long>(phase + 1) * kArrivals;
  }
#endif
  // By a whole warp, without waiting.
  __device__ __forceinline__ bool is_open_to_all(int phase) const {
    if (!__any_sync(kAllLanes, is_open(phase))) return false;
    wait(phase);
    return true;
  }
  __device__ __forceinline__ void wait(int phase) const {
    while (!opens(phase)) {
    }
    __syncwarp();
  }
};

}  // namespace softdtw
