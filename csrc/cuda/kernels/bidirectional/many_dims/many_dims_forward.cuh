// Values of few pairs of float32 series of more than eight dimensions, swept from both ends of the table at once (../bidirectional.cuh).
//
// Threads to work: the blocks are like those of multivariate (multivariate_block.cuh), and a multiprocessor has one. A block takes a ticket,
// which stands for two or four consecutive strips of one side of one pair; ticket order is both sides' first strips first, all pairs
// side by side. For each strip a warp sweeps, and two warps compute what its cells cost, ahead of it, from the series as the side sees
// them (multivariate_costs_many.cuh): the sweep waits for them batch by batch, and they for room in its pipeline. Two more warps carry
// edges in from the block before, and out to the next one. A second launch adds up what the sides left at the cut.
#pragma once

#include "cuda/kernels/bidirectional/bidirectional_cut.cuh"
#include "cuda/kernels/multivariate/multivariate_block.cuh"
#include "cuda/kernels/multivariate/multivariate_forward.cuh"
#include "many_dims.h"

namespace softdtw {

static_assert(std::is_same_v<BidirectionalShape, MultivariateShape>);

// Costs as the sweep of a side reads them: those of a strip, but for what is computed in float64.
template <class CostsOfPipeline, bool kHasOptions>
class CostsOfSide : public CostsOfPipeline {
  using S = BidirectionalShape;
  const Side<kHasOptions>& side;
  const int64_t pair;

 public:
  static constexpr bool kExactCosts = true;

  template <class Pipeline>
  __device__ CostsOfSide(
      const Problem<float>& problem, const Side<kHasOptions>& side_, int64_t pair_, const Strip<S>& strip,
      Pipeline& pipeline)
      : CostsOfPipeline(problem, pair_, strip, threadIdx.x, pipeline), side(side_), pair(pair_) {}
  __device__ __forceinline__ const CostsOfSide& tile(const Place<S>& place) {
    CostsOfPipeline::tile(place);
    return *this;
  }
  __device__ __forceinline__ void exact_costs(
      const Problem<float>& problem, const Place<S>& place, double (&exact)[S::kRows * S::kSteps]) const {
    const Extent& extent = side.extent;
    softdtw::exact_costs<S, true>(
        problem, side.seen(problem.x, pair, extent.n), side.seen(problem.y, pair, extent.m), extent, place.row,
        place.column, exact);
  }
};

// A block of costs that are differences, where there are too many strips for blocks of two: they come as they are, in half the memory, and
// the sweep splits them.
struct BlockOfFour {
  static constexpr bool kHasOptions = true;
  static constexpr int kStrips = kManyDimsStrips, kCosts = 2, kBlocks = 1;
  using Costs = CostPipeline<false, kCosts, float, 8, 1>;
  static constexpr int warps(int) { return kStrips * (1 + kCosts) + kHaloWarps; }

  enum Role { kSweep, kCost, kHaloIn, kHaloOut };
  Role role;
  int own, number;  // which of the block's strips; among the warps that compute its costs

  // Every fourth warp has the same scheduler, so each has a sweep, and who computes its costs.
  __device__ BlockOfFour(int warp, int) : own(warp % kStrips), number(warp / kStrips - 1) {
    const int line = warp / kStrips;
    role = line == 0 ? kSweep : line <= kCosts ? kCost : own == 0 ? kHaloIn : kHaloOut;
  }
};

// Block: BlockOfFour or a ForwardBlock.
template <class CostType, class Block, class Fours>
__global__ void __launch_bounds__(kWarp* Block::warps(Block::kStrips), Block::kBlocks) bidirectional_many_dims(
    const __grid_constant__ Problem<float> problem, const __grid_constant__ BidirectionalMemory memory, Tickets tickets,
    int64_t groups, int block_strips, bool has_fours, Held held_memory) {
  using S = BidirectionalShape;
  using Costs = typename Block::Costs;
  constexpr bool kHasOptions = Block::kHasOptions;
  __shared__ EdgePipeline<S> pipelines[Block::kStrips + 1];
  Costs* const costs_pipelines = reinterpret_cast<Costs*>(stage_memory);
  const int lane = threadIdx.x, warp = threadIdx.y;
  if (warp <= block_strips) pipelines[warp].start(lane);
  if (warp < block_strips) costs_pipelines[warp].start_once(lane);
  const auto [turn, group] = take_turn(tickets, 2 * problem.batch);
  const int64_t pair = turn / 2;
  const Extent extent = problem.extent(pair);
  if (!extent.valid()) return;
  const Side<kHasOptions> side(extent, turn % 2);
  const SideMemory<kHasOptions> saved{side, memory};
  const int first = group * block_strips, end = first + block_strips;
  Progress* const words = tickets.words + turn * groups;
  const Block block(warp, block_strips);
  if (block.role == Block::kSweep || block.role == Block::kCost) {
    const int own = block.own, index = first + own, chunks = own < block_strips ? side.chunks(index) : 0;
    if (chunks == 0) return;
    Costs& costs_pipeline = costs_pipelines[own];
    if (block.role == Block::kSweep) {
      const SideStrip<kHasOptions> around(side, index);
      CostsOfSide<CostsInPipeline<Costs, kHasOptions>, kHasOptions> costs(
          problem, side, pair, around.strip, costs_pipeline);
      return sweep_strip<S>(
          problem, extent, around, pair, index, chunks, saved, false, pipelines[own], pipelines[own + 1], costs,
          static_cast<float*>(nullptr));
    }
    const Strip<S> strip = side.strip(index);
    const HeldRows held(costs_pipelines + block_strips, own, held_memory.row_blocks);
    with_fours<Fours>(has_fours, [&](auto fours) {
      ManyCosts<CostType, fours(), Costs, false, VectorsOfSide> costs(
          problem, extent, strip, pair, costs_pipeline, block.number, held, side.is_back);
      fill_ahead(costs, costs_pipeline, block.number, chunks);
    });
  } else if (block.role == Block::kHaloIn) {
    if (first == 0 || side.chunks(first) == 0) return;
    carry_groups_in(saved.edge(pair, first - 1), side.groups(first - 1), pipelines[0], words + group - 1, lane);
  } else if (side.chunks(end) > 0) {
    carry_groups_out(saved.edge(pair, end - 1), side.groups(end - 1), pipelines[block_strips], words + group, lane);
  }
}

template <class CostType>
cudaError_t forward_of_many_dims(const Problem<float>& problem, float* value, Scratch& scratch, cudaStream_t stream) {
  const auto launch_blocks = [&](auto block) {
    using Block = std::remove_pointer_t<decltype(block)>;
    const auto sizes = BidirectionalSizes<Block::kHasOptions>::of(problem);
    const int strips = strips_of_block<Block>(sizes.strips);
    const int64_t groups = ceil_div(sizes.strips, strips), ticket_bytes = Tickets::bytes(2 * problem.batch, groups);
    const auto parts = scratch.parts(ticket_bytes, problem.batch * BidirectionalMemory::bytes_of_pair(sizes, false));
    const BidirectionalMemory memory(sizes, parts[1], false);
    cudaError_t error = cudaMemsetAsync(parts[0], 0, ticket_bytes, stream);
    if (error != cudaSuccess) return error;
    const bool has_fours = reads_fours(problem);
    error = with_kernel_of_fours<CostType>(has_fours, [&](auto fours) {
      return launch_multivariate<CostType>(
          bidirectional_many_dims<CostType, Block, decltype(fours)>, 2 * problem.batch * groups, Block::kBlocks,
          Block::warps(strips), strips, strips * sizeof(typename Block::Costs), problem.dim, 0, stream, problem, memory,
          Tickets(parts[0], 2 * problem.batch, groups), groups, strips, has_fours);
    });
    if (error != cudaSuccess) return error;
    return launch_kernel(
        bidirectional_value<Block::kHasOptions>, problem.batch, kCutThreads, 0, stream, problem, memory, value);
  };
  if constexpr (!kIsOfSquares<CostType>)
    if (!has_sides_in_twos(call_of(problem, false), current_device()))
      return launch_blocks(static_cast<BlockOfFour*>(nullptr));
  return launch_blocks(static_cast<ForwardBlock<false, true, true>*>(nullptr));
}

}  // namespace softdtw
