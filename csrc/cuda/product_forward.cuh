// The sweep of a strip in forward, by a warp of its own. Edges come from the strip above and go to the one below through rings
// in shared memory, as those of teams do (team_forward.cuh), so this warp waits for no memory.
#pragma once

#include "edge_ring.cuh"
#include "product_tile.cuh"

namespace softdtw {

// `files`: the edge above is to be kept, and nobody has written it yet.
template <class Channel>
__device__ void sweep_strip(
    const Problem<float>& problem, const Extent& extent, int64_t pair, int index, const Saved<ProductShape>& saved,
    bool files, EdgeRing<ProductShape>& above_edges, EdgeRing<ProductShape>& below_edges, float* value) {
  using S = ProductShape;
  const int lane = threadIdx.x;
  const Surroundings<S> around(extent, index);
  const Strip<S>& strip = around.strip;
  const bool keeps = saved.memory != nullptr;
  const int chunks = chunks_of<false>(around, keeps);
  const Recurrences<S> recurrences(problem, pair);
  int has_penalty = recurrences.has_penalty;
  pin(has_penalty);
  EdgeRing<S>&above_ring = pinned(above_edges), &below_ring = pinned(below_edges);
  const unsigned above_groups = around.is_first ? 0 : around.above.groups();
  const Edge<S> above_edge = saved.edges.of(pair, index - 1, around.above);
  unsigned above_group = 0;
  above_ring.skip(above_group, min(above_groups, static_cast<unsigned>(around.above_offset)));

  RobustState<S> state;
  state.start(around.is_first && lane == 0);
  Width<S> width;
  RobustTop<S> top;
  double lane_above = 0, above_reference = 0;
  float shift = 0;
  const auto take_top = [&] {
    if (above_group < above_groups) {
      top.read(above_ring.await(above_group));
      if (files && lane == 0) copy_out(top, above_edge, above_group);
      above_ring.leave(above_group++);
    } else if (top.exists) {
      top = RobustTop<S>();
    }
  };
  const auto look_above = [&] {
    shift = shift_of<S>(above_of(top, state, lane, lane_above));
    above_reference = top.reference;
  };
  ProductTile<Channel, false> tile(problem, extent, strip, pair, lane);
  unsigned room = below_ring.kRoom;
  for (int first_chunk = 0; first_chunk < chunks; first_chunk += S::kStage) {
    const int stage = first_chunk / S::kStage, parts = min(S::kStage, chunks - first_chunk);
    take_top();
    state.renew(lane, top.reference);
    lane_above = __shfl_up_sync(kAllLanes, state.reference, 1) - state.reference;
    width.start(state);
    look_above();
    if (keeps && stage > 0) state.store(saved.stage(pair, index, stage), lane);
    // Lane 31 is kSkewChunks behind lane 0.
    const int first_group = first_chunk - S::kSkewChunks;
    const bool writes = !around.is_last && first_group >= 0 && lane == kWarp - 1;
    if (!around.is_last) below_ring.make_room(room, max(0, first_group + parts));
    for (int part = 0;;) {
      const int chunk = first_chunk + part, own_group = first_group + part;
      const Place<S> place(strip, extent, chunk, lane);
      tile.use(place);
      EdgeSlot<S>& out = below_ring.place(own_group);
      if (writes) out.reference = state.reference;
      const auto column = [&](int t, auto bottom) {
        if (writes) RobustTop<S>::write(out.entries, t, bottom);
      };
      const bool may_be_plain = place.in_band && has_penalty == 0 && chunk != around.end_chunk;
      bool plain = width.plain(Width<S>::rise_of(recurrences, tile.reach, may_be_plain), shift, top.wide, state);
      if (__builtin_expect(plain, 1))
        plain = sweep_plain(width, state, [&](auto& entries) {
          sweep_ahead(
              lane, top, shift, entries,
              [&](int k, int t) { return recurrences.plain.split(tile.cost(k, t), recurrences.plain.scale); },
              [&](int, int, const auto& terms, float diag, float up, float left) { return sum_of(terms, diag, up, left); },
              column);
        });
      if (__builtin_expect(!plain, 0)) {
        const bool ends = chunk == around.end_chunk && lane == around.end_lane;
        const int end_row = around.end_row, end_step = around.end_time % S::kSteps;
        double last_m = NAN;
        float last_s = NAN;
        sweep_general(
            recurrences, extent, place, lane, top, above_of(top, state, lane, lane_above), state,
            [&](const auto& recurrence, int k, int t, auto diag, auto up, auto left) {
              const auto cell = recurrence.cell(diag, up, left, tile.cost(k, t));
              if (ends && k == end_row && t == end_step) {
                last_m = cell.m;
                last_s = cell.s;
              }
              return cell;
            },
            column);
        if (ends) store_value(problem, pair, state.reference, last_m, last_s, value);
      }
      if (writes) below_ring.fill(own_group);
      if (++part == parts) break;
      take_top();
      if (top.reference != above_reference) look_above();
    }
  }
  above_ring.skip(above_group, above_groups);
}

}  // namespace softdtw
