// What a warp reads of the strips above and below, fetched ahead: copies to shared memory that run while the warp sweeps. For
// edges and flows one lane waits for the neighbour, then copies, then reads, so what it acquired orders the copy, and its own
// wait for the copy the reading.
#pragma once

#include <cuda_pipeline_primitives.h>

#include "cuda/hardware/handoff.cuh"
#include "strip_memory.cuh"

namespace softdtw {

// A group of numbers, 16 bytes at a time, past L1.
template <int kCount, typename T>
__device__ __forceinline__ void copy_group(T* to, const T* from) {
  constexpr int kAtOnce = 16 / sizeof(T);
#pragma unroll
  for (int i = 0; i < kCount; i += kAtOnce) __pipeline_memcpy_async(to + i, from + i, 16);
}

// A group of the edge above.
template <class S>
struct alignas(16) EdgeSlot {
  typename S::Scalar entries[2 * S::kSteps];
  double reference;
};

// A group of what flows up from the strip below, and of the sums of dy that come with it.
template <class S>
struct alignas(16) FlowSlot {
  typename S::Scalar flows[S::kSteps], sums[S::kSteps];
};

// Two slots in turn: one is read while the other is filled. What is fetched must be read.
template <class Slot>
struct AsyncPrefetch {
  Slot* slot;      // the one fetched last
  int held = -1;   // what it holds
  int offset = 1;  // to the other one

  __device__ AsyncPrefetch(Slot (&slots)[2]) : slot(&slots[0]) {}
  __device__ __forceinline__ bool holds(int item) const { return held == item; }
  // The slot to be filled with an item.
  __device__ __forceinline__ Slot& next(int item) {
    slot += offset;
    offset = -offset;
    held = item;
    return *slot;
  }
  __device__ __forceinline__ const Slot& read() const {
    __pipeline_wait_prior(0);
    return *slot;
  }
};

// A snapshot, by the whole warp.
template <class S>
__device__ __forceinline__ void copy_snapshot(char* to, const char* from, int lane) {
#pragma unroll
  for (int at = 16 * lane; at < Snapshot<S>::kBytes; at += 16 * kWarp) __pipeline_memcpy_async(to + at, from + at, 16);
  __pipeline_commit();
}

// A group of the edge above is complete when the strip above has done so many chunks.
template <class S>
__device__ __forceinline__ int done_at(int group) {
  return group + S::kSkewChunks + 1;
}

// The edge above, by the lane that reads it group by group: each is on its way while the warp sweeps, if the strip above has done it
// by then.
template <class S, class Slot>
struct EdgeAhead {
  AsyncPrefetch<Slot> prefetched;
  Progress seen = 0;

  __device__ EdgeAhead(Slot (&slots)[2]) : prefetched(slots) {}
  __device__ __forceinline__ void fetch(const Edge<S>& edge, int group) {
    using T = typename S::Scalar;
    Slot& slot = prefetched.next(group);
    copy_group<sizeof(slot.entries) / sizeof(T)>(slot.entries, edge.group(group));
    __pipeline_memcpy_async(&slot.reference, edge.references + group, sizeof(double));
    __pipeline_commit();
  }
  template <class Top>
  __device__ __forceinline__ void take(const Edge<S>& edge, const Neighbour& producer, int group, int groups, Top& top) {
    if (!prefetched.holds(group)) {
      while (!producer.has_done(done_at<S>(group), seen)) __nanosleep(20);
      fetch(edge, group);
    }
    top.read(prefetched.read());
    if (group + 1 < groups && producer.has_done(done_at<S>(group + 1), seen)) fetch(edge, group + 1);
  }
};

}  // namespace softdtw
