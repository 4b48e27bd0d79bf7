// One warp sweeps one strip with the linear engine (linear.cuh), forward or back. Strips begin at column 0: there is no band.
#pragma once

#include "linear_memory.cuh"
#include "strip_gradient.cuh"
#include "strip_job.cuh"

namespace softdtw {

constexpr double kLargestPenalty = 100;  // as an exponent of 2

// The factor of a step up or left, and its exponent's size.
template <typename T>
struct PenaltyFactor {
  const double exponent, factor;

  __device__ PenaltyFactor(const Problem<T>& problem, int64_t pair)
      : exponent(problem.penalty_of(pair) * problem.scale_of(pair)), factor(exponent == 0 ? 1.0 : exp2(-exponent)) {}
};

// What backward keeps of a chunk in shared memory.
template <class S, class Tile>
struct LinearBackwardStage : LinearStage<S, Tile> {
  using T = typename S::Scalar;
  using Word = typename LinearSnapshot<S>::Word;
  static constexpr int kPerAccess =
      16 / sizeof(Word) < S::kRows ? 16 / sizeof(Word) : S::kRows;  // words a lane moves at once
  struct alignas(sizeof(Word) * kPerAccess) Words {
    Word of[kPerAccess];
  };
  Words sums[S::kSteps][S::kRows / kPerAccess][kWarp];  // s of every cell, and E in its place
  T from_below[S::kSteps];                              // lane 31: sums of dy that the strip below leaves

  __device__ __forceinline__ void store(int t, int lane, const Word (&words)[S::kRows]) {
#pragma unroll
    for (int k = 0; k < S::kRows; k += kPerAccess) {
      Words packed;
#pragma unroll
      for (int i = 0; i < kPerAccess; ++i) packed.of[i] = words[k + i];
      sums[t][k / kPerAccess][lane] = packed;
    }
  }
  __device__ __forceinline__ void load(int t, int lane, Word (&words)[S::kRows]) const {
#pragma unroll
    for (int k = 0; k < S::kRows; k += kPerAccess) {
      const Words packed = sums[t][k / kPerAccess][lane];
#pragma unroll
      for (int i = 0; i < kPerAccess; ++i) words[k + i] = packed.of[i];
    }
  }
};

constexpr int kColumnsInFlight = 2;  // of a sweep: more is more instructions than the caches hold

// False where the pair is given up: here, or in a strip that this one waits for.
template <class S, class Tile>
__device__ bool linear_forward_strip(
    const Problem<typename S::Scalar>& problem, const Extent& extent, const ForwardStrip<S>& job,
    const LinearSaved<S>& saved, typename S::Scalar* value) {
  using T = typename S::Scalar;
  const int lane = threadIdx.x;
  Surroundings<S> around(extent, job.strip);
  around.pin_for_forward();
  const Strip<S>& strip = around.strip;
  const bool keeps = saved.memory != nullptr;
  const int chunks = around.is_last ? around.end_chunk + 1 : strip.chunks;
  const int above_groups = around.is_first ? 0 : around.above.groups();
  const Edge<S> above_edge = job.edges.of(job.pair, job.strip - 1, around.above);
  const Edge<S> own_edge = job.edges.of(job.pair, job.strip, strip);
  const PenaltyFactor<T> penalty(problem, job.pair);
  const float penalty_depth = static_cast<float>(penalty.exponent);

  typename Tile::Stage& stage =
      *reinterpret_cast<typename Tile::Stage*>(stage_memory + threadIdx.y * sizeof(typename Tile::Stage));
  LinearLane<S> state;
  state.start(around.is_first && lane == 0);
  Tile tile(problem, extent, strip, job.pair, lane, stage);
  tile.fetch(Place<S>(strip, extent, 0, lane));
  bool right = penalty.exponent <= kLargestPenalty;
  for (int chunk = 0; chunk < chunks; ++chunk) {
    const Place<S> place(strip, extent, chunk, lane);
    tile.use(place);
    if (chunk + 1 < chunks) tile.fetch(Place<S>(strip, extent, chunk + 1, lane));
    const bool has_top = chunk < above_groups;
    int top_unit = 0;
    if (has_top && lane == 0) {
      right = job.producer.wait(chunk + S::kSkewChunks + 1) && right;
      top_unit = fetch_group(entries_of(above_edge, chunk), above_edge.references + chunk, job.producer.is_near(), stage);
    }
    __syncwarp();

    const unsigned highest = state.highest();
    const float deepest = static_cast<float>(tile.deepest) + penalty_depth;
    right = right && tile.in_range && is_finite_word(highest);
    int shift = shift_from_above(state, lane, has_top, top_unit);
    const bool stays = place.is_entered && is_in_window(highest) && stays_in_range(state, deepest) && is_shift(shift);
    if (!__all_sync(kAllLanes, right && stays)) {
      if (place.is_entered)
        renew<false>(state, lane, top_unit);
      else
        renew<true>(state, lane, top_unit);
      shift = shift_from_above(state, lane, has_top, top_unit);
      right = right && is_shift(shift) && (!place.is_entered || stays_in_range(state, deepest));
      if (__any_sync(kAllLanes, !right)) break;
    }
    const double factor = power_of_two(shift);
    if (keeps && chunk > 0) LinearSnapshot<S>::store(saved.chunk(job.pair, job.strip, chunk), lane, state);

    const int own_group = chunk - S::kSkewChunks;
    const bool writes = lane == kWarp - 1 && !around.is_last && own_group >= 0;
    double* const out = entries_of(own_edge, own_group);
    if (writes) own_edge.references[own_group] = state.exponent;
    if (place.is_entered && chunk != around.end_chunk) {
      sweep_linear<kColumnsInFlight>(tile, has_top, factor, penalty.factor, state, [&](int t, double bottom) {
        if (writes) out[t] = bottom;
        return [](int, double, double) {};
      });
    } else {
      // Every entry from column 0 on is looked at, and the pair's last.
      const bool ends = chunk == around.end_chunk && lane == around.end_lane;
      const int end_row = around.end_row, end_step = around.end_time % S::kSteps;
      int lowest = kBias << 20;
      double last = NAN;
      sweep_linear<1>(tile, has_top, factor, penalty.factor, state, [&](int t, double bottom) {
        if (writes) out[t] = bottom;
        return [&, t](int k, double, double a) {
          if (place.column + t >= 0) lowest = min(lowest, __double2hiint(a));
          if (ends && k == end_row && t == end_step) last = a;
        };
      });
      right = exponent_of(lowest) > kLowest;
      if (ends) value[job.pair] = static_cast<T>(-(state.exponent + log2(last)) * problem.gamma_of(job.pair) * kLn2);
    }
    __syncwarp();
    if (lane == kWarp - 1) job.publish(progress_of(job.round, chunk + 1));
  }
  right = __all_sync(kAllLanes, right && is_finite_word(state.highest()));
  if (!right && lane == kWarp - 1) job.publish(kAborted);
  return right;
}

// E of float32 problems without the conversion unit.
__device__ __forceinline__ float alignment_of(double e, float) { return narrow(e); }
__device__ __forceinline__ double alignment_of(double e, double) { return e; }

// Keeps s of a column, for sweep_linear.
template <class S, class Stage>
struct SumsOfColumn {
  Stage& stage;
  const int t, lane;
  typename LinearSnapshot<S>::Word words[S::kRows] = {};

  __device__ __forceinline__ void operator()(int k, double s, double) {
    if constexpr (LinearSnapshot<S>::kHalf)
      words[k] = __double2hiint(s);
    else
      words[k] = s;
    if (k == S::kRows - 1) stage.store(t, lane, words);
  }
};

// What a column of the reversed sweep meets, for sweep_linear_reversed.
template <class S, class Sink, class Stage, class Column>
struct LinearVisitor {
  using T = typename S::Scalar;
  using Word = typename LinearSnapshot<S>::Word;
  Sink& sink;
  Stage& stage;
  const Column& column;
  const int t, lane;
  double* const out;  // null where r goes nowhere
  Word words[S::kRows];

  __device__ __forceinline__
  LinearVisitor(Sink& sink_, Stage& stage_, const Column& column_, int t_, int lane_, double* out_)
      : sink(sink_), stage(stage_), column(column_), t(t_), lane(lane_), out(out_) {
    stage.load(t, lane, words);
  }
  __device__ __forceinline__ double s(int k) const { return LinearSnapshot<S>::number_of(words[k]); }
  __device__ __forceinline__ void cell(int k, double e) {
    if constexpr (Sink::kUnivariate)
      sink.cell(column, k, t, alignment_of(e, T()));
    else
      words[k] = e;
  }
  __device__ __forceinline__ void end(double r) {
    if constexpr (Sink::kUnivariate)
      sink.step(t, stage.from_below[t]);
    else
      stage.store(t, lane, words);
    if (out != nullptr) out[t] = r;
  }
};

template <class S, class Tile>
__device__ void linear_backward_strip(
    const Problem<typename S::Scalar>& problem, const Gradient<typename S::Scalar>& gradient, const Extent& extent,
    const BackwardStrip& job, const LinearSaved<S>& saved, const LinearFlows<S>& flows) {
  using T = typename S::Scalar;
  using Stage = LinearBackwardStage<S, typename Tile::Tile>;
  using Sink = SinkOf<S, typename Tile::Tile>;
  const int lane = threadIdx.x;
  const Surroundings<S> around(extent, job.strip);
  const Strip<S>& strip = around.strip;
  const int above_groups = around.is_first ? 0 : around.above.groups();
  const int below_groups = around.is_last ? 0 : around.below.groups();
  const int last_chunk = around.is_last ? around.end_chunk : strip.chunks - 1;
  const Edge<S> above_edge = saved.edges.of(job.pair, job.strip - 1, around.above);
  const PenaltyFactor<T> penalty(problem, job.pair);

  Stage& stage = *reinterpret_cast<Stage*>(stage_memory + threadIdx.y * sizeof(Stage));
  Tile tile(problem, extent, strip, job.pair, lane, stage);
  T scale = gradient_scale(problem, gradient, job.pair);
  if (Tile::kUnivariate) scale /= Tile::root_of_scale(problem, job.pair);
  Sink sink(
      problem, gradient, extent, job.pair, lane, columns_of(around, extent), scale,
      flows.carries_of(job.pair, job.strip, problem.dim));
  LinearFlow<S> flow;
  LinearSnapshot<S> snapshot;
  tile.fetch(Place<S>(strip, extent, last_chunk, lane));
  if (last_chunk > 0) snapshot.fetch(saved.chunk(job.pair, job.strip, last_chunk), lane);
  for (int chunk = last_chunk; chunk >= 0; --chunk) {
    const Place<S> place(strip, extent, chunk, lane);
    tile.use(place);
    LinearLane<S> state;
    if (chunk > 0)
      state = snapshot.state();
    else
      state.start(around.is_first && lane == 0);
    if (chunk > 0) tile.fetch(Place<S>(strip, extent, chunk - 1, lane));
    if (chunk > 1) snapshot.fetch(saved.chunk(job.pair, job.strip, chunk - 1), lane);
    const bool has_top = chunk < above_groups;
    int top_unit = 0;
    if (has_top && lane == 0)
      top_unit = fetch_group(entries_of(above_edge, chunk), above_edge.references + chunk, true, stage);
    __syncwarp();
    if (chunk == 0) renew<true>(state, lane, top_unit);
    const int unit = state.exponent;
    sweep_linear<kColumnsInFlight>(
        tile, has_top, power_of_two(shift_from_above(state, lane, has_top, top_unit)), penalty.factor, state,
        [&](int t, double) { return SumsOfColumn<S, Stage>{stage, t, lane}; });

    // Lane 31's columns start one right of this group of the strip below.
    const int below_group = chunk - S::kSkewChunks;
    const bool has_below = below_group >= 0 && below_group < below_groups;
    int below_unit = unit;
    if (has_below && lane == kWarp - 1) {
      job.producer.wait(around.below.chunks - below_group);
      below_unit =
          fetch_group(flows.group(job.pair, below_group), flows.unit(job.pair, below_group), job.producer.is_near(), stage);
    }
    __syncwarp();
    if (chunk == last_chunk || place.column < -S::kSteps) flow.start(unit);  // left of the table, and of what is next to it
    if (__any_sync(kAllLanes, flow.exponent != unit)) flow.become(unit);
    const int handed = __shfl_down_sync(kAllLanes, unit, 1);
    // A larger shift than that there is only where the lane below is left of the table and hands over 0.
    const double factor = power_of_two(min(unit - (lane == kWarp - 1 ? below_unit : handed), kBias));
    sink.begin(place);
    if constexpr (Sink::kUnivariate) {
#pragma unroll
      for (int t = 0; t < S::kSteps; ++t)
        if (lane == kWarp - 1) stage.from_below[t] = sink.from_below[t];
    }

    double* const out = lane == 0 && !around.is_first && chunk < strip.groups() ? flows.group(job.pair, chunk) : nullptr;
    if (out != nullptr) *flows.unit(job.pair, chunk) = unit;
    const auto visit = [&](int t, const auto& column) {
      return LinearVisitor<S, Sink, Stage, std::decay_t<decltype(column)>>(sink, stage, column, t, lane, out);
    };
    if (chunk != around.end_chunk)
      sweep_linear_reversed<kColumnsInFlight, false>(tile, has_below, 0, 0, factor, penalty.factor, flow, visit);
    else
      sweep_linear_reversed<1, true>(
          tile, has_below, lane == around.end_lane ? around.end_row : -1, around.end_time % S::kSteps, factor,
          penalty.factor, flow, visit);
    if constexpr (!Sink::kUnivariate) {
#pragma unroll
      for (int t = 0; t < S::kSteps; ++t) {
        typename LinearSnapshot<S>::Word words[S::kRows];
        stage.load(t, lane, words);
#pragma unroll
        for (int k = 0; k < S::kRows; ++k) sink.cell(tile, k, t, words[k]);
      }
    }
    sink.end(place, chunk == last_chunk);
    __syncwarp();
    if (lane == 0) job.publish(progress_of(job.round, strip.chunks - chunk));
  }
  sink.finish(strip, extent);
}

}  // namespace softdtw
