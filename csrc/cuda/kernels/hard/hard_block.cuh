// Blocks of strips of a hard measure (hard_strip.cuh).
//
// Threads to work: a block of W warps has W consecutive strips of one pair. Its warps go on together, a chunk at a time, and meet
// at a barrier after each; every strip is as many chunks behind the one above as it takes for the edge between them to be there. So
// nobody looks for what another warp has done. Where a pair has more strips, it has several blocks, which take tickets
// (tickets.cuh) and hand edges over as in tiled.cu: two more warps carry them between global memory and pipelines in shared memory
// (pipeline.cuh), by which a block's first warp waits, and with it the others.
#pragma once

#include <algorithm>

#include "hard_strip.cuh"

namespace softdtw {

constexpr int kMostWarps = 8;

// Waits for the block's warps that sweep.
__device__ __forceinline__ void meet(int warps) {
  if (warps == 1)
    __syncwarp();
  else
    ptx::bar_sync(warps * kWarp);
}

// What a block's warps share.
template <class S>
struct HardHandover {
  HardEdge<S> edges[kMostWarps][2];    // of a strip, its groups in turn
  Pipeline<HardEdge<S>> above, below;  // between blocks
};

// Warps that a multiprocessor is to hold, of a tile for whose values the compiler would take more registers than that leaves.
template <class Tile, class = void>
constexpr int kResidentWarps = 0;
template <class Tile>
constexpr int kResidentWarps<Tile, std::enable_if_t<(Tile::kResidentWarps > 0)>> = Tile::kResidentWarps;
// At most, in a launch.
template <class Tile, bool kPath, bool kHasGroups>
constexpr int kHardThreads =
    kWarp * std::max(kMostWarps + (kHasGroups ? kHaloWarps : 0), kPath || kHasGroups ? 0 : kResidentWarps<Tile>);

// kHasGroups: a pair has several blocks. Pairs whose band has no more than `width_of_others` columns are done.
template <bool kPath, bool kHasGroups, class S, class Tile, class P>
__global__ void __launch_bounds__((kHardThreads<Tile, kPath, kHasGroups>)) hard_forward_kernel(
    const __grid_constant__ P problem, bool open_ends, typename S::Scalar* value, HardRows<S> rows, StepTable<S> table,
    int* ends, Tickets tickets, int groups, int width_of_others) {
  __shared__ HardHandover<S> shared_handover;
  __shared__ typename Tile::Memory memory[kMostWarps];
  HardHandover<S>& handover = pinned(shared_handover);
  const int lane = threadIdx.x, warp = threadIdx.y, most_warps = blockDim.y - (kHasGroups ? kHaloWarps : 0);
  Turn turn{blockIdx.x, 0};
  if constexpr (kHasGroups) {
    if (warp == 0) {
      handover.above.start(lane);
      handover.below.start(lane);
    }
    turn = take_turn(tickets, problem.batch);
  }
  const int64_t pair = turn.pair;
  const Extent extent = problem.extent(pair);
  if (!extent.valid()) {
    if (turn.group == 0 && lane == 0 && warp == 0) value[pair] = NAN;
    return;
  }
  if (extent.high - extent.low < width_of_others) return;
  const int strips = strips_of<S>(extent), first = turn.group * most_warps, warps = min(most_warps, strips - first);
  if (warps <= 0) return;
  const bool has_above = kHasGroups && first > 0, has_below = kHasGroups && first + warps < strips;
  if (kHasGroups && warp >= most_warps) {
    Progress* const words = tickets.words + pair * groups + turn.group;
    if (warp == most_warps && has_above)
      carry_edge_in(rows, extent, pair, first, handover.above, words - 1, lane);
    else if (warp > most_warps && has_below)
      carry_edge_out(rows, extent, pair, first + warps - 1, handover.below, words, lane);
    return;
  }
  if (warp >= warps) return;

  // A strip writes a group of its edge kSkewChunks after it has begun to sweep it, and the next chunk may read it.
  constexpr int kBehind = S::kSkewChunks + 1;
  const Strip<S> top(extent, first), own(extent, first + warp), bottom(extent, first + warps - 1);
  const int start = kBehind * warp + (own.first_column - top.first_column) / S::kSteps;
  const int stop = kBehind * (warps - 1) + (bottom.first_column - top.first_column) / S::kSteps + bottom.chunks;
  HardSweep<kPath, S, Tile, P> sweep(problem, open_ends, extent, pair, first + warp, lane, memory[warp]);
  HardPipelines<S> pipelines{
      has_above && warp == 0 ? &handover.above : nullptr, has_below && warp == warps - 1 ? &handover.below : nullptr};
  pipelines.start(sweep);
  for (int time = 0; time < stop; ++time) {
    const int chunk = time - start;
    if (chunk >= 0 && chunk < sweep.chunks) {
      const HardEdge<S>* above = &handover.edges[max(warp - 1, 0)][sweep.group_above(chunk) & 1];
      HardEdge<S>* below = &handover.edges[warp][sweep.own_group(chunk) & 1];
      if constexpr (kHasGroups) pipelines.open(sweep, chunk, above, below);
      sweep.sweep(chunk, *above, *below, table);
      if constexpr (kHasGroups) pipelines.close(sweep, chunk, lane);
    }
    meet(warps);
  }
  pipelines.finish(sweep);
  sweep.finish(value, ends);
}

// How many warps a block has, and how many blocks a pair.
template <class S>
struct HardBlocks {
  int warps;
  int64_t groups;

  explicit HardBlocks(const Problem<typename S::Scalar>& problem) {
    const int64_t strips = Sizes<S>(problem).strips;
    warps = static_cast<int>(std::min<int64_t>(strips, kMostWarps));
    groups = (strips + warps - 1) / warps;
  }
  int64_t tickets() const { return groups > 1 ? groups : 0; }
};

// kMayHaveGroups: whether it is compiled for pairs of several blocks.
template <class Tile, bool kPath, bool kMayHaveGroups, class P, class S = typename Tile::Shape>
cudaError_t launch_hard_sweep(
    const P& problem, const HardBlocks<S>& blocks, bool open_ends, typename S::Scalar* value, const HardMemory<S>& memory,
    cudaStream_t stream, int width_of_others = 0) {
  const int64_t groups = blocks.groups;
  const auto run = [&](auto kernel, int carriers) {
    return launch_kernel(
        kernel, groups * problem.batch, dim3(kWarp, blocks.warps + carriers), 0, stream, problem, open_ends, value,
        memory.rows, memory.table, memory.ends, Tickets(memory.tickets, problem.batch, groups), static_cast<int>(groups),
        width_of_others);
  };
  if (groups == 1) return run(hard_forward_kernel<kPath, false, S, Tile, P>, 0);
  if constexpr (kMayHaveGroups) {
    const cudaError_t error = cudaMemsetAsync(memory.tickets, 0, Tickets::bytes(problem.batch, groups), stream);
    return error != cudaSuccess ? error : run(hard_forward_kernel<kPath, true, S, Tile, P>, kHaloWarps);
  }
  return cudaSuccess;
}

}  // namespace softdtw
