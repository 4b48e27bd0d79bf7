// The sweeps' side of a pipeline of costs (multivariate_channel.cuh): a tile of costs that other warps have computed.
#pragma once

#include "cuda/costs/cost_pipeline.cuh"
#include "cuda/costs/tile.cuh"
#include "cuda/hardware/pipeline.cuh"

namespace softdtw {

// The chunks that a strip sweeps.
template <bool kBackward>
__device__ __forceinline__ int chunks_of(const Surroundings<MultivariateShape>& around, bool keeps) {
  return around.is_last && (kBackward || !keeps) ? around.end_chunk + 1 : around.strip.chunks;
}

// kMarked: the sign of a cost is a mark (ManyCosts).
template <class Pipeline_, bool kBackward, bool kMarked = false>
struct MultivariateTile {
  using S = MultivariateShape;
  using T = float;
  using Pipeline = Pipeline_;
  static constexpr bool kUnivariate = false;
  Pipeline& pipeline;
  const int lane, first_column;
  int top = 0, awaited = 0;  // the first batch to be filled, and the next one to wait for
  float costs[S::kRows][S::kSteps], reach = 0;

  __device__ MultivariateTile(const Strip<S>& strip, int lane_, Pipeline& pipeline_, int last_chunk = 0)
      : pipeline(pinned(pipeline_)), lane(lane_), first_column(strip.first_column) {
    if (kBackward) top = awaited = last_chunk / kBatchGroups;
  }
  __device__ __forceinline__ void fetch(const Place<S>&) {}
  // Waits for the costs of a chunk; by the whole warp, for all chunks in turn.
  __device__ __forceinline__ void wait(int chunk) {
    if (kBackward) {
#pragma unroll 1
      for (; awaited >= (chunk - S::kSkewChunks) >> 1; --awaited)
        pipeline.filled[Pipeline::slot(awaited)].wait((top - awaited) / Pipeline::kBatches);
    } else {
#pragma unroll 1
      for (; awaited <= chunk / kBatchGroups; ++awaited)
        pipeline.filled[Pipeline::slot(awaited)].wait(awaited / Pipeline::kBatches);
    }
  }
  __device__ __forceinline__ void read(const ChunkInPipeline<Pipeline>& cells) {
#pragma unroll
    for (int t = 0; t < S::kSteps; ++t) {
      const auto two = cells.two_rows(pipeline, t);
      costs[0][t] = two.x;
      costs[1][t] = two.y;
    }
  }
  __device__ __forceinline__ float reach_of(const ChunkInPipeline<Pipeline>& cells) const {
    return greater(pipeline.reach_of(cells.column(0)), pipeline.reach_of(cells.column(S::kSteps - 1)));
  }
  __device__ __forceinline__ void use(const Place<S>& place) {
    const int chunk = (place.column + lane - first_column) / S::kSteps;
    wait(chunk);
    const ChunkInPipeline<Pipeline> cells(chunk, lane);
    read(cells);
    reach = reach_of(cells);
    if (!kBackward && chunk % kBatchGroups == kBatchGroups - 1)
      pipeline.released[Pipeline::slot(chunk / kBatchGroups)].arrive();
  }
  __device__ __forceinline__ float cost(int k, int t) const { return kMarked ? fabsf(costs[k][t]) : costs[k][t]; }
};

}  // namespace softdtw
