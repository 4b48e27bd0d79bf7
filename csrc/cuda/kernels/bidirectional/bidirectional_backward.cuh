// Backward of a table swept from both its ends (bidirectional.cuh): a strip of a side, from the cut or from where E comes up from the strip
// below, as the side sees it, to where it does not count any more.
#pragma once

#include "bidirectional_cut.cuh"
#include "bidirectional_rebuild.cuh"
#include "bidirectional_stream.cuh"

namespace softdtw {

// Where E will begin in a strip, in stages of its own, if it does not come from the cut: it follows a straight line from there to the side's
// end, and spreads to its right. Better a little too far right, since stages are rebuilt ahead.
template <class Side>
__device__ __forceinline__ int expected_stage(const Side& side, const CutOfPair& cut, int index) {
  using S = BidirectionalShape;
  constexpr int kSpread = 36;  // chunks
  const int nearest = side.sizes.strips - (side.is_back ? cut.strips_to_last : cut.strips_from_first);
  const auto last_chunk = [&](int of) { return side.first_chunk(of) + side.chunks(of) - 1; };
  int chunk = last_chunk(index);
  if (index < nearest) {
    const int64_t straight = static_cast<int64_t>(last_chunk(nearest)) * (index + 1) / (nearest + 1);
    chunk = min(chunk, static_cast<int>(straight) + kSpread);
  }
  return max(chunk - side.first_chunk(index), 0) / S::kStage;
}

// What flows through the cut into a lane of a side.
template <class Side>
__device__ __forceinline__ ExtendedFlow<BidirectionalShape> flow_through_cut(
    const CutShares* shares, const Side& side, int index, int lane) {
  const CutShares* const own_shares = shares + side.strip_of(index) * kWarp + (side.is_back ? kWarp - 1 - lane : lane);
  float own[kCutSteps + 2], behind[kCutSteps + 2];
  load_group(own_shares[0].of, true, own);
  load_group(own_shares[1].of, true, behind);
  ExtendedFlow<BidirectionalShape> flow;
  flow.diag[1] = own[kDiagonal];
  if (side.is_back) {
    flow.left[0] = own[kRightBelow];
    flow.left[1] = own[kRight];
    flow.diag[0] = behind[kDiagonalBehind];
    flow.handed = behind[kDown] + behind[kDiagonalAbove];
    flow.below_next = own[kDown] + own[kDiagonalAbove];
  } else {
    flow.left[0] = own[kRight];
    flow.left[1] = own[kRightBelow];
    flow.diag[0] = own[kDiagonalAbove];
    flow.handed = own[kDown] + own[kDiagonalBehind];
    flow.below_next = behind[kDown] + behind[kDiagonalBehind];
  }
  if (lane < kWarp - 1) flow.below_next = 0;
  return flow;
}

// Sums E dC/dx of a lane's rows, and passes those of columns up the lanes.
template <class OfDifference>
struct SideSums {
  using S = BidirectionalShape;
  const OfDifference of_difference;
  const float scale;
  float x[S::kRows], y[S::kSteps];
  float rows[S::kRows] = {}, column = 0, carry = 0;

  __device__ __forceinline__ void cell(int k, int t, float e) {
    const float slope = of_difference.slope(x[k] - y[t]);
    rows[k] = fmaf(e, slope, rows[k]);
    column = fmaf(e, slope, column);
  }
  __device__ __forceinline__ void step(float from_below, int lane) {
    const float from_lane_below = __shfl_down_sync(kAllLanes, carry, 1);
    carry = fmaf(column, -scale, lane == kWarp - 1 ? from_below : from_lane_below);
    column = 0;
  }
};

// Goes back over a strip. `below`: what comes from the strip below, or null, if E is in none. `first_stage`: the first one that is
// rebuilt unasked.
template <class Tile>
__device__ void go_back(
    const Problem<float>& problem, const Gradient<float>& gradient, const SideOf<Tile>& side, const CutShares* shares,
    int64_t pair, int index, int first_stage, BidirectionalStages& bidirectional_stages, StageQueue& stage_queue,
    Stream* below, Stream& above) {
  using S = BidirectionalShape;
  BidirectionalStages& stages = pinned(bidirectional_stages);
  StageQueue& queue = pinned(stage_queue);
  const int lane = threadIdx.x, chunks = side.chunks(index);
  const Strip<S> strip = side.strip(index);
  // Chunks count from the strip's first one, and groups from the side's.
  const int own_first = side.first_chunk(index);
  StreamWriter out(above);
  StreamReader in(below != nullptr ? *below : above);
  constexpr float kNothing[S::kSteps] = {};
  const auto counts = [&](float most) { return __any_sync(kAllLanes, !(most < kLeftOut<float>)); };

  const auto next_group = [&] { return in.next_group() < 0 ? -1 : in.next_group() - own_first; };
  const auto begin = [&](int group) { out.begin(group < 0 ? group : group + own_first); };

  // Turns of the queue that have been seen.
  int turn = 0;
  const auto release = [&] { queue.release(stages, turn++, lane); };
  const auto await_turn = [&] { stages.rebuilt[turn % stages.kBuffers].wait(turn / stages.kBuffers); };
  // Stages above this one are not needed.
  const auto pass = [&](int stage) {
    if (stage >= first_stage) return;
    first_stage = stage;
    if (lane == 0) queue.skip_to(stage);
    while (stages.rebuilt[turn % stages.kBuffers].is_open_to_all(turn / stages.kBuffers) &&
           queue.held(turn % stages.kBuffers) > stage)
      release();
  };
  const auto finish = [&] {
    const int taken = __shfl_sync(kAllLanes, lane == 0 ? queue.finish() : 0, 0);
#pragma unroll 1
    while (turn < taken) {
      await_turn();
      release();
    }
  };

  const View<const float> rows = side.seen(problem.x, pair, side.extent.n);
  using OfDifference = typename Tile::OfDifference;
  SideSums<OfDifference> sums{OfDifference(problem.cost), gradient_scale(problem, gradient, pair)};
#pragma unroll
  for (int k = 0; k < S::kRows; ++k)
    sums.x[k] = rows.data[min(max(strip.first_row + lane * S::kRows + k, 0), side.extent.n - 1) * rows.row_stride];

  ExtendedFlow<S> flow = flow_through_cut(shares, side, index, lane);
  int chunk = chunks - 1, first_group = chunk;
  if (counts(flow.most())) {
    begin(first_group);
    if (below != nullptr) in.begin();
  } else {
    // E comes up from the strip below, or not at all.
    flow = ExtendedFlow<S>();
    if (below != nullptr) in.begin();
    first_group = next_group();
    const auto chunk_of = [&](int group) { return min(group + S::kSkewChunks, chunks - 1); };
    begin(first_group);
    while (in.next_group() >= 0) {
      const StreamItem& item = in.read();
      if (counts(item.flows[lane % S::kSteps])) break;
      StreamItem& passed_on = out.next();
      float passing[S::kSteps];
      load_group(item.sums, true, passing);
      in.release();
      if (lane == 0) {
        store_group(passed_on.flows, kNothing);
        store_group(passed_on.sums, passing);
      }
      out.hand_over(in.next_group() < 0);
      pass(chunk_of(next_group()) / S::kStage);
    }
    if (in.next_group() < 0) return finish();
    first_group = next_group();
    chunk = chunk_of(first_group);
    if (chunk / S::kStage > first_stage && lane == 0) queue.ask_from(chunk / S::kStage);
  }

  float sum_next = 0;
  bool ends = false;
  while (!ends) {
    const int stage = chunk / S::kStage;
    for (;; release()) {
      await_turn();
      if (queue.held(turn % stages.kBuffers) == stage) break;
    }
    const auto& kept = stages.weights[turn % stages.kBuffers];
    const float* const window = stages.columns[turn % stages.kBuffers] + kWarp - 1 - lane;
    out.acquire(S::kStage);
#pragma unroll 1
    for (int part = chunk % S::kStage; part >= 0; --part, --chunk) {
      float flows_below[S::kSteps] = {}, sums_below[S::kSteps] = {};
      if (in.next_group() >= 0 && next_group() >= chunk - S::kSkewChunks) {
        const StreamItem& item = in.read();
        load_group(item.flows, true, flows_below);
        load_group(item.sums, true, sums_below);
        in.release();
      }
#pragma unroll
      for (int t = 0; t < S::kSteps; ++t) sums.y[t] = window[part * S::kSteps + t];
      const Place<S> place(strip, side.extent, chunk, lane);
      const bool leaves = chunk <= first_group;
      StreamItem& to = pinned(out.slot());
      const auto& cells = kept.chunks[part];
      // Loads from shared memory do not pass stores to it, so these are few.
      constexpr int kAtOnce = 4;
      float flows_on[kAtOnce], sums_on[kAtOnce];
      sweep_extended_reversed<false, S>(
          [&](int k, int t) { return cells[t][lane].rows[k]; }, side.extent, place, lane, -1, -1, flows_below, flow,
          [&](int k, int t, float e) { sums.cell(k, t, e); },
          [&](int t, float handed) {
            sums.step(t + 1 < S::kSteps ? sums_below[(t + 1) % S::kSteps] : sum_next, lane);
            flows_on[t % kAtOnce] = handed;
            sums_on[t % kAtOnce] = sums.carry;
            if (t % kAtOnce == 0 && leaves && lane == 0) {
              store_group(to.flows + t, flows_on);
              store_group(to.sums + t, sums_on);
            }
          });
      sum_next = sums_below[0];
      if (leaves) out.hand_over(chunk == 0);
    }
    release();
    ends = chunk < 0 || (chunk <= first_group && in.next_group() < 0 && !counts(flow.most()));
  }
  // Sums on their way up the lanes, one column of a lane.
#pragma unroll 1
  for (int group = 1; chunk >= 0 && group <= S::kSkewChunks; ++group) {
    StreamItem& to = out.next();
    float passing[S::kSteps];
#pragma unroll
    for (int t = 0; t < S::kSteps; ++t) passing[t] = __shfl_sync(kAllLanes, sums.carry, (group * S::kSteps - t) % kWarp);
    if (group == S::kSkewChunks) passing[0] = sum_next;
    if (lane == 0) {
      store_group(to.flows, kNothing);
      store_group(to.sums, passing);
    }
    out.hand_over(group == S::kSkewChunks);
  }
  finish();
  if (gradient.x.data == nullptr) return;
#pragma unroll
  for (int k = 0; k < S::kRows; ++k) {
    const int row = strip.first_row + lane * S::kRows + k;
    const View<float> dx = side.seen(gradient.x, pair, side.extent.n);
    if (row >= 0 && row < side.extent.n) atomicAdd(dx.data + row * dx.row_stride, sums.rows[k] * sums.scale);
  }
}

}  // namespace softdtw
