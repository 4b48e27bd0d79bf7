// Forward of a table swept from both its ends (bidirectional.cuh): a warp sweeps a strip from one of them. Two strips share a warp that
// computes their cells, ahead of the sweeps.
#pragma once

#include "bidirectional.cuh"
#include "cuda/kernels/warp_specialised/sweeping_warp.cuh"

namespace softdtw {

// What the cells of some chunks cost, split (recurrence.h), and what m may rise by in every lane in a chunk.
struct alignas(16) SplitCostChunks {
  using S = BidirectionalShape;
  static constexpr int kChunks = S::kStage / 2;
  struct alignas(16) Cells {
    Entry<float> rows[S::kRows];
  };
  Cells cells[kChunks][S::kSteps][kWarp];
  float rise[kChunks][kWarp];
};
using SplitCostChunkPipeline = Pipeline<SplitCostChunks, kWarp, 2>;

// SplitCosts a strip's cells.
class CostSplitter {
  using S = BidirectionalShape;
  Strip<S> strip;
  SideTile tile;
  SplitCostChunkPipeline* pipeline;
  int chunk = 0, lane;

 public:
  __device__ CostSplitter(
      const Side& side, const Problem<float>& problem, int64_t pair, int index, SplitCostChunkPipeline& pipeline_)
      : strip(side.strip(index)), tile(side.tile(problem, strip, pair)), pipeline(&pipeline_), lane(threadIdx.x) {
    if (goes_on()) tile.fetch(Place<S>(strip, side.extent, 0, lane));
  }
  __device__ __forceinline__ bool goes_on() const { return chunk < strip.chunks; }
  // The next item of the pipeline. False, if there is no room for it, or none is left.
  __device__ __forceinline__ bool split_cost(const Extent& extent, float scale) {
    const int item = chunk / SplitCostChunks::kChunks;
    if (!goes_on() || !pipeline->can_acquire(item)) return false;
    SplitCostChunks& out = pipeline->slot(item);
#pragma unroll 1
    for (int part = 0; part < SplitCostChunks::kChunks; ++part, ++chunk) {
      tile.use(Place<S>(strip, extent, chunk, lane));
      if (chunk + 1 < strip.chunks) tile.fetch(Place<S>(strip, extent, chunk + 1, lane));
#pragma unroll
      for (int t = 0; t < S::kSteps; ++t) {
        SplitCostChunks::Cells cells;
#pragma unroll
        for (int k = 0; k < S::kRows; ++k) cells.rows[k] = Recurrences<S>::Plain::split(tile.cost(k, t), scale);
        out.cells[part][t][lane] = cells;
      }
      out.rise[part][lane] = tile.reach * scale * (S::kRows + S::kSteps);
    }
    pipeline->commit(item);
    return true;
  }
};

// SplitCosts as the sweep reads them.
class SplitCostsOfSide {
  using S = BidirectionalShape;
  const Side& side;
  const Problem<float>& problem;
  const Strip<S>& strip;
  const int64_t pair;
  SplitCostChunkPipeline& pipeline;
  const int lane;
  const SplitCostChunks* chunks = nullptr;
  unsigned part = 0, next = 0;  // in the item; the next item

 public:
  static constexpr bool kIsAhead = true;

  __device__ SplitCostsOfSide(
      const Side& side_, const Problem<float>& problem_, const Strip<S>& strip_, int64_t pair_,
      SplitCostChunkPipeline& pipeline_)
      : side(side_), problem(problem_), strip(strip_), pair(pair_), pipeline(pinned(pipeline_)), lane(threadIdx.x) {}
  __device__ __forceinline__ void begin(int) {}
  __device__ __forceinline__ void end(int) {}
  template <class Where>
  __device__ __forceinline__ void use(const Where&, unsigned part_of_stage) {
    part = part_of_stage % SplitCostChunks::kChunks;
    if (part > 0) return;
    if (next > 0) pipeline.release(next - 1);
    chunks = &pipeline.wait(next++);
  }
  template <class Where>
  __device__ __forceinline__ float rise(const Recurrences<S>&, const Where&) const {
    return chunks->rise[part][lane];
  }
  __device__ __forceinline__ Entry<float> split_cost(const Recurrences<S>&, int k, int t) const {
    return chunks->cells[part][t][lane].rows[k];
  }
  __device__ __forceinline__ SideTile tile(const Place<S>& place) const {
    SideTile tile = side.tile(problem, strip, pair);
    tile.fetch(place);
    tile.use(place);
    return tile;
  }
};

}  // namespace softdtw
