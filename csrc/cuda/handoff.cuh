// How warps hand a strip's edge to each other inside one launch: a progress word that only its owner writes.
//
// A word holds a round (which strip of its owner) and the chunks of it that are done; it only grows. The lane that wrote the
// data publishes, the lane that reads the data waits, so release and acquire order exactly those accesses. Waiting cannot
// deadlock: a warp waits only for warps of its own block or for blocks that took an earlier ticket, which are running.
#pragma once

#include <cstdint>

namespace softdtw {

using Progress = unsigned long long;

// What a warp publishes that gives its pair up: whoever waits for it gives up too.
constexpr Progress kAborted = ~Progress{0};

__device__ __forceinline__ Progress progress_of(int round, int chunks) {
  return (static_cast<Progress>(round) << 32) | static_cast<unsigned>(chunks);
}

__device__ __forceinline__ void publish(Progress* word, Progress progress) {
  asm volatile("{ .reg .b64 before; atom.release.gpu.exch.b64 before, [%0], %1; }" ::"l"(word), "l"(progress) : "memory");
}

// Words in shared memory are polled with atomics too, so that racecheck can tell them from unordered accesses.
// Returns false for a word that says kAborted.
__device__ __forceinline__ bool wait_for(const Progress* word, Progress progress) {
  const bool is_shared = __isShared(word);
  while (true) {
    Progress seen;
    if (is_shared)
      asm volatile("atom.acquire.gpu.or.b64 %0, [%1], 0;" : "=l"(seen) : "l"(word) : "memory");
    else
      asm volatile("ld.acquire.gpu.u64 %0, [%1];" : "=l"(seen) : "l"(word) : "memory");
    if (seen >= progress) return seen != kAborted;
    __nanosleep(40);
  }
}

// One neighbour of a strip in the order of the sweep.
struct Neighbour {
  Progress* word = nullptr;  // null: none, or the same warp, whose program order is enough
  int round = 0;

  __device__ __forceinline__ bool wait(int chunks) const {
    return word == nullptr || wait_for(word, progress_of(round, chunks));
  }
};

}  // namespace softdtw
