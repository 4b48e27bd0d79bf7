// The linear engine's sweeps of the chunks that are not plain (linear.cuh), which are few: out of line, so that the plain sweeps
// have the registers to themselves.
#pragma once

#include "linear_stage.cuh"
#include "linear_sweep.cuh"

namespace softdtw {

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
