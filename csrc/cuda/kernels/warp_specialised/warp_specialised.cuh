// The extended range for few pairs, whose time is the latency of a chunk: a team of warps for every strip of float32 series of
// one dimension, if they are not swept from both ends of the table (bidirectional.h), and in forward of a few (few_dims_tile.cuh). One warp
// sweeps, and the others do what it need not wait for. Two rows a lane; forward four where strips of two would have to take turns.
//
// Forward a second warp computes what costs add to m and multiply s with, ahead of the sweep. Backward two warps rebuild
// stages in turn from their snapshots, ahead of the one that goes back over them. Strips of a block hand over through pipelines
// (pipeline.cuh). What another block leaves is carried in by a warp of the block, and what its last strip leaves is carried out by
// another.
#pragma once

#include "cuda/gradients/strip_gradient.cuh"
#include "cuda/hardware/launch.cuh"
#include "cuda/kernels/extended_range/engines.cuh"
#include "cuda/strips/tickets.cuh"
#include "warp_specialised_backward.cuh"
#include "warp_specialised_forward.cuh"

namespace softdtw {
namespace {  // of warp_specialised.cu alone

constexpr int kForwardStripWarps = 2, kBackwardStripWarps = 1 + kRebuilders;  // warps

// A block of teams: warps that sweep the strips, those that split cost their cells, and the halo warps.
template <class Engine, class S = typename Engine::S>
__global__ void __launch_bounds__(kWarp*(kForwardStripWarps* kSpecialisedStrips + kHaloWarps), 1) warp_specialised_forward(
    const __grid_constant__ Problem<typename S::Scalar> problem, typename S::Scalar* value, Saved<S> saved, Edges<S> edges,
    Tickets tickets, int64_t groups) {
  using Tile = typename Engine::Tile;
  __shared__ EdgePipeline<S> pipelines[kSpecialisedStrips + 1];
  using Team = SpecialisedForward<S, Tile>;
  Team* const memory = reinterpret_cast<Team*>(stage_memory);
  const int lane = threadIdx.x, warp = threadIdx.y, teams = (blockDim.y - kHaloWarps) / kForwardStripWarps;
  if (warp <= teams) pipelines[warp].start(lane);
  if (warp < teams) memory[warp].split_costs.start(lane);
  const auto [pair, group] = take_turn(tickets, problem.batch);
  const Extent extent = problem.extent(pair);
  if (!extent.valid()) {
    if (group == 0) invalid_forward(value, pair);
    return;
  }
  const int strips = strips_of<S>(extent), first = group * teams, end = first + teams;
  const bool keeps = saved.memory != nullptr;
  Progress* const words = tickets.words + pair * groups;
  if (warp < kForwardStripWarps * teams) {
    // Where split costs take as long as the sweeps, two schedulers have the sweeps and two the split costs: each caches one loop alone.
    const bool apart = !Tile::kUnivariate && teams == 4;
    const int team = apart ? warp / 4 * 2 + warp % 2 : warp % teams, strip = first + team;
    if (strip >= strips) return;
    if (apart ? warp % 4 < 2 : warp < teams)
      specialised_forward<S, Tile>(
          problem, extent, pair, strip, saved, keeps && team > 0, pipelines[team], pipelines[team + 1],
          memory[team].split_costs, value);
    else
      specialised_split_costs<S, Tile>(problem, extent, pair, strip, keeps, memory[team]);
  } else if (warp == kForwardStripWarps * teams) {
    if (first == 0 || first >= strips) return;
    carry_edge_in(edges, extent, pair, first, pipelines[0], words + group - 1, lane);
  } else if (end < strips) {
    carry_edge_out(edges, extent, pair, end - 1, pipelines[teams], words + group, lane);
  }
}

// Warps: those that go back over the strips, for every strip two that rebuild it, and the halo warps.
template <class Engine, class S = typename Engine::S>
__global__ void __launch_bounds__(kWarp*(kBackwardStripWarps* kSpecialisedStrips + kHaloWarps), 1)
    warp_specialised_backward(
        const __grid_constant__ Problem<typename S::Scalar> problem,
        const __grid_constant__ Gradient<typename S::Scalar> gradient, Saved<S> saved, FlowSlot<S>* flows, Tickets tickets,
        int64_t groups) {
  __shared__ FlowPipeline<S> pipelines[kSpecialisedStrips + 1];
  SpecialisedStages<S>* const stages = reinterpret_cast<SpecialisedStages<S>*>(stage_memory);
  const int lane = threadIdx.x, warp = threadIdx.y, teams = (blockDim.y - kHaloWarps) / kBackwardStripWarps;
  if (warp <= teams) pipelines[warp].start(lane);
  if (warp < teams) stages[warp].start(lane);
  const auto [pair, group] = take_turn(tickets, problem.batch);
  const Extent extent = problem.extent(pair);
  if (!has_gradient(gradient, extent, pair)) {
    if (group == 0) invalid_backward(problem, gradient, pair);
    return;
  }
  // Groups and teams count from the pair's last strip.
  const int first = strips_of<S>(extent) - 1 - group * teams;
  Progress* const words = tickets.words + pair * groups;
  // A row of groups, which the last strips of the pair's blocks use in turn.
  FlowSlot<S>* const row = flows + pair * ((problem.m + S::kSteps - 1) / S::kSteps);
  if (warp < kBackwardStripWarps * teams) {
    const int team = warp % teams, strip = first - team;
    if (strip < 0) return;
    if (warp < teams)
      specialised_backward<S, typename Engine::Tile>(
          problem, gradient, extent, pair, strip, stages[team], pipelines[team], pipelines[team + 1]);
    else
      specialised_rebuild<S, typename Engine::Tile>(problem, extent, pair, strip, saved, warp / teams - 1, stages[team]);
  } else if (warp == kBackwardStripWarps * teams) {
    if (group == 0 || first < 0) return;
    const Strip<S> below(extent, first + 1);
    const FlowSlot<S>* const last_group = row + below.first_column / S::kSteps + below.groups() - 1;
    carry_in(pipelines[0], below.groups(), words + group - 1, lane, [&](int item, FlowSlot<S>& to) {
      copy_flows(last_group - item, to);
    });
  } else if (first - teams >= 0) {
    const Strip<S> last(extent, first - teams + 1);
    FlowSlot<S>* const last_group = row + last.first_column / S::kSteps + last.groups() - 1;
    carry_out(pipelines[teams], last.groups(), words + group, lane, [&](const FlowSlot<S>& from, int item) {
      *(last_group - item) = from;
    });
  }
}

// Strips of a block, beside what all of them share.
inline int teams_of(int64_t bytes_of_team) {
  return strips_of_block(current_device(), bytes_of_team, 10 * 1024, kSpecialisedStrips);
}

template <class Engine>
cudaError_t launch_specialised_forward(
    const Problem<float>& problem, float* value, void* saved, Scratch& scratch, cudaStream_t stream) {
  using S = typename Engine::S;
  using Team = SpecialisedForward<S, typename Engine::Tile>;
  const int teams = teams_of(sizeof(Team));
  const ForwardMemory<S> memory(problem, teams, saved, scratch);
  const auto run = [&](const Tickets& tickets, int64_t groups, int64_t blocks) {
    return launch_kernel(
        warp_specialised_forward<Engine>, blocks, dim3(kWarp, kForwardStripWarps * teams + kHaloWarps),
        teams * sizeof(Team), stream, problem, value, memory.saved, memory.edges, tickets, groups);
  };
  return with_tickets<S>(problem, memory.tickets, teams, stream, run);
}

template <class Engine>
cudaError_t launch_specialised_backward(
    const Problem<float>& problem, const Gradient<float>& gradient, const void* saved, Scratch& scratch,
    cudaStream_t stream) {
  using S = typename Engine::S;
  const int teams = teams_of(sizeof(SpecialisedStages<S>));
  const auto parts =
      scratch.parts(ticket_bytes<S>(problem, teams), problem.batch * Sizes<S>(problem).groups * sizeof(FlowSlot<S>));
  const auto run = [&](const Tickets& tickets, int64_t groups, int64_t blocks) {
    return launch_kernel(
        warp_specialised_backward<Engine>, blocks, dim3(kWarp, kBackwardStripWarps * teams + kHaloWarps),
        teams * sizeof(SpecialisedStages<S>), stream, problem, gradient, saved_at<S>(problem, saved),
        reinterpret_cast<FlowSlot<S>*>(parts[1]), tickets, groups);
  };
  return with_tickets<S>(problem, parts[0], teams, stream, run);
}

// `rows`: of a lane.
template <template <class> class TileOf>
cudaError_t launch_warp_specialised_forward(
    int rows, const Problem<float>& problem, float* value, void* saved, Scratch& scratch, cudaStream_t stream) {
  return with_shape<float>(rows, [&](auto shape) {
    using S = decltype(shape);
    return launch_specialised_forward<ExtendedRange<S, TileOf<S>, true>>(problem, value, saved, scratch, stream);
  });
}

}  // namespace
}  // namespace softdtw
