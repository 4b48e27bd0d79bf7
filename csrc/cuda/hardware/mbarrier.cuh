// How warps of a block wait for each other, through a barrier in shared memory.
#pragma once

#include "handoff.cuh"

namespace softdtw {

// Opens once for every phase, when kArrivals lanes have arrived; those who wait, wait for every phase in turn, so nobody can be
// two ahead.
template <int kArrivals>
struct Mbarrier {
  unsigned long long word;

  __device__ __forceinline__ unsigned address() const { return ptx::shared_address(&word); }
  __device__ __forceinline__ void start() { ptx::mbarrier_init<kArrivals>(address()); }
  // So that it can be started again.
  __device__ __forceinline__ void stop() { ptx::mbarrier_inval(address()); }
  __device__ __forceinline__ void arrive() { ptx::mbarrier_arrive(address()); }
  __device__ __forceinline__ bool is_open(int phase) const { return ptx::mbarrier_test_wait(address(), phase & 1); }
  // The same, after a while in which it might open.
  __device__ __forceinline__ bool opens(int phase) const { return ptx::mbarrier_try_wait(address(), phase & 1); }
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
