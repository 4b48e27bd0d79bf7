// How warps of a block wait for each other, through a barrier in shared memory.
#pragma once

#include "cuda/numbers/device_math.cuh"
#include "handoff.cuh"

namespace softdtw {

// Opens once for every phase, when kArrivals lanes have arrived; those who wait, wait for every phase in turn, so nobody can be
// two ahead.
template <int kArrivals>
struct Mbarrier {
  unsigned long long word;

  __device__ __forceinline__ unsigned address() const { return ptx::shared_address(&word); }
#if __CUDA_ARCH__ >= 800
  __device__ __forceinline__ void start() { ptx::mbarrier_init<kArrivals>(address()); }
  // So that it can be started again.
  __device__ __forceinline__ void stop() { ptx::mbarrier_inval(address()); }
  __device__ __forceinline__ void arrive() { ptx::mbarrier_arrive(address()); }
  __device__ __forceinline__ bool is_open(int phase) const { return ptx::mbarrier_test_wait(address(), phase & 1); }
#if __CUDA_ARCH__ >= 900
  // The same, after a while in which it might open.
  __device__ __forceinline__ bool opens(int phase) const { return ptx::mbarrier_try_wait(address(), phase & 1); }
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
