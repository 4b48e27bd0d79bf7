// The two sweeps of a strip in backward, each by a warp of its own: one rebuilds stage after stage from what forward saved,
// which waits for no other strip, the other goes back over them. The weights of two stages stand between them.
#pragma once

#include "product_tile.cuh"

namespace softdtw {

// What flows from every strip to the one above, group by group: zeros before the launch, then shares of E, which are never
// negative, with the sign bit set. So a number tells by itself that it is there, strips of different blocks need no other word
// between them, and nobody waits until what it has written has arrived.
struct FlowRows {
  using S = ProductShape;
  static constexpr unsigned kIsThere = 0x80000000u;
  unsigned* words = nullptr;
  int64_t strips = 0, groups = 0;

  static int64_t bytes(int64_t batch, const Sizes<S>& sizes) {
    return batch * (sizes.strips - 1) * (sizes.chunks - S::kSkewChunks) * S::kSteps * sizeof(unsigned);
  }
  FlowRows(void* memory, const Sizes<S>& sizes)
      : words(static_cast<unsigned*>(memory)), strips(sizes.strips - 1), groups(sizes.chunks - S::kSkewChunks) {}

  // What a strip, not the first one, leaves. Groups count from its first column.
  __device__ __forceinline__ unsigned* group(int64_t pair, int strip, int g) const {
    return words + ((pair * strips + strip - 1) * groups + g) * S::kSteps;
  }
  __device__ __forceinline__ static void look_at(const unsigned* group, unsigned (&seen)[S::kSteps]) {
#pragma unroll
    for (int i = 0; i < S::kSteps; i += 4)
      asm volatile("ld.relaxed.gpu.global.v4.u32 {%0, %1, %2, %3}, [%4];"
                   : "=r"(seen[i]), "=r"(seen[i + 1]), "=r"(seen[i + 2]), "=r"(seen[i + 3])
                   : "l"(group + i)
                   : "memory");
  }
  __device__ __forceinline__ static bool are_there(const unsigned (&seen)[S::kSteps]) {
    unsigned all = kIsThere;
#pragma unroll
    for (int i = 0; i < S::kSteps; ++i) all &= seen[i];
    return all != 0;
  }
  __device__ __forceinline__ static void leave(unsigned* group, const float (&flows)[S::kSteps]) {
    unsigned marked[S::kSteps];
#pragma unroll
    for (int i = 0; i < S::kSteps; ++i) marked[i] = __float_as_uint(flows[i]) | kIsThere;
#pragma unroll
    for (int i = 0; i < S::kSteps; i += 4)
      asm volatile("st.relaxed.gpu.global.v4.u32 [%0], {%1, %2, %3, %4};" ::"l"(group + i), "r"(marked[i]),
                   "r"(marked[i + 1]), "r"(marked[i + 2]), "r"(marked[i + 3])
                   : "memory");
  }
};

// A cell's place among the weights of a stage.
__device__ __forceinline__ int weights_at(int part, int k, int t) {
  using S = ProductShape;
  return ((part * S::kSteps + t) * S::kRows + k) * kWarp;
}

template <class Channel>
__device__ void rebuild_strip(
    const Problem<float>& problem, const Extent& extent, const Surroundings<ProductShape>& around, int64_t pair, int index,
    const Saved<ProductShape>& saved, Channel& channel) {
  using S = ProductShape;
  using Costs = typename Channel::Costs;
  const int lane = threadIdx.x;
  const Strip<S>& strip = around.strip;
  const int last_chunk = chunks_of<true>(around, true) - 1, last_stage = last_chunk / S::kStage;
  const int above_groups = around.is_first ? 0 : around.above.groups();
  const Edge<S> above_edge = saved.edges.of(pair, index - 1, around.above);
  const Recurrences<S> recurrences(problem, pair);
  ProductTile<Channel, true> tile(problem, extent, strip, pair, lane);

  // Copies the snapshot of a stage, and the groups of the edge above that it meets, four lanes a group and one a reference.
  const auto fetch = [&](int stage) {
    if (stage > 0) {
#pragma unroll
      for (int at = 16 * lane; at < Snapshot<S>::kBytes; at += 16 * kWarp)
        __pipeline_memcpy_async(channel.snapshot + at, saved.stage(pair, index, stage) + at, 16);
    }
    constexpr int kPieces = 2 * S::kSteps * sizeof(float) / 16, kFloats = 2 * S::kSteps / kPieces;
    const int part = lane / kPieces % S::kStage, piece = lane % kPieces;
    const int group = stage * S::kStage + part + around.above_offset;
    EdgeSlot<S>& slot = channel.edges[stage % 2][part];
    if (group < above_groups && lane < kPieces * S::kStage) {
      __pipeline_memcpy_async(slot.entries + piece * kFloats, above_edge.group(group) + piece * kFloats, 16);
      if (piece == 0) __pipeline_memcpy_async(&slot.reference, above_edge.references + group, sizeof(double));
    }
    __pipeline_commit();
  };

  fetch(last_stage);
  for (int stage = last_stage; stage >= 0; --stage) {
    const int first_chunk = stage * S::kStage, parts = min(S::kStage, last_chunk + 1 - first_chunk);
    const int turn = last_stage - stage, buffer = turn % Channel::kBuffers;
    __pipeline_wait_prior(0);
    __syncwarp();
    RobustState<S> state;
    if (stage > 0) {
      state.load(channel.snapshot, lane);
      if (stage > 2) prefetch<S>(saved.stage(pair, index, stage - 2), lane);
      __syncwarp();
      fetch(stage - 1);
    } else {
      state.start(around.is_first && lane == 0);
    }
    if (turn >= Channel::kBuffers) channel.released[buffer].wait(turn / Channel::kBuffers - 1);
    float2* const kept = reinterpret_cast<float2*>(channel.weights[buffer]) + lane;
    Width<S> width;
    double lane_above = 0;
#pragma unroll 1
    for (int part = 0; part < parts; ++part) {
      const Place<S> place(strip, extent, first_chunk + part, lane);
      tile.use(place);
      RobustTop<S> top;
      if (first_chunk + part + around.above_offset < above_groups && lane == 0) top.read(channel.edges[stage % 2][part]);
      if (part == 0) {
        if (stage == 0) state.renew(lane, top.reference);
        lane_above = __shfl_up_sync(kAllLanes, state.reference, 1) - state.reference;
        width.start(state);
      }
      const double above = above_of(top, state, lane, lane_above);
      const bool plain = width.plain(recurrences, top, above, tile.reach, place.in_band && !recurrences.has_penalty, state);
      const auto keep = [&](int k, int t, const Weights<float>& weights) {
        kept[weights_at(part, k, t)] = make_float2(weights.up, weights.left);
      };
      sweep_chunk_ahead(
          recurrences, extent, place, lane, top, above, plain, width, state,
          [&](const auto& recurrence, int k, int t, auto diag, auto up, auto left) {
            Weights<float> weights;
            const auto cell = recurrence.cell(diag, up, left, tile.cost(k, t), weights);
            keep(k, t, weights);
            return cell;
          },
          [&](int k, int t) { return recurrences.plain.split(tile.cost(k, t), recurrences.plain.scale); },
          [&](int k, int t, const auto& terms, float diag, float up, float left) {
            Weights<float> weights;
            const float sum = sum_of(terms, diag, up, left, weights);
            keep(k, t, weights);
            return sum;
          },
          [](int, auto) {});
    }
    channel.rebuilt[buffer].arrive();
    // The next stage still meets the lower half of this one's batches.
    for (int batch = first_chunk / kBatchGroups; batch * kBatchGroups <= first_chunk + parts - 1; ++batch)
      channel.costs.released[Costs::slot(batch)].arrive();
  }
}

template <class Channel>
__device__ void reverse_strip(
    const Extent& extent, const Surroundings<ProductShape>& around, int64_t pair, int index, const FlowRows& flows,
    Channel& channel) {
  using S = ProductShape;
  using Alignment = typename Channel::Alignment;
  const int lane = threadIdx.x;
  const Strip<S>& strip = around.strip;
  const int last_chunk = chunks_of<true>(around, true) - 1, last_stage = last_chunk / S::kStage;
  const int top = last_chunk / kBatchGroups;
  int next_batch = top - Alignment::kBatches;  // whose slot another batch holds until it is released
  // Lane 31's columns start one right of a group of the strip below, in these chunks.
  const int first_taken = S::kSkewChunks + around.below_offset;
  const unsigned taken = lane == kWarp - 1 && !around.is_last ? around.below.groups() : 0;
  const auto takes = [&](int chunk) { return static_cast<unsigned>(chunk - first_taken) < taken; };
  const unsigned* const below_flows = flows.group(pair, index + 1, 0);
  unsigned words[S::kSteps];
  const auto look = [&](int chunk) { FlowRows::look_at(below_flows + (chunk - first_taken) * S::kSteps, words); };
  if (takes(last_chunk)) look(last_chunk);
  unsigned* const own_flows = flows.group(pair, index, 0);
  const int left = lane == 0 && !around.is_first ? strip.groups() : 0;

  RobustFlow<S> flow;
  for (int stage = last_stage; stage >= 0; --stage) {
    const int first_chunk = stage * S::kStage, parts = min(S::kStage, last_chunk + 1 - first_chunk);
    const int turn = last_stage - stage, buffer = turn % Channel::kBuffers;
    const float2* const kept = reinterpret_cast<const float2*>(channel.weights[buffer]) + lane;
    channel.rebuilt[buffer].wait(turn / Channel::kBuffers);
#pragma unroll 1
    for (int part = parts - 1; part >= 0; --part) {
      const int chunk = first_chunk + part;
      const Place<S> place(strip, extent, chunk, lane);
      if (takes(chunk)) {
#pragma unroll 1
        while (!FlowRows::are_there(words)) look(chunk);
      }
      float below[S::kSteps];
#pragma unroll
      for (int t = 0; t < S::kSteps; ++t) below[t] = __uint_as_float(takes(chunk) ? words[t] & ~FlowRows::kIsThere : 0u);
      if (takes(chunk - 1)) look(chunk - 1);
      __syncwarp();

      float alignment[S::kRows][S::kSteps], handed_on[S::kSteps];
      const auto weights = [&](int k, int t) {
        const float2 two = kept[weights_at(part, k, t)];
        return Weights<float>{two.x, two.y};
      };
      const auto cell = [&](int k, int t, float e) { alignment[k][t] = e; };
      const auto column = [&](int t, float handed) { handed_on[t] = handed; };
      if (place.in_band && chunk != around.end_chunk)
        sweep_robust_reversed<false, S>(weights, extent, place, lane, -1, -1, below, flow, cell, column);
      else
        sweep_robust_reversed<true, S>(
            weights, extent, place, lane, chunk == around.end_chunk && lane == around.end_lane ? around.end_row : -1,
            around.end_time % S::kSteps, below, flow, cell, column);
      if (chunk < left) FlowRows::leave(own_flows + chunk * S::kSteps, handed_on);

#pragma unroll 1
      for (; next_batch >= (chunk - S::kSkewChunks) >> 1; --next_batch)
        channel.alignment.released[Alignment::slot(next_batch)].wait((top - next_batch) / Alignment::kBatches - 1);
      const ChunkInRing<Alignment> cells(chunk, lane);
#pragma unroll
      for (int t = 0; t < S::kSteps; ++t)
        cells.two_rows(channel.alignment, t) = make_float2(alignment[0][t], alignment[1][t]);
      if (chunk % kBatchGroups == 0) channel.alignment.filled[Alignment::slot(chunk / kBatchGroups)].arrive();
    }
    channel.released[buffer].arrive();
  }
}

}  // namespace softdtw
