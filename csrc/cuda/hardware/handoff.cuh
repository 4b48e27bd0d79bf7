// How warps hand a strip's edge to each other inside one launch: a progress word that only its owner writes.
//
// A word holds a round (which strip of its owner) and the chunks of it that are done; it only grows. The lane that wrote the
// data publishes, the lane that reads the data waits, so release and acquire order exactly those accesses. Waiting cannot
// deadlock: a warp waits only for warps of its own block or for blocks that took an earlier ticket, which are running.
#pragma once

#include <cstdint>

#include "assembly.cuh"

namespace softdtw {

using Progress = unsigned long long;

// What a warp publishes that gives its pair up: whoever waits for it gives up too.
constexpr Progress kAborted = ~Progress{0};

__device__ __forceinline__ Progress progress_of(int round, int chunks) {
  return (static_cast<Progress>(round) << 32) | static_cast<unsigned>(chunks);
}

// kNear: to warps of the same block, through a word in shared memory.
template <bool kNear>
__device__ __forceinline__ void publish(Progress* word, Progress progress) {
  if (kNear)
    ptx::store_release_block(ptx::shared_address(word), progress);
  else
    ptx::store_release_gpu(word, progress);
}

template <bool kNear>
__device__ __forceinline__ Progress look_at(const Progress* word) {
  if (kNear) return ptx::load_acquire_block(ptx::shared_address(word));
  return ptx::load_acquire_gpu(word);
}

// One neighbour of a strip in the order of the sweep, in the same block or in another.
struct Neighbour {
  const Progress* near_word = nullptr;
  const Progress* far_word = nullptr;  // neither: none, or the same warp, whose program order is enough
  int round = 0;

  __device__ __forceinline__ bool is_near() const { return far_word == nullptr; }
  // Until the neighbour has done so many chunks. Returns false for one that has given its pair up.
  __device__ __forceinline__ bool wait(int chunks) const {
    const Progress wanted = progress_of(round, chunks);
    Progress seen = wanted;
    if (near_word != nullptr)
      while ((seen = look_at<true>(near_word)) < wanted) __nanosleep(20);
    if (far_word != nullptr)
      while ((seen = look_at<false>(far_word)) < wanted) __nanosleep(20);
    return seen != kAborted;
  }
  // Whether the neighbour has done so many chunks, without waiting for it. `seen` is what the calling lane has seen so far of
  // it: what was acquired once need not be looked at again.
  __device__ __forceinline__ bool has_done(int chunks, Progress& seen) const {
    const Progress wanted = progress_of(round, chunks);
    if (seen < wanted)
      seen = near_word != nullptr ? look_at<true>(near_word) : far_word != nullptr ? look_at<false>(far_word) : wanted;
    return seen >= wanted;
  }
};

// A group of numbers that one lane moves, 16 bytes at a time; `address` is aligned to a group. What another multiprocessor may
// have written in the same launch (not `near`) is loaded past L1, which such writes do not reach.
template <typename T>
__device__ __forceinline__ T load(const T* address, bool near) {
  return near ? *address : __ldcg(address);
}

template <int kCount>
__device__ __forceinline__ void load_group(const float* address, bool near, float (&group)[kCount]) {
#pragma unroll
  for (int i = 0; i < kCount / 4; ++i) {
    const float4 four = load(reinterpret_cast<const float4*>(address) + i, near);
    group[4 * i] = four.x, group[4 * i + 1] = four.y, group[4 * i + 2] = four.z, group[4 * i + 3] = four.w;
  }
}

template <int kCount>
__device__ __forceinline__ void store_group(float* address, const float (&group)[kCount]) {
#pragma unroll
  for (int i = 0; i < kCount / 4; ++i)
    reinterpret_cast<float4*>(address)[i] = make_float4(group[4 * i], group[4 * i + 1], group[4 * i + 2], group[4 * i + 3]);
}

template <int kCount>
__device__ __forceinline__ void load_group(const double* address, bool near, double (&group)[kCount]) {
#pragma unroll
  for (int i = 0; i < kCount / 2; ++i) {
    const double2 two = load(reinterpret_cast<const double2*>(address) + i, near);
    group[2 * i] = two.x, group[2 * i + 1] = two.y;
  }
}

}  // namespace softdtw
