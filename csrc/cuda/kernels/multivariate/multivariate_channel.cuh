// What the warps of a strip share in backward (multivariate.cu): pipelines of costs and of E, rebuilt stages, and the mbarriers through
// which each warp learns how far the others are.
#pragma once

#include "cuda/costs/cost_pipeline.cuh"
#include "cuda/select/blocks.h"
#include "cuda/strips/async_prefetch.cuh"
#include "cuda/strips/strip_job.cuh"

namespace softdtw {

constexpr float kNegligible = 5.421011e-20f;  // 2^-64, of E

// What a rebuilding warp reads of memory: its next stage's snapshot, and the edges above this stage and the next one.
struct alignas(16) RebuildSources {
  using S = MultivariateShape;
  char snapshot[Snapshot<S>::kBytes];
  EdgeSlot<S> edges[2][S::kStage];
};

// What E is divided by where gradients are those of E / cost, of the stages that stand between the warps that rebuild and the sweep: 1 /
// cost, with the sign of a cost that ManyCosts has marked, and 0 where the cost is.
template <bool kDivides, int kBuffers>
struct InverseCosts {};
template <int kBuffers>
struct InverseCosts<true, kBuffers> {
  using S = MultivariateShape;
  float inverses[kBuffers][S::kStage * S::kSteps * S::kRows * kWarp];
};

// Of the strip of a block in backward. kDivides: the sweep leaves E / cost for the gradients instead of E, with few dimensions never.
template <bool kFew, bool kDivides = false>
struct BackwardChannel : InverseCosts<kDivides, MultivariateWarps<kFew>::kRebuilders> {
  using S = MultivariateShape;
  using Warps = MultivariateWarps<kFew>;
  static constexpr bool kIsDivided = kDivides;
  // Two stages that are rebuilt at the same time meet six batches, every batch two stages.
  using Costs = CostPipeline<kFew, Warps::kCosts, float, 8, 2>;
  // E piles up near likely paths, where gradients take longest, and there the strips follow each other: none should have to
  // wait.
  using Alignment = BatchPipeline<float, 7, 1, Warps::kGradients>;
  static constexpr int kBuffers = Warps::kRebuilders;
  // Of a chunk, for the loop that rebuilds it. With few dimensions two blocks share what caches their instructions.
  static constexpr int kRebuiltParts = kFew ? 4 : 2;
  // What the sweep says with a stage that it is done with, at the end of a run: the stage is the first one that it does not
  // need any more, or another one.
  enum End { kGoesOn, kEndsHere, kHasEnded };

  Weights<float> weights[kBuffers][S::kStage * S::kSteps * S::kRows * kWarp];  // of a stage
  Costs costs;
  Alignment alignment;
  RebuildSources sources[Warps::kRebuilders];
  Mbarrier<kWarp> rebuilt[kBuffers], released[kBuffers][S::kStage];  // of `weights`, stages and chunks
  End stage_ends[kBuffers];
  bool costs_end[Costs::kBatches], alignment_ends[Alignment::kBatches];
  // Of a run of the warps that compute costs, rebuild and sweep: stage after stage, from this chunk on. Whether there is
  // another run.
  int last_chunk;
  bool again;
  // For those who compute gradients, the first batch of E.
  Mbarrier<1> started;
  int first_batch;

  // Where a chunk of the stage of a turn stands in its buffer. Stages are rebuilt from their first chunk on and swept from their
  // last one on, so in every other use the order is reversed: what is released first is filled first.
  __device__ __forceinline__ static int place_of(int turn, int part) {
    return turn / kBuffers % 2 == 0 ? part : S::kStage - 1 - part;
  }

  __device__ __forceinline__ static BackwardChannel& own() { return *reinterpret_cast<BackwardChannel*>(stage_memory); }
  // By the whole block. E is 0 where no sweep comes by, right of the first chunk.
  __device__ __forceinline__ void start(int lane) {
    for (int i = threadIdx.y * kWarp + lane; i < Alignment::kColumns * Alignment::kRows; i += blockDim.y * kWarp)
      alignment.cells[i] = 0;
    if (threadIdx.y > 0) return;
    alignment.start(lane);
    if (lane < Alignment::kBatches) alignment_ends[lane] = false;
    if (lane == 0) started.start();
    costs.start_once(lane);
    start_stages(lane);
  }
  __device__ __forceinline__ void start_run(int lane) {
    costs.start(lane);
    start_stages(lane);
  }
  __device__ __forceinline__ void start_stages(int lane) {
    if (lane < kBuffers) {
      rebuilt[lane].start();
      stage_ends[lane] = kGoesOn;
    }
    if (lane < kBuffers * S::kStage) released[lane / S::kStage][lane % S::kStage].start();
    if (lane < Costs::kBatches) costs_end[lane] = false;
  }
  __device__ __forceinline__ void stop_run(int lane) {
    costs.stop(lane);
    if (lane < kBuffers) rebuilt[lane].stop();
    if (lane < kBuffers * S::kStage) released[lane / S::kStage][lane % S::kStage].stop();
  }
  // The warps of a run, before it and after it.
  __device__ __forceinline__ static void meet() {
    __syncwarp();
    ptx::bar_sync<(1 + Warps::kRebuilders + Warps::kCosts) * kWarp>();
  }
  // Calls work(last_chunk) for every run.
  template <class Work>
  __device__ __forceinline__ void for_each_run(Work&& work) const {
    do {
      meet();
      work(last_chunk);
      meet();
    } while (again);
  }
};

// What devices of compute capability 8.6 give a block.
static_assert(sizeof(BackwardChannel<false, true>) < kDividingBytes);
static_assert(sizeof(BackwardChannel<true>) < 98 * 1024 && sizeof(BackwardChannel<false>) < 98 * 1024);

}  // namespace softdtw
