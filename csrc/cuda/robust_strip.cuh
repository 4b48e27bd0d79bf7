// One warp sweeps one strip with the robust engine (robust.cuh), forward or back.
#pragma once

#include "robust.cuh"
#include "strip_gradient.cuh"
#include "strip_job.cuh"

namespace softdtw {

// A lane's entries and reference between chunks, m narrow (T) or wide (float64), the same in the whole warp.
template <class S>
struct RobustState {
  using T = typename S::Scalar;
  static constexpr bool kWideExists = sizeof(T) == 4;
  Lane<S, T> narrow;
  Lane<S, double> wide;
  double reference = 0;
  bool is_wide = false;

  __device__ __forceinline__ void start(bool holds_corner) {
#pragma unroll
    for (int i = 0; i <= S::kRows; ++i) narrow.at(i) = {nowhere<S>(), T(1)};
    if (holds_corner) narrow.diag.m = 0;  // R[0,0] = 0
    reference = 0;
    is_wide = false;
  }
  __device__ __forceinline__ double m(int i) const { return kWideExists && is_wide ? wide.at(i).m : narrow.at(i).m; }
  __device__ __forceinline__ T s(int i) const { return kWideExists && is_wide ? wide.at(i).s : narrow.at(i).s; }
  __device__ __forceinline__ void renew(int lane, double top_reference) {
    if (kWideExists && is_wide)
      softdtw::renew(wide, reference, lane, top_reference);
    else
      softdtw::renew(narrow, reference, lane, top_reference);
  }
  // Brings m to the width that the chunk needs; true if the sweep may be the plain one.
  __device__ __forceinline__ bool prepare(bool plain, double above, T highest_cost, bool top_is_wide) {
    if constexpr (!kWideExists) return __all_sync(kAllLanes, plain && highest_cost < Whole<T>::limit);
    const bool fits =
        is_wide ? is_narrow<S>(wide, above, highest_cost) : is_narrow<S>(narrow, above, highest_cost);
    const bool narrows = __all_sync(kAllLanes, plain && fits && !top_is_wide);
    if (narrows && is_wide) narrow = convert<S, T>(wide);
    if (!narrows && !is_wide) wide = convert<S, double>(narrow);
    is_wide = !narrows;
    return narrows;
  }
};

// The robust engine's snapshot of two chunks, the second of which is `odd` (strip.cuh).
template <class S>
struct RobustSnapshot {
  using T = typename S::Scalar;
  using Whole = std::conditional_t<sizeof(T) == 4, int, double>;
  char* even;
  char* odd;

  __device__ RobustSnapshot(const Saved<S>& saved, int64_t pair, int strip, int chunk)
      : even(saved.chunk(pair, strip, chunk - 1)), odd(saved.chunk(pair, strip, chunk)) {}
  __device__ __forceinline__ void store(const RobustState<S>& state, int lane) const {
#pragma unroll
    for (int i = 0; i <= S::kRows; ++i) {
      Whole& m = Saved<S>::template words<Whole>(even)[i * kWarp + lane];
      if constexpr (sizeof(T) == 4)
        m = RobustTop<S>::to_int(state.m(i));
      else
        m = state.m(i);
      Saved<S>::template words<T>(odd)[i * kWarp + lane] = state.s(i);
    }
    Saved<S>::references(even)[lane] = __double2loint(state.reference);
    Saved<S>::references(odd)[lane] = __double2hiint(state.reference);
  }
  __device__ __forceinline__ void load(RobustState<S>& state, int lane) const {
    state.is_wide = RobustState<S>::kWideExists;
#pragma unroll
    for (int i = 0; i <= S::kRows; ++i) {
      const Whole m = Saved<S>::template words<Whole>(even)[i * kWarp + lane];
      const T s = Saved<S>::template words<T>(odd)[i * kWarp + lane];
      if constexpr (sizeof(T) == 4)
        state.wide.at(i) = {RobustTop<S>::from_int(m), s};
      else
        state.narrow.at(i) = {m, s};
    }
    state.reference = __hiloint2double(Saved<S>::references(odd)[lane], Saved<S>::references(even)[lane]);
  }
};

// The recurrences of the two widths of m.
template <class S>
struct Recurrences {
  using T = typename S::Scalar;
  using Plain = SoftDtw<T, T, DeviceMath, false>;
  using General = SoftDtw<T, double, DeviceMath, true>;
  Plain plain;
  General general;
  bool has_penalty;

  // Ready-made costs are scaled where they are loaded, the others inside the cell.
  __device__ explicit Recurrences(const Problem<T>& problem) {
    const double scale = problem.cost == Cost::kMatrix ? 1.0 : problem.scale;
    plain.scale = static_cast<T>(scale);
    general.scale = scale;
    const Entry<double> penalty = SoftDtw<double, double, DeviceMath, true>::split(problem.warp_penalty * problem.scale, 1.0);
    general.penalty = {penalty.m, static_cast<T>(penalty.s)};
    has_penalty = problem.warp_penalty != 0;
  }
};

// Sweeps a chunk with the recurrence that it needs, `visit(recurrence, k, t, diag, up, left)`. True if that is the plain one.
template <class S, class Visit, class Column>
__device__ __forceinline__ bool sweep_chunk(
    const Recurrences<S>& recurrences, const Extent& extent, const Place<S>& place, int lane, const RobustTop<S>& top,
    double above, typename S::Scalar reach, bool may_be_plain, RobustState<S>& state, Visit&& visit, Column&& column) {
  const bool top_is_wide = __shfl_sync(kAllLanes, top.wide, 0);
  const bool plain = state.prepare(
      may_be_plain && place.in_band && !recurrences.has_penalty, above, reach * recurrences.plain.scale, top_is_wide);
  if (plain) {
    sweep_robust<false>(
        extent, place, lane, top, above, state.narrow,
        [&](int k, int t, auto diag, auto up, auto left) { return visit(recurrences.plain, k, t, diag, up, left); },
        [&](int t, auto bottom) { column(t, bottom); });
  } else {
    const auto cell = [&](int k, int t, auto diag, auto up, auto left) {
      return visit(recurrences.general, k, t, diag, up, left);
    };
    const auto step = [&](int t, auto bottom) { column(t, bottom); };
    if constexpr (RobustState<S>::kWideExists)
      sweep_robust<true>(extent, place, lane, top, above, state.wide, cell, step);
    else
      sweep_robust<true>(extent, place, lane, top, above, state.narrow, cell, step);
  }
  return plain;
}

template <class S, class Tile>
__device__ void robust_forward_strip(
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
  const Recurrences<S> recurrences(problem);

  RobustState<S> state;
  state.start(around.is_first && lane == 0);
  Tile tile(problem, extent, strip, job.pair, lane, T(0));
  tile.fetch(Place<S>(strip, extent, 0, lane));
  for (int chunk = 0; chunk < chunks; ++chunk) {
    const Place<S> place(strip, extent, chunk, lane);
    tile.use(place);
    if (chunk + 1 < chunks) tile.fetch(Place<S>(strip, extent, chunk + 1, lane));
    RobustTop<S> top;
    const int group = chunk + around.above_offset;
    if (!around.is_first && group < around.above.groups() && lane == 0) {
      job.producer.wait(group + S::kSkewChunks + 1);
      top.read(above_edge, group);
    }
    __syncwarp();
    state.renew(lane, top.reference);
    const double above = reference_above(lane, state.reference, top.reference);
    if (keeps && chunk > 0) {
      if (chunk % 2 == 0)
        RobustSnapshot<S>(saved, job.pair, job.strip, chunk).store(state, lane);
      else if (chunk + 1 == strip.chunks)
        clear_chunk<S>(saved.chunk(job.pair, job.strip, chunk), lane);  // half of a snapshot that nobody needs
    }

    const int own_group = chunk - S::kSkewChunks;
    const bool writes = lane == kWarp - 1 && !around.is_last && own_group >= 0;
    T* const out = own_edge.group(own_group);
    const bool ends = chunk == around.end_chunk && lane == around.end_lane;
    const int end_row = around.end_row, end_step = around.end_time % S::kSteps;
    double last_m = NAN;
    T last_s = NAN;
    const bool plain = sweep_chunk(
        recurrences, extent, place, lane, top, above, tile.reach, chunk != around.end_chunk, state,
        [&](const auto& recurrence, int k, int t, auto diag, auto up, auto left) {
          const auto cell = recurrence.cell(diag, up, left, tile.cost(k, t));
          if constexpr (std::decay_t<decltype(recurrence)>::kIsGeneral)
            if (ends && k == end_row && t == end_step) {
              last_m = cell.m;
              last_s = cell.s;
            }
          return cell;
        },
        [&](int t, auto bottom) {
          if (!writes) return;
          if constexpr (sizeof(bottom.m) != sizeof(T))
            out[t] = __int_as_float(RobustTop<S>::to_int(bottom.m));
          else
            out[t] = bottom.m;
          out[S::kSteps + t] = bottom.s;
        });
    if (writes) own_edge.references[own_group] = state.reference + (plain || sizeof(T) == 8 ? 0.0 : 0.5);
    if (ends) {
      const double result = (state.reference + last_m - log2(static_cast<double>(last_s))) * problem.gamma * kLn2;
      value[job.pair] = last_m >= nowhere<S>() / 2 ? T(INFINITY) : static_cast<T>(result);
    }
    __syncwarp();
    if (lane == kWarp - 1) job.publish(progress_of(job.round, chunk + 1));
  }
}

template <class S, class Tile>
__device__ void robust_backward_strip(
    const Problem<typename S::Scalar>& problem, const Gradient<typename S::Scalar>& gradient, const Extent& extent,
    const BackwardStrip& job, const Saved<S>& saved, const Flows<S>& flows) {
  using T = typename S::Scalar;
  const int lane = threadIdx.x;
  const Surroundings<S> around(extent, job.strip);
  const Strip<S>& strip = around.strip;
  const int below_groups = around.is_last ? 0 : around.below.groups();
  const int last_chunk = around.is_last ? around.end_chunk : strip.chunks - 1;
  const Edge<S> above_edge = saved.edges.of(job.pair, job.strip - 1, around.above);
  const Recurrences<S> recurrences(problem);

  Tile tile(problem, extent, strip, job.pair, lane, T(0));
  SinkOf<S, Tile> sink(
      problem, gradient, extent, job.pair, lane, columns_of(around, extent), gradient_scale(problem, gradient, job.pair),
      flows.carries_of(job.pair, job.strip, problem.dim));
  RobustFlow<S> flow;
  Weights<T> weights[S::kRows][S::kSteps];
  const auto leave = [](int, auto) {};
  for (int chunk = last_chunk; chunk >= 0; --chunk) {
    // From the snapshot, which stands at the even chunk, to the start of this one.
    RobustState<S> state;
    const int kept = chunk / 2 * 2;
    if (kept > 0)
      RobustSnapshot<S>(saved, job.pair, job.strip, kept).load(state, lane);
    else
      state.start(around.is_first && lane == 0);
    for (int at = kept;; ++at) {
      const Place<S> place(strip, extent, at, lane);
      tile.fetch(place);
      RobustTop<S> top;
      const int group = at + around.above_offset;
      if (!around.is_first && group < around.above.groups() && lane == 0) top.read(above_edge, group);
      tile.use(place);
      if (at != kept || kept == 0) state.renew(lane, top.reference);
      const double above = reference_above(lane, state.reference, top.reference);
      if (at < chunk) {
        sweep_chunk(
            recurrences, extent, place, lane, top, above, tile.reach, true, state,
            [&](const auto& recurrence, int k, int t, auto diag, auto up, auto left) {
              return recurrence.cell(diag, up, left, tile.cost(k, t));
            },
            leave);
        continue;
      }
      sweep_chunk(
          recurrences, extent, place, lane, top, above, tile.reach, true, state,
          [&](const auto& recurrence, int k, int t, auto diag, auto up, auto left) {
            return recurrence.cell(diag, up, left, tile.cost(k, t), weights[k][t]);
          },
          leave);
      break;
    }

    const Place<S> place(strip, extent, chunk, lane);
    T below[S::kSteps];
#pragma unroll
    for (int t = 0; t < S::kSteps; ++t) below[t] = 0;
    // Lane 31's columns start one right of this group of the strip below.
    const int below_group = chunk - S::kSkewChunks - around.below_offset;
    if (lane == kWarp - 1 && below_group >= 0 && below_group < below_groups) {
      job.producer.wait(around.below.chunks - below_group);
      load_group(reinterpret_cast<const T*>(flows.group(job.pair, around.below, below_group)), below);
    }
    __syncwarp();
    sink.begin(place);

    const bool leaves = lane == 0 && !around.is_first && chunk < strip.groups();
    T* const out = reinterpret_cast<T*>(flows.group(job.pair, strip, chunk));
    const auto share = [](const Weights<T>& of) { return Recurrences<S>::Plain::diagonal_share(of); };
    const auto cell = [&](int k, int t, T e) { sink.cell(tile, k, t, e); };
    const auto column = [&](int t, T handed) {
      sink.step(t);
      if (leaves) out[t] = handed;
    };
    if (place.in_band && chunk != around.end_chunk)
      sweep_robust_reversed<false, S>(weights, extent, place, lane, -1, -1, below, flow, share, cell, column);
    else
      sweep_robust_reversed<true, S>(
          weights, extent, place, lane, chunk == around.end_chunk && lane == around.end_lane ? around.end_row : -1,
          around.end_time % S::kSteps, below, flow, share, cell, column);
    sink.end(place, chunk == last_chunk);
    __syncwarp();
    if (lane == 0) job.publish(progress_of(job.round, strip.chunks - chunk));
  }
  sink.finish(strip, extent);
}

}  // namespace softdtw
