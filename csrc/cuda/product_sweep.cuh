// The two sweeps of a strip in backward, each by a warp of its own: one rebuilds stage after stage from what forward saved,
// which waits for no other strip, the other goes back over them. The weights of two stages stand between them.
#pragma once

#include "product_tile.cuh"

namespace softdtw {

// What flows from every strip to the one above, group by group: zeros before the launch, then shares of E, which are never
// negative, with the sign bit set. So a number tells by itself that it is there, strips of different blocks need no other word
// between them, and nobody waits until what it has written has arrived.
//
// Most of E is all but 0, far from every likely path, and no sweep goes there. A strip looks for the first flow that counts
// from where the strip below has met its own: paths lead up and to the left, so nothing comes further right. It ends where
// neither it nor the strip below has any left. A flow below kNegligible does not count. What the sweeps so leave out is less
// than 2^8 such flows a chunk, and E anywhere is too small by no more than their sum over all chunks: 2^-29 in a table of 2^36
// cells.
struct FlowRows {
  using S = ProductShape;
  static constexpr unsigned kIsThere = 0x80000000u;
  unsigned* words = nullptr;
  int64_t strips = 0, groups = 0;

  // Of a strip, for those above: 1 + the group of the table's columns at which lane 0 of the next one is when something may
  // reach it, and 1 + the first of its own groups that flows were left in.
  struct Span {
    unsigned start, end;
  };
  Span* spans = nullptr;

  static int64_t words_of(int64_t batch, const Sizes<S>& sizes) {
    return batch * (sizes.strips - 1) * (sizes.chunks - S::kSkewChunks) * S::kSteps;
  }
  static int64_t bytes(int64_t batch, const Sizes<S>& sizes) {
    return words_of(batch, sizes) * sizeof(unsigned) + batch * (sizes.strips - 1) * sizeof(Span);
  }
  FlowRows(void* memory, int64_t batch, const Sizes<S>& sizes)
      : words(static_cast<unsigned*>(memory)),
        strips(sizes.strips - 1),
        groups(sizes.chunks - S::kSkewChunks),
        spans(reinterpret_cast<Span*>(words + words_of(batch, sizes))) {}

  // What a strip, not the first one, leaves. Groups count from its first column.
  __device__ __forceinline__ unsigned* group(int64_t pair, int strip, int g) const {
    return words + ((pair * strips + strip - 1) * groups + g) * S::kSteps;
  }
  __device__ __forceinline__ Span& span(int64_t pair, int strip) const { return spans[pair * strips + strip - 1]; }
  __device__ __forceinline__ static unsigned look_at(const unsigned& word) {
    unsigned seen;
    asm volatile("ld.relaxed.gpu.global.u32 %0, [%1];" : "=r"(seen) : "l"(&word) : "memory");
    return seen;
  }
  __device__ __forceinline__ static void leave(unsigned& word, unsigned value) {
    asm volatile("st.relaxed.gpu.global.u32 [%0], %1;" ::"l"(&word), "r"(value) : "memory");
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
      tile.read(chunk);
      if (chunk + around.above_offset < above_groups)
        top.read(sources.edges[edges][part]);
      else if (top.exists)
        top = RobustTop<S>();
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
      const float rise = Width<S>::rise_of(recurrences, tile.reach, place.in_band && !recurrences.has_penalty);
      const bool plain =
          width.plain(rise, shift, top.wide, state) && sweep_plain(width, state, [&](auto& entries) {
            sweep_ahead(
                lane, top, shift, entries,
                [&](int k, int t) { return recurrences.plain.split(tile.cost(k, t), recurrences.plain.scale); },
                [&](int k, int t, const auto& terms, float diag, float up, float left) {
                  Weights<float> weights;
                  const float sum = sum_of(terms, diag, up, left, weights);
                  keep(k, t, weights);
                  return sum;
                },
                column);
          });
      if (!plain)
        sweep_general(
            recurrences, extent, place, lane, top, above_of(top, state, lane, lane_above), state,
            [&](const auto& recurrence, int k, int t, auto diag, auto up, auto left) {
              Weights<float> weights;
              const auto cell = recurrence.cell(diag, up, left, tile.cost(k, t), weights);
              keep(k, t, weights);
              return cell;
            },
            column);
    }
    channel.rebuilt[buffer].arrive();
    leave_batches(stage, false);
  }
}

// Whether any of what flows into a chunk counts, NaN included.
__device__ __forceinline__ bool do_count(const RobustFlow<ProductShape>& flow, const float (&below)[ProductShape::kSteps]) {
  float most = greater(flow.handed, flow.below_next);
#pragma unroll
  for (int k = 0; k < ProductShape::kRows; ++k) most = greater(most, greater(flow.left[k], flow.diag[k]));
#pragma unroll
  for (int t = 0; t < ProductShape::kSteps; ++t) most = greater(most, below[t]);
  return !(most < kNegligible);
}

// Of a strip in backward: what comes from the strip below, for lane 31, whose columns in a chunk start one right of a group.
class Inflow {
  using S = ProductShape;
  const unsigned* const rows;
  const FlowRows::Span* const span;
  const int first_taken, taken;  // the chunk that takes the first group, and how many there are
  int ended = 0;                 // the first group that the strip below has left flows in, as far as is known
  unsigned words[S::kSteps];

  __device__ __forceinline__ bool takes(int chunk) const {
    return chunk - first_taken >= ended && chunk - first_taken < taken;
  }
  __device__ __forceinline__ void look(int chunk) { FlowRows::look_at(rows + (chunk - first_taken) * S::kSteps, words); }
  __device__ __forceinline__ void know_end(unsigned end) {
    if (end != 0) ended = end - 1;
  }

 public:
  __device__ Inflow(const FlowRows& flows, const Surroundings<S>& around, int64_t pair, int index)
      : rows(flows.group(pair, index + 1, 0)),
        span(&flows.span(pair, index + 1)),
        first_taken(S::kSkewChunks + around.below_offset),
        taken(threadIdx.x == kWarp - 1 && !around.is_last ? around.below.groups() : 0) {}

  // Starts to look for what a chunk takes.
  __device__ __forceinline__ void prepare(int chunk) {
    if (takes(chunk)) look(chunk);
  }
  // Waits for it, and prepares the chunk before.
  __device__ __forceinline__ void take(int chunk, float (&below)[S::kSteps]) {
    if (takes(chunk)) {
#pragma unroll 1
      while (!FlowRows::are_there(words)) {
        const unsigned end = FlowRows::look_at(span->end);
        look(chunk);
        know_end(end);
        if (!takes(chunk)) break;
      }
    }
#pragma unroll
    for (int t = 0; t < S::kSteps; ++t) below[t] = __uint_as_float(takes(chunk) ? words[t] & ~FlowRows::kIsThere : 0u);
    prepare(chunk - 1);
    __syncwarp();
  }
  // Whether chunks before this one take nothing.
  __device__ __forceinline__ bool is_over(int chunk) {
    if (taken > 0) know_end(FlowRows::look_at(span->end));
    return __all_sync(kAllLanes, min(chunk - 1 - first_taken, taken - 1) < ended);
  }
};

// Where flows will first count in a strip, in groups of columns of lane 0, or a little further right: from where they did two
// strips below, if paths go on as they went before, but no steeper to the left than the table's diagonal. By one lane.
__device__ inline int guess_start(const Extent& extent, const FlowRows& flows, int64_t pair, int index) {
  using S = ProductShape;
  constexpr int kMargin = 4;
  const int last = strips_of<S>(extent) - 1, end = (extent.m - 1) / S::kSteps + S::kSkewChunks;
  const float slope = static_cast<float>(extent.m) / extent.n / S::kSteps;
  const auto start_of = [&](int strip) {
    unsigned start;
    while ((start = FlowRows::look_at(flows.span(pair, strip).start)) == 0) __nanosleep(20);
    return static_cast<int>(start) - 2;
  };
  if (index + 2 >= last) return end + kMargin - static_cast<int>((extent.n - (index + 1) * S::kStripRows) * slope);
  const int start = start_of(index + 2);
  const float advance = fminf(max(start_of(index + 3) - start, 0), S::kStripRows * slope);
  return start + kMargin - static_cast<int>(2 * advance);
}

// Goes back over the strip.
template <class Channel>
__device__ void reverse_strip(
    const Extent& extent, const Surroundings<ProductShape>& around, int64_t pair, int index, const FlowRows& flows,
    Channel& channel) {
  using S = ProductShape;
  using Alignment = typename Channel::Alignment;
  const int lane = threadIdx.x;
  const Strip<S>& strip = around.strip;
  const int first_group = strip.first_column / S::kSteps;
  Inflow inflow(flows, around, pair, index);
  unsigned* const own_flows = flows.group(pair, index, 0);
  const int left = lane == 0 && !around.is_first ? strip.groups() : 0;
  float below[S::kSteps];
  RobustFlow<S> flow;

  // A run, whose stages up to `passed` are not needed, or not any more.
  int last_chunk = 0, passed = 0;
  const auto begin_run = [&](int chunk) {
    last_chunk = chunk;
    passed = chunk / S::kStage + 1;
    if (lane == 0) channel.last_chunk = chunk;
    Channel::meet();
  };
  const auto buffer_of = [&](int stage) { return (last_chunk / S::kStage - stage) % Channel::kBuffers; };
  const auto await_stage = [&](int stage) {
    channel.rebuilt[buffer_of(stage)].wait((last_chunk / S::kStage - stage) / Channel::kBuffers);
  };
  const auto pass = [&](int stage) {
#pragma unroll 1
    while (passed > stage) {
      await_stage(--passed);
      channel.released[buffer_of(passed)].arrive();
    }
  };
  // No gate may be two openings ahead of those who wait.
  const auto end_run = [&](bool again) {
    for (int i = 0, stage = passed - 1; i < Channel::kBuffers && stage >= 0; ++i, --stage) {
      await_stage(stage);
      if (lane == 0) channel.stage_ends[buffer_of(stage)] = i == 0 ? Channel::kEndsHere : Channel::kHasEnded;
      __syncwarp();
      channel.released[buffer_of(stage)].arrive();
    }
    if (lane == 0) channel.again = again;
    Channel::meet();
    if (!again) return;
    channel.stop_run(lane);
    __syncwarp();
    channel.start_run(lane);
  };

  // Other warps begin where flows may come to count, so that all is there when it turns out where they do.
  int first_chunk = chunks_of<true>(around, true) - 1;
  if (around.is_last) {
    begin_run(first_chunk);
  } else {
    int guess = lane == 0 ? guess_start(extent, flows, pair, index) : 0;
    guess = __shfl_sync(kAllLanes, guess, 0) - first_group;
    begin_run(max(0, min(first_chunk, guess)));
    unsigned start = 0;
    if (lane == 0)
      while ((start = FlowRows::look_at(flows.span(pair, index + 1).start)) == 0) __nanosleep(20);
    start = __shfl_sync(kAllLanes, start, 0);
    first_chunk = max(0, min(first_chunk, static_cast<int>(start) - 1 - first_group));
    for (inflow.prepare(first_chunk);; --first_chunk) {
      inflow.take(first_chunk, below);
      if (first_chunk == 0 || __any_sync(kAllLanes, do_count(flow, below))) break;
      const float none[S::kSteps] = {};
      if (first_chunk < left) FlowRows::leave(own_flows + first_chunk * S::kSteps, none);
      pass((first_chunk + S::kStage - 1) / S::kStage);
    }
  }
  // What counts at the end of the last strip is at its end, and elsewhere at lane 31.
  if (lane == 0 && !around.is_first)
    FlowRows::leave(flows.span(pair, index).start, first_chunk + first_group + 2 + (around.is_last ? S::kSkewChunks : 0));
  if (first_chunk > last_chunk) {
    end_run(true);
    begin_run(first_chunk);
  }
  pass(first_chunk / S::kStage + 1);
  const int top = first_chunk / kBatchGroups;
  if (lane == 0) {
    channel.first_batch = top;
    channel.started.arrive();
  }
  int next_batch = top - Alignment::kBatches;  // whose slot another batch holds until it is released
  const auto await_room = [&](int batch) {
#pragma unroll 1
    for (; next_batch >= batch; --next_batch)
      channel.alignment.released[Alignment::slot(next_batch)].wait((top - next_batch) / Alignment::kBatches - 1);
  };

  for (int chunk = first_chunk;;) {
    const int stage = chunk / S::kStage;
    const float2* const kept = reinterpret_cast<const float2*>(channel.weights[buffer_of(stage)]) + lane;
    bool counts = false;  // whether any flow of the stage does
    await_stage(stage);
#pragma unroll 1
    for (; chunk >= stage * S::kStage; --chunk) {
      const Place<S> place(strip, extent, chunk, lane);
      if (chunk < first_chunk || around.is_last) inflow.take(chunk, below);
      float alignment[S::kRows][S::kSteps], handed_on[S::kSteps];
      if (__any_sync(kAllLanes, chunk == around.end_chunk || do_count(flow, below))) {
        counts = true;
        const auto weights = [&](int k, int t) {
          const float2 two = kept[weights_at(chunk % S::kStage, k, t)];
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
      } else {
        flow = RobustFlow<S>();
#pragma unroll
        for (int t = 0; t < S::kSteps; ++t) alignment[0][t] = alignment[1][t] = handed_on[t] = 0;
      }
      if (chunk < left) FlowRows::leave(own_flows + chunk * S::kSteps, handed_on);

      await_room((chunk - S::kSkewChunks) >> 1);
      const ChunkInRing<Alignment> cells(chunk, lane);
#pragma unroll
      for (int t = 0; t < S::kSteps; ++t)
        cells.two_rows(channel.alignment, t) = make_float2(alignment[0][t], alignment[1][t]);
      if (chunk % kBatchGroups == 0) channel.alignment.filled[Alignment::slot(chunk / kBatchGroups)].arrive();
    }
    if (chunk < 0) {
      pass(0);
      break;
    }
    // A stage without flows, left of the first one, has filled with zeros what it reaches of batches that are not filled yet.
    if (!counts && stage < first_chunk / S::kStage && inflow.is_over(chunk + 1)) {
      if (lane == 0 && !around.is_first) FlowRows::leave(flows.span(pair, index).end, chunk + 2);
      const int batch = (chunk + 1) / kBatchGroups - 1, slot = Alignment::slot(batch);
      await_room(batch);
      if (lane == 0) channel.alignment_ends[slot] = true;
      __syncwarp();
      channel.alignment.filled[slot].arrive();
      break;
    }
    pass(stage);
  }
  end_run(false);
}

}  // namespace softdtw
