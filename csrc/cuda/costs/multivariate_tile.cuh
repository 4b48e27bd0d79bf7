// The sweeps' side of a ring of costs (multivariate_channel.cuh): a tile of costs that other warps have computed.
#pragma once

#include "cuda/hardware/pipeline.cuh"
#include "cuda/kernels/multivariate/multivariate_channel.cuh"

namespace softdtw {

// The chunks that a strip sweeps.
template <bool kBackward>
__device__ __forceinline__ int chunks_of(const Surroundings<ProductShape>& around, bool keeps) {
  return around.is_last && (kBackward || !keeps) ? around.end_chunk + 1 : around.strip.chunks;
}

template <class Ring_, bool kBackward>
struct ProductTile {
  using S = ProductShape;
  using T = float;
  using Ring = Ring_;
  static constexpr bool kUnivariate = false;
  Ring& ring;
  const int lane, first_column;
  int top = 0, awaited = 0;  // the first batch to be filled, and the next one to wait for
  float costs[S::kRows][S::kSteps], reach = 0;

  __device__ ProductTile(const Strip<S>& strip, int lane_, Ring& ring_, int last_chunk = 0)
      : ring(pinned(ring_)), lane(lane_), first_column(strip.first_column) {
    if (kBackward) top = awaited = last_chunk / kBatchGroups;
  }
  __device__ __forceinline__ void fetch(const Place<S>&) {}
  // Waits for the costs of a chunk; by the whole warp, for all chunks in turn.
  __device__ __forceinline__ void await(int chunk) {
    if (kBackward) {
#pragma unroll 1
      for (; awaited >= (chunk - S::kSkewChunks) >> 1; --awaited)
        ring.filled[Ring::slot(awaited)].wait((top - awaited) / Ring::kBatches);
    } else {
#pragma unroll 1
      for (; awaited <= chunk / kBatchGroups; ++awaited) ring.filled[Ring::slot(awaited)].wait(awaited / Ring::kBatches);
    }
  }
  __device__ __forceinline__ void read(const ChunkInRing<Ring>& cells) {
#pragma unroll
    for (int t = 0; t < S::kSteps; ++t) {
      const auto two = cells.two_rows(ring, t);
      costs[0][t] = two.x;
      costs[1][t] = two.y;
    }
  }
  __device__ __forceinline__ float reach_of(const ChunkInRing<Ring>& cells) const {
    return greater(ring.reach_of(cells.column(0)), ring.reach_of(cells.column(S::kSteps - 1)));
  }
  __device__ __forceinline__ void use(const Place<S>& place) {
    const int chunk = (place.column + lane - first_column) / S::kSteps;
    await(chunk);
    const ChunkInRing<Ring> cells(chunk, lane);
    read(cells);
    reach = reach_of(cells);
    if (!kBackward && chunk % kBatchGroups == kBatchGroups - 1) ring.released[Ring::slot(chunk / kBatchGroups)].arrive();
  }
  __device__ __forceinline__ float cost(int k, int t) const { return costs[k][t]; }
};

}  // namespace softdtw
