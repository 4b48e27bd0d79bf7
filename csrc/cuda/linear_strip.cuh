// One warp sweeps one strip with the linear engine (linear.cuh), forward or back. Strips begin at column 0: there is no band.
// What is not plain is in linear_slow.cuh.
#pragma once

#include "linear_slow.cuh"
#include "strip_gradient.cuh"
#include "strip_job.cuh"

namespace softdtw {

constexpr int kColumnsInFlight = 2;  // of a sweep: more is more instructions than the caches hold

// Whether a pair of float32 is worth going on with: what its chunks have gained on robust so far, in tenths of a plain sweep. A few
// pairs that are given up cost a launch of their own, so that the loss has to be a large one.
template <typename T>
struct Patience {
  static constexpr int kAtFirst = 1500, kPlainGain = 7, kWideLoss = 12, kCarefulLoss = 65;
  int left = kAtFirst;

  __device__ __forceinline__ void meet(int sweep) {
    if (sizeof(T) == 4) left += sweep == kPlain ? kPlainGain : sweep == kWide ? -kWideLoss : -kCarefulLoss;
  }
  __device__ __forceinline__ bool is_over() const { return left < 0; }
};

// False where the pair is given up: here, or in a strip that this one waits for.
template <class S, class Tile>
__device__ bool linear_forward_strip(
    const Problem<typename S::Scalar>& problem, const Extent& extent, const ForwardStrip<S>& job,
    const LinearSaved<S>& saved, typename S::Scalar* value) {
  using T = typename S::Scalar;
  using Stage = LinearForwardStage<S, Tile::kUnivariate>;
  const int lane = threadIdx.x;
  Surroundings<S> around(extent, job.strip);
  around.pin_for_forward();
  const Strip<S>& strip = around.strip;
  const bool keeps = saved.memory != nullptr, is_pairs_first = around.is_first && lane == 0;
  const int chunks = around.is_last ? around.end_chunk + 1 : strip.chunks;
  const int above_groups = around.is_first ? 0 : around.above.groups();
  const Edge<S> above_edge = job.edges.of(job.pair, job.strip - 1, around.above);
  const Edge<S> own_edge = job.edges.of(job.pair, job.strip, strip);

  Stage& stage = stage_of_warp<Stage>();
  LinearLane<S> state;
  state.start(is_pairs_first ? 1 : 0);
  Tile tile(problem, extent, strip, job.pair, lane, stage, -kWarp);
  tile.fetch(0);
  int first_sweep = kPlain;
  bool right = tile.is_promising(), tries_plain = true;
  Patience<T> patience;
  for (int chunk = 0; chunk < chunks; ++chunk) {
    const Place<S> place(strip, extent, chunk, lane);
    const int column = chunk * S::kSteps;
    tile.enter(place, column);
    tile.fetch(column + S::kSteps);
    const bool has_top = chunk < above_groups;
    right = right && tile.is_exact;
    if (has_top && lane == 0) right = job.producer.wait(chunk + S::kSkewChunks + 1) && right;
    right = __all_sync(kAllLanes, right) && !patience.is_over();
    if (!right) break;
    __syncwarp();
    int top_unit = 0, least = kPlain;
    if (has_top)
      least = LinearGroup<S>::of(above_edge, chunk).fetch(job.producer.is_near(), lane, stage, top_unit);
    else
      stage.clear_entries(lane);
    __syncwarp();

    const bool is_edge = !place.is_entered || chunk == around.end_chunk;
    char* const snapshot = keeps && chunk > 0 ? saved.chunk(job.pair, job.strip, chunk) : nullptr;
    const int own_group = chunk - S::kSkewChunks;
    const bool writes = lane == kWarp - 1 && !around.is_last && own_group >= 0;
    const auto out = LinearGroup<S>::of(own_edge, own_group);
    int sweep = max(least, is_edge || !tries_plain ? kWide : kPlain);
    if (sweep == kPlain) {
      stage.keep(state, lane);
      const int above = state.above;
      bool holds = state.become(unit_above(state, lane, has_top, top_unit));
      Factors<S, T, false> factors(state.exponent, state.above);
      if (sizeof(T) == 4 && is_pairs_first && !factors.fit) factors.leave_far_rows_out(state.exponent);
      holds = __all_sync(kAllLanes, holds && factors.fit);
      if (holds) {
        if (snapshot != nullptr)
          LinearSnapshot<S>::store_plain(snapshot, lane, state, factors, sweeps_of(kPlain, first_sweep));
        if (writes) *out.unit = state.exponent[S::kRows - 1];
        Lowest<T> lowest;
        const auto visit = [&](int t, T bottom) {
          if (writes) out.store(t, bottom);
          return [](int, T) {};
        };
        sweep_linear<kColumnsInFlight>(tile.columns, factors, 0, state, lowest, visit, [](int) {});
        holds = factors.far_units == 0 ? lowest.is_enough() : lowest.is_above(kLowestBesideFar);
        holds = __all_sync(kAllLanes, holds && state.is_finite());
      }
      if (holds) {
        state.renew();
      } else {
        stage.restore(state, lane);
        state.above = above;
        sweep = kWide;
      }
    }
    if (sweep != kPlain) {
      const bool ends = chunk == around.end_chunk && lane == around.end_lane;
      const SlowChunk<S> slow = {
          sweep,
          first_sweep,
          top_unit,
          place.column,
          extent.m,
          ends ? around.end_row : -1,
          around.end_time % S::kSteps,
          place.is_entered,
          has_top,
          writes,
          snapshot,
          out};
      const SlowOutcome<S> outcome = sweep_slowly<S, Tile::kUnivariate>(tile.columns, slow, state);
      sweep = outcome.sweep;
      right = sweep != kGivenUp;
      if (!right) break;
      state = outcome.state;
      tries_plain = is_edge || outcome.fits_plain;
      if (ends) value[job.pair] = static_cast<T>(outcome.exponent * problem.gamma_of(job.pair) * kLn2);
    }
    patience.meet(sweep);
    if (chunk == 0) first_sweep = sweep;
    __syncwarp();
    if (lane == kWarp - 1) job.publish(progress_of(job.round, chunk + 1));
  }
  if (!right && lane == kWarp - 1) job.publish(kAborted);
  return right;
}

// What a column of the reversed plain sweep of series of one dimension meets, for sweep_linear_reversed.
template <class S, class Sink, class Stage, class Column>
struct SinkVisitor {
  using T = typename S::Scalar;
  Sink& sink;
  Stage& stage;
  const Column& column;
  const int t;
  typename LinearSnapshot<S>::Word words[S::kRows];

  __device__ __forceinline__ SinkVisitor(Sink& sink_, Stage& stage_, const Column& column_, int t_, int lane)
      : sink(sink_), stage(stage_), column(column_), t(t_) {
    stage.load(t, lane, words);
  }
  template <typename Number>
  __device__ __forceinline__ Number a(int k) const {
    return stage.template number<Number>(words[k]);
  }
  __device__ __forceinline__ void cell(int k, T e) { sink.cell(column, k, t, e); }
  __device__ __forceinline__ void end() { sink.step(t, stage.from_below[t]); }
};

// Gives a chunk's E, which the stage has, to a sink.
template <class S, class Tile, class Sink, class Stage>
__device__ __forceinline__ void give_table(const Tile& tile, const Stage& stage, int lane, Sink& sink) {
  using T = typename S::Scalar;
#pragma unroll(Sink::kUnivariate ? 1 : S::kSteps)
  for (int t = S::kSteps - 1; t >= 0; --t) {
    typename LinearSnapshot<S>::Word words[S::kRows];
    stage.load(t, lane, words);
    const auto column = tile.columns.column(t);
#pragma unroll
    for (int k = S::kRows - 1; k >= 0; --k) {
      const T e = stage.template number<T>(words[k]);
      if constexpr (Sink::kUnivariate)
        sink.cell(column, k, t, e);
      else
        sink.cell(tile.columns, k, t, e);
    }
    if constexpr (Sink::kUnivariate) sink.step(t, stage.from_below[t]);
  }
}

template <class S, class Tile>
__device__ void linear_backward_strip(
    const Problem<typename S::Scalar>& problem, const Gradient<typename S::Scalar>& gradient, const Extent& extent,
    const BackwardStrip& job, const LinearSaved<S>& saved, const LinearFlows<S>& flows) {
  using T = typename S::Scalar;
  using Stage = LinearBackwardStage<S, Tile::kUnivariate>;
  using Sink = SinkOf<S, Tile>;
  using Snapshot = LinearSnapshot<S>;
  const int lane = threadIdx.x;
  const Surroundings<S> around(extent, job.strip);
  const Strip<S>& strip = around.strip;
  const int above_groups = around.is_first ? 0 : around.above.groups();
  const int below_groups = around.is_last ? 0 : around.below.groups();
  const int last_chunk = around.is_last ? around.end_chunk : strip.chunks - 1;
  const Edge<S> above_edge = saved.edges.of(job.pair, job.strip - 1, around.above);
  const Edge<S> flow_row = flows.edges.of(job.row, 0, strip);
  const bool is_pairs_first = around.is_first && lane == 0;

  Stage& stage = stage_of_warp<Stage>();
  // Of lane 31's first column; the new ones of a chunk.
  const auto column_of = [](int chunk) { return chunk * S::kSteps - (kWarp - 1); };
  Tile tile(problem, extent, strip, job.pair, lane, stage, column_of(last_chunk + 1));
  const T scale = gradient_scale(problem, gradient, job.pair) / Tile::unit(problem, job.pair);
  Sink sink(
      problem, gradient, extent, job.pair, lane, columns_of(around, extent), scale,
      flows.carries_of(job.row, job.strip, problem.dim));
  LinearFlow<S> flow;
  Snapshot snapshot;
  int first_sweep = kCareful;
  bool flow_is_plain = false;  // in the units of a plain sweep
  tile.fetch(column_of(last_chunk));
  if (last_chunk > 0) snapshot.fetch(saved.chunk(job.pair, job.strip, last_chunk), lane);
  for (int chunk = last_chunk; chunk >= 0; --chunk) {
    const Place<S> place(strip, extent, chunk, lane);
    tile.enter(place, column_of(chunk));
    tile.fetch(column_of(chunk - 1));
    const bool has_top = chunk < above_groups;
    int top_unit = 0;
    if (has_top)
      LinearGroup<S>::of(above_edge, chunk).fetch(true, lane, stage, top_unit);
    else
      stage.clear_entries(lane);
    __syncwarp();

    // The chunk's entries, again.
    int sweep = chunk > 0 ? snapshot.coming() : first_sweep;
    if (chunk > 0) first_sweep = snapshot.first();
    const char* const next_snapshot = saved.chunk(job.pair, job.strip, max(chunk - 1, 1));
    int units[S::kRows];
    Factors<S, T, false> factors;
    if (sweep == kPlain) {
      LinearLane<S> state = snapshot.plain_state(is_pairs_first, factors);
      snapshot.fetch(next_snapshot, lane);
      if constexpr (!Snapshot::kHalf) {
        state.become(unit_above(state, lane, has_top, top_unit));
        factors = Factors<S, T, false>(state.exponent, state.above);
      }
#pragma unroll
      for (int k = 0; k < S::kRows; ++k) units[k] = state.exponent[k];
      Lowest<T> lowest;
      sweep_linear<kColumnsInFlight>(
          tile.columns, factors, 0, state, lowest, [&](int t, T) { return KeptColumn<S, Stage>{stage, t, lane}; },
          [](int) {});
    } else {
      const char* const own_snapshot = chunk > 0 ? saved.chunk(job.pair, job.strip, chunk) : nullptr;
      rebuild_slowly<S, Tile::kUnivariate>(
          tile.columns, {sweep, top_unit, place.column, place.is_entered, has_top, is_pairs_first, own_snapshot});
      snapshot.fetch(next_snapshot, lane);
    }
    __syncwarp();

    // Lane 31's columns start one right of this group of the strip below.
    const int below_group = chunk - S::kSkewChunks;
    Below below = {below_group >= 0 && below_group < below_groups};
    if (below.exists) {
      if (lane == kWarp - 1) job.producer.wait(around.below.chunks - below_group);
      __syncwarp();
      below.least = LinearGroup<S>::of(flow_row, below_group).fetch(job.producer.is_near(), lane, stage, below.unit);
    } else {
      stage.clear_entries(lane);
    }
    if constexpr (Sink::kUnivariate) {
      sink.start(place);
      if (lane < S::kSteps) stage.from_below[lane] = sink.left_below(column_of(chunk) + lane);
    }
    __syncwarp();

    const bool leaves = lane == 0 && !around.is_first && chunk < strip.groups();
    const auto out = LinearGroup<S>::of(flow_row, chunk);
    const auto hand = [&](int t, T r) {
      if (leaves) out.store(t, r);
    };
    bool holds = false, is_in_table = false;
    if (sweep == kPlain) {
      const int unit_below = below.unit_below(units, flow, lane), shift = units[S::kRows - 1] - unit_below;
      holds = below.least == kPlain && abs(shift) <= Range<T>::kLargestShift &&
              stage.template can_meet<T>(scaling_factor<T>(shift), lane);
      if (flow_is_plain) {
        holds = __all_sync(kAllLanes, holds && abs(unit_below - flow.below) <= Range<T>::kLargestShift);
        if (holds) flow.move(units, unit_below);
      } else {
        const LinearFlow<S> moved(flow, units, unit_below);
        holds = __all_sync(kAllLanes, holds && moved.is_finite());
        if (holds) flow = moved;
      }
      if (holds) {
        if (leaves) *out.unit = -units[0];
        const T factor_below = scaling_factor<T>(shift);
        if constexpr (Sink::kUnivariate) {
          const auto visit = [&](int t, const auto& column) {
            return SinkVisitor<S, Sink, Stage, std::decay_t<decltype(column)>>(sink, stage, column, t, lane);
          };
          sweep_linear_reversed<kColumnsInFlight>(tile.columns, factors, factor_below, -1, 0, flow, visit, hand);
        } else {
          const auto visit = [&](int t, const auto&) { return TableVisitor<S, Stage>(stage, t, lane); };
          sweep_linear_reversed<kColumnsInFlight>(tile.columns, factors, factor_below, -1, 0, flow, visit, hand);
          is_in_table = true;
        }
      } else {
        stage.widen_table(lane);
        stage.keep_units(units, lane);
        sweep = kWide;
      }
    }
    flow_is_plain = holds;
    if (!holds) {
      const int end_row = chunk == around.end_chunk && lane == around.end_lane ? around.end_row : -1;
      flow = reverse_slowly<S, Tile::kUnivariate>(
          tile.columns, {sweep, below, place.column, end_row, around.end_time % S::kSteps, leaves, out}, flow);
      is_in_table = true;
    }
    if (is_in_table) give_table<S>(tile, stage, lane, sink);
    sink.end(place, chunk == last_chunk);
    __syncwarp();
    if (lane == 0) job.publish(progress_of(job.round, strip.chunks - chunk));
  }
  sink.finish(strip, extent);
}

}  // namespace softdtw
