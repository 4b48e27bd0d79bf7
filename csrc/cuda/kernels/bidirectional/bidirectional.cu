// Few pairs of float32 series of one dimension, swept from both ends of the table at once (bidirectional.cuh): backward, and which
// kernels take a problem.
//
// Threads to work: a block takes a ticket, which stands for consecutive strips of one side of one pair; ticket order is both sides'
// first strips first, all pairs side by side. A first launch computes what flows through the cut. In the second one blocks have two
// strips of a side, in order from the last one that this reaches to the side's first: a warp of a strip goes back over it, and four
// rebuild stages ahead of that one.
#include "bidirectional_backward.cuh"
#include "bidirectional_forward.cuh"
#include "cuda/select/face.h"

namespace softdtw {
namespace {

using S = BidirectionalShape;

// Blocks along the cut: what flows of E through it, and zeros to add gradients to.
template <class Tile>
__global__ void __launch_bounds__(kCutThreads) bidirectional_cut(
    const __grid_constant__ Problem<float> problem, const __grid_constant__ Gradient<float> gradient,
    const __grid_constant__ BidirectionalMemory memory, CutOfPair* cuts, CutShares* shares) {
  const int64_t pair = blockIdx.x;
  const Extent extent = problem.extent(pair);
  const bool is_computed = has_gradient(gradient, extent, pair) && !isnan(gradient.arriving(pair));
  const float start = is_computed ? 0 : gradient.without_value(pair);
  const auto fill = [&](const View<float>& out, int64_t count, float with) {
    if (out.data == nullptr) return;
    for (int64_t i = blockIdx.y * kCutThreads + threadIdx.x; i < count; i += gridDim.y * kCutThreads)
      out.pair(pair).at(i, 0) = with;
  };
  fill(gradient.x, problem.n, start);
  fill(gradient.y, problem.m, start);
  if (!is_computed) return;
  const PenaltyAtCut<kHasBand<Tile>> penalty(problem, extent, pair);
  const StatesAtCut<kHasBand<Tile>> states(extent, memory, pair, penalty);
  const Number sum = memory.sum(pair);
  const float scale = static_cast<float>(1 / sum.s);
  states.for_each_lane(blockIdx.y, blockIdx.y + 1, [&](int lane, const CutSteps& steps) {
    CutShares own;
    float most = 0;
#pragma unroll
    for (int i = 0; i < kCutSteps; ++i) {
      own.of[i] = steps.s[i] * scale * DeviceMath<float>::exp2(static_cast<float>(sum.m - steps.m[i]));
      most = greater(most, own.of[i]);
    }
    shares[pair * (states.lanes() + 1) + lane] = own;
    if (lane == 0) shares[(pair + 1) * (states.lanes() + 1) - 1] = {};
    if (most < kLeftOut<float>) return;
    // Between two strips: of both.
    atomicMax(&cuts[pair].strips_from_first, states.strips() - max(lane - 1, 0) / kWarp);
    atomicMax(&cuts[pair].strips_to_last, lane / kWarp + 1);
  });
}

constexpr int kBackwardTeams = 2;  // of a block
// Warps of a block in backward by the scheduler that has them, of four, which take warps in turn: those that go back and the halo warps have
// two of them, so that rebuilding does not keep E waiting.
constexpr int kSchedulers = 4, kBackwardWarps = kSchedulers * kBidirectionalRebuilders;
static_assert(kSchedulers == 2 * kBackwardTeams);

template <class Tile>
__global__ void __launch_bounds__(kWarp* kBackwardWarps, 1) bidirectional_backward(
    const __grid_constant__ Problem<float> problem, const __grid_constant__ Gradient<float> gradient,
    const __grid_constant__ BidirectionalMemory memory, const CutOfPair* cuts, const CutShares* shares, FlowSlot<S>* flows,
    Tickets tickets, int64_t groups) {
  __shared__ Stream streams[kBackwardTeams + 1];
  __shared__ StageQueue queues[kBackwardTeams];
  BidirectionalStages* const stages = reinterpret_cast<BidirectionalStages*>(stage_memory);
  constexpr int kSpecialisedStrips = kBackwardTeams;
  const int lane = threadIdx.x, warp = threadIdx.y;
  if (warp <= kSpecialisedStrips) streams[warp].start(lane);
  if (warp < kSpecialisedStrips) stages[warp].start(lane);
  const auto [turn, group] = take_turn(tickets, 2 * problem.batch);
  const int64_t pair = turn / 2;
  const Extent extent = problem.extent(pair);
  const CutOfPair cut = cuts[pair];
  if (cut.strips_to_last == 0) return;
  const SideOf<Tile> side(extent, turn % 2);
  const SideMemoryOf<Tile> saved{side, memory};
  // Groups and teams count from the side's last strip that E flows into from the cut.
  const int last = (side.is_back ? cut.strips_from_first : cut.strips_to_last) - 1,
            first = last - group * kSpecialisedStrips;
  if (first < 0) return;
  Progress* const words = tickets.words + turn * groups;
  FlowSlot<S>* const row = flows + turn * side.sizes.chunks;
  const int team = warp % kSpecialisedStrips, line = warp / kSchedulers, index = first - team,
            first_stage = expected_stage(side, cut, max(index, 0));
  if (warp < kSpecialisedStrips && lane == 0) queues[team].start(first_stage);
  __syncthreads();
  if (warp < kSpecialisedStrips) {
    if (index < 0) return;
    const CutShares* const shares_of_pair = shares + pair * (side.sizes.strips * kWarp + 1);
    go_back<Tile>(
        problem, gradient, side, shares_of_pair, pair, index, first_stage, stages[team], queues[team],
        index < last ? &streams[team] : nullptr, streams[team + 1]);
  } else if (warp % kSchedulers >= kSpecialisedStrips) {
    if (index >= 0) rebuild_side<Tile>(side, saved, problem, pair, index, line, stages[team], queues[team]);
  } else if (warp == kSchedulers) {
    if (group > 0) StreamRow(row, words + group - 1).carry_in(streams[0], lane);
  } else if (warp > kSchedulers + 1) {
    return;
  } else if (first >= kSpecialisedStrips) {
    StreamRow(row, words + group).carry_out(streams[kSpecialisedStrips], lane);
  } else {
    const View<float> dy = side.seen(gradient.y, pair, extent.m);
    add_sums(streams[first + 1], lane, side, [&](int column, float sum) {
      if (gradient.y.data != nullptr) atomicAdd(dy.data + column * dy.row_stride, sum);
    });
  }
}

// Of a block, beside what it declares.
constexpr int kBackwardBytes = kBackwardTeams * sizeof(BidirectionalStages), kDeclaredBytes = 6 * 1024;
static_assert(kBackwardBytes + kDeclaredBytes <= kBidirectionalBytes);
static_assert((kBackwardTeams + 1) * sizeof(Stream) < kDeclaredBytes - 1024);

// By the tile that kernels are compiled for.
template <class Tile>
struct Launches : ForwardLaunches<Tile> {
  using Sizes = BidirectionalSizes<kHasBand<Tile>>;

  static int64_t saved_bytes(const Problem<float>& problem) {
    return problem.batch * BidirectionalMemory::bytes_of_pair(Sizes::of(problem), true);
  }
  static cudaError_t backward(
      const Problem<float>& problem, const Gradient<float>& gradient, const void* saved, Scratch& scratch,
      cudaStream_t stream) {
    const Sizes sizes = Sizes::of(problem);
    const BidirectionalMemory memory(sizes, const_cast<void*>(saved), true);
    const int64_t ticket_bytes = Tickets::bytes(2 * problem.batch, side_groups(problem, kBackwardTeams)),
                  cut_bytes = problem.batch * sizeof(CutOfPair);
    const auto parts = scratch.parts(
        ticket_bytes, cut_bytes, problem.batch * (sizes.strips * kWarp + 1) * sizeof(CutShares),
        2 * problem.batch * sizes.chunks * sizeof(FlowSlot<S>));
    CutOfPair* const cuts = reinterpret_cast<CutOfPair*>(parts[1]);
    CutShares* const shares = reinterpret_cast<CutShares*>(parts[2]);
    cudaError_t error = cudaMemsetAsync(parts[0], 0, parts[1] + cut_bytes - parts[0], stream);
    if (error != cudaSuccess) return error;
    const Blocks blocks(problem.batch, StatesAtCut<kHasBand<Tile>>::tiles_of(sizes));
    error = launch_kernel(bidirectional_cut<Tile>, blocks, kCutThreads, 0, stream, problem, gradient, memory, cuts, shares);
    if (error != cudaSuccess) return error;
    return launch_sides(
        bidirectional_backward<Tile>, problem, kBackwardTeams, kBackwardWarps, kBackwardBytes, parts[0], stream, gradient,
        memory, cuts, shares, reinterpret_cast<FlowSlot<S>*>(parts[3]));
  }
};

// f(launches) of a problem's tile.
template <class F>
auto with_launches(const Problem<float>& problem, F&& f) {
  return with_tiles(problem, [&](auto tiles) { return f(Launches<typename decltype(tiles)::template Of<S, SideTile>>()); });
}

int64_t saved_bytes(const Problem<float>& problem, const Plan&) {
  return with_launches(problem, [&](auto launches) { return launches.saved_bytes(problem); });
}
cudaError_t forward(
    const Problem<float>& problem, const Plan&, float* value, void* saved, Scratch& scratch, cudaStream_t stream) {
  if (problem.dim > 1) return bidirectional_vectors(problem, value, scratch, stream);
  return with_launches(problem, [&](auto launches) { return launches.forward(problem, value, saved, scratch, stream); });
}
cudaError_t backward(
    const Problem<float>& problem, const Plan&, const Gradient<float>& gradient, const void* saved, Scratch& scratch,
    cudaStream_t stream) {
  return with_launches(
      problem, [&](auto launches) { return launches.backward(problem, gradient, saved, scratch, stream); });
}

}  // namespace

Face<float> bidirectional_face() { return {saved_bytes, forward, backward}; }

}  // namespace softdtw
