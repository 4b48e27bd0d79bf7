// One warp sweeps one strip of a soft elastic measure with the extended range, as extended_range_strip.cuh does of soft-DTW.
#pragma once

#include "cuda/strips/strip_job.cuh"
#include "soft_cell.cuh"

namespace softdtw {

template <class Tile, class S = typename Tile::S>
__device__ void soft_forward_strip(
    const ElasticTable<typename S::Scalar>& problem, const Extent& extent, const ForwardStrip<S>& job,
    const SoftSaved<S>& saved, typename S::Scalar* value) {
  using T = typename S::Scalar;
  using Own = Recurrences<S>;
  const int lane = threadIdx.x;
  Surroundings<S> around(extent, job.strip);
  around.pin_for_forward();
  const Strip<S>& strip = around.strip;
  const bool keeps = saved.strips.keeps(), has_border = problem.sum_border && around.is_first;
  const int chunks = around.is_last && !keeps ? around.end_chunk + 1 : strip.chunks;
  const Edge<S> above_edge = job.edges.of(job.pair, job.strip - 1, around.above);
  const Edge<S> own_edge = job.edges.of(job.pair, job.strip, strip);
  const Own recurrences(problem, job.pair);

  ExtendedState<S> state;
  state.start(around.is_first && lane == 0 && !problem.sum_border);
  Width<S> width;
  T of_lane_above = 0;
  SoftBorder<S> border;
  Tile tile = tile_behind<Tile>(
      0, problem, ElasticPlace(problem, extent), job.pair, strip, strip.first_row + lane * S::kRows,
      recurrences.plain.scale);
  tile.series.fill(strip.first_column);
  for (int chunk = 0; chunk < chunks; ++chunk) {
    const Place<S> place(strip, extent, chunk, lane);
    tile.use(place);
    const int next_stage = strip.first_column + (chunk / S::kStage + 1) * S::kStage * S::kSteps;
    if (chunk % S::kStage == 0) tile.series.fetch(next_stage);
    ExtendedTop<S> top;
    const int group = chunk + around.above_offset;
    if (!around.is_first && group < around.above.groups() && lane == 0) {
      job.producer.wait(done_at<S>(group));
      top.read(above_edge, group, job.producer.is_near());
    }
    if (has_border && lane == 0 && chunk < strip.groups()) {
      if (keeps) saved.border_at(job.pair, chunk) = border.sum;
      put_border<S>(extent, place, recurrences, tile, border, top);
    }
    __syncwarp();
    if (chunk % S::kStage == 0) {
      state.renew(lane, top.reference);
      of_lane_above = shift_of_lane_above(state);
      width.start(state);
      if (keeps && chunk > 0) state.store(saved.strips.stage(job.pair, job.strip, chunk / S::kStage), lane);
    }
    const T shift = shift_of<S>(top, state, lane, of_lane_above);
    const bool plain = width.plain(recurrences, top, shift, tile.reach(), chunk != around.end_chunk, state);

    const int own_group = chunk - S::kSkewChunks;
    const bool writes = lane == kWarp - 1 && !around.is_last && own_group >= 0;
    T* const out = own_edge.group(own_group);
    const bool ends = chunk == around.end_chunk && lane == around.end_lane;
    const int end_row = around.end_row, end_step = around.end_time % S::kSteps;
    double last_m = NAN;
    T last_s = NAN;
    const auto column = [&](int t, auto bottom) {
      if (writes) ExtendedTop<S>::write(out, t, bottom);
    };
    // Away from the edges of a band no cell looks for them: that would take up to 8 % longer.
    const auto sweep = [&](auto is_at_edge) {
      return sweep_plain<SoftCell<typename Own::Plain>::kByBits>(width, state, [&](auto& entries) {
        using R = typename Own::Plain;
        auto cells = tile.template cells<R>(place, recurrences.plain.scale);
        const InBandBits<S> inside(extent, place);
        sweep_extended(
            lane, top, shift, entries,
            [&](int k, int t, auto diag, auto up, auto left) {
              if (k == 0) cells.enter(t);
              const auto cell = SoftCell<R>::of(diag, up, left, cells.steps(k, t));
              return is_at_edge() ? in_band(cell, inside.has(k, t)) : cell;
            },
            column);
      });
    };
    const bool is_done = plain && (place.in_band ? sweep(std::false_type()) : sweep(std::true_type()));
    if (!is_done) {
      using R = typename Own::General;
      auto cells = tile.template cells<R>(place, recurrences.general.scale);
      const auto visit = [&](int k, int t, auto diag, auto up, auto left) {
        if (k == 0) cells.enter(t);
        const auto cell = SoftCell<R>::of(diag, up, left, cells.steps(k, t));
        if (ends && k == end_row && t == end_step) {
          last_m = cell.m;
          last_s = cell.s;
        }
        return cell;
      };
      sweep_general(extent, place, lane, top, of_lane_above, state, visit, column);
    }
    if (writes) own_edge.references[own_group] = state.reference;
    if (ends) store_value(problem, job.pair, state.reference, last_m, last_s, value);
    if (chunk % S::kStage == S::kStage - 1) tile.series.put(next_stage);
    __syncwarp();
    if (lane == kWarp - 1) job.publish(progress_of(job.round, chunk + 1));
  }
}

}  // namespace softdtw
