// The first sweep of a strip in backward, by warps of their own: they rebuild stage after stage from what forward saved, which
// waits for no other strip. The weights of two stages stand between them and the sweep back (product_reverse.cuh).
#pragma once

#include "product_tile.cuh"

namespace softdtw {

// A cell's place among the weights of a stage.
__device__ __forceinline__ int weights_at(int part, int k, int t) {
  using S = ProductShape;
  return ((part * S::kSteps + t) * S::kRows + k) * kWarp;
}

// Half a chunk: loops over halves have few instructions, since the warps of a strip share what caches them.
struct HalfShape : ProductShape {
  static constexpr int kSteps = ProductShape::kSteps / 2;
};

// Rebuilds every kRebuilders-th stage of a run. Turns count all of them.
template <class Channel>
__device__ void rebuild_strip(
    const Problem<float>& problem, const Extent& extent, const Surroundings<ProductShape>& around, int64_t pair, int index,
    const Saved<ProductShape>& saved, int rebuilder, int last_chunk, Channel& channel) {
  using S = ProductShape;
  using Costs = typename Channel::Costs;
  constexpr int kRebuilders = Channel::Warps::kRebuilders;
  const int lane = threadIdx.x;
  const Strip<S>& strip = around.strip;
  const int above_groups = around.is_first ? 0 : around.above.groups();
  const Edge<S> above_edge = saved.edges.of(pair, index - 1, around.above);
  const Recurrences<S> recurrences(problem, pair);
  int has_penalty = recurrences.has_penalty;
  pin(has_penalty);
  RebuildSources& sources = channel.sources[rebuilder];
  const int last_stage = last_chunk / S::kStage;
  ProductTile<Channel, true> tile(problem, extent, strip, pair, lane, last_chunk);

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
  fetch(first_stage, 0);
  for (int stage = first_stage, edges = 0; stage >= 0; stage -= kRebuilders, edges = 1 - edges) {
    const int first_chunk = stage * S::kStage, parts = min(S::kStage, last_chunk + 1 - first_chunk);
    const int turn = last_stage - stage, buffer = turn % Channel::kBuffers;
    __pipeline_wait_prior(0);
    __syncwarp();
    RobustState<S> state;
    if (stage > 0) {
      state.load(sources.snapshot, lane);
      if (stage > 2 * kRebuilders) prefetch<S>(saved.stage(pair, index, stage - 2 * kRebuilders), lane);
    } else {
      state.start(around.is_first && lane == 0);
    }
    __syncwarp();
    if (turn >= Channel::kBuffers) {
      channel.released[buffer].wait(turn / Channel::kBuffers - 1);
      const auto end = channel.stage_ends[buffer];
      if (end != Channel::kGoesOn) {
        // Those who compute costs may wait for what this stage leaves.
        if (end == Channel::kEndsHere) {
          tile.await(first_chunk);
          leave_batches(stage, true);
        }
        return;
      }
    }
    if (stage >= kRebuilders) fetch(stage - kRebuilders, 1 - edges);
    float2* const kept = reinterpret_cast<float2*>(channel.weights[buffer]) + lane;
    Width<S> width;
    RobustTop<S> top;
    double lane_above = 0, above_reference = 0;
    float shift = 0;
    tile.await(first_chunk);
#pragma unroll 1
    for (int part = 0; part < parts; ++part) {
      const int chunk = first_chunk + part;
      const Place<S> place(strip, extent, chunk, lane);
      const ChunkInRing<Costs> cells(chunk, lane);
      const EdgeSlot<S>& slot = sources.edges[edges][part];
      top.exists = chunk + around.above_offset < above_groups;
      top.reference = top.exists ? slot.reference : 0;
      top.wide = top.exists && PackedEntry{0, __float_as_uint(slot.entries[S::kSteps])}.exists();
      if (part == 0) {
        if (stage == 0) state.renew(lane, top.reference);
        lane_above = __shfl_up_sync(kAllLanes, state.reference, 1) - state.reference;
        width.start(state);
      }
      if (part == 0 || top.reference != above_reference) {
        shift = shift_of<S>(above_of(top, state, lane, lane_above));
        above_reference = top.reference;
      }
      const auto keep = [&](int k, int t, const Weights<float>& weights) {
        kept[weights_at(part, k, t)] = make_float2(weights.up, weights.left);
      };
      const auto column = [](int, auto) {};
      const float rise = Width<S>::rise_of(recurrences, tile.reach_of(cells), place.in_band && has_penalty == 0);
      const bool plain =
          width.plain(rise, shift, top.wide, state) && sweep_plain(width, state, [&](Lane<S, float>& entries) {
            Lane<HalfShape, float> lane_entries;
#pragma unroll
            for (int i = 0; i <= S::kRows; ++i) lane_entries.at(i) = entries.at(i);
#pragma unroll 1
            for (int t0 = 0; t0 < S::kSteps; t0 += HalfShape::kSteps) {
              RobustTop<HalfShape> half_top;
              if (top.exists) {
                load_group(slot.entries + t0, true, half_top.m);
                load_group(slot.entries + S::kSteps + t0, true, half_top.s);
              }
              float costs[S::kRows][HalfShape::kSteps];
#pragma unroll
              for (int t = 0; t < HalfShape::kSteps; ++t) {
                const float2 two = cells.two_rows(channel.costs, t0, t);
                costs[0][t] = two.x;
                costs[1][t] = two.y;
              }
              sweep_ahead(
                  lane, half_top, shift, lane_entries,
                  [&](int k, int t) { return recurrences.plain.split(costs[k][t], recurrences.plain.scale); },
                  [&](int k, int t, const auto& terms, float diag, float up, float left) {
                    Weights<float> weights;
                    const float sum = sum_of(terms, diag, up, left, weights);
                    keep(k, t0 + t, weights);
                    return sum;
                  },
                  [](int, auto) {});
            }
#pragma unroll
            for (int i = 0; i <= S::kRows; ++i) entries.at(i) = lane_entries.at(i);
          });
      if (!plain) {
        if (top.exists)
          top.read(slot);
        else
          top = RobustTop<S>();
        tile.read(cells);
        sweep_general(
            recurrences, extent, place, lane, top, above_of(top, state, lane, lane_above), state,
            [&](const auto& recurrence, int k, int t, auto diag, auto up, auto left) {
              Weights<float> weights;
              const auto cell = recurrence.cell(diag, up, left, tile.cost(k, t), weights);
              keep(k, t, weights);
              return cell;
            },
            [](int, auto) {});
      }
    }
    channel.rebuilt[buffer].arrive();
    leave_batches(stage, false);
  }
}

}  // namespace softdtw
