// The sweep of a strip in forward by a warp that others work for: they compute what its cells cost, and carry edges between blocks.
// Edges come from the strip above and go to the one below through pipelines in shared memory, so this warp waits for no memory.
//
// Few such warps share a multiprocessor, so their time is that of one instruction after another. What a chunk needs is one loop
// without a jump, the sweep is checked when it is done, and references are renewed only when it is time.
#pragma once

#include "cuda/numbers/extended_range_state.cuh"
#include "cuda/strips/edge_pipeline.cuh"

namespace softdtw {

// `around` is Surroundings, or SideStrip of a table that is swept from both ends (bidirectional.cuh), `saved` what belongs to it. `files`:
// the edge above is to be kept, and nobody has written it yet. Costs has
//     OfStrip                         Recurrences, or those with a penalty
//     kTakesBands                     whether no path leaves the band in a plain sweep
//     kIsAhead                        whether it is rarely waited for: then the edge above is asked for early, since the answer
//                                     takes a while
//     begin(stage), end(stage)        around the chunks of a stage
//     use(place, part)                waits for the costs of a chunk
//     rise(recurrences, place)        what m may rise by in it, at most
//     split cost(recurrences, k, t)        a cost, split, for the plain sweep
//     tile(place)                     costs for the general one
template <class S, class Around, class Kept, class Costs>
__device__ __forceinline__ void sweep_strip(
    const Problem<typename S::Scalar>& problem, const Extent& extent, const Around& around, int64_t pair, int index,
    int chunks, const Kept& saved, bool files, EdgePipeline<S>& above_edges, EdgePipeline<S>& below_edges, Costs& costs,
    typename S::Scalar* value) {
  using T = typename S::Scalar;
  using Place = typename Around::Place;
  // SplitCosts in the same loop leave the integer units less time.
  constexpr bool kByBits = kHasFastBits && Costs::kIsAhead;
  const int lane = threadIdx.x;
  const Strip<S>& strip = around.strip;
  const bool keeps = saved.keeps();
  const typename Costs::OfStrip recurrences(problem, pair);
  // Chunks of which no cell needs a check.
  int first_plain = 0, end_plain = recurrences.has_penalty ? 0 : chunks;
  if (!Costs::kTakesBands && !recurrences.has_penalty) {
    while (first_plain < chunks && !Place(strip, extent, first_plain, lane).in_band) ++first_plain;
    while (end_plain > first_plain && !Place(strip, extent, end_plain - 1, lane).in_band) --end_plain;
  }
  pin(first_plain);
  pin(end_plain);
  EdgePipeline<S>&above_pipeline = pinned(above_edges), &below_pipeline = pinned(below_edges);
  const unsigned above_groups = around.is_first ? 0 : around.above.groups();
  const Edge<S> above_edge = saved.edge(pair, index - 1, around.above);
  unsigned above_group = 0;
  above_pipeline.release_until(above_group, min(above_groups, static_cast<unsigned>(around.above_offset)));
  constexpr int kParts = 2 * S::kSteps * sizeof(T) / sizeof(float4);  // of a group
  float4* copy = reinterpret_cast<float4*>(above_edge.group(above_group)) + lane;

  ExtendedState<S> state;
  state.start(around.holds_corner(lane));
  Width<S> width;
  ExtendedTop<S> top;
  long long above_reference = 0;
  T of_lane_above = 0, shift = 0;
  const auto take_top = [&](bool is_there) {
    if (above_group < above_groups) {
      const EdgeSlot<S>& slot = above_pipeline.wait(above_group, is_there);
      const float4 part = reinterpret_cast<const float4*>(slot.entries)[lane % kParts];
      top.read(slot);
      if (files && lane < kParts) *copy = part;
      if (files && lane == 0) above_edge.references[above_group] = top.reference;
      copy += kParts;
      above_pipeline.release(above_group++);
    } else if (top.exists) {
      top = ExtendedTop<S>();
    }
  };
  const auto look_above = [&] {
    shift = shift_of<S>(top, state, lane, of_lane_above);
    above_reference = __double_as_longlong(top.reference);
  };
  // Lane 31 is kSkewChunks behind lane 0.
  const auto has_group = [&](int chunk) { return !around.is_last && lane == kWarp - 1 && chunk >= S::kSkewChunks; };
  const auto slot_of = [&](int chunk) -> EdgeSlot<S>& { return below_pipeline.slot(chunk - S::kSkewChunks); };
  const auto write = [&](EdgeSlot<S>& out, bool writes) {
    if (writes) out.reference = state.reference;
    return [&out, writes](int t, auto bottom) {
      if (writes) ExtendedTop<S>::write(out.entries, t, bottom);
    };
  };
  const auto hand_over = [&](int chunk, bool writes, bool is_there) {
    if (writes) below_pipeline.commit(chunk - S::kSkewChunks);
    take_top(is_there);
    if (__double_as_longlong(top.reference) != above_reference) look_above();
  };
  unsigned room = below_pipeline.kRoom;
  take_top(false);
  for (int chunk = 0; chunk < chunks;) {
    const int stage = chunk / S::kStage;
    const bool begins = !Around::kIsCut || chunk % S::kStage == 0;
    const int end = min(Around::kIsCut ? (stage + 1) * S::kStage : chunk + S::kStage, chunks);
    if (stage == 0 || __any_sync(kAllLanes, state.is_wide || width.is_spent(state.narrow))) {
      state.renew(lane, around.reference_above(top, state));
      of_lane_above = shift_of_lane_above(state);
      width.start(state);
      state.become(!__all_sync(kAllLanes, width.fits));
      look_above();
    }
    if (keeps && stage > 0 && begins) state.store(saved.stage(pair, index, stage), lane);
    if (!around.is_last) below_pipeline.acquire(room, max(0, end - S::kSkewChunks));
    costs.begin(stage);
    while (chunk < end) {
      bool is_used = false;
      int end_run = min(end, chunk <= around.end_chunk ? min(end_plain, around.end_chunk) : end_plain);
      if (Around::kIsCut && chunk <= around.entry_chunk) end_run = min(end_run, around.entry_chunk);
      if (state.is_wide || chunk < first_plain) end_run = chunk;
#pragma unroll 1
      for (; chunk < end_run; ++chunk) {
        const Place place(strip, extent, chunk, lane);
        costs.use(place, static_cast<unsigned>(chunk) % S::kStage);
        const bool writes = has_group(chunk);
        const auto column = write(pinned(slot_of(chunk)), writes);
        const bool is_there = Costs::kIsAhead && above_pipeline.is_there(above_group);
        const auto before = state.narrow;
        sweep_ahead<kByBits>(
            lane, top, shift, state.narrow, [&](int k, int t) { return costs.split_cost(recurrences, k, t); },
            [&](int, int, const auto& terms, T diag, T up, T left) { return sum_of(terms, diag, up, left); }, column);
        width.spend(costs.rise(recurrences, place), shift, top.wide);
        if (!__all_sync(kAllLanes, width.fits & is_exact<kByBits>(state.narrow))) {
          state.narrow = before;
          state.become(true);
          is_used = true;
          break;
        }
        normalise(state.narrow);
        hand_over(chunk, writes, is_there);
      }
      if (chunk >= end) break;

      const Place place(strip, extent, chunk, lane);
      if (!is_used) costs.use(place, chunk % S::kStage);
      const auto& tile = costs.tile(place);
      state.become(true);
      width.fits = false;
      const bool writes = has_group(chunk);
      const bool ends = chunk == around.end_chunk && lane == around.end_lane;
      const int end_row = around.end_row, end_step = around.end_time % S::kSteps;
      double last_m = NAN;
      T last_s = NAN;
      with_general_costs<S>(problem, extent, pair, place, recurrences, tile, [&](const auto& cost) {
        sweep_general(
            extent, place, lane, top, of_lane_above, state,
            [&](int k, int t, auto diag, auto up, auto left) {
              around.enter(place, k, t, diag);
              const auto cell = recurrences.charged(recurrences.general.cell(diag, up, left, cost(k, t)));
              if (ends && k == end_row && t == end_step) {
                last_m = cell.m;
                last_s = cell.s;
              }
              return cell;
            },
            write(slot_of(chunk), writes));
      });
      if (writes) slot_of(chunk).reference = state.reference;  // the sweep may have lowered it
      const double reference = recurrences.uncharged(state.reference, extent.n - 1, extent.m - 1);
      if (ends) store_value(problem, pair, reference, last_m, last_s, value);
      hand_over(chunk++, writes, false);
      // So that references are renewed at once, and the general sweep does not last for a stage.
      if constexpr (Around::kIsCut) break;
    }
    costs.end(stage);
  }
  if constexpr (Around::kIsCut) {
    state.renew(lane, top.reference);
    state.store(saved.stage(pair, index, chunks / S::kStage), lane);
  }
  above_pipeline.release_until(above_group, above_groups);
}

}  // namespace softdtw
