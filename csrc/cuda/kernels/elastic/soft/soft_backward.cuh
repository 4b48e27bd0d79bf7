// The way back over one strip of a soft elastic measure, as extended_range_strip.cuh has it of soft-DTW: a stage is rebuilt from its
// snapshot, with the shares of (12) in shared memory, and then E goes back over it.
#pragma once

#include "cuda/kernels/extended_range/extended_range_strip.cuh"
#include "soft_cell.cuh"
#include "soft_sums.cuh"

namespace softdtw {

// (12) over a chunk, from right to left. As sweep_extended_reversed(), but `cell(k, t, masses, onward)` sees D, U and L of every cell, and D of
// the cell to its lower right, where that is in a row of the lane; `above(t, onward)` the same of the row above the lane. kGeneral: in a loop.
template <bool kGeneral, class S, class Shares, class Cell, class Above, class Column>
__device__ __forceinline__ void sweep_steps_reversed(
    Shares&& shares, const Extent& extent, const Place<S>& place, int lane, int end_row, int end_step,
    const typename S::Scalar (&below)[S::kSteps], ExtendedFlow<S>& flow, Cell&& cell, Above&& above, Column&& column) {
  using T = typename S::Scalar;
#pragma unroll(kGeneral ? 1 : S::kSteps)
  for (int t = S::kSteps - 1; t >= 0; --t) {
    const T from_lane_below = __shfl_down_sync(kAllLanes, flow.handed, 1);
    T handed = lane == kWarp - 1 ? (t + 1 < S::kSteps ? pick(below, t + 1) : flow.below_next) : from_lane_below;
    T onward = 0;
#pragma unroll
    for (int k = S::kRows - 1; k >= 0; --k) {
      T e = flow.left[k] + handed;
      if (kGeneral && t == end_step && k == end_row) e = T(1);
      if (kGeneral && !place.holds(extent, k, t)) e = T(0);
      const Weights<T> share = shares(k, t);
      const Steps<T> masses = {
          DeviceMath<T>::max(DeviceMath<T>::fma(-share.up, e, DeviceMath<T>::fma(-share.left, e, e)), T(0)), share.up * e,
          share.left * e};
      cell(k, t, masses, onward);
      onward = flow.diag[k];
      handed = masses.up + onward;
      flow.left[k] = masses.left;
      flow.diag[k] = masses.diagonal;
    }
    above(t, onward);
    flow.handed = handed;
    column(t, handed);
  }
  flow.below_next = below[0];
}

// kAll (soft_sums.cuh) is rare, and has no unrolled way back. numbers: null, or where the strip's part of them goes.
template <class Tile, bool kAll, class S = typename Tile::S>
__device__ void soft_backward_strip(
    const ElasticTable<typename S::Scalar>& problem, const ElasticGradient<typename S::Scalar>& gradient,
    const Extent& extent, const BackwardStrip& job, const SoftSaved<S>& saved, const Flows<S>& flows,
    SoftNumbers* numbers) {
  using T = typename S::Scalar;
  using Own = Recurrences<S>;
  const int lane = threadIdx.x;
  const Surroundings<S> around(extent, job.strip);
  const Strip<S>& strip = around.strip;
  const int below_groups = around.is_last ? 0 : around.below.groups();
  const int last_chunk = around.is_last ? around.end_chunk : strip.chunks - 1;
  const bool has_border = problem.sum_border && around.is_first;
  const Edge<S> above_edge = saved.strips.edges.of(job.pair, job.strip - 1, around.above);
  const Own recurrences(problem, job.pair);
  const ExtendedStage<S> kept(threadIdx.y, lane);
  const T scale = gradient.arriving(job.pair);
  Tile tile = tile_behind<Tile>(
      ExtendedStage<S>::kBytes, problem, ElasticPlace(problem, extent), job.pair, strip, strip.first_row + lane * S::kRows,
      recurrences.plain.scale);
  SoftSums<Tile, kAll> sums(problem, gradient, job.pair, lane, columns_of(around, extent), scale);
  ExtendedFlow<S> flow;
  const int above_groups = around.is_first ? 0 : around.above.groups();
  // What a chunk takes over from below: lane 31's columns start one right of this group of the strip below.
  const auto below_group = [&](int chunk) { return chunk - S::kSkewChunks - around.below_offset; };
  const auto takes = [&](int chunk) { return below_group(chunk) >= 0 && below_group(chunk) < below_groups; };
  const bool may_leave_out = strip.chunks >= kFewestToLeaveOut && isfinite(scale);
  // What flows into the chunks from `first` on, before `end`, from below.
  const auto inflow = [&](int first, int end) {
    T most = 0;
    const int first_group = max(below_group(first), 0), end_group = min(below_group(end), below_groups);
    if (lane == kWarp - 1 && first_group < end_group) {
      job.producer.wait(around.below.chunks - first_group);
      for (int group = first_group; group < end_group; ++group) {
        T below[S::kSteps];
        load_group(flows.group(job.row, around.below, group), job.producer.is_near(), below);
#pragma unroll
        for (int t = 0; t < S::kSteps; ++t) most = greater(most, below[t]);
      }
    }
    return most;
  };
  bool visited = false, left_out = false;  // any stage; the one before
  for (int stage = last_chunk / S::kStage; stage >= 0; --stage) {
    const int first_chunk = stage * S::kStage, parts = min(S::kStage, last_chunk + 1 - first_chunk);
    const bool ends = around.end_chunk >= first_chunk && around.end_chunk < first_chunk + parts;
    const auto column_of = [&](int chunk) { return Place<S>(strip, extent, chunk, lane).column; };
    if (may_leave_out && !ends && __all_sync(kAllLanes, flow.most() < kLeftOut<T>) &&
        __all_sync(kAllLanes, inflow(first_chunk, first_chunk + parts) < kLeftOut<T>)) {
      if (visited && !left_out) sums.put_away(column_of(first_chunk + parts));
      left_out = true;
      flow = ExtendedFlow<S>();
#pragma unroll 1
      for (int chunk = first_chunk; chunk < first_chunk + parts; ++chunk) {
        sums.leave_out(column_of(chunk));
        if constexpr (kAll && kMayHaveBorder<Tile>)
          if (has_border && lane == 0)
            for (int t = 0; t < S::kSteps; ++t) sums.along_border(tile, column_of(chunk) + t, T(0));
        if (lane == 0 && !around.is_first && chunk < strip.groups())
#pragma unroll
          for (int t = 0; t < S::kSteps; ++t) flows.group(job.row, strip, chunk)[t] = 0;
      }
      __syncwarp();
      if (lane == 0) job.publish(progress_of(job.round, strip.chunks - first_chunk));
      continue;
    }
    if (left_out) sums.take_up(column_of(first_chunk + parts - 1));
    left_out = false;
    tile.series.fill(strip.first_column + first_chunk * S::kSteps);
    ExtendedState<S> state;
    if (stage > 0) {
      state.load(saved.strips.stage(job.pair, job.strip, stage), lane);
      if (stage > 2) prefetch<S>(saved.strips.stage(job.pair, job.strip, stage - 2), lane);
    } else {
      state.start(around.is_first && lane == 0 && !problem.sum_border);
    }
    Width<S> width;
    T of_lane_above = 0;
#pragma unroll 1
    for (int part = 0; part < parts; ++part) {
      const int chunk = first_chunk + part;
      const Place<S> place(strip, extent, chunk, lane);
      tile.use(place);
      ExtendedTop<S> top;
      const int group = chunk + around.above_offset;
      if (group < above_groups && lane == 0) top.read(above_edge, group, true);
      if (has_border && lane == 0 && chunk < strip.groups()) {
        SoftBorder<S> border{saved.border_at(job.pair, chunk)};
        put_border<S>(extent, place, recurrences, tile, border, top);
      }
      __syncwarp();
      if (part == 0) {
        if (stage == 0) state.renew(lane, top.reference);
        of_lane_above = shift_of_lane_above(state);
        width.start(state);
      }
      const T shift = shift_of<S>(top, state, lane, of_lane_above);
      const bool plain = width.plain(recurrences, top, shift, tile.reach(), true, state);
      const auto nothing = [](int, auto) {};
      const auto shares = [&](int k, int t) -> Weights<T>& { return kept.weights[kept.at(part, k, t)]; };
      const bool is_done = plain && sweep_plain<SoftCell<typename Own::Plain>::kByBits>(width, state, [&](auto& entries) {
                             using R = typename Own::Plain;
                             auto cells = tile.template cells<R>(place, recurrences.plain.scale);
                             const InBandBits<S> inside(extent, place);
                             sweep_extended(
                                 lane, top, shift, entries,
                                 [&](int k, int t, auto diag, auto up, auto left) {
                                   if (k == 0) cells.enter(t);
                                   const auto own =
                                       SoftCell<R>::of(recurrences.plain, diag, up, left, cells.steps(k, t), shares(k, t));
                                   return in_band(own, inside.has(k, t));
                                 },
                                 nothing);
                           });
      if (!is_done) {
        using R = typename Own::General;
        auto cells = tile.template cells<R>(place, recurrences.general.scale);
        const auto visit = [&](int k, int t, auto diag, auto up, auto left) {
          if (k == 0) cells.enter(t);
          return SoftCell<R>::of(recurrences.general, diag, up, left, cells.steps(k, t), shares(k, t));
        };
        sweep_general(extent, place, lane, top, of_lane_above, state, visit, nothing);
      }
    }

#pragma unroll 1
    for (int part = parts - 1; part >= 0; --part) {
      const int chunk = first_chunk + part;
      const Place<S> place(strip, extent, chunk, lane);
      if (part + 1 < parts) tile.use(place);
      T below[S::kSteps];
#pragma unroll
      for (int t = 0; t < S::kSteps; ++t) below[t] = 0;
      if (lane == kWarp - 1 && takes(chunk)) {
        job.producer.wait(around.below.chunks - below_group(chunk));
        load_group(flows.group(job.row, around.below, below_group(chunk)), job.producer.is_near(), below);
      }
      __syncwarp();
      sums.begin(place.column);
      const bool leaves = lane == 0 && !around.is_first && chunk < strip.groups();
      T* const out = flows.group(job.row, strip, chunk);
      const auto shares = [&](int k, int t) { return kept.weights[kept.at(part, k, t)]; };
      const auto cell = [&](int k, int t, const Steps<T>& masses, T onward) {
        if (k == S::kRows - 1) sums.enter(tile, t);
        sums.cell(tile, k, t, masses, onward);
      };
      const auto above = [&](int t, T onward) { sums.above(tile, t, onward); };
      const auto column = [&](int t, T handed) {
        sums.step(place.column, t);
        if constexpr (kAll && kMayHaveBorder<Tile>)
          if (has_border && lane == 0) sums.along_border(tile, place.column + t, handed);
        if (leaves) out[t] = handed;
      };
      if (!kAll && chunk != around.end_chunk)  // cells outside the band have no share of any other
        sweep_steps_reversed<false>(shares, extent, place, lane, -1, -1, below, flow, cell, above, column);
      else
        sweep_steps_reversed<true>(
            shares, extent, place, lane, chunk == around.end_chunk && lane == around.end_lane ? around.end_row : -1,
            around.end_time % S::kSteps, below, flow, cell, above, column);
      visited = true;
      __syncwarp();
      if (lane == 0) job.publish(progress_of(job.round, strip.chunks - chunk));
    }
  }
  sums.finish(strip, extent);
  if constexpr (kAll) sums.put_numbers(*numbers);
}

}  // namespace softdtw
