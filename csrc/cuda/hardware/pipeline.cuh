// A ring in shared memory, through which one warp of a block hands items to another, and the warps that carry items to and from
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
struct Ring {
  static constexpr unsigned kRoom = kSlots, kBatches = 2, kBatch = kSlots / kBatches;
  Item items[kSlots];
  Gate<kFillers> filled[kSlots];
  Gate<kWarp> left[kBatches];

  __device__ void start(int lane) {
    if (lane < static_cast<int>(kSlots)) filled[lane].start();
    if (lane < static_cast<int>(kBatches)) left[lane].start();
  }
  // By the writing warp, which counts the items that there has been room for so far, kSlots to begin with: waits for room for
  // all items below `end`.
  __device__ __forceinline__ void make_room(unsigned& room, unsigned end) const {
    for (; room < end; room += kBatch) left[room / kBatch % kBatches].wait(room / kSlots - 1);
  }
  // The same for a single item, without waiting, by a warp that asks for every item in turn.
  __device__ __forceinline__ bool has_room(unsigned item) const {
    if (item < kSlots) return true;
    return left[item / kBatch % kBatches].is_open_to_all(item / kSlots - 1);
  }
  __device__ __forceinline__ Item& place(unsigned item) { return items[item % kSlots]; }
  __device__ __forceinline__ void fill(unsigned item) { filled[item % kSlots].arrive(); }

  // By the reading warp.
  __device__ __forceinline__ const Item& await(unsigned item) const {
    filled[item % kSlots].wait(item / kSlots);
    return items[item % kSlots];
  }
  // The same, of which the lane has seen before that it is there, or not: lanes that differ in it meet behind the wait.
  __device__ __forceinline__ const Item& await(unsigned item, bool is_there) const {
    while (!is_there) is_there = filled[item % kSlots].opens(item / kSlots);
    __syncwarp();
    return items[item % kSlots];
  }
  __device__ __forceinline__ bool is_there(unsigned item) const { return filled[item % kSlots].is_open(item / kSlots); }
  __device__ __forceinline__ bool is_filled(unsigned item) const { return __any_sync(kAllLanes, is_there(item)); }
  __device__ __forceinline__ void leave(unsigned item) {
    if (item % kBatch == kBatch - 1) left[item / kBatch % kBatches].arrive();
  }
  // Leaves items unread, up to `end`.
  __device__ __forceinline__ void skip(unsigned& item, unsigned end) {
    for (; item < end; ++item) {
      await(item);
      leave(item);
    }
  }
};

constexpr int kCarriers = 2;  // warps of a block: one that carries in and one that carries out

// Carries a block's first items in, from the block before: `copy(item, to)`, by one lane.
template <class Item, class Copy>
__device__ void carry_in(Ring<Item>& ring, unsigned items, const Progress* progress, int lane, Copy&& copy) {
  Progress ready = 0;
  unsigned room = ring.kRoom;
  for (unsigned item = 0; item < items; ++item) {
    ring.make_room(room, item + 1);
    if (lane > 0) continue;
    while (ready <= item)
      if ((ready = look_at<false>(progress)) <= item) __nanosleep(20);
    copy(item, ring.place(item));
    ring.fill(item);
  }
}

// Carries a block's last items out, `copy(from, item)`, by one lane, as many at a time as are there.
template <class Item, class Copy>
__device__ void carry_out(Ring<Item>& ring, unsigned items, Progress* progress, int lane, Copy&& copy) {
  for (unsigned item = 0; item < items;) {
    do {
      const Item& from = ring.await(item);
      if (lane == 0) copy(from, item);
      ring.leave(item++);
    } while (item < items && ring.is_filled(item));
    if (lane == 0) publish<false>(progress, item);
  }
}

}  // namespace softdtw
