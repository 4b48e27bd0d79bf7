// Forward of a table swept from both its ends (bidirectional.cuh): a warp sweeps a strip from one of them. Two strips share a warp that
// computes their cells, ahead of the sweeps.
#pragma once

#include "bidirectional.cuh"
#include "cuda/kernels/warp_specialised/warp_specialised_forward.cuh"

namespace softdtw {

using SplitCostChunks = SplitCosts<BidirectionalShape, BidirectionalShape::kStage / 2>;
using SplitCostChunkPipeline = SplitCostPipeline<SplitCostChunks>;

// Splits the costs of a strip's cells.
template <class Tile>
class CostSplitter {
  using S = BidirectionalShape;
  using OfStrip = typename TileOptions<S, Tile>::OfStrip;
  Strip<S> strip;
  Tile tile;
  SplitCostChunkPipeline* pipeline;
  int chunk = 0, lane;

 public:
  __device__ CostSplitter(
      const SideOf<Tile>& side, const Problem<float>& problem, int64_t pair, int index, SplitCostChunkPipeline& pipeline_)
      : strip(side.strip(index)),
        tile(side.template tile<Tile>(problem, strip, pair)),
        pipeline(&pipeline_),
        lane(threadIdx.x) {
    if (goes_on()) tile.fetch(Place<S>(strip, side.extent, 0, lane));
  }
  __device__ __forceinline__ bool goes_on() const { return chunk < strip.chunks; }
  // The next item of the pipeline. False, if there is no room for it, or none is left.
  __device__ __forceinline__ bool split_cost(const Extent& extent, const OfStrip& recurrences) {
    const int item = chunk / SplitCostChunks::kChunks;
    if (!goes_on() || !pipeline->can_acquire(item)) return false;
    SplitCostChunks& out = pipeline->slot(item);
#pragma unroll 1
    for (int part = 0; part < SplitCostChunks::kChunks; ++part, ++chunk) {
      const Place<S> place(strip, extent, chunk, lane);
      tile.use(place);
      if (chunk + 1 < strip.chunks) tile.fetch(Place<S>(strip, extent, chunk + 1, lane));
      out.template split<TileOptions<S, Tile>>(
          part, lane, tile, recurrences, place.in_band,
          Width<S>::rise_of(recurrences, tile.reach, !recurrences.has_penalty));
    }
    pipeline->commit(item);
    return true;
  }
};

template <class Tile>
class SplitCostsOfSide : public SplitCostReader<SplitCostChunks> {
  using S = BidirectionalShape;
  const SideOf<Tile>& side;
  const Problem<float>& problem;
  const Strip<S>& strip;
  const int64_t pair;
  unsigned next = 0;  // item

 public:
  using OfStrip = typename TileOptions<S, Tile>::OfStrip;
  static constexpr bool kTakesBands = TileOptions<S, Tile>::kTakesBands;

  __device__ SplitCostsOfSide(
      const SideOf<Tile>& side_, const Problem<float>& problem_, const Strip<S>& strip_, int64_t pair_,
      SplitCostChunkPipeline& pipeline_)
      : SplitCostReader<SplitCostChunks>(pipeline_), side(side_), problem(problem_), strip(strip_), pair(pair_) {}
  __device__ __forceinline__ void begin(int) {}
  __device__ __forceinline__ void end(int) {}
  template <class Where>
  __device__ __forceinline__ void use(const Where&, unsigned part_of_stage) {
    part = part_of_stage % SplitCostChunks::kChunks;
    if (part > 0) return;
    if (next > 0) pipeline.release(next - 1);
    item = &pipeline.wait(next++);
  }
  __device__ __forceinline__ Tile tile(const Place<S>& place) const {
    Tile tile = side.template tile<Tile>(problem, strip, pair);
    tile.fetch(place);
    tile.use(place);
    return tile;
  }
};

}  // namespace softdtw
