// The sweep back over a strip, by a warp of its own.
#pragma once

#include "multivariate_flows.cuh"
#include "multivariate_rebuild.cuh"

namespace softdtw {

// Whether any of what flows into a chunk counts, NaN included; each lane looks at one of those from below.
__device__ __forceinline__ bool do_count(const ExtendedFlow<HalfShape>& flow, const float* below, int lane) {
  const bool counts = !(greater(flow.most(), below[lane % MultivariateShape::kSteps]) < kNegligible);
  return __any_sync(kAllLanes, counts);
}

// A chunk's place, from a step on.
struct Half {
  const Place<MultivariateShape>& place;
  const int t0;

  __device__ __forceinline__ bool holds(const Extent& extent, int k, int t) const { return place.holds(extent, k, t0 + t); }
};

// Goes back over the strip.
template <class Channel>
__device__ void reverse_strip(
    const Extent& extent, const Surroundings<MultivariateShape>& around, int64_t pair, int index, const FlowRows& flows,
    FlowItems& items, Channel& channel) {
  using S = MultivariateShape;
  using Alignment = typename Channel::Alignment;
  const int lane = threadIdx.x;
  const Strip<S>& strip = around.strip;
  Inflow inflow(items);
  unsigned* const own_flows = flows.group(pair, index, 0);
  const int left = lane == 0 && !around.is_first ? strip.groups() : 0;
  ExtendedFlow<HalfShape> flow;

  // A run, whose stages up to `passed` are not needed, or not any more.
  int last_chunk = 0, passed = 0;
  const auto begin_run = [&](int chunk) {
    last_chunk = chunk;
    passed = chunk / S::kStage + 1;
    if (lane == 0) channel.last_chunk = chunk;
    Channel::meet();
  };
  const auto turn_of = [&](int stage) { return last_chunk / S::kStage - stage; };
  const auto buffer_of = [&](int stage) { return turn_of(stage) % Channel::kBuffers; };
  const auto await_stage = [&](int stage) { channel.rebuilt[buffer_of(stage)].wait(turn_of(stage) / Channel::kBuffers); };
  // The chunks of a stage from the part `first` on.
  const auto release = [&](int stage, int first) {
#pragma unroll 1
    for (int part = S::kStage - 1; part >= first; --part)
      channel.released[buffer_of(stage)][Channel::place_of(turn_of(stage), part)].arrive();
  };
  const auto pass = [&](int stage) {
#pragma unroll 1
    while (passed > stage) {
      await_stage(--passed);
      release(passed, 0);
    }
  };
  // Those who rebuild wait for either buffer, or are at work in it, which has to be done first: no mbarrier may be two openings ahead of
  // those who wait.
  static_assert(Channel::kBuffers == 2);
  const auto end_run = [&](bool again) {
    for (int stage = passed - 1; stage >= max(0, passed - 2); --stage) {
      await_stage(stage);
      if (lane == 0) channel.stage_ends[buffer_of(stage)] = stage == passed - 1 ? Channel::kEndsHere : Channel::kHasEnded;
      __syncwarp();
      release(stage, 0);
    }
    if (lane == 0) channel.again = again;
    Channel::meet();
    if (!again) return;
    channel.stop_run(lane);
    __syncwarp();
    channel.start_run(lane);
  };

  // Other warps begin where flows may come to count, so that all is there when it turns out where they do.
  const int first_group = strip.first_column / S::kSteps;
  int guess = chunks_of<true>(around, true) - 1;
  if (!around.is_last) {
    const int group = lane == 0 ? guess_start(extent, flows, pair, index) : 0;
    guess = max(0, min(guess, __shfl_sync(kAllLanes, group, 0) - first_group));
  }
  begin_run(guess);
  int first_chunk = inflow.start();
  while (first_chunk > 0 && !around.is_last && !do_count(flow, inflow.take(), lane)) {
    const float none[S::kSteps] = {};
    if (first_chunk < left) FlowRows::leave(own_flows + first_chunk * S::kSteps, none);
    inflow.release();
    pass((first_chunk-- + S::kStage - 1) / S::kStage);
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
  // The slot of the batch that is filled; and the batch that room is needed for next, whose slot another one holds until it is
  // released, for the phase of that time.
  int slot = Alignment::slot(top), next_batch = top - Alignment::kBatches, next_slot = slot, next_phase = 0;
  const auto back = [](int& slot) { slot = slot == 0 ? Alignment::kBatches - 1 : slot - 1; };
  const auto await_room = [&](int batch) {
#pragma unroll 1
    for (; next_batch >= batch; --next_batch) {
      channel.alignment.released[next_slot].wait(next_phase);
      back(next_slot);
      if (next_slot == Alignment::slot(top)) next_phase ^= 1;
    }
  };
  // Of the chunks of which no cell needs a check.
  const int end_plain = around.is_last ? min(first_chunk + 1, around.end_chunk) : first_chunk + 1;

  // Of a stage: where its weights stand, and whether any flow has counted so far.
  const float2* kept = nullptr;
  const float* inverses = nullptr;
  int stage = 0, turn = 0;
  bool counts = false;
  bool lives = false;  // whether what flows counts
  const auto begin_stage = [&](int chunk) {
    stage = passed = chunk / S::kStage;
    turn = turn_of(stage);
    kept = reinterpret_cast<const float2*>(channel.weights[buffer_of(stage)]) + lane;
    if constexpr (Channel::kIsDivided) inverses = channel.inverses[buffer_of(stage)] + lane;
    counts = lives = false;
    await_stage(stage);
  };
  int chunk = first_chunk;
  ChunkInPipeline<Alignment> cells(chunk, lane);
  unsigned* out = own_flows + chunk * S::kSteps;
  bool ends = false;
  begin_stage(chunk);
  release(stage, chunk % S::kStage + 1);
  const auto sweep = [&](auto general) {
    constexpr bool kGeneral = decltype(general)::value;
    if (chunk % S::kStage == S::kStage - 1 && chunk != first_chunk) begin_stage(chunk);
    const int place_in_buffer = Channel::place_of(turn, chunk % S::kStage);
    const bool is_end = kGeneral && chunk == around.end_chunk;
    const Place<S> place(strip, extent, chunk, lane);
    const float* const below = inflow.take();
    // What counts mostly does so for a while, so it is asked again in the next stage only.
    if (!lives || kGeneral) {
      lives = do_count(flow, below, lane) || is_end;
      counts = counts || lives;
      if (!lives) flow = ExtendedFlow<HalfShape>();
    }
    // A loop of few instructions, since the warps of a strip share what caches them.
#pragma unroll 1
    for (int t0 = S::kSteps - HalfShape::kSteps; t0 >= 0; t0 -= HalfShape::kSteps) {
      float half_below[HalfShape::kSteps], alignment[S::kRows][HalfShape::kSteps] = {}, handed_on[HalfShape::kSteps] = {};
      load_group(below + t0, true, half_below);
      const float2* const half_kept = kept + weights_at(place_in_buffer, 0, t0);
      const auto weights = [&](int k, int t) {
        const float2 two = half_kept[weights_at(0, k, t)];
        return Weights<float>{two.x, two.y};
      };
      const auto cell = [&](int k, int t, float e) { alignment[k][t] = e; };
      const auto column = [&](int t, float handed) { handed_on[t] = handed; };
      if (lives)
        sweep_extended_reversed<kGeneral, HalfShape>(
            weights, extent, Half{place, t0}, lane, is_end && lane == around.end_lane ? around.end_row : -1,
            around.end_time % S::kSteps - t0, half_below, flow, cell, column);
#pragma unroll
      for (int t = 0; t < HalfShape::kSteps; ++t) {
        // What does not count is nothing, however short the distance that it is divided by.
        const auto divided = [&](int k) {
          if constexpr (Channel::kIsDivided)
            return alignment[k][t] < kNegligible ? 0.0f
                                                 : alignment[k][t] * inverses[weights_at(place_in_buffer, k, t0 + t)];
          else
            return alignment[k][t];
        };
        cells.two_rows(channel.alignment, t0, t) = {divided(0), divided(1)};
      }
      if (chunk < left) FlowRows::leave(out + t0, handed_on);
    }
    inflow.release();
    channel.released[turn % Channel::kBuffers][place_in_buffer].arrive();
    if (chunk % kBatchGroups == 0) {
      channel.alignment.filled[slot].arrive();
      back(slot);
    }
    if (chunk > 0) await_room((chunk - 1 - S::kSkewChunks) >> 1);
    // A stage without flows, left of the first one, has filled with zeros what it reaches of batches that are not filled yet.
    ends = !counts && chunk % S::kStage == 0 && chunk > 0 && stage < first_chunk / S::kStage && inflow.is_over();
    --chunk;
    out -= S::kSteps;
    cells.back();
  };
  // The first loop is for chunks that need no check.
  while (chunk >= 0 && !ends) {
#pragma unroll 1
    while (chunk >= 0 && chunk < end_plain && !ends) sweep(std::false_type());
    if (chunk >= 0 && !ends) sweep(std::true_type());
  }
  if (ends) {
    if (lane == 0 && !around.is_first) FlowRows::leave(flows.span(pair, index).end, chunk + 2);
    await_room((chunk + 1) / kBatchGroups - 1);
    if (lane == 0) channel.alignment_ends[slot] = true;
    __syncwarp();
    channel.alignment.filled[slot].arrive();
  }
  end_run(false);
}

}  // namespace softdtw
