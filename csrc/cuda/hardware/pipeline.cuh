// A pipeline in shared memory, through which one warp of a block hands items to another, and the warps that carry items to and from
// other blocks.
#pragma once

#include "mbarrier.cuh"

namespace softdtw {

// Keeps in a register where an object of shared memory lies: the compiler would rather compute it again for every access.
template <typename T>
__device__ __forceinline__ T& pinned(T& object) {
  unsigned address = ptx::shared_address(&object);
  ptx::pin(address);
  T* const pointer = static_cast<T*>(__cvta_shared_to_generic(address));
  __builtin_assume(__isShared(pointer));
  return *pointer;
}

// Items count from 0. The writer fills every item in turn, kFillers of its lanes together. The reader takes every item in turn,
// and gives room back a batch at a time.
template <class Item, int kFillers = 1, unsigned kSlots = 16>
struct Pipeline {
  static constexpr unsigned kRoom = kSlots, kBatches = 2, kBatch = kSlots / kBatches;
  Item items[kSlots];
  Mbarrier<kFillers> committed[kSlots];
  Mbarrier<kWarp> released[kBatches];

  __device__ void start(int lane) {
    if (lane < static_cast<int>(kSlots)) committed[lane].start();
    if (lane < static_cast<int>(kBatches)) released[lane].start();
  }
  // By the writing warp, which counts the items that there has been room for so far, kSlots to begin with: waits for room for
  // all items below `end`.
  __device__ __forceinline__ void acquire(unsigned& room, unsigned end) const {
    for (; room < end; room += kBatch) released[room / kBatch % kBatches].wait(room / kSlots - 1);
  }
  // The same for a single item, without waiting, by a warp that asks for every item in turn.
  __device__ __forceinline__ bool can_acquire(unsigned item) const {
    if (item < kSlots) return true;
    return released[item / kBatch % kBatches].is_open_to_all(item / kSlots - 1);
  }
  __device__ __forceinline__ Item& slot(unsigned item) { return items[item % kSlots]; }
  __device__ __forceinline__ void commit(unsigned item) { committed[item % kSlots].arrive(); }

  // By the reading warp.
  __device__ __forceinline__ const Item& wait(unsigned item) const {
    committed[item % kSlots].wait(item / kSlots);
    return items[item % kSlots];
  }
  // The same, of which the lane has seen before that it is there, or not: lanes that differ in it meet behind the wait.
  __device__ __forceinline__ const Item& wait(unsigned item, bool is_there) const {
    while (!is_there) is_there = committed[item % kSlots].opens(item / kSlots);
    __syncwarp();
    return items[item % kSlots];
  }
  __device__ __forceinline__ bool is_there(unsigned item) const { return committed[item % kSlots].is_open(item / kSlots); }
  __device__ __forceinline__ bool is_filled(unsigned item) const { return __any_sync(kAllLanes, is_there(item)); }
  __device__ __forceinline__ void release(unsigned item) {
    if (item % kBatch == kBatch - 1) released[item / kBatch % kBatches].arrive();
  }
  // Releases items unread, up to `end`.
  __device__ __forceinline__ void release_until(unsigned& item, unsigned end) {
    for (; item < end; ++item) {
      wait(item);
      release(item);
    }
  }
};

constexpr int kHaloWarps = 2;  // warps of a block: one that carries in and one that carries out

// Carries a block's first items in, from the block before: `copy(item, to)`, by one lane.
template <class Item, class Copy>
__device__ void carry_in(Pipeline<Item>& pipeline, unsigned items, const Progress* progress, int lane, Copy&& copy) {
  Progress ready = 0;
  unsigned room = pipeline.kRoom;
  for (unsigned item = 0; item < items; ++item) {
    pipeline.acquire(room, item + 1);
    if (lane > 0) continue;
    while (ready <= item)
      if ((ready = look_at<false>(progress)) <= item) __nanosleep(20);
    copy(item, pipeline.slot(item));
    pipeline.commit(item);
  }
}

// Carries a block's last items out, `copy(from, item)`, by one lane, as many at a time as are there.
template <class Item, class Copy>
__device__ void carry_out(Pipeline<Item>& pipeline, unsigned items, Progress* progress, int lane, Copy&& copy) {
  for (unsigned item = 0; item < items;) {
    do {
      const Item& from = pipeline.wait(item);
      if (lane == 0) copy(from, item);
      pipeline.release(item++);
    } while (item < items && pipeline.is_filled(item));
    if (lane == 0) publish<false>(progress, item);
  }
}

}  // namespace softdtw
