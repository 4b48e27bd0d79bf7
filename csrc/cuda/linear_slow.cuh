// The linear engine's sweeps of the chunks that are not plain, which are few: out of line, so that the plain sweeps have the
// registers to themselves. And what a warp keeps of a chunk in shared memory, for both.
#pragma once

#include "linear_memory.cuh"
#include "strip_job.cuh"

namespace softdtw {

// What forward keeps of a chunk in shared memory: the state before it, but for units, to sweep it again.
template <class S, bool kUnivariate>
struct LinearForwardStage : LinearStage<S, kUnivariate> {
  using T = typename S::Scalar;
  T before[S::kRows + 1][kWarp];

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
template <class S, bool kUnivariate>
struct LinearBackwardStage : LinearStage<S, kUnivariate> {
  using T = typename S::Scalar;
  using Word = typename LinearSnapshot<S>::Word;
  static constexpr int kPerAccess =
      16 / sizeof(Word) < S::kRows ? 16 / sizeof(Word) : S::kRows;  // words a lane moves at once
  static constexpr int kUnits = LinearSnapshot<S>::kHalf ? 1 : S::kRows;
  struct alignas(sizeof(Word) * kPerAccess) Words {
    Word of[kPerAccess];
  };
  Words table[S::kSteps][S::kRows / kPerAccess][kWarp];  // every cell's entry, and E in its place
  int lane_units[S::kSteps * kUnits][kWarp];             // of the entries: of a row, or, after a careful sweep, of a column
  T from_below[S::kSteps];                               // lane 31: sums of dy that the strip below leaves

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
  // Whether r of the row below in the columns to the right, which is in the units of this chunk's, loses nothing that matters to
  // the lane's last row: that is, whether what the row hands down there is within the range.
  template <typename Number>
  __device__ __forceinline__ bool can_meet(Number factor_below, int lane) const {
    constexpr int kLast = S::kRows / kPerAccess - 1, kRow = kPerAccess - 1;
    const Number handed =
        max(number<Number>(table[S::kSteps - 2][kLast][lane].of[kRow]),
            number<Number>(table[S::kSteps - 1][kLast][lane].of[kRow]));
    return handed * factor_below < Number(INFINITY);
  }
  __device__ __forceinline__ void keep_units(const int (&units)[S::kRows], int lane) {
    static_assert(S::kRows <= S::kSteps * kUnits);
#pragma unroll
    for (int k = 0; k < S::kRows; ++k) lane_units[k][lane] = units[k];
  }
  __device__ __forceinline__ void load_units(int (&units)[S::kRows], int lane) const {
#pragma unroll
    for (int k = 0; k < S::kRows; ++k) units[k] = lane_units[k][lane];
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
};

template <class Stage>
__device__ __forceinline__ Stage& stage_of_warp() {
  return *reinterpret_cast<Stage*>(stage_memory + threadIdx.y * sizeof(Stage));
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
        words[i] = PackedNumber::of(
            base - entries[i].e <= kFarthestUnits ? entries[i].a : 0, entries[i].e, base, PackedNumber::kLeastBits);
      stage.lane_units[t][lane] = base;
    } else {
#pragma unroll
      for (int i = 0; i < S::kRows; ++i) {
        words[i] = entries[i].a;
        stage.lane_units[t * S::kRows + i][lane] = entries[i].e;
      }
    }
    stage.store(t, lane, words);
  }
};

// What a column of a reversed sweep meets, for sweep_linear_reversed: its entries, and E in their place.
template <class S, class Stage>
struct TableVisitor {
  Stage& stage;
  const int t, lane;
  typename LinearSnapshot<S>::Word words[S::kRows];

  __device__ __forceinline__ TableVisitor(Stage& stage_, int t_, int lane_) : stage(stage_), t(t_), lane(lane_) {
    stage.load(t, lane, words);
  }
  // As KeptColumn keeps it.
  template <typename Number>
  __device__ __forceinline__ Number a(int k) const {
    return stage.template number<Number>(words[k]);
  }
  // As KeptWideColumn does.
  __device__ __forceinline__ Wide careful_a(int k) const {
    if constexpr (LinearSnapshot<S>::kHalf)
      return PackedNumber::unpack(words[k], stage.lane_units[t][lane], PackedNumber::kLeastBits);
    else
      return Wide{words[k], stage.lane_units[t * S::kRows + k][lane]};
  }
  __device__ __forceinline__ void cell(int k, double e) {
    if constexpr (LinearSnapshot<S>::kHalf)
      words[k] = __float_as_int(narrow(e));
    else
      words[k] = e;
  }
  __device__ __forceinline__ void end() { stage.store(t, lane, words); }
};

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
  wide.renew_if_reached();
  if (!is_entered) wide.adopt(lane, top_unit);
  wide.become(unit_above(wide, lane, has_top, top_unit));
  return wide;
}

// A chunk in forward.
template <class S>
struct SlowChunk {
  int sweep;  // the first to try
  int first_sweep, top_unit, column, columns;
  int end_row, end_step;  // the pair's last cell; a row of -1 if the lane does not hold it here
  bool is_entered, has_top, writes;
  char* snapshot;  // or null
  LinearGroup<S> out;
};

constexpr int kGivenUp = 3;  // in the place of a sweep: the pair is

template <class S>
struct SlowOutcome {
  LinearLane<S> state;
  int sweep = kGivenUp;     // the one that held
  bool fits_plain = false;  // whether a plain one would have
  double exponent = 0;      // log2 of the pair's last entry, negative
};

template <class S, bool kUnivariate>
__device__ __noinline__ SlowOutcome<S> sweep_slowly(
    LinearColumns<S, kUnivariate> columns, SlowChunk<S> chunk, LinearLane<S> state) {
  using T = typename S::Scalar;
  using Columns = LinearColumns<S, kUnivariate>;
  using Snapshot = LinearSnapshot<S>;
  const int lane = columns.lane, end_row = chunk.end_row, end_step = chunk.end_step;
  SlowOutcome<S> outcome;
  if (!__all_sync(kAllLanes, state.farthest_unit() <= kFarthestUnits)) return outcome;
  const T depth = columns.deepest();
  Wide rows[S::kRows], corner, last;
  if (chunk.writes) *chunk.out.unit = kOwnUnits;
  bool holds = false;
  if (chunk.sweep == kWide) {
    if (chunk.snapshot != nullptr) Snapshot::store(chunk.snapshot, lane, state, sweeps_of(kWide, chunk.first_sweep));
    LinearLane<S, double> wide = widened(state, chunk.is_entered, lane, chunk.has_top, chunk.top_unit);
    const Factors<S, double, true> factors(wide.exponent, wide.above);
    holds = __all_sync(kAllLanes, depth <= Columns::kDeepest && factors.fit);
    if (holds) {
      Lowest<double> lowest;
      const auto visit = [&](int t, double bottom) {
        if (chunk.writes) chunk.out.store(t, Wide::of(bottom, wide.exponent[S::kRows - 1]));
        return [](int, double) {};
      };
      sweep_linear<1>(columns, factors, -chunk.column, wide, lowest, visit, [&](int t) {
        if (t == end_step && end_row >= 0) last = Wide::of(pick(wide.left, end_row), pick(wide.exponent, end_row));
      });
      holds = lowest.is_enough() && wide.is_finite() &&
              (!factors.some_are_far || wide.are_negligible(static_cast<int>(depth) + 1));
      holds = __all_sync(kAllLanes, holds);
      constexpr int kOffset = Range<double>::kRenewed - Range<T>::kRenewed;
      outcome.fits_plain =
          __all_sync(kAllLanes, lowest.is_above(Range<T>::kLowest + kOffset) && wide.is_below(Range<T>::kBias + kOffset));
#pragma unroll
      for (int k = 0; k < S::kRows; ++k) rows[k] = wide.row(k);
      corner = wide.corner();
    }
  }
  if (holds) {
    outcome.sweep = kWide;
  } else {
    if (!__all_sync(kAllLanes, depth <= Columns::kDeepestCareful)) return outcome;
    if (chunk.snapshot != nullptr) Snapshot::store(chunk.snapshot, lane, state, sweeps_of(kCareful, chunk.first_sweep));
    int top = kNoExponent, bottom = -kNoExponent;
    bool is_compact = true;
#pragma unroll
    for (int k = 0; k < S::kRows; ++k) rows[k] = state.row(k);
    corner = state.corner();
    sweep_linear_carefully<S>(columns, rows, corner, [&](int t, const Wide& handed) {
      if (chunk.writes) chunk.out.store(t, handed);
      top = kNoExponent, bottom = -kNoExponent;
      return [&, t](int k, const Wide& a) {
        if (k == end_row && t == end_step) last = a;
        if (static_cast<unsigned>(chunk.column + t) >= static_cast<unsigned>(chunk.columns)) return;
        top = max(top, a.e), bottom = min(bottom, a.e);
        is_compact = is_compact && (!Snapshot::kHalf || top - bottom <= kFarthestUnits);
      };
    });
    if (!__all_sync(kAllLanes, is_compact)) return outcome;
    outcome.sweep = kCareful;
    outcome.fits_plain = true;
  }
  outcome.state.take(rows, corner);
  outcome.state.renew_if_reached();
  outcome.exponent = -(last.e + log2(last.a));
  return outcome;
}

// A chunk whose entries backward computes again.
struct SlowRebuild {
  int sweep, top_unit, column;
  bool is_entered, has_top, is_pairs_first;
  const char* snapshot;  // null for the first chunk
};

// To the stage, with the units of a wide sweep.
template <class S, bool kUnivariate>
__device__ __noinline__ void rebuild_slowly(LinearColumns<S, kUnivariate> columns, SlowRebuild chunk) {
  using Stage = LinearBackwardStage<S, kUnivariate>;
  const int lane = columns.lane;
  Stage& stage = stage_of_warp<Stage>();
  LinearLane<S, double> state;
  if (chunk.snapshot != nullptr) {
    LinearSnapshot<S> snapshot;
    snapshot.fetch(chunk.snapshot, lane);
    state = snapshot.state();
  } else {
    state.start(chunk.is_pairs_first ? 1 : 0);
  }
  if (chunk.sweep == kWide) {
    state = widened(state, chunk.is_entered, lane, chunk.has_top, chunk.top_unit);
    stage.keep_units(state.exponent, lane);
    Lowest<double> lowest;
    sweep_linear<1>(
        columns, Factors<S, double, true>(state.exponent, state.above), -chunk.column, state, lowest,
        [&](int t, double) { return KeptColumn<S, Stage>{stage, t, lane}; }, [](int) {});
  } else {
    Wide rows[S::kRows], corner = state.corner();
#pragma unroll
    for (int k = 0; k < S::kRows; ++k) rows[k] = state.row(k);
    sweep_linear_carefully<S>(
        columns, rows, corner, [&](int t, const Wide&) { return KeptWideColumn<S, Stage>{stage, t, lane}; });
  }
}

// What the strip below hands over for a chunk.
struct Below {
  bool exists;
  int least = kPlain;  // the sweep that can take it
  int unit = 0;

  // The unit of the row below a lane's rows.
  template <class S>
  __device__ __forceinline__ int unit_below(const int (&units)[S::kRows], const LinearFlow<S>& flow, int lane) const {
    const int handed = __shfl_down_sync(kAllLanes, units[0], 1);
    if (lane < kWarp - 1) return handed;
    if (exists) return -unit;
    return flow.diag == 0 && flow.next == 0 ? units[S::kRows - 1] : flow.below;
  }
};

// A chunk in the reversed sweep.
template <class S>
struct SlowReversed {
  int sweep;  // what the stage has: the entries of a wide or of a careful sweep
  Below below;
  int column;
  int end_row, end_step;  // as those of SlowChunk
  bool leaves;
  LinearGroup<S> out;
};

// Leaves E in the stage.
template <class S, bool kUnivariate>
__device__ __noinline__ LinearFlow<S> reverse_slowly(
    LinearColumns<S, kUnivariate> columns, SlowReversed<S> chunk, LinearFlow<S> flow) {
  using Stage = LinearBackwardStage<S, kUnivariate>;
  const int lane = columns.lane;
  Stage& stage = stage_of_warp<Stage>();
  const auto visit = [&](int t, const auto&) { return TableVisitor<S, Stage>(stage, t, lane); };
  if (chunk.leaves) *chunk.out.unit = kOwnUnits;
  if (chunk.column < -S::kSteps) flow.clear();  // left of the table, and of what is next to it
  if (chunk.sweep == kWide) {
    int units[S::kRows];
    stage.load_units(units, lane);
    const int unit_below = chunk.below.unit_below(units, flow, lane), shift = units[S::kRows - 1] - unit_below;
    LinearFlow<S, double> wide(flow, units, unit_below);
    const bool holds = chunk.below.least <= kWide && abs(shift) < kBias && wide.is_finite() &&
                       stage.template can_meet<double>(power_of_two(shift), lane);
    if (__all_sync(kAllLanes, holds)) {
      sweep_linear_reversed<1>(
          columns, Factors<S, double, true>(units, units[0]), power_of_two(shift), chunk.end_row, chunk.end_step, wide,
          visit, [&](int t, double r) {
            if (chunk.leaves) chunk.out.store(t, Wide::of(r, -units[0]));
          });
      flow.take(wide);
      return flow;
    }
    // What a careful sweep would have kept.
#pragma unroll 1
    for (int t = 0; t < S::kSteps; ++t) {
      typename LinearSnapshot<S>::Word words[S::kRows];
      stage.load(t, lane, words);
      KeptWideColumn<S, Stage> kept{stage, t, lane};
#pragma unroll
      for (int k = 0; k < S::kRows; ++k) kept(k, Wide::of(stage.template number<double>(words[k]), units[k]));
    }
  }
  sweep_linear_reversed_carefully(
      columns, chunk.column, chunk.end_row, chunk.end_step, flow, visit, [&](int t, const Wide& r) {
        if (chunk.leaves) chunk.out.store(t, r);
      });
  return flow;
}

}  // namespace softdtw
