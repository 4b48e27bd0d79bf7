// The forward kernel of strips that have warps for their costs (multivariate.cu), whatever the sweep makes of them: a block has a few
// consecutive strips of one pair, for each a warp that sweeps and several that compute costs ahead of it (multivariate_costs_few.cuh, multivariate_costs_many.cuh), and two
// warps that carry edges between blocks.
//
// A Sweep has, as a parameter of the kernel,
//     CostType                                 the cost, or either of two, of vector_cost.cuh
//     Edge                                     a group of a strip's last row, as pipelines hand it over
//     kTakesSplitCosts                         whether costs may come split, which is faster
//     keeps()                                  whether the last strip is swept to its end
//     sweep<kHasOptions>(...)                  what a sweeping warp does: the strip `index`, the block's `own`th
//     edges                                    which halo warps carry between blocks
//     spoil(pair)                              for a pair that cannot be computed
#pragma once

#include <algorithm>
#include <type_traits>

#include "cuda/costs/multivariate/multivariate_costs_few.cuh"
#include "cuda/costs/multivariate/multivariate_costs_many.cuh"
#include "cuda/costs/multivariate/multivariate_tile.cuh"
#include "cuda/costs/multivariate/ready_made_costs.cuh"
#include "cuda/hardware/launch.cuh"
#include "cuda/strips/strip_job.cuh"
#include "cuda/strips/tickets.cuh"

namespace softdtw {

// Of a block in forward: strips, at most, and what its warps do. kLonely: it has a multiprocessor for itself, for no more blocks than
// multiprocessors. kSplits: costs come split, which takes so much memory that the block is alone, too, and pays with more blocks as
// well where costs take longer than the sweeps. kIsPlain: of calls without a band and a penalty.
template <bool kFew_, bool kLonely, bool kSplits = false, bool kIsPlain = false>
struct ForwardBlock {
  static constexpr bool kFew = kFew_, kHasOptions = !kIsPlain;
  static constexpr int kStrips = kFew ? 4 : 2, kCosts = kLonely && !kFew && !kSplits ? 4 : 2;
  static constexpr int kBlocks = kFew || kLonely ? 1 : 2;  // of a multiprocessor
  // Of every strip. A chunk meets kSkewChunks + 1 groups, which is three batches; the others are on their way.
  using Costs = CostPipeline<kFew, kCosts, std::conditional_t<kSplits, Entry<float>, float>, 8, 1>;

  static constexpr int kSchedulers = 4;
  static constexpr int warps(int strips) { return (kFew ? strips : kStrips) * (1 + kCosts) + kHaloWarps; }

  enum Role { kSweep, kCost, kHaloIn, kHaloOut };
  Role role;
  int own, number = 0;  // which of the block's strips; among the warps that compute its costs

  // Every fourth warp has the same scheduler. With many dimensions and two warps for a strip's costs, two of the four have the sweeps, and
  // the others those who compute costs: each caches the code of one loop.
  //   sweep 0   sweep 1   costs 0   costs 1
  //   carry in  carry out costs 0   costs 1
  __device__ ForwardBlock(int warp, int strips) : own(warp % (kFew ? strips : kStrips)) {
    if (!kFew && kCosts == 2) {
      const int line = warp / kSchedulers, place = warp % kSchedulers;
      role = place >= kStrips ? kCost : line == 0 ? kSweep : place == 0 ? kHaloIn : kHaloOut;
      number = line;
    } else {
      const int most = kFew ? strips : kStrips, line = warp / most;
      role = line == 0 ? kSweep : line <= kCosts ? kCost : warp == most * (1 + kCosts) ? kHaloIn : kHaloOut;
      number = line - 1;
    }
  }
};

// Costs for a strip, a batch of columns at a time: infinity outside the band. On what they say of cells outside the table nothing
// depends.
template <class CostType, bool kFew, bool kFours, class Pipeline, bool kMarks>
struct StripCostsOf {
  using type =
      std::conditional_t<kFew, FewCosts<CostType, kFours, Pipeline>, ManyCosts<CostType, kFours, Pipeline, kMarks>>;
};
template <bool kFours, class Pipeline, bool kMarks>
struct StripCostsOf<ReadyMade, true, kFours, Pipeline, kMarks> {
  using type = ReadyMadeCosts<Pipeline>;
};
template <class CostType, bool kFew, bool kFours, class Pipeline, bool kMarks = false>
using StripCosts = typename StripCostsOf<CostType, kFew, kFours, Pipeline, kMarks>::type;

// Whether a kernel's vectors can be read four numbers at a time: `Either` in one for both, most of whose warps do the same in either case.
struct Either {};
// Calls launch(Fours), a type, with that of the kernel that suits. Kernels for both would spill registers with squared costs, and take up to
// 5 % longer.
template <class CostType, class Launch>
cudaError_t with_kernel_of_fours(bool has_fours, Launch&& launch) {
  if constexpr (std::is_same_v<CostType, ReadyMade>)
    return launch(std::false_type());
  else if constexpr (kIsOfSquares<CostType>)
    return has_fours ? launch(std::true_type()) : launch(std::false_type());
  else
    return launch(Either());
}
// Calls f(kFours), a type, in a kernel.
template <class Fours, class F>
__device__ __forceinline__ void with_fours(bool has_fours, F&& f) {
  if constexpr (!std::is_same_v<Fours, Either>)
    f(Fours());
  else if (has_fours)
    f(std::true_type());
  else
    f(std::false_type());
}

// Fills a warp's batches of costs, from `begin` on, as the sweep of so many chunks gives room back.
template <class Costs, class Pipeline>
__device__ __forceinline__ void fill_ahead(Costs& costs, Pipeline& pipeline, int begin, int chunks) {
  costs.fetch(begin);
  for (int batch = begin; batch * kBatchGroups < chunks; batch += costs.kStride) {
    // The chunk that left the slot's last batch behind.
    const int behind = batch - Pipeline::kBatches + kEarlyBatches;
    if (behind >= 0) pipeline.released[Pipeline::slot(behind)].wait(behind / Pipeline::kBatches);
    costs.fill(batch, batch + costs.kStride);
    if (batch >= 0) pipeline.filled[Pipeline::slot(batch)].arrive();
  }
}

template <class Sweep, class Block, class Fours>
__global__ void __launch_bounds__(kWarp* Block::warps(Block::kStrips), Block::kBlocks) multivariate_forward(
    const __grid_constant__ Problem<float> problem, const __grid_constant__ Sweep sweep, Tickets tickets, int64_t groups,
    int block_strips, bool has_fours, Held held_memory) {
  using S = MultivariateShape;
  using Costs = typename Block::Costs;
  __shared__ Pipeline<typename Sweep::Edge> pipelines[Block::kStrips + 1];
  Costs* const costs_pipelines = reinterpret_cast<Costs*>(stage_memory);
  const int lane = threadIdx.x, warp = threadIdx.y;
  if (warp <= block_strips) pipelines[warp].start(lane);
  if (warp < block_strips) costs_pipelines[warp].start_once(lane);
  const Turn turn = take_turn(tickets, problem.batch);
  const int64_t pair = turn.pair;
  const int group = turn.group;
  const Extent extent = problem.extent(pair);
  if (!extent.valid()) {
    if (group == 0) sweep.spoil(pair);
    return;
  }
  const int strips = strips_of<S>(extent), first = group * block_strips, end = first + block_strips;
  Progress* const words = tickets.words + pair * groups;
  const Block block(warp, block_strips);
  if (block.role == Block::kSweep || block.role == Block::kCost) {
    const int own = block.own, index = first + own;
    if (own >= block_strips || index >= strips) return;
    Costs& costs_pipeline = costs_pipelines[own];
    if (block.role == Block::kSweep)
      return sweep.template sweep<Block::kHasOptions>(
          problem, extent, pair, index, own, pipelines[own], pipelines[own + 1], costs_pipeline);
    with_fours<Fours>(has_fours, [&](auto fours) {
      const Surroundings<S> around(extent, index);
      const HeldRows held(costs_pipelines + block_strips, own, held_memory.row_blocks);
      const int chunks = chunks_of<false>(around, sweep.keeps());
      StripCosts<typename Sweep::CostType, Block::kFew, fours(), Costs> costs(
          problem, extent, around.strip, pair, costs_pipeline, block.number, held);
      // The warps' first batches; with many dimensions those left of the first column have been cleared.
      fill_ahead(costs, costs_pipeline, Block::kFew ? -kEarlyBatches : block.number, chunks);
    });
  } else if (block.role == Block::kHaloIn) {
    if (first == 0 || first >= strips) return;
    carry_edge_in(sweep.edges, extent, pair, first, pipelines[0], words + group - 1, lane);
  } else if (end < strips) {
    carry_edge_out(sweep.edges, extent, pair, end - 1, pipelines[block_strips], words + group, lane);
  }
}

// Of a block in forward: as many as its shared memory holds beside what all of them share, and no more than the pair has.
template <class Block>
int strips_of_block(int64_t strips) {
  const int most = strips_of_block(current_device(), sizeof(typename Block::Costs), 10 * 1024, Block::kStrips);
  return static_cast<int>(std::min<int64_t>(most, strips));
}

// Shared memory is set aside for as many blocks as a multiprocessor will hold and no more: the rest of it caches the series.
// `bytes`: of what a block's `strips` share, beside which rows are held where `dim` is large, and sums of dx, of `sums_bytes`, if there is
// room for all rows as well. The kernel's last argument says what is.
template <class CostType, class Kernel, class... Arguments>
cudaError_t launch_multivariate(
    Kernel kernel, int64_t blocks, int most_blocks, int warps, int strips, int64_t bytes, int64_t dim, int64_t sums_bytes,
    cudaStream_t stream, const Arguments&... arguments) {
  constexpr int kReservedBytes = 1024;  // of every block
  const DeviceProperties& device = current_device();
  const int64_t processors = device.processors, all_bytes = device.processor_bytes, block_bytes = device.block_bytes;
  cudaFuncAttributes attributes{};
  cudaError_t error = cudaFuncGetAttributes(&attributes, kernel);
  if (error != cudaSuccess) return error;
  const int64_t resident = std::min<int64_t>((blocks + processors - 1) / processors, most_blocks);
  const int64_t declared_bytes = static_cast<int64_t>(attributes.sharedSizeBytes);
  Held held;
  if (dim > kFewDims) {
    const int64_t most_bytes = std::min<int64_t>(all_bytes / resident - kReservedBytes, block_bytes);
    const int64_t free_bytes = most_bytes - declared_bytes - bytes;
    const auto blocks_in = [&](int64_t room) {
      return HeldRows::blocks_of(dim, has_products<CostType>(dim), room, strips);
    };
    held.row_blocks = blocks_in(free_bytes);
    held.has_sums = sums_bytes > 0 && held.row_blocks > 0 && blocks_in(free_bytes - sums_bytes) == held.row_blocks;
    bytes += strips * held.row_blocks * HeldRows::kBlockBytes + (held.has_sums ? sums_bytes : 0);
  }
  const int64_t own_bytes = bytes + declared_bytes + kReservedBytes;
  const int64_t share = std::min<int64_t>((100 * resident * own_bytes + all_bytes - 1) / all_bytes, 100);
  // A hint, which a launch of another thread may have changed by then.
  error = cudaFuncSetAttribute(kernel, cudaFuncAttributePreferredSharedMemoryCarveout, static_cast<int>(share));
  if (error != cudaSuccess) return error;
  return launch_kernel(kernel, blocks, dim3(kWarp, warps), bytes, stream, arguments..., held);
}

// `scratch`: for the tickets, as many as there are strips. kFew: all problems that come have few dimensions, or else all have many.
template <bool kFew, class Sweep>
cudaError_t launch_multivariate_forward(
    const Problem<float>& problem, const Sweep& sweep, void* scratch, cudaStream_t stream) {
  const Sizes<MultivariateShape> sizes(problem);
  const auto launch_blocks = [&](auto block) {
    using Block = std::remove_pointer_t<decltype(block)>;
    const int strips = strips_of_block<Block>(sizes.strips);
    const int64_t groups = groups_of<MultivariateShape>(problem, strips);
    const cudaError_t error = cudaMemsetAsync(scratch, 0, Tickets::bytes(problem.batch, groups), stream);
    if (error != cudaSuccess) return error;
    const bool has_fours = reads_fours(problem);
    return with_kernel_of_fours<typename Sweep::CostType>(has_fours, [&](auto fours) {
      return launch_multivariate<typename Sweep::CostType>(
          multivariate_forward<Sweep, Block, decltype(fours)>, groups * problem.batch, Block::kBlocks, Block::warps(strips),
          strips, strips * sizeof(typename Block::Costs), problem.dim, 0, stream, problem, sweep,
          Tickets(scratch, problem.batch, groups), groups, strips, has_fours);
    });
  };
  // Where the sweeps split costs themselves they take up to 1.3 times as long with options, unless the costs take longer still.
  const bool is_plain = call_of(problem, false).is_plain();
  if constexpr (kFew) {
    return is_plain ? launch_blocks(static_cast<ForwardBlock<true, false, false, true>*>(nullptr))
                    : launch_blocks(static_cast<ForwardBlock<true, false>*>(nullptr));
  } else {
    using Lonely = ForwardBlock<false, true, Sweep::kTakesSplitCosts>;
    const int strips = strips_of_block<Lonely>(Lonely::kStrips);
    const bool all_fit = groups_of<MultivariateShape>(problem, strips) * problem.batch <= current_device().processors;
    const bool holds_all = Sweep::kTakesSplitCosts && strips == Lonely::kStrips;
    if (block_is_alone(call_of(problem, false), all_fit, holds_all)) return launch_blocks(static_cast<Lonely*>(nullptr));
    if constexpr (Sweep::kTakesSplitCosts && kIsOfSquares<typename Sweep::CostType>)
      if (is_plain) return launch_blocks(static_cast<ForwardBlock<false, false, false, true>*>(nullptr));
    return launch_blocks(static_cast<ForwardBlock<false, false>*>(nullptr));
  }
}

}  // namespace softdtw
