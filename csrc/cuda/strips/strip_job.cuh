// What a warp is told of the strip that it sweeps: the pair, the edges, and whom it waits for.
#pragma once

#include "cuda/hardware/handoff.cuh"
#include "strip_memory.cuh"

namespace softdtw {

// Who watches a strip's progress: a warp of its block, a warp of another block, or nobody.
struct Watchers {
  Progress* own_word = nullptr;  // in shared memory
  Progress* far_word = nullptr;  // in global memory
  int round = 0;

  // Other blocks may be told less often than every chunk: that waits until all that the lane wrote is in L2.
  __device__ __forceinline__ void publish(Progress progress, bool to_others = true) const {
    if (own_word != nullptr) softdtw::publish<true>(own_word, progress);
    if (far_word != nullptr && to_others) softdtw::publish<false>(far_word, progress);
  }
};

// Whether other blocks are told of so many chunks done, where they are told less often.
__device__ __forceinline__ bool is_told(int done, int chunks) {
  constexpr int kTold = 4;
  return done % kTold == 0 || done == chunks;
}

template <class S>
struct ForwardStrip : Watchers {
  int64_t pair;
  int strip;
  Edges<S> edges;
  Neighbour producer;  // the strip above
};

struct BackwardStrip : Watchers {
  int64_t pair;
  int64_t row;  // of what flows between the pair's strips
  int strip;
  Neighbour producer;  // the strip below
};

// Brings a snapshot into L2, ahead of its use.
template <class S>
__device__ __forceinline__ void prefetch(const char* snapshot, int lane) {
  if (lane * 128 < Snapshot<S>::kBytes) ptx::prefetch_to_l2(snapshot + lane * 128);
}

// Dynamic shared memory: what backward keeps of a stage, a part of it for every warp.
extern __shared__ __align__(16) char stage_memory[];

}  // namespace softdtw
