// The robust engine for few pairs, whose time is the latency of a chunk: a team of warps for every strip of float32 series of
// one dimension, two rows a lane. One warp sweeps, and the others do what it need not wait for.
//
// Forward a second warp computes what costs add to m and multiply s with, ahead of the sweep. Backward two warps rebuild
// stages in turn from their snapshots, ahead of the one that goes back over them. Strips of a block hand over through rings
// (ring.cuh). What another block leaves is carried in by a warp of the block, and what its last strip leaves is carried out by
// another.
#pragma once

#include "ring.cuh"
#include "robust_strip.cuh"

namespace softdtw {

// A group between the ring's slot, or the lane that has read it, and global memory.
template <class S>
__device__ __forceinline__ void copy_in(const Edge<S>& edge, int group, EdgeSlot<S>& slot) {
  RobustTop<S> top;
  top.read(edge, group, false);
#pragma unroll
  for (int t = 0; t < S::kSteps; ++t) RobustTop<S>::write(slot.entries, t, Entry<typename S::Scalar>{top.m[t], top.s[t]});
  slot.reference = top.reference;
}
template <class S>
__device__ __forceinline__ void copy_out(const RobustTop<S>& top, const Edge<S>& edge, int group) {
  static_assert(sizeof(typename S::Scalar) == 4);
  float4* const entries = reinterpret_cast<float4*>(edge.group(group));
#pragma unroll
  for (int i = 0; i < S::kSteps / 4; ++i) {
    const float* const m = top.m + 4 * i;
    const float* const s = top.s + 4 * i;
    entries[i] = make_float4(m[0], m[1], m[2], m[3]);
    entries[S::kSteps / 4 + i] = make_float4(s[0], s[1], s[2], s[3]);
  }
  edge.references[group] = top.reference;
}
template <class S>
__device__ __forceinline__ void copy_flows(const FlowSlot<S>* from, FlowSlot<S>& slot) {
  typename S::Scalar flows[S::kSteps], sums[S::kSteps];
  load_group(from->flows, false, flows);
  load_group(from->sums, false, sums);
#pragma unroll
  for (int t = 0; t < S::kSteps; ++t) {
    slot.flows[t] = flows[t];
    slot.sums[t] = sums[t];
  }
}

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
template <class S>
using EdgeRing = Ring<EdgeSlot<S>>;
template <class S>
using FlowRing = Ring<FlowSlot<S>>;

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

constexpr int kRebuilders = 2;

// What the warps of a strip share in backward: stages of weights, of which one is used while others are rebuilt.
template <class S>
struct alignas(16) TeamStages {
  using T = typename S::Scalar;
  static constexpr int kBuffers = kRebuilders + 1;
  struct alignas(16) Cells {
    Weights<T> rows[S::kRows];
  };
  // A rebuilding warp's own: its coming stage's snapshot, and the edges above two of its stages.
  struct alignas(16) Sources {
    char snapshot[Snapshot<S>::kBytes];
    EdgeSlot<S> edges[2][S::kStage];
  };
  Cells weights[kBuffers][S::kStage][S::kSteps][kWarp];
  Sources sources[kRebuilders];
  // The columns that the lanes meet in two stages, for the warp that goes back.
  static constexpr int kColumns = S::kStage * S::kSteps + kWarp;
  T columns[2][kColumns];
  Gate<kWarp> rebuilt[kBuffers], used[kBuffers];

  __device__ void start(int lane) {
    if (lane < kBuffers) {
      rebuilt[lane].start();
      used[lane].start();
    }
  }
};

// The chunks of a strip that backward goes over.
template <class S>
__device__ __forceinline__ int last_chunk_of(const Surroundings<S>& around) {
  return around.is_last ? around.end_chunk : around.strip.chunks - 1;
}

// Rebuilds every kRebuilders-th stage of a strip, from the last to the first. Turns count all of them.
template <class S, class Tile>
__device__ void team_rebuild(
    const Problem<typename S::Scalar>& problem, const Extent& extent, int64_t pair, int index, const Saved<S>& saved,
    int rebuilder, TeamStages<S>& team_stages) {
  using T = typename S::Scalar;
  TeamStages<S>& stages = pinned(team_stages);
  const int lane = threadIdx.x;
  const Surroundings<S> around(extent, index);
  const Strip<S>& strip = around.strip;
  const int last_chunk = last_chunk_of(around), last_stage = last_chunk / S::kStage;
  const int above_groups = around.is_first ? 0 : around.above.groups();
  const Edge<S> above_edge = saved.edges.of(pair, index - 1, around.above);
  const Recurrences<S> recurrences(problem, pair);
  typename TeamStages<S>::Sources& sources = stages.sources[rebuilder];
  Tile tile(problem, extent, strip, pair, lane);

  // Copies run while the warp rebuilds another stage.
  const auto fetch = [&](int stage, int slot_of_edges) {
    constexpr int kPieces = 2 * S::kSteps * sizeof(T) / 16;  // of a group's entries
    const bool is_reference = lane >= S::kStage * kPieces;
    const int part = is_reference ? lane - S::kStage * kPieces : lane / kPieces;
    const int group = stage * S::kStage + part + around.above_offset;
    if (part < S::kStage && group < above_groups) {
      EdgeSlot<S>& slot = sources.edges[slot_of_edges][part];
      constexpr int kAtOnce = 16 / sizeof(T);
      const int piece = lane % kPieces * kAtOnce;
      if (is_reference)
        __pipeline_memcpy_async(&slot.reference, above_edge.references + group, sizeof(double));
      else
        __pipeline_memcpy_async(slot.entries + piece, above_edge.group(group) + piece, 16);
    }
    if (stage > 0) copy_snapshot<S>(sources.snapshot, saved.stage(pair, index, stage), lane);
    __pipeline_commit();
  };
  const int first_stage = last_stage - rebuilder;
  if (first_stage < 0) return;
  fetch(first_stage, 0);
  tile.fetch(Place<S>(strip, extent, first_stage * S::kStage, lane));
  for (int stage = first_stage, edges = 0; stage >= 0; stage -= kRebuilders, edges = 1 - edges) {
    const int turn = last_stage - stage, buffer = turn % stages.kBuffers, use = turn / stages.kBuffers;
    const int first_chunk = stage * S::kStage, parts = min(S::kStage, last_chunk + 1 - first_chunk);
    const int next_stage = stage - kRebuilders;
    __pipeline_wait_prior(0);
    __syncwarp();
    RobustState<S> state;
    if (stage > 0)
      state.load(sources.snapshot, lane);
    else
      state.start(around.is_first && lane == 0);
    __syncwarp();
    if (next_stage >= 0) fetch(next_stage, 1 - edges);
    if (use > 0) stages.used[buffer].wait(use - 1);
    Width<S> width;
    RobustTop<S> top;
    double lane_above = 0, above_reference = 0;
    T shift = 0;
#pragma unroll 1
    for (int part = 0; part < parts; ++part) {
      const int chunk = first_chunk + part;
      const Place<S> place(strip, extent, chunk, lane);
      tile.use(place);
      if (part + 1 < parts || next_stage >= 0)
        tile.fetch(Place<S>(strip, extent, part + 1 < parts ? chunk + 1 : next_stage * S::kStage, lane));
      if (chunk + around.above_offset < above_groups)
        top.read(sources.edges[edges][part]);
      else if (top.exists)
        top = RobustTop<S>();
      if (part == 0) {
        if (stage == 0) state.renew(lane, top.reference);
        lane_above = __shfl_up_sync(kAllLanes, state.reference, 1) - state.reference;
        width.start(state);
      }
      if (part == 0 || top.reference != above_reference) {
        shift = shift_of<S>(above_of(top, state, lane, lane_above));
        above_reference = top.reference;
      }
      auto& weights = stages.weights[buffer][part];
      const auto kept = [&](int k, int t) -> Weights<T>& { return weights[t][lane].rows[k]; };
      const auto column = [](int, auto) {};
      const T rise = Width<S>::rise_of(recurrences, tile.reach, place.in_band && !recurrences.has_penalty);
      const bool plain =
          width.plain(rise, shift, top.wide, state) && sweep_plain(width, state, [&](auto& entries) {
            sweep_ahead(
                lane, top, shift, entries,
                [&](int k, int t) { return recurrences.plain.split(tile.cost(k, t), recurrences.plain.scale); },
                [&](int k, int t, const auto& terms, T diag, T up, T left) {
                  return sum_of(terms, diag, up, left, kept(k, t));
                },
                column);
          });
      if (!plain)
        sweep_general(
            recurrences, extent, place, lane, top, above_of(top, state, lane, lane_above), state,
            [&](const auto& recurrence, int k, int t, auto diag, auto up, auto left) {
              return recurrence.cell(diag, up, left, tile.cost(k, t), kept(k, t));
            },
            column);
    }
    stages.rebuilt[buffer].arrive();
  }
}

// A lane's rows of x, and its columns of y in a chunk.
template <class S>
struct TeamTile {
  using T = typename S::Scalar;
  T x[S::kRows], y[S::kSteps];

  __device__ __forceinline__ T difference(int k, int t) const { return x[k] - y[t]; }
};

// Goes back over the stages of a strip. What flows up from the strip below comes from one ring and what flows on from this
// strip goes to another, with the sums of dy beside it.
template <class S, class Tile>
__device__ void team_backward(
    const Problem<typename S::Scalar>& problem, const Gradient<typename S::Scalar>& gradient, const Extent& extent,
    int64_t pair, int index, TeamStages<S>& team_stages, FlowRing<S>& below_flows, FlowRing<S>& above_flows) {
  using T = typename S::Scalar;
  TeamStages<S>& stages = pinned(team_stages);
  FlowRing<S>&below_ring = pinned(below_flows), &above_ring = pinned(above_flows);
  const int lane = threadIdx.x;
  const Surroundings<S> around(extent, index);
  const Strip<S>& strip = around.strip;
  const int below_groups = around.is_last ? 0 : around.below.groups(), own_groups = strip.groups();
  const int last_chunk = last_chunk_of(around);
  TeamTile<S> tile;
  const View<const T> rows = problem.x.pair(pair), columns = problem.y.pair(pair);
#pragma unroll
  for (int k = 0; k < S::kRows; ++k)
    tile.x[k] = rows.data[min(strip.first_row + lane * S::kRows + k, extent.n - 1) * rows.row_stride];
  const auto fetch = [&](int stage, int buffer) {
#pragma unroll
    for (int i = lane; i < stages.kColumns; i += kWarp) {
      const int column = strip.first_column + stage * S::kStage * S::kSteps - (kWarp - 1) + i;
      __pipeline_memcpy_async(
          &stages.columns[buffer][i], columns.data + min(max(column, 0), extent.m - 1) * columns.row_stride, sizeof(T));
    }
    __pipeline_commit();
  };
  // Sums of dy that the strip above goes on adding to need not be stored.
  const bool stores = around.is_first || around.above.end_column < strip.end_column;
  SinkOf<S, Tile> sink(
      problem, gradient, extent, pair, lane, Columns{0, 0, stores ? strip.end_column : 0},
      gradient_scale(problem, gradient, pair), nullptr);
  RobustFlow<S> flow;
  T sum_next = 0;
  unsigned taken = 0;
  // Lane 31's columns start one right of this group of the strip below.
  const auto below_group = [&](int chunk) { return chunk - S::kSkewChunks - around.below_offset; };
  below_ring.skip(taken, max(0, min(below_groups, below_groups - 1 - below_group(last_chunk))));
  unsigned room = above_ring.kRoom;
  int turn = 0;
  fetch(last_chunk / S::kStage, 0);
  for (int stage = last_chunk / S::kStage; stage >= 0; --stage, ++turn) {
    const int first_chunk = stage * S::kStage, parts = min(S::kStage, last_chunk + 1 - first_chunk);
    const int buffer = turn % stages.kBuffers;
    __pipeline_wait_prior(0);
    __syncwarp();
    if (stage > 0) fetch(stage - 1, 1 - turn % 2);
    const T* const window = stages.columns[turn % 2] + kWarp - 1 - lane;
    if (!around.is_first) above_ring.make_room(room, max(0, own_groups - first_chunk));
    stages.rebuilt[buffer].wait(turn / stages.kBuffers);
#pragma unroll 1
    for (int part = parts - 1; part >= 0; --part) {
      const int chunk = first_chunk + part;
      const Place<S> place(strip, extent, chunk, lane);
#pragma unroll
      for (int t = 0; t < S::kSteps; ++t) tile.y[t] = window[part * S::kSteps + t];
      const int own_item = own_groups - 1 - chunk;
      const bool leaves = !around.is_first && own_item >= 0 && lane == 0;
      FlowSlot<S>& out = above_ring.place(own_item);
      T below[S::kSteps] = {}, sums[S::kSteps] = {};
      if (below_group(chunk) >= 0 && below_group(chunk) < below_groups) {
        const FlowSlot<S>& slot = below_ring.await(taken);
        load_group(slot.flows, true, below);
        load_group(slot.sums, true, sums);
        below_ring.leave(taken++);
      }
      sink.start(place);
      const auto& cells = stages.weights[buffer][part];
      const auto weights = [&](int k, int t) { return cells[t][lane].rows[k]; };
      const auto cell = [&](int k, int t, T e) { sink.cell(tile, k, t, e); };
      const auto column = [&](int t, T handed) {
        sink.step(t, t + 1 < S::kSteps ? sums[(t + 1) % S::kSteps] : sum_next);
        if (leaves) {
          out.flows[t] = handed;
          out.sums[t] = sink.carry;
        }
      };
      if (__builtin_expect(place.in_band && chunk != around.end_chunk, 1))
        sweep_robust_reversed<false, S>(weights, extent, place, lane, -1, -1, below, flow, cell, column);
      else
        sweep_robust_reversed<true, S>(
            weights, extent, place, lane, chunk == around.end_chunk && lane == around.end_lane ? around.end_row : -1,
            around.end_time % S::kSteps, below, flow, cell, column);
      sum_next = sums[0];
      if (leaves) above_ring.fill(own_item);
    }
    stages.used[buffer].arrive();
  }
  below_ring.skip(taken, below_groups);
  sink.finish(strip, extent);
}

}  // namespace softdtw
