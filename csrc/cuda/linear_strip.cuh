// One warp sweeps one strip in the linear domain (linear.cuh), forward or back. Both return false where the pair is given
// up: a check failed here, or in a strip that this one waits for.
#pragma once

#include "linear.cuh"
#include "strip_gradient.cuh"
#include "strip_job.cuh"

namespace softdtw {

// A snapshot: the entries of every lane and its exponent.
template <class S>
__device__ __forceinline__ void store_snapshot(const LinearLane<S>& state, int lane, char* chunk) {
  using Word = PackedWord<typename S::Scalar>;
  Word* const words = Saved<S>::template words<Word>(chunk) + lane;
#pragma unroll
  for (int k = 0; k <= S::kRows; ++k) pack(k < S::kRows ? state.left[k < S::kRows ? k : 0] : state.diag, words[k * kWarp]);
  Saved<S>::references(chunk)[lane] = state.reference;
}

template <class S>
__device__ __forceinline__ void load_snapshot(LinearLane<S>& state, int lane, char* chunk) {
  using Word = PackedWord<typename S::Scalar>;
  const Word* const words = Saved<S>::template words<Word>(chunk) + lane;
#pragma unroll
  for (int k = 0; k <= S::kRows; ++k) (k < S::kRows ? state.left[k < S::kRows ? k : 0] : state.diag) = unpack(words[k * kWarp]);
  state.reference = Saved<S>::references(chunk)[lane];
}

// Where every strip starts: nothing is reached, but R[0,0] = 0 in the upper left corner.
template <class S>
__device__ __forceinline__ void start(LinearLane<S>& state, bool holds_corner) {
#pragma unroll
  for (int k = 0; k < S::kRows; ++k) state.left[k] = 0;
  state.diag = holds_corner ? 1 : 0;
  state.reference = 0;
}

template <class S, class Tile>
__device__ bool linear_forward_strip(
    const Problem<typename S::Scalar>& problem, const Extent& extent, const ForwardStrip<S>& job, const Saved<S>& saved,
    typename S::Scalar* value) {
  using T = typename S::Scalar;
  const int lane = threadIdx.x;
  const Surroundings<S> around(extent, job.strip);
  const Strip<S>& strip = around.strip;
  const bool keeps = saved.snapshots != nullptr;
  const int chunks = around.is_last && !keeps ? around.end_chunk + 1 : strip.chunks;
  const Edge<S> above_edge = job.edges.of(job.pair, job.strip - 1, around.above);
  const Edge<S> own_edge = job.edges.of(job.pair, job.strip, strip);
  const double step = exp2(-problem.warp_penalty * problem.scale);

  LinearLane<S> state;
  start(state, around.is_first && lane == 0);
  Tile tile(problem, extent, strip, job.pair, lane);
  tile.fetch(Place<S>(strip, extent, 0, lane));
  for (int chunk = 0; chunk < chunks; ++chunk) {
    const Place<S> place(strip, extent, chunk, lane);
    tile.use(place);
    if (chunk + 1 < chunks) tile.fetch(Place<S>(strip, extent, chunk + 1, lane));

    LinearTop<S> top;
    bool right = true;
    const int group = chunk + around.above_offset;
    if (!around.is_first && group < around.above.groups() && lane == 0) {
      right = job.producer.wait(group + S::kSkewChunks + 1);
      top.read(above_edge, group);
    }
    __syncwarp();
    const bool plain = place.is_entered && step == 1 && chunk != around.end_chunk;
    if (plain)
      renew<true>(state, lane, top.reference);
    else
      renew<false>(state, lane, top.reference);
    const double above = factor_above(lane, state.reference, top.reference);
    if (keeps && chunk > 0) store_snapshot(state, lane, saved.chunk(job.pair, job.strip, chunk));

    const int own_group = chunk - S::kSkewChunks;
    const bool writes = lane == kWarp - 1 && !around.is_last && own_group >= 0;
    double* const out = reinterpret_cast<double*>(own_edge.group(own_group));
    if (writes) *reinterpret_cast<int2*>(own_edge.references + own_group) = make_int2(state.reference, 0);
    const auto leave = [&](int t, double bottom) {
      if (writes) out[t] = bottom;
    };
    if (plain) {
      right &= sweep_linear<false>(
          extent, place, lane, tile, top, above, step, state, [](int, int, T, double) {}, leave);
    } else {
      const bool ends = chunk == around.end_chunk && lane == around.end_lane;
      const int end_row = around.end_row, end_step = around.end_time % S::kSteps;
      double last = 0;
      right &= sweep_linear<true>(
          extent, place, lane, tile, top, above, step, state,
          [&](int k, int t, T, double a) {
            if (ends && k == end_row && t == end_step) last = a;
          },
          leave);
      if (ends) {
        right = right && last > 0 && last < INFINITY;
        if (right) value[job.pair] = static_cast<T>(-(state.reference + log2(last)) * problem.gamma * kLn2);
      }
    }
    __syncwarp();
    if (__any_sync(kAllLanes, !right)) {
      if (lane == kWarp - 1) job.publish(kAborted);
      return false;
    }
    if (lane == kWarp - 1) job.publish(progress_of(job.round, chunk + 1));
  }
  return true;
}

template <class S, class Tile>
__device__ void linear_backward_strip(
    const Problem<typename S::Scalar>& problem, const Gradient<typename S::Scalar>& gradient, const Extent& extent,
    const BackwardStrip& job, const Saved<S>& saved, const Flows<S>& flows) {
  using T = typename S::Scalar;
  const int lane = threadIdx.x;
  const Surroundings<S> around(extent, job.strip);
  const Strip<S>& strip = around.strip;
  const int below_groups = around.is_last ? 0 : around.below.groups();
  const int last_chunk = around.is_last ? around.end_chunk : strip.chunks - 1;
  const Edge<S> above_edge = saved.edges.of(job.pair, job.strip - 1, around.above);
  const double step = exp2(-problem.warp_penalty * problem.scale);

  Tile tile(problem, extent, strip, job.pair, lane);
  SinkOf<S, Tile> sink(
      problem, gradient, extent, job.pair, lane, columns_of(around, extent),
      gradient_scale(problem, gradient, job.pair) / tile.unit(), flows.carries_of(job.pair, job.strip, problem.dim));
  LinearFlow<S> flow;
  int reference = 0;
  tile.fetch(Place<S>(strip, extent, last_chunk, lane));
  for (int chunk = last_chunk; chunk >= 0; --chunk) {
    const Place<S> place(strip, extent, chunk, lane);
    tile.use(place);
    LinearTop<S> top;
    const int group = chunk + around.above_offset;
    if (!around.is_first && group < around.above.groups() && lane == 0) top.read(above_edge, group);
    LinearLane<S> state;
    if (chunk > 0) {
      load_snapshot(state, lane, saved.chunk(job.pair, job.strip, chunk));
      tile.fetch(Place<S>(strip, extent, chunk - 1, lane));
      if (chunk > kSnapshotsAhead) prefetch_chunk<S>(saved.chunk(job.pair, job.strip, chunk - kSnapshotsAhead), lane);
    } else {
      start(state, around.is_first && lane == 0);
      state.reference = __shfl_sync(kAllLanes, top.reference, 0);
    }
    const double above = factor_above(lane, state.reference, top.reference);
    const double rescale = chunk == last_chunk ? 1 : power_of_two(state.reference - reference);
    reference = state.reference;

    double entries[S::kRows][S::kSteps];
    T roots[S::kRows][S::kSteps];
    const auto keep = [&](int k, int t, T root, double a) {
      roots[k][t] = root;
      entries[k][t] = a;
    };
    const auto leave = [](int, double) {};
    const bool plain = place.is_entered && step == 1 && chunk != around.end_chunk;
    if (plain)
      sweep_linear<false>(extent, place, lane, tile, top, above, step, state, keep, leave);
    else
      sweep_linear<true>(extent, place, lane, tile, top, above, step, state, keep, leave);

    double below[S::kSteps];
#pragma unroll
    for (int t = 0; t < S::kSteps; ++t) below[t] = 0;
    // Lane 31's columns start one right of this group of the strip below.
    const int below_group = chunk - S::kSkewChunks - around.below_offset;
    if (lane == kWarp - 1 && below_group >= 0 && below_group < below_groups) {
      job.producer.wait(around.below.chunks - below_group);
      load_group(flows.group(job.pair, around.below, below_group), below);
    }
    __syncwarp();
    sink.begin(place);

#pragma unroll
    for (int k = 0; k < S::kRows; ++k) flow.right[k] *= rescale;
    const bool leaves = lane == 0 && !around.is_first && chunk < strip.groups();
    double* const out = flows.group(job.pair, strip, chunk);
    const auto cell = [&](int k, int t, double e) { sink.cell(tile, k, t, static_cast<T>(e)); };
    const auto column = [&](int t, double handed) {
      sink.step(t);
      if (leaves) out[t] = handed;
    };
    if (plain)
      sweep_linear_reversed<false, S, Tile>(entries, roots, lane, -1, -1, above, step, rescale, below, flow, cell, column);
    else
      sweep_linear_reversed<true, S, Tile>(
          entries, roots, lane, chunk == around.end_chunk && lane == around.end_lane ? around.end_row : -1,
          around.end_time % S::kSteps, above, step, rescale, below, flow, cell, column);
    sink.end(place, chunk == last_chunk);
    __syncwarp();
    if (lane == 0) job.publish(progress_of(job.round, strip.chunks - chunk));
  }
  sink.finish(strip, extent);
}

}  // namespace softdtw
