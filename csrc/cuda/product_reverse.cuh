// The sweep back over a strip, by a warp of its own.
#pragma once

#include "product_flows.cuh"
#include "product_rebuild.cuh"

namespace softdtw {

// Whether any of what flows into a chunk counts, NaN included.
__device__ __forceinline__ bool do_count(const RobustFlow<HalfShape>& flow, const float (&below)[ProductShape::kSteps]) {
  float most = greater(flow.handed, flow.below_next);
#pragma unroll
  for (int k = 0; k < ProductShape::kRows; ++k) most = greater(most, greater(flow.left[k], flow.diag[k]));
#pragma unroll
  for (int t = 0; t < ProductShape::kSteps; ++t) most = greater(most, below[t]);
  return !(most < kNegligible);
}

// A chunk's place, from a step on.
struct Half {
  const Place<ProductShape>& place;
  const int t0;

  __device__ __forceinline__ bool holds(const Extent& extent, int k, int t) const { return place.holds(extent, k, t0 + t); }
};

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
  RobustFlow<HalfShape> flow;

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
      const ChunkInRing<Alignment> cells(chunk, lane);
      const bool is_end = chunk == around.end_chunk, leaves = chunk < left;
      unsigned* const out = own_flows + chunk * S::kSteps;
      const auto weights_of = [&](int k, int t) {
        const float2 two = kept[weights_at(chunk % S::kStage, k, t)];
        return Weights<float>{two.x, two.y};
      };
      const bool count = __any_sync(kAllLanes, is_end || do_count(flow, below));
      counts = counts || count;
      if (!count) flow = RobustFlow<HalfShape>();
      const int end_row = is_end && lane == around.end_lane ? around.end_row : -1;
#pragma unroll 1
      for (int t0 = S::kSteps - HalfShape::kSteps; t0 >= 0; t0 -= HalfShape::kSteps) {
        float half_below[HalfShape::kSteps], alignment[S::kRows][HalfShape::kSteps] = {}, handed_on[HalfShape::kSteps] = {};
#pragma unroll
        for (int t = 0; t < HalfShape::kSteps; ++t) half_below[t] = t0 > 0 ? below[HalfShape::kSteps + t] : below[t];
        const auto weights = [&](int k, int t) { return weights_of(k, t0 + t); };
        const auto cell = [&](int k, int t, float e) { alignment[k][t] = e; };
        const auto column = [&](int t, float handed) { handed_on[t] = handed; };
        if (count) {
          if (place.in_band && !is_end)
            sweep_robust_reversed<false, HalfShape>(weights, extent, place, lane, -1, -1, half_below, flow, cell, column);
          else
            sweep_robust_reversed<true, HalfShape>(
                weights, extent, Half{place, t0}, lane, end_row, around.end_time % S::kSteps - t0, half_below, flow, cell,
                column);
        }
#pragma unroll
        for (int t = 0; t < HalfShape::kSteps; ++t)
          cells.two_rows(channel.alignment, t0, t) = make_float2(alignment[0][t], alignment[1][t]);
        if (leaves) FlowRows::leave(out + t0, handed_on);
      }
      if (chunk % kBatchGroups == 0) channel.alignment.filled[Alignment::slot(chunk / kBatchGroups)].arrive();
      if (chunk > 0) await_room((chunk - 1 - S::kSkewChunks) >> 1);
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
