// Forward of a table swept from both its ends (bidirectional.cuh), and its launches.
//
// Threads to work: a block takes a ticket, which stands for consecutive strips of one side of one pair; ticket order is both sides'
// first strips first, all pairs side by side. A warp sweeps a strip, and another one splits what its cells cost, ahead of it. What a
// block's last strip leaves is carried to the next block by warps of both (pipeline.cuh). A second launch adds up what the sides left
// at the cut.
#pragma once

#include "bidirectional_cut.cuh"
#include "cuda/hardware/launch.cuh"
#include "cuda/kernels/warp_specialised/warp_specialised_forward.cuh"
#include "cuda/select/blocks.h"
#include "cuda/strips/tickets.cuh"

namespace softdtw {

using SplitCostChunks = SplitCosts<BidirectionalShape, BidirectionalShape::kStage / 2>;
using SplitCostChunkPipeline = SplitCostPipeline<SplitCostChunks>;

// What the two share.
template <class Tile>
struct SideCosts {
  SplitCostChunkPipeline split_costs;
  typename TileAhead<Tile>::Memory tile;
};

// Splits the costs of a strip's cells.
template <class Tile>
class CostSplitter {
  using S = BidirectionalShape;
  using OfStrip = typename TileOptions<S, Tile>::OfStrip;
  Strip<S> strip;
  TileAhead<Tile> tile;
  SplitCostChunkPipeline* pipeline;
  int chunk = 0, lane;

 public:
  __device__ CostSplitter(
      const SideOf<Tile>& side, const Problem<float>& problem, int64_t pair, int index, SideCosts<Tile>& costs)
      : strip(side.strip(index)),
        tile(costs.tile, problem, side.extent, strip, pair, threadIdx.x, side.is_back),
        pipeline(&costs.split_costs),
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

// The warps of a block: those that sweep a strip each, of few or of many, those that split costs, of which some have two strips where
// there are many, and those that carry.
template <class Tile>
struct SideBlock {
  static constexpr int kFew = kBidirectionalStrips / 2, kMany = kBidirectionalStrips;

  SOFTDTW_HD static constexpr int splitters(int strips) {
    constexpr int kMost = Tile::kUnivariate ? 4 : 6;  // vectors take longer; in more warps lanes have too few registers
    return strips < kMost ? strips : kMost;
  }
  SOFTDTW_HD static constexpr int warps(int strips) { return strips + splitters(strips) + kHaloWarps; }
  SOFTDTW_HD static constexpr int strips(int warps_of_block) { return warps_of_block < warps(kMany) ? kFew : kMany; }
};

// Tile: SideTile or FewTile, with options or without.
template <class Tile>
__global__ void __launch_bounds__(kWarp* SideBlock<Tile>::warps(kBidirectionalStrips), 1) bidirectional_forward(
    const __grid_constant__ Problem<float> problem, const __grid_constant__ BidirectionalMemory memory, Tickets tickets,
    int64_t groups) {
  using S = BidirectionalShape;
  __shared__ EdgePipeline<S> pipelines[kBidirectionalStrips + 1];
  SideCosts<Tile>* const costs_of_strips = reinterpret_cast<SideCosts<Tile>*>(stage_memory);
  const int lane = threadIdx.x, warp = threadIdx.y, strips = SideBlock<Tile>::strips(blockDim.y),
            splitters = SideBlock<Tile>::splitters(strips);
  if (warp <= strips) pipelines[warp].start(lane);
  if (warp < strips) costs_of_strips[warp].split_costs.start(lane);
  const auto [turn, group] = take_turn(tickets, 2 * problem.batch);
  const int64_t pair = turn / 2;
  const Extent extent = problem.extent(pair);
  if (!extent.valid()) return;
  const SideOf<Tile> side(extent, turn % 2);
  const SideMemoryOf<Tile> saved{side, memory};
  const int first = group * strips, end = first + strips;
  Progress* const words = tickets.words + turn * groups;
  if (warp < strips) {
    const int index = first + warp, chunks = side.chunks(index);
    if (chunks == 0) return;
    const SideStrip<kHasBand<Tile>> around(side, index);
    SplitCostsOfSide<Tile> costs(side, problem, around.strip, pair, costs_of_strips[warp].split_costs);
    sweep_strip<S>(
        problem, extent, around, pair, index, chunks, saved, saved.keeps() && warp > 0, pipelines[warp],
        pipelines[warp + 1], costs, static_cast<float*>(nullptr));
  } else if (warp < strips + splitters) {
    const typename TileOptions<S, Tile>::OfStrip recurrences(problem, pair);
    const int own = warp - strips, other = own + splitters;
    CostSplitter<Tile> now(side, problem, pair, first + own, costs_of_strips[own]);
    // Where there is no other strip of the block, one past the side's end has no chunks.
    const bool has_other = other < strips;
    CostSplitter<Tile> next(
        side, problem, pair, has_other ? first + other : side.sizes.strips, costs_of_strips[has_other ? other : own]);
    // In turn, by one copy of the code, since schedulers cache little of it.
    int idle = 0;
#pragma unroll 1
    while (now.goes_on() || next.goes_on()) {
      idle = now.split_cost(extent, recurrences) ? 0 : idle + 1;
      if (idle >= 2) __nanosleep(60);
      const CostSplitter<Tile> last = now;
      now = next;
      next = last;
    }
  } else if (warp == strips + splitters) {
    if (first == 0 || side.chunks(first) == 0) return;
    carry_groups_in(saved.edge(pair, first - 1), side.groups(first - 1), pipelines[0], words + group - 1, lane);
  } else if (side.chunks(end) > 0) {
    carry_groups_out(saved.edge(pair, end - 1), side.groups(end - 1), pipelines[strips], words + group, lane);
  }
}

// How many blocks of so many strips a side has.
inline int64_t side_groups(const Problem<float>& problem, int strips) {
  return ceil_div(strips_of(problem.n, BidirectionalShape::kRows), strips);
}

// Launches `kernel` with blocks of so many strips. The tickets have been zeroed.
template <class Kernel, class... Arguments>
cudaError_t launch_sides(
    Kernel kernel, const Problem<float>& problem, int strips, int warps, size_t bytes, void* tickets, cudaStream_t stream,
    const Arguments&... arguments) {
  const int64_t groups = side_groups(problem, strips);
  return launch_kernel(
      kernel, 2 * problem.batch * groups, dim3(kWarp, warps), bytes, stream, problem, arguments...,
      Tickets(tickets, 2 * problem.batch, groups), groups);
}

// By the tile that kernels are compiled for.
template <class Tile>
struct ForwardLaunches {
  using Block = SideBlock<Tile>;
  using Sizes = BidirectionalSizes<kHasBand<Tile>>;
  static constexpr int64_t kDeclaredBytes = 16 * 1024;
  static_assert(kBidirectionalStrips * sizeof(SideCosts<Tile>) + kDeclaredBytes <= kBidirectionalBytes);

  static cudaError_t forward(
      const Problem<float>& problem, float* value, void* saved, Scratch& scratch, cudaStream_t stream) {
    const Sizes sizes = Sizes::of(problem);
    const bool keeps = saved != nullptr;
    // In a band some two blocks of a side are under way at once, whatever the length.
    const int64_t groups = problem.bandwidth >= 0 ? 2 : side_groups(problem, Block::kFew);
    const int strips = 2 * problem.batch * groups <= current_device().processors ? Block::kFew : Block::kMany;
    const int64_t ticket_bytes = Tickets::bytes(2 * problem.batch, side_groups(problem, strips));
    const auto [tickets, states] =
        scratch.parts(ticket_bytes, keeps ? 0 : problem.batch * BidirectionalMemory::bytes_of_pair(sizes, false));
    const BidirectionalMemory memory(sizes, keeps ? saved : states, keeps);
    cudaError_t error = cudaMemsetAsync(tickets, 0, ticket_bytes, stream);
    if (error != cudaSuccess) return error;
    error = launch_sides(
        bidirectional_forward<Tile>, problem, strips, Block::warps(strips), strips * sizeof(SideCosts<Tile>), tickets,
        stream, memory);
    if (error != cudaSuccess) return error;
    return launch_kernel(
        bidirectional_value<kHasBand<Tile>>, problem.batch, kCutThreads, 0, stream, problem, memory, value);
  }
};

// Values of series of several dimensions (bidirectional_vectors.cu), of which nothing is kept for backward.
cudaError_t bidirectional_vectors(const Problem<float>& problem, float* value, Scratch& scratch, cudaStream_t stream);

}  // namespace softdtw
