// The first sweep of a strip in backward, by warps of their own: they rebuild stage after stage from what forward saved, which
// waits for no other strip. The weights of two stages stand between them and the sweep back (multivariate_reverse.cuh).
#pragma once

#include "cuda/costs/multivariate/multivariate_tile.cuh"
#include "cuda/kernels/warp_specialised/options.cuh"
#include "multivariate_channel.cuh"

namespace softdtw {

// A cell's place among the weights of a stage, of the chunk in a place of it.
__device__ __forceinline__ int weights_at(int place, int k, int t) {
  using S = MultivariateShape;
  return ((place * S::kSteps + t) * S::kRows + k) * kWarp;
}

// A part of a chunk: loops over parts have few instructions, since the warps of a strip share what caches them.
template <int kParts>
struct PartShape : MultivariateShape {
  static constexpr int kSteps = MultivariateShape::kSteps / kParts;
};
using HalfShape = PartShape<2>;

// Whether the general sweep has left a group of an edge.
__device__ __forceinline__ bool is_wide(const EdgeSlot<MultivariateShape>& slot) {
  return PackedEntry{0, __float_as_uint(slot.entries[MultivariateShape::kSteps])}.exists();
}

// The plain sweep over a chunk, `keep(k, t, weights, cost)`. kMarked: the sign of a cost is a mark.
template <class Part, bool kMarked, class Options, class Costs, class Keep>
__device__ __forceinline__ void sweep_in_parts(
    const typename Options::OfStrip& recurrences, int lane, const EdgeSlot<MultivariateShape>& above, float shift,
    Costs& costs, const ChunkInPipeline<Costs>& cells, Lane<MultivariateShape, float>& entries, Keep&& keep) {
  using S = MultivariateShape;
  Lane<Part, float> lane_entries;
#pragma unroll
  for (int i = 0; i <= S::kRows; ++i) lane_entries.at(i) = entries.at(i);
#pragma unroll 1
  for (int t0 = 0; t0 < S::kSteps; t0 += Part::kSteps) {
    ExtendedTop<Part> top;
    // Two at a time: single ones would be loaded by lane 0 alone, later, in the chain of what follows from each other.
#pragma unroll
    for (int t = 0; t < Part::kSteps; t += 2) {
      const float2 m = *reinterpret_cast<const float2*>(above.entries + t0 + t);
      const float2 s = *reinterpret_cast<const float2*>(above.entries + S::kSteps + t0 + t);
      top.m[t] = m.x, top.m[t + 1] = m.y, top.s[t] = s.x, top.s[t + 1] = s.y;
    }
    float own[S::kRows][Part::kSteps];
#pragma unroll
    for (int t = 0; t < Part::kSteps; ++t) {
      const auto two = cells.two_rows(costs, t0, t);
      own[0][t] = two.x;
      own[1][t] = two.y;
    }
    sweep_ahead<kHasFastBits>(
        lane, top, shift, lane_entries,
        [&](int k, int t) { return Options::split_cost(recurrences, kMarked ? fabsf(own[k][t]) : own[k][t]); },
        [&](int k, int t, const auto& terms, float diag, float up, float left) {
          Weights<float> weights;
          const float sum = sum_of(terms, diag, up, left, weights);
          keep(k, t0 + t, weights, own[k][t]);
          return sum;
        },
        [](int, auto) {});
  }
#pragma unroll
  for (int i = 0; i <= S::kRows; ++i) entries.at(i) = lane_entries.at(i);
}

// Rebuilds every kRebuilders-th stage of a run. Turns count all of them.
template <class Channel>
__device__ void rebuild_strip(
    const Problem<float>& problem, const Extent& extent, const Surroundings<MultivariateShape>& around, int64_t pair,
    int index, const Saved<MultivariateShape>& saved, int rebuilder, int last_chunk, Channel& channel) {
  using S = MultivariateShape;
  using Costs = typename Channel::Costs;
  constexpr int kRebuilders = Channel::Warps::kRebuilders;
  const int lane = threadIdx.x;
  const Strip<S>& strip = around.strip;
  const int above_groups = around.is_first ? 0 : around.above.groups();
  const Edge<S> above_edge = saved.edges.of(pair, index - 1, around.above);
  using Options = CostOptions<S>;
  const typename Options::OfStrip recurrences(problem, pair);
  RebuildSources& sources = channel.sources[rebuilder];
  const int last_stage = last_chunk / S::kStage;
  constexpr bool kDivides = Channel::kIsDivided;
  MultivariateTile<Costs, true, kDivides> tile(strip, lane, channel.costs, last_chunk);

  // Copies the snapshot of a stage, and the groups of the edge above that it meets, four lanes a group and one a reference.
  const auto fetch = [&](int stage, int slot_of_edges) {
    if (stage > 0) {
#pragma unroll
      for (int at = 16 * lane; at < Snapshot<S>::kBytes; at += 16 * kWarp)
        __pipeline_memcpy_async(sources.snapshot + at, saved.stage(pair, index, stage) + at, 16);
    }
    constexpr int kPieces = 2 * S::kSteps * sizeof(float) / 16, kFloats = 2 * S::kSteps / kPieces;
    const int part = lane / kPieces % S::kStage, piece = lane % kPieces;
    const int group = stage * S::kStage + part + around.above_offset;
    EdgeSlot<S>& slot = sources.edges[slot_of_edges][part];
    if (group < above_groups && lane < kPieces * S::kStage) {
      __pipeline_memcpy_async(slot.entries + piece * kFloats, above_edge.group(group) + piece * kFloats, 16);
      if (piece == 0) __pipeline_memcpy_async(&slot.reference, above_edge.references + group, sizeof(double));
    }
    __pipeline_commit();
  };
  // A stage is done with its own batches, and with the upper half of those of the stage after it, as that one is, if there is
  // one.
  const auto leave_batches = [&](int stage, bool ends) {
    const int own = stage * S::kStage / kBatchGroups, end = min(own + S::kStage / kBatchGroups, tile.top + 1);
    for (int batch = own - kEarlyBatches; batch < end; ++batch) {
      const int slot = Costs::slot(batch);
      if (ends && batch >= own && lane == 0) channel.costs_end[slot] = true;
      __syncwarp();
      channel.costs.released[slot].arrive();
      if (batch >= own && stage == last_stage) channel.costs.released[slot].arrive();
    }
  };

  const int first_stage = last_stage - rebuilder;
  if (first_stage < 0) return;
  // Batches that the first one alone meets are not waited for: their slots may be filled once more before this warp looks.
  tile.awaited = min(tile.awaited, (first_stage + 1) * (S::kStage / kBatchGroups) - 1);
  int end_plain = recurrences.has_penalty ? 0 : last_chunk + 1;  // of the chunks of which no cell needs a check
  pin(end_plain);
  // Groups that the edge above does not have are right of those that it has, so what stands here first is theirs.
  if (lane < 2 * S::kStage) {
    EdgeSlot<S>& slot = sources.edges[lane / S::kStage][lane % S::kStage];
#pragma unroll
    for (int t = 0; t < S::kSteps; ++t) slot.entries[t] = nowhere<S>(), slot.entries[S::kSteps + t] = 1;
    slot.reference = -floor_of_m<S>();
  }
  __syncwarp();
  fetch(first_stage, 0);
  for (int stage = first_stage, edges = 0; stage >= 0; stage -= kRebuilders, edges = 1 - edges) {
    const int first_chunk = stage * S::kStage, parts = min(S::kStage, last_chunk + 1 - first_chunk);
    const int turn = last_stage - stage, buffer = turn % Channel::kBuffers;
    __pipeline_wait_prior(0);
    __syncwarp();
    ExtendedState<S> state;
    if (stage > 0) {
      state.load(sources.snapshot, lane);
      if (stage > 2 * kRebuilders) prefetch<S>(saved.stage(pair, index, stage - 2 * kRebuilders), lane);
    } else {
      state.start(around.is_first && lane == 0);
    }
    __syncwarp();
    const auto await_place = [&](int part) {
      if (turn < Channel::kBuffers) return;
      channel.released[buffer][Channel::place_of(turn, part)].wait(turn / Channel::kBuffers - 1);
    };
    await_place(0);
    if (turn >= Channel::kBuffers) {
      const auto end = channel.stage_ends[buffer];
      if (end != Channel::kGoesOn) {
        // Those who compute costs may wait for what this stage leaves.
        if (end == Channel::kEndsHere) {
          tile.wait(first_chunk);
          leave_batches(stage, true);
        }
        return;
      }
    }
    if (stage >= kRebuilders) fetch(stage - kRebuilders, 1 - edges);
    float2* const kept = reinterpret_cast<float2*>(channel.weights[buffer]) + lane;
    const auto keep = [&](int part, int k, int t, const Weights<float>& weights, float cost) {
      const int at = weights_at(Channel::place_of(turn, part), k, t);
      kept[at] = make_float2(weights.up, weights.left);
      const bool is_number = cost != 0 && cost != INFINITY;
      if constexpr (kDivides) channel.inverses[buffer][at + lane] = is_number ? DeviceMath<float>::reciprocal(cost) : 0;
    };
    const int above_parts = above_groups - around.above_offset - first_chunk;  // those that the edge above meets
    const EdgeSlot<S>* const slots = sources.edges[edges];
    ExtendedTop<S> top;
    float of_lane_above = 0, shift = 0;
    const auto look_above = [&](int part) {
      top.exists = part < above_parts;
      top.reference = slots[part].reference;
      shift = shift_of<S>(top, state, lane, of_lane_above);
    };
    if (stage == 0) state.renew(lane, slots[0].reference);
    of_lane_above = shift_of_lane_above(state);
    look_above(0);
    Width<S> width;
    width.start(state);
    state.become(!__all_sync(kAllLanes, width.fits));
    tile.wait(first_chunk);
    ChunkInPipeline<Costs> cells(first_chunk, lane);
    // The first loop is for chunks that need no check, without a jump in it; it is checked when it is done.
    for (int part = 0; part < parts; ++part, cells.forth()) {
#pragma unroll 1
      for (; part < min(parts, end_plain - first_chunk) && !state.is_wide; ++part, cells.forth()) {
        if (slots[part].reference != top.reference || top.exists != (part < above_parts)) look_above(part);
        if (part > 0) await_place(part);
        const auto before = state.narrow;
        sweep_in_parts<PartShape<Channel::kRebuiltParts>, kDivides, Options>(
            recurrences, lane, slots[part], shift, channel.costs, cells, state.narrow,
            [&](int k, int t, const Weights<float>& weights, float cost) { keep(part, k, t, weights, cost); });
        width.spend(Width<S>::rise_of(recurrences, tile.reach_of(cells), true), shift, is_wide(slots[part]));
        if (!__all_sync(kAllLanes, width.fits & is_exact<kHasFastBits>(state.narrow))) {
          state.narrow = before;
          state.become(true);
          break;
        }
        normalise(state.narrow);
      }
      if (part >= parts) break;
      if (part > 0) await_place(part);
      look_above(part);
      top.read(slots[part]);
      top.exists = part < above_parts;
      tile.read(cells);
      state.become(true);
      width.fits = false;
      tile.reach = tile.reach_of(cells);
      const Place<S> place(strip, extent, first_chunk + part, lane);
      with_general_costs<S>(problem, extent, pair, place, recurrences, tile, [&](const auto& cost) {
        sweep_general(
            extent, place, lane, top, of_lane_above, state,
            [&](int k, int t, auto diag, auto up, auto left) {
              Weights<float> weights;
              const auto cell = recurrences.charged(recurrences.general.cell(diag, up, left, cost(k, t), weights));
              keep(part, k, t, weights, pick(tile.costs[k], t));
              return cell;
            },
            [](int, auto) {});
      });
    }
    channel.rebuilt[buffer].arrive();
    leave_batches(stage, false);
  }
}

}  // namespace softdtw
