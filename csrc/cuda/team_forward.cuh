// The team of a strip in forward (team.cuh): one warp prices cells, ahead of the one that sweeps.
#pragma once

#include "edge_ring.cuh"

namespace softdtw {

// What the cells of a stage cost, split (recurrence.h), and what m may rise by in every lane in a chunk.
template <class S>
struct alignas(16) Prices {
  using T = typename S::Scalar;
  struct alignas(16) Cells {
    Entry<T> rows[S::kRows];
  };
  Cells cells[S::kStage][S::kSteps][kWarp];
  T rise[S::kStage][kWarp];
};

template <class S>
using PriceRing = Ring<Prices<S>, kWarp, 2>;

// The chunks of a strip that forward sweeps.
template <class S>
__device__ __forceinline__ int forward_chunks(const Surroundings<S>& around, bool keeps) {
  return around.is_last && !keeps ? around.end_chunk + 1 : around.strip.chunks;
}

// Prices the cells of a strip, stage by stage.
template <class S, class Tile>
__device__ void team_price(
    const Problem<typename S::Scalar>& problem, const Extent& extent, int64_t pair, int index, bool keeps,
    PriceRing<S>& price_ring) {
  using T = typename S::Scalar;
  const int lane = threadIdx.x;
  const Surroundings<S> around(extent, index);
  const int chunks = forward_chunks(around, keeps);
  const Recurrences<S> recurrences(problem, pair);
  PriceRing<S>& ring = pinned(price_ring);
  Tile tile(problem, extent, around.strip, pair, lane);
  tile.fetch(Place<S>(around.strip, extent, 0, lane));
  unsigned room = ring.kRoom;
  for (int chunk = 0; chunk < chunks; ++chunk) {
    const Place<S> place(around.strip, extent, chunk, lane);
    tile.use(place);
    if (chunk + 1 < chunks) tile.fetch(Place<S>(around.strip, extent, chunk + 1, lane));
    const int stage = chunk / S::kStage, part = chunk % S::kStage;
    if (part == 0) ring.make_room(room, stage + 1);
    Prices<S>& prices = ring.place(stage);
#pragma unroll
    for (int t = 0; t < S::kSteps; ++t) {
      typename Prices<S>::Cells cells;
#pragma unroll
      for (int k = 0; k < S::kRows; ++k) cells.rows[k] = recurrences.plain.split(tile.cost(k, t), recurrences.plain.scale);
      prices.cells[part][t][lane] = cells;
    }
    const bool may_be_plain = place.in_band && !recurrences.has_penalty && chunk != around.end_chunk;
    prices.rise[part][lane] = Width<S>::rise_of(recurrences, tile.reach, may_be_plain);
    if (part == S::kStage - 1 || chunk + 1 == chunks) ring.fill(stage);
  }
}

// Sweeps a strip. The edge above comes from one ring and the strip's own goes to another. `files`: the edge above is to be kept,
// and nobody has written it yet.
template <class S, class Tile>
__device__ void team_forward(
    const Problem<typename S::Scalar>& problem, const Extent& extent, int64_t pair, int index, const Saved<S>& saved,
    bool files, EdgeRing<S>& above_edges, EdgeRing<S>& below_edges, PriceRing<S>& price_ring, typename S::Scalar* value) {
  using T = typename S::Scalar;
  const int lane = threadIdx.x;
  const Surroundings<S> around(extent, index);
  const Strip<S>& strip = around.strip;
  const bool keeps = saved.memory != nullptr;
  const int chunks = forward_chunks(around, keeps);
  const Recurrences<S> recurrences(problem, pair);
  EdgeRing<S>&above_ring = pinned(above_edges), &below_ring = pinned(below_edges);
  PriceRing<S>& priced = pinned(price_ring);
  const unsigned above_groups = around.is_first ? 0 : around.above.groups();
  const Edge<S> above_edge = saved.edges.of(pair, index - 1, around.above);
  unsigned above_group = 0;
  above_ring.skip(above_group, min(above_groups, static_cast<unsigned>(around.above_offset)));

  RobustState<S> state;
  state.start(around.is_first && lane == 0);
  Width<S> width;
  RobustTop<S> top;
  double lane_above = 0, above_reference = 0;
  T shift = 0;
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
  Tile tile(problem, extent, strip, pair, lane);
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
    const Prices<S>& prices = priced.await(stage);
    for (int part = 0;;) {
      const int chunk = first_chunk + part, own_group = first_group + part;
      EdgeSlot<S>& out = below_ring.place(own_group);
      if (writes) out.reference = state.reference;
      const auto column = [&](int t, auto bottom) {
        if (writes) RobustTop<S>::write(out.entries, t, bottom);
      };
      const auto& cells = prices.cells[part];
      bool plain = width.plain(prices.rise[part][lane], shift, top.wide, state);
      if (__builtin_expect(plain, 1))
        plain = sweep_plain(width, state, [&](auto& entries) {
          sweep_ahead(
              lane, top, shift, entries, [&](int k, int t) { return cells[t][lane].rows[k]; },
              [&](int, int, const auto& terms, T diag, T up, T left) { return sum_of(terms, diag, up, left); }, column);
        });
      if (__builtin_expect(!plain, 0)) {
        const Place<S> place(strip, extent, chunk, lane);
        tile.fetch(place);
        tile.use(place);
        const bool ends = chunk == around.end_chunk && lane == around.end_lane;
        const int end_row = around.end_row, end_step = around.end_time % S::kSteps;
        double last_m = NAN;
        T last_s = NAN;
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
    priced.leave(stage);
  }
  above_ring.skip(above_group, above_groups);
}

}  // namespace softdtw
