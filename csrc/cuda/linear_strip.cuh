// One warp sweeps one strip with the linear engine (linear.cuh), forward or back. Strips begin at column 0: there is no band.
#pragma once

#include "linear_memory.cuh"
#include "strip_gradient.cuh"
#include "strip_job.cuh"

namespace softdtw {

// What forward keeps of a chunk in shared memory: the state before it, to sweep it again.
template <class S, class Tile>
struct LinearForwardStage : LinearStage<S, Tile> {
  using T = typename S::Scalar;
  T before[S::kRows + 1][kWarp];
  int units_before[S::kRows + 1][kWarp];

  __device__ __forceinline__ void keep(const LinearLane<S>& state, int lane) {
#pragma unroll
    for (int k = 0; k < S::kRows; ++k) before[k][lane] = state.left[k], units_before[k][lane] = state.exponent[k];
    before[S::kRows][lane] = state.diag;
    units_before[S::kRows][lane] = state.above;
  }
  __device__ __forceinline__ void restore(LinearLane<S>& state, int lane) const {
#pragma unroll
    for (int k = 0; k < S::kRows; ++k) state.left[k] = before[k][lane], state.exponent[k] = units_before[k][lane];
    state.diag = before[S::kRows][lane];
    state.above = units_before[S::kRows][lane];
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
  Words table[S::kSteps][S::kRows / kPerAccess][kWarp];                       // every cell's entry, and E in its place
  int lane_units[S::kSteps][LinearSnapshot<S>::kHalf ? 1 : S::kRows][kWarp];  // after a careful sweep
  T from_below[S::kSteps];  // lane 31: sums of dy that the strip below leaves

  // What a word stands for, as KeptColumn keeps it.
  template <typename Number>
  __device__ __forceinline__ static Number number(Word word) {
    if constexpr (sizeof(Word) == sizeof(double))
      return word;
    else if constexpr (sizeof(Number) == sizeof(float))
      return __int_as_float(word);
    else
      return __hiloint2double(word, 0);
  }
  // Turns what a plain sweep has kept into what a wide one would have.
  __device__ __forceinline__ void widen_table(int lane) {
    if constexpr (LinearSnapshot<S>::kHalf) {
#pragma unroll 1
      for (int t = 0; t < S::kSteps; ++t) {
        Word words[S::kRows];
        load(t, lane, words);
#pragma unroll
        for (int k = 0; k < S::kRows; ++k) words[k] = __double2hiint(number<float>(words[k]));
        store(t, lane, words);
      }
    }
  }
  __device__ __forceinline__ void store(int t, int lane, const Word (&words)[S::kRows]) {
#pragma unroll
    for (int k = 0; k < S::kRows; k += kPerAccess) {
      Words packed;
#pragma unroll
      for (int i = 0; i < kPerAccess; ++i) packed.of[i] = words[k + i];
      table[t][k / kPerAccess][lane] = packed;
    }
  }
  __device__ __forceinline__ void load(int t, int lane, Word (&words)[S::kRows]) const {
#pragma unroll
    for (int k = 0; k < S::kRows; k += kPerAccess) {
      const Words packed = table[t][k / kPerAccess][lane];
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

// The unit of the row above a lane's rows.
template <class S, typename Number>
__device__ __forceinline__ int unit_above(const LinearLane<S, Number>& state, int lane, bool has_top, int top_unit) {
  const int handed = __shfl_up_sync(kAllLanes, state.exponent[S::kRows - 1], 1);
  return lane > 0 ? handed : has_top ? top_unit : state.exponent[0];
}

// A lane before a wide sweep of a chunk.
template <class S, class Other>
__device__ __forceinline__ LinearLane<S, double> widened(
    const LinearLane<S, Other>& state, bool is_entered, int lane, bool has_top, int top_unit) {
  LinearLane<S, double> wide(state);
  if (is_entered)
    wide.renew();
  else
    wide.renew_and_adopt(lane, top_unit);
  wide.become(unit_above(wide, lane, has_top, top_unit));
  return wide;
}

// Whether a pair of float32 is worth going on with: what its chunks have gained on robust so far, in tenths of a plain sweep.
template <typename T>
struct Patience {
  static constexpr int kAtFirst = 240;
  int left = kAtFirst;

  __device__ __forceinline__ void meet(int sweep) {
    if (sizeof(T) == 4) left += sweep == kPlain ? 16 : sweep == kWide ? 6 : -70;
  }
  __device__ __forceinline__ bool is_over() const { return left < 0; }
};

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
  const bool is_pairs_first = around.is_first && lane == 0;
  LinearLane<S> state;
  state.start(is_pairs_first ? 1 : 0);
  Tile tile(problem, extent, strip, job.pair, lane, stage);
  tile.fetch(Place<S>(strip, extent, 0, lane));
  int first_sweep = kPlain;
  bool right = true, is_compact = true, tries_plain = true;
  Patience<T> patience;
  for (int chunk = 0; chunk < chunks; ++chunk) {
    const Place<S> place(strip, extent, chunk, lane);
    tile.use(place);
    if (chunk + 1 < chunks) tile.fetch(Place<S>(strip, extent, chunk + 1, lane));
    const bool has_top = chunk < above_groups;
    right = tile.is_exact && is_compact;
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
    tries_plain = true;
    if (sweep == kPlain) {
      stage.keep(state, lane);
      state.renew();
      bool holds = state.become(unit_above(state, lane, has_top, top_unit));
      Factors<S, T, false> factors(state.exponent, state.above);
      if (sizeof(T) == 4 && is_pairs_first && !factors.fit) factors.leave_far_rows_out(state.exponent);
      holds = holds && factors.fit;
      if (__all_sync(kAllLanes, holds)) {
        if (snapshot != nullptr) Snapshot::store_plain(snapshot, lane, state, factors, sweeps_of(kPlain, first_sweep));
        if (writes) *out.unit = state.exponent[S::kRows - 1];
        Lowest<T> lowest;
        const auto visit = [&](int t, T bottom) {
          if (writes) out.store(t, bottom);
          return [](int, T) {};
        };
        sweep_linear<kColumnsInFlight>(tile, factors, 0, state, lowest, visit, [](int) {});
        holds = factors.far_units == 0 ? lowest.is_enough() : lowest.is_above(kLowestBesideFar);
        holds = __all_sync(kAllLanes, holds && state.is_finite());
      } else {
        holds = false;
      }
      if (!holds) {
        stage.restore(state, lane);
        sweep = kWide;
      }
    }

    const bool ends = chunk == around.end_chunk && lane == around.end_lane;
    const int end_row = around.end_row, end_step = around.end_time % S::kSteps;
    Wide last;
    if (sweep != kPlain) {
      is_compact = state.is_compact();
      if (writes) *out.unit = kOwnUnits;
    }
    if (sweep == kWide) {
      if (snapshot != nullptr) Snapshot::store(snapshot, lane, state, sweeps_of(kWide, first_sweep));
      const T depth = tile.deepest();
      const int deepest = static_cast<int>(min(depth, Tile::kDeepest)) + 1;
      LinearLane<S, double> wide = widened(state, place.is_entered, lane, has_top, top_unit);
      const Factors<S, double, true> factors(wide.exponent, wide.above);
      bool holds = __all_sync(kAllLanes, depth <= Tile::kDeepest && factors.fit);
      if (holds) {
        Lowest<double> lowest;
        const auto visit = [&](int t, double bottom) {
          if (writes) out.store(t, Wide::of(bottom, wide.exponent[S::kRows - 1]));
          return [](int, double) {};
        };
        sweep_linear<1>(tile, factors, -place.column, wide, lowest, visit, [&](int t) {
          if (ends && t == end_step) last = Wide::of(pick(wide.left, end_row), pick(wide.exponent, end_row));
        });
        holds = lowest.is_enough() && wide.is_finite() && (!factors.some_are_far || wide.are_negligible(deepest));
        holds = __all_sync(kAllLanes, holds);
        // What a plain sweep would not have held, the next one will not.
        constexpr int kOffset = Range<double>::kRenewed - Range<T>::kRenewed;
        const bool is_plain = lowest.is_above(Range<T>::kLowest + kOffset) && wide.is_below(Range<T>::kBias + kOffset);
        tries_plain = is_edge || sizeof(T) == 8 || __all_sync(kAllLanes, is_plain);
      }
      if (holds) {
        Wide rows[S::kRows];
#pragma unroll
        for (int k = 0; k < S::kRows; ++k) rows[k] = wide.row(k);
        state.take(rows, wide.corner());
      } else {
        sweep = kCareful;
      }
    }
    if (sweep == kCareful) {
      right = __all_sync(kAllLanes, tile.deepest() <= Tile::kDeepestCareful);
      if (!right) break;
      if (snapshot != nullptr) Snapshot::store(snapshot, lane, state, sweeps_of(kCareful, first_sweep));
      int top = kNoExponent, bottom = -kNoExponent;
      sweep_linear_carefully(tile, state, [&](int t, const Wide& handed) {
        if (writes) out.store(t, handed);
        top = kNoExponent, bottom = -kNoExponent;
        return [&, t](int k, const Wide& a) {
          if (ends && k == end_row && t == end_step) last = a;
          if (static_cast<unsigned>(place.column + t) >= static_cast<unsigned>(extent.m)) return;
          top = max(top, a.e), bottom = min(bottom, a.e);
          is_compact = is_compact && (!Snapshot::kHalf || top - bottom <= kFarthestUnits);
        };
      });
    }
    patience.meet(sweep);
    if (chunk == 0) first_sweep = sweep;
    if (ends) value[job.pair] = static_cast<T>(-(last.e + log2(last.a)) * problem.gamma_of(job.pair) * kLn2);
    __syncwarp();
    if (lane == kWarp - 1) job.publish(progress_of(job.round, chunk + 1));
  }
  right = right && __all_sync(kAllLanes, is_compact);
  if (!right && lane == kWarp - 1) job.publish(kAborted);
  return right;
}

// Keeps the entries of a column, for sweep_linear.
template <class S, class Stage>
struct KeptColumn {
  Stage& stage;
  const int t, lane;
  typename LinearSnapshot<S>::Word words[S::kRows] = {};

  template <typename Number>
  __device__ __forceinline__ void operator()(int k, Number a) {
    if constexpr (!LinearSnapshot<S>::kHalf)
      words[k] = a;
    else
      words[k] = Range<Number>::word(a);  // of a float64 its upper half
    if (k == S::kRows - 1) stage.store(t, lane, words);
  }
};

// And for sweep_linear_carefully, relative to the largest of them.
template <class S, class Stage>
struct KeptWideColumn {
  Stage& stage;
  const int t, lane;
  Wide entries[S::kRows] = {};

  __device__ __forceinline__ void operator()(int k, const Wide& a) {
    entries[k] = a;
    if (k < S::kRows - 1) return;
    typename LinearSnapshot<S>::Word words[S::kRows];
    if constexpr (LinearSnapshot<S>::kHalf) {
      int base = kNoExponent;
#pragma unroll
      for (int i = 0; i < S::kRows; ++i) base = max(base, entries[i].e);
#pragma unroll
      for (int i = 0; i < S::kRows; ++i)  // farther apart are only entries beyond the table
        words[i] = PackedNumber::of(base - entries[i].e <= kFarthestUnits ? entries[i].a : 0, entries[i].e, base);
      stage.lane_units[t][0][lane] = base;
    } else {
#pragma unroll
      for (int i = 0; i < S::kRows; ++i) {
        words[i] = entries[i].a;
        stage.lane_units[t][i][lane] = entries[i].e;
      }
    }
    stage.store(t, lane, words);
  }
};

// What a column of the reversed sweep meets, for sweep_linear_reversed.
template <class S, class Sink, class Stage, class Column>
struct LinearVisitor {
  using T = typename S::Scalar;
  Sink& sink;
  Stage& stage;
  const Column& column;
  const int t, lane;
  typename LinearSnapshot<S>::Word words[S::kRows];

  __device__ __forceinline__ LinearVisitor(Sink& sink_, Stage& stage_, const Column& column_, int t_, int lane_)
      : sink(sink_), stage(stage_), column(column_), t(t_), lane(lane_) {
    stage.load(t, lane, words);
  }
  // As KeptColumn keeps it.
  template <typename Number>
  __device__ __forceinline__ Number a(int k) const {
    return stage.template number<Number>(words[k]);
  }
  // After a careful sweep.
  __device__ __forceinline__ Wide careful_a(int k) const {
    if constexpr (LinearSnapshot<S>::kHalf)
      return PackedNumber::unpack(words[k], stage.lane_units[t][0][lane]);
    else
      return Wide{words[k], stage.lane_units[t][k][lane]};
  }
  template <typename Number>
  __device__ __forceinline__ void cell(int k, Number e) {
    if constexpr (!Sink::kUnivariate)
      words[k] = e;
    else if constexpr (sizeof(Number) == sizeof(T))
      sink.cell(column, k, t, e);
    else
      sink.cell(column, k, t, narrow(e));
  }
  __device__ __forceinline__ void end() {
    if constexpr (Sink::kUnivariate)
      sink.step(t, stage.from_below[t]);
    else
      stage.store(t, lane, words);
  }
};

// Turns what a wide sweep has kept into what a careful one would have.
template <class S, class Stage>
__device__ __forceinline__ void restate_entries(Stage& stage, int lane, const int (&units)[S::kRows]) {
#pragma unroll 1
  for (int t = 0; t < S::kSteps; ++t) {
    typename LinearSnapshot<S>::Word words[S::kRows];
    stage.load(t, lane, words);
    KeptWideColumn<S, Stage> kept{stage, t, lane};
#pragma unroll
    for (int k = 0; k < S::kRows; ++k) kept(k, Wide::of(stage.template number<double>(words[k]), units[k]));
  }
}

template <class S, typename Number>
__device__ __forceinline__ void copy_units(const LinearLane<S, Number>& state, int (&units)[S::kRows]) {
#pragma unroll
  for (int k = 0; k < S::kRows; ++k) units[k] = state.exponent[k];
}

// What the strip below hands over for a chunk.
template <class S>
struct Below {
  bool exists;
  int least = kPlain;  // the sweep that can take it
  int unit = 0;

  // The unit of the row below a lane's rows.
  __device__ __forceinline__ int unit_below(const int (&units)[S::kRows], const LinearFlow<S>& flow, int lane) const {
    const int handed = __shfl_down_sync(kAllLanes, units[0], 1);
    if (lane < kWarp - 1) return handed;
    if (exists) return -unit;
    return flow.diag == 0 && flow.next == 0 ? units[S::kRows - 1] : flow.below;
  }
};

template <class S, class Tile>
__device__ void linear_backward_strip(
    const Problem<typename S::Scalar>& problem, const Gradient<typename S::Scalar>& gradient, const Extent& extent,
    const BackwardStrip& job, const LinearSaved<S>& saved, const LinearFlows<S>& flows) {
  using T = typename S::Scalar;
  using Stage = LinearBackwardStage<S, typename Tile::Tile>;
  using Sink = SinkOf<S, typename Tile::Tile>;
  using PlainFactors = Factors<S, T, false>;
  using WideFactors = Factors<S, double, true>;
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
  const bool is_pairs_first = around.is_first && lane == 0;
  LinearFlow<S> flow;
  LinearSnapshot<S> snapshot;
  int first_sweep = kCareful;
  bool flow_is_plain = false;  // in the units of a plain sweep
  tile.fetch(Place<S>(strip, extent, last_chunk, lane));
  if (last_chunk > 0) snapshot.fetch(saved.chunk(job.pair, job.strip, last_chunk), lane);
  for (int chunk = last_chunk; chunk >= 0; --chunk) {
    const Place<S> place(strip, extent, chunk, lane);
    tile.use(place);
    if (chunk > 0) tile.fetch(Place<S>(strip, extent, chunk - 1, lane));
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
    int units[S::kRows];
    PlainFactors factors;
    if (sweep == kPlain) {
      LinearLane<S> state = snapshot.plain_state(is_pairs_first, factors);
      snapshot.fetch(saved.chunk(job.pair, job.strip, max(chunk - 1, 1)), lane);
      if constexpr (!LinearSnapshot<S>::kHalf) {
        state.become(unit_above(state, lane, has_top, top_unit));
        factors = PlainFactors(state.exponent, state.above);
      }
      copy_units(state, units);
      Lowest<T> lowest;
      sweep_linear<kColumnsInFlight>(
          tile, factors, 0, state, lowest, [&](int t, T) { return KeptColumn<S, Stage>{stage, t, lane}; }, [](int) {});
    } else {
      LinearLane<S, double> start;
      if (chunk > 0)
        start = snapshot.state();
      else
        start.start(is_pairs_first ? 1 : 0);
      if (chunk > 1) snapshot.fetch(saved.chunk(job.pair, job.strip, chunk - 1), lane);
      if (sweep == kWide) {
        LinearLane<S, double> state = widened(start, place.is_entered, lane, has_top, top_unit);
        copy_units(state, units);
        Lowest<double> lowest;
        sweep_linear<1>(
            tile, WideFactors(state.exponent, state.above), -place.column, state, lowest,
            [&](int t, double) { return KeptColumn<S, Stage>{stage, t, lane}; }, [](int) {});
      } else {
        LinearLane<S> state(start);
        sweep_linear_carefully(tile, state, [&](int t, const Wide&) { return KeptWideColumn<S, Stage>{stage, t, lane}; });
      }
    }
    __syncwarp();

    // Lane 31's columns start one right of this group of the strip below.
    const int below_group = chunk - S::kSkewChunks;
    Below<S> below{below_group >= 0 && below_group < below_groups};
    if (below.exists) {
      if (lane == kWarp - 1) job.producer.wait(around.below.chunks - below_group);
      __syncwarp();
      below.least = LinearGroup<S>::of(flow_row, below_group).fetch(job.producer.is_near(), lane, stage, below.unit);
    } else {
      stage.clear_entries(lane);
    }
    if constexpr (Sink::kUnivariate) {
      sink.start(place);
      if (lane < S::kSteps) stage.from_below[lane] = sink.left_below(place.column + 2 * lane - (kWarp - 1));
    }
    __syncwarp();

    const bool leaves = lane == 0 && !around.is_first && chunk < strip.groups();
    const auto out = LinearGroup<S>::of(flow_row, chunk);
    const auto visit = [&](int t, const auto& column) {
      return LinearVisitor<S, Sink, Stage, std::decay_t<decltype(column)>>(sink, stage, column, t, lane);
    };
    const int end_row = chunk == around.end_chunk && lane == around.end_lane ? around.end_row : -1;
    const int end_step = around.end_time % S::kSteps;
    const int unit_below = sweep == kCareful ? 0 : below.unit_below(units, flow, lane);
    const int shift = units[S::kRows - 1] - unit_below;
    bool holds = false;
    flow_is_plain = flow_is_plain && sweep == kPlain;
    if (sweep == kPlain) {
      holds = below.least == kPlain && abs(shift) <= Range<T>::kLargestShift;
      if (flow_is_plain) {
        holds = __all_sync(kAllLanes, holds && abs(unit_below - flow.below) <= Range<T>::kLargestShift);
        if (holds) flow.move(units, unit_below);
      } else {
        const LinearFlow<S> moved(flow, units, unit_below);
        holds = __all_sync(kAllLanes, holds && moved.is_finite());
        if (holds) flow = moved;
      }
      flow_is_plain = holds;
      if (holds) {
        if (leaves) *out.unit = -units[0];
        sweep_linear_reversed<kColumnsInFlight>(
            tile, factors, scaling_factor<T>(shift), -1, 0, flow, visit, [&](int t, T r) {
              if (leaves) out.store(t, r);
            });
      } else {
        stage.widen_table(lane);
        sweep = kWide;
      }
    }
    if (sweep == kWide) {
      if (place.column < -S::kSteps) flow.clear();  // left of the table, and of what is next to it
      LinearFlow<S, double> wide(flow, units, unit_below);
      holds = below.least <= kWide && abs(shift) < kBias && wide.is_finite();
      holds = __all_sync(kAllLanes, holds);
      if (holds) {
        if (leaves) *out.unit = kOwnUnits;
        sweep_linear_reversed<1>(
            tile, WideFactors(units, units[0]), power_of_two(shift), end_row, end_step, wide, visit, [&](int t, double r) {
              if (leaves) out.store(t, Wide::of(r, -units[0]));
            });
        flow.take(wide);
      } else {
        restate_entries<S>(stage, lane, units);
      }
    }
    if (!holds) {
      if (leaves) *out.unit = kOwnUnits;
      sweep_linear_reversed_carefully(tile, place.column, end_row, end_step, flow, visit, [&](int t, const Wide& r) {
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
