// One warp sweeps one strip with the linear engine (linear.cuh), forward or back. Strips begin at column 0: there is no band.
#pragma once

#include "linear_memory.cuh"
#include "strip_gradient.cuh"
#include "strip_job.cuh"

namespace softdtw {

// What forward keeps of a chunk in shared memory: the state before it, to sweep it again.
template <class S, class Tile>
struct LinearForwardStage : LinearStage<S, Tile> {
  double before[S::kRows + 1][kWarp];

  __device__ __forceinline__ void keep(const LinearLane<S>& state, int lane) {
#pragma unroll
    for (int k = 0; k < S::kRows; ++k) before[k][lane] = state.left[k];
    before[S::kRows][lane] = state.diag;
  }
  __device__ __forceinline__ void restore(LinearLane<S>& state, int lane) const {
#pragma unroll
    for (int k = 0; k < S::kRows; ++k) state.left[k] = before[k][lane];
    state.diag = before[S::kRows][lane];
  }
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
  Words sums[S::kSteps][S::kRows / kPerAccess][kWarp];                        // s of every cell, and E in its place
  int lane_units[S::kSteps][LinearSnapshot<S>::kHalf ? 1 : S::kRows][kWarp];  // after a careful sweep
  T from_below[S::kSteps];  // lane 31: sums of dy that the strip below leaves

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

template <class Stage>
__device__ __forceinline__ Stage& stage_of_warp() {
  return *reinterpret_cast<Stage*>(stage_memory + threadIdx.y * sizeof(Stage));
}

constexpr int kColumnsInFlight = 2;  // of a sweep: more is more instructions than the caches hold

// False where the pair is given up: here, or in a strip that this one waits for.
template <class S, class Tile>
__device__ bool linear_forward_strip(
    const Problem<typename S::Scalar>& problem, const Extent& extent, const ForwardStrip<S>& job,
    const LinearSaved<S>& saved, typename S::Scalar* value) {
  using T = typename S::Scalar;
  using Stage = LinearForwardStage<S, typename Tile::Tile>;
  using Snapshot = LinearSnapshot<S>;
  const int lane = threadIdx.x;
  Surroundings<S> around(extent, job.strip);
  around.pin_for_forward();
  const Strip<S>& strip = around.strip;
  const bool keeps = saved.memory != nullptr;
  const int chunks = around.is_last ? around.end_chunk + 1 : strip.chunks;
  const int above_groups = around.is_first ? 0 : around.above.groups();
  const Edge<S> above_edge = job.edges.of(job.pair, job.strip - 1, around.above);
  const Edge<S> own_edge = job.edges.of(job.pair, job.strip, strip);

  Stage& stage = stage_of_warp<Stage>();
  LinearLane<S> state;
  state.start(around.is_first && lane == 0 ? 1 : 0);
  Factors<S> factors(state);
  Tile tile(problem, extent, strip, job.pair, lane, stage);
  tile.fetch(Place<S>(strip, extent, 0, lane));
  int sweeps = 0;
  bool right = true, units_hold = false, are_near = true, some_are_far = false;
  unsigned highest = 0;
  int patience = Tile::kPatience + chunks / 8;  // with careful sweeps
  for (int chunk = 0; chunk < chunks; ++chunk) {
    const Place<S> place(strip, extent, chunk, lane);
    tile.use(place);
    if (chunk + 1 < chunks) tile.fetch(Place<S>(strip, extent, chunk + 1, lane));
    const bool has_top = chunk < above_groups;
    bool fits = tile.deepest <= Tile::kDeepest;
    int top_unit = 0;
    right = tile.is_exact && are_near;
    if (has_top && lane == 0) {
      right = job.producer.wait(chunk + S::kSkewChunks + 1) && right;
      fits = LinearGroup<S>::of(above_edge, chunk).fetch(job.producer.is_near(), stage, top_unit) && fits;
    }
    const int deep_lanes = __popc(__ballot_sync(kAllLanes, tile.deepest > Tile::kDeepest));
    right = __all_sync(kAllLanes, right) && deep_lanes < Tile::kTooManyDeepLanes && patience >= 0;
    if (!right) break;

    const bool is_edge = !place.is_entered || chunk == around.end_chunk;
    if (!__all_sync(kAllLanes, place.is_entered && is_in_window(state.lowest(), highest))) {
      state.renew();
      if (!place.is_entered) adopt_units(state, lane, top_unit);
      units_hold = false;
    }
    const int handed = __shfl_up_sync(kAllLanes, state.exponent[S::kRows - 1], 1);
    const int unit_above = lane > 0 ? handed : has_top ? top_unit : state.exponent[0];
    if (!units_hold || __any_sync(kAllLanes, unit_above != state.above)) {
      state.become(unit_above);
      factors = Factors<S>(state);
      are_near = state.is_compact();
      bool is_far;
      units_hold = state.has_factors(is_far) && (!place.is_entered || state.lowest() > 0);
      some_are_far = __any_sync(kAllLanes, is_far);
    }
    bool careful = !__all_sync(kAllLanes, fits && units_hold);
    char* const snapshot = keeps && chunk > 0 ? saved.chunk(job.pair, job.strip, chunk) : nullptr;
    if (snapshot != nullptr) Snapshot::store(snapshot, lane, state, sweeps | (careful ? kCareful : 0));

    const int own_group = chunk - S::kSkewChunks;
    const bool writes = lane == kWarp - 1 && !around.is_last && own_group >= 0;
    const auto out = LinearGroup<S>::of(own_edge, own_group);
    const bool ends = chunk == around.end_chunk && lane == around.end_lane;
    const int end_row = around.end_row, end_step = around.end_time % S::kSteps;
    Wide last;
    if (!careful) {
      if (writes) *out.unit = state.exponent[S::kRows - 1];
      stage.keep(state, lane);
      const auto visit = [&](int t, double bottom) {
        if (writes) out.store(t, bottom);
        return [](int, double) {};
      };
      bool stays = true;
      if (!is_edge) {
        sweep_linear<kColumnsInFlight>(tile, has_top, factors, state, visit, [](int) {});
      } else {
        const int least = kBias + kLowestFirst + S::kSteps * static_cast<int>(tile.deepest + 1);
        sweep_linear<1>(tile, has_top, factors, state, visit, [&](int t) {
          if (place.column + t == 0) stays = __double2hiint(state.left[S::kRows - 1]) >= least << 20;
          if (ends && t == end_step) last = Wide::of(pick(state.left, end_row), pick(state.exponent, end_row));
        });
      }
      highest = state.highest();
      stays = stays && is_finite_word(highest);
      if (some_are_far) stays = stays && state.are_negligible(static_cast<int>(tile.deepest + 1));
      careful = !__all_sync(kAllLanes, stays);
      if (careful) {
        stage.restore(state, lane);
        if (snapshot != nullptr) Snapshot::store_units(snapshot, lane, state, sweeps | kCareful);
      }
    }
    if (careful) {
      int top = kNoExponent, bottom = -kNoExponent;
      if (writes) *out.unit = kOwnUnits;
      are_near = true;
      sweep_linear_carefully(tile, has_top, state, [&](int t, const Wide& handed) {
        if (writes) out.store(t, handed);
        top = kNoExponent, bottom = -kNoExponent;
        return [&, t](int k, const Wide& s, const Wide& a) {
          if (ends && k == end_row && t == end_step) last = a;
          if (static_cast<unsigned>(place.column + t) >= static_cast<unsigned>(extent.m)) return;
          top = max(top, s.e), bottom = min(bottom, s.e);
          are_near = are_near && (!Snapshot::kHalf || top - bottom <= kFarthestUnits);
        };
      });
      are_near = are_near && state.is_compact();
      highest = state.highest();
      units_hold = false;
      --patience;
      if (chunk == 0) sweeps = kFirstCareful;
    }
    if (ends) value[job.pair] = static_cast<T>(-(last.e + log2(last.a)) * problem.gamma_of(job.pair) * kLn2);
    __syncwarp();
    if (lane == kWarp - 1) job.publish(progress_of(job.round, chunk + 1));
  }
  right = right && __all_sync(kAllLanes, are_near);
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

  __device__ __forceinline__ void operator()(int k, double s) {
    if constexpr (LinearSnapshot<S>::kHalf)
      words[k] = __double2hiint(s);
    else
      words[k] = s;
    if (k == S::kRows - 1) stage.store(t, lane, words);
  }
};

// And for sweep_linear_carefully, relative to the largest of them.
template <class S, class Stage>
struct WideSumsOfColumn {
  Stage& stage;
  const int t, lane;
  Wide sums[S::kRows] = {};

  __device__ __forceinline__ void operator()(int k, const Wide& s, const Wide&) {
    sums[k] = s;
    if (k < S::kRows - 1) return;
    typename LinearSnapshot<S>::Word words[S::kRows];
    if constexpr (LinearSnapshot<S>::kHalf) {
      int base = kNoExponent;
#pragma unroll
      for (int i = 0; i < S::kRows; ++i) base = max(base, sums[i].e);
#pragma unroll
      for (int i = 0; i < S::kRows; ++i)  // farther apart are only sums beyond the table
        words[i] = PackedNumber::of(base - sums[i].e <= kFarthestUnits ? sums[i].a : 0, sums[i].e, base);
      stage.lane_units[t][0][lane] = base;
    } else {
#pragma unroll
      for (int i = 0; i < S::kRows; ++i) {
        words[i] = sums[i].a;
        stage.lane_units[t][i][lane] = sums[i].e;
      }
    }
    stage.store(t, lane, words);
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
  Word words[S::kRows];

  __device__ __forceinline__ LinearVisitor(Sink& sink_, Stage& stage_, const Column& column_, int t_, int lane_)
      : sink(sink_), stage(stage_), column(column_), t(t_), lane(lane_) {
    stage.load(t, lane, words);
  }
  __device__ __forceinline__ double s(int k) const {
    if constexpr (LinearSnapshot<S>::kHalf)
      return __hiloint2double(words[k], 0);
    else
      return words[k];
  }
  // After a careful sweep.
  __device__ __forceinline__ Wide wide_s(int k) const {
    if constexpr (LinearSnapshot<S>::kHalf)
      return PackedNumber::unpack(words[k], stage.lane_units[t][0][lane]);
    else
      return Wide{words[k], stage.lane_units[t][k][lane]};
  }
  __device__ __forceinline__ void cell(int k, double e) {
    if constexpr (Sink::kUnivariate)
      sink.cell(column, k, t, alignment_of(e, T()));
    else
      words[k] = e;
  }
  __device__ __forceinline__ void end() {
    if constexpr (Sink::kUnivariate)
      sink.step(t, stage.from_below[t]);
    else
      stage.store(t, lane, words);
  }
};

// Turns what a plain sweep has kept into what a careful one would have.
template <class S, class Stage>
__device__ __forceinline__ void restate_sums(Stage& stage, int lane, const int (&units)[S::kRows]) {
#pragma unroll 1
  for (int t = 0; t < S::kSteps; ++t) {
    typename LinearSnapshot<S>::Word words[S::kRows];
    stage.load(t, lane, words);
    WideSumsOfColumn<S, Stage> sums{stage, t, lane};
#pragma unroll
    for (int k = 0; k < S::kRows; ++k) {
      double s;
      if constexpr (LinearSnapshot<S>::kHalf)
        s = __hiloint2double(words[k], 0);
      else
        s = words[k];
      sums(k, Wide::of(s, units[k]), Wide());
    }
  }
}

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
  const Edge<S> flow_row = flows.edges.of(job.pair, 0, strip);

  Stage& stage = stage_of_warp<Stage>();
  Tile tile(problem, extent, strip, job.pair, lane, stage);
  T scale = gradient_scale(problem, gradient, job.pair);
  if (Tile::kUnivariate) scale /= Tile::root_of_scale(problem, job.pair);
  Sink sink(
      problem, gradient, extent, job.pair, lane, columns_of(around, extent), scale,
      flows.carries_of(job.pair, job.strip, problem.dim));
  LinearFlow<S> flow;
  LinearSnapshot<S> snapshot;
  bool first_is_careful = true;
  tile.fetch(Place<S>(strip, extent, last_chunk, lane));
  if (last_chunk > 0) snapshot.fetch(saved.chunk(job.pair, job.strip, last_chunk), lane);
  for (int chunk = last_chunk; chunk >= 0; --chunk) {
    const Place<S> place(strip, extent, chunk, lane);
    tile.use(place);
    LinearLane<S> state;
    bool careful = first_is_careful;
    if (chunk > 0) {
      state = snapshot.state();
      careful = snapshot.sweeps() & kCareful;
      first_is_careful = snapshot.sweeps() & kFirstCareful;
      tile.fetch(Place<S>(strip, extent, chunk - 1, lane));
    } else {
      state.start(around.is_first && lane == 0 ? 1 : 0);
    }
    if (chunk > 1) snapshot.fetch(saved.chunk(job.pair, job.strip, chunk - 1), lane);
    const bool has_top = chunk < above_groups;
    int top_unit = 0;
    if (has_top && lane == 0) LinearGroup<S>::of(above_edge, chunk).fetch(true, stage, top_unit);
    __syncwarp();
    Factors<S> factors(state);
    int units[S::kRows];
    if (careful) {
      sweep_linear_carefully(
          tile, has_top, state, [&](int t, const Wide&) { return WideSumsOfColumn<S, Stage>{stage, t, lane}; });
    } else {
      if (!place.is_entered) adopt_units(state, lane, top_unit);
#pragma unroll
      for (int k = 0; k < S::kRows; ++k) units[k] = state.exponent[k];
      const int handed = __shfl_up_sync(kAllLanes, units[S::kRows - 1], 1);
      state.become(lane > 0 ? handed : has_top ? top_unit : units[0]);
      factors = Factors<S>(state);
      sweep_linear<kColumnsInFlight>(
          tile, has_top, factors, state, [&](int t, double) { return SumsOfColumn<S, Stage>{stage, t, lane}; }, [](int) {});
    }

    // Lane 31's columns start one right of this group of the strip below.
    const int below_group = chunk - S::kSkewChunks;
    const bool has_below = below_group >= 0 && below_group < below_groups;
    bool fits = true;
    int group_unit = 0;
    if (has_below && lane == kWarp - 1) {
      job.producer.wait(around.below.chunks - below_group);
      fits = LinearGroup<S>::of(flow_row, below_group).fetch(job.producer.is_near(), stage, group_unit);
    }
    sink.begin(place);
    if constexpr (Sink::kUnivariate) {
#pragma unroll
      for (int t = 0; t < S::kSteps; ++t)
        if (lane == kWarp - 1) stage.from_below[t] = sink.from_below[t];
    }
    __syncwarp();

    const bool leaves = lane == 0 && !around.is_first && chunk < strip.groups();
    const auto out = LinearGroup<S>::of(flow_row, chunk);
    const auto visit = [&](int t, const auto& column) {
      return LinearVisitor<S, Sink, Stage, std::decay_t<decltype(column)>>(sink, stage, column, t, lane);
    };
    int below_unit = 0, shift = 0;
    if (!careful) {
      below_unit = __shfl_down_sync(kAllLanes, units[0], 1);
      if (lane == kWarp - 1) {
        const bool nothing = flow.diag == 0 && flow.next == 0;
        below_unit = has_below ? -group_unit : nothing ? units[S::kRows - 1] : flow.below;
      }
      shift = units[S::kRows - 1] - below_unit;
      if (place.column < -S::kSteps) flow.clear();  // left of the table, and of what is next to it
      LinearFlow<S> rescaled = flow;
      rescaled.become(units, below_unit);
      careful = !__all_sync(kAllLanes, fits && abs(shift) < kBias && rescaled.is_finite());
      if (!careful) flow = rescaled;
      if (careful) restate_sums<S>(stage, lane, units);
    }
    const int end_row = chunk == around.end_chunk && lane == around.end_lane ? around.end_row : -1;
    const int end_step = around.end_time % S::kSteps;
    if (!careful) {
      if (leaves) *out.unit = -units[0];
      const auto hand = [&](int t, double r) {
        if (leaves) out.store(t, r);
      };
      if (chunk != around.end_chunk)
        sweep_linear_reversed<kColumnsInFlight, false>(
            tile, has_below, factors, power_of_two(shift), -1, 0, flow, visit, hand);
      else
        sweep_linear_reversed<1, true>(tile, has_below, factors, power_of_two(shift), end_row, end_step, flow, visit, hand);
    } else {
      if (leaves) *out.unit = kOwnUnits;
      sweep_linear_reversed_carefully(
          tile, place.column, has_below, end_row, end_step, flow, visit, [&](int t, const Wide& r) {
            if (leaves) out.store(t, r);
          });
    }
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
