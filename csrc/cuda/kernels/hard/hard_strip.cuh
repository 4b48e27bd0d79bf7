// One warp sweeps one strip (strip.cuh) of hard DTW, (9), chunk by chunk.
//
// In float32 a strip's entries are relative to a reference, a float64, which is renewed every few chunks: to the smallest entry that
// any lane holds, or that of the strip above if that is smaller. Costs are not negative, so no cell to come is smaller: the
// reference is at most the R of every later cell, and rounding R less a reference never is a coarser thing than rounding R itself.
// (A reference of a lane's own would not do: a lane may hold nothing but cells far worse than those that come next from above.)
// A cell is two minima and an addition. Minima are those that pass NaN on: every cell is a predecessor of the last one, so a NaN
// cost spoils its pair.
//
// Where a path is wanted, the steps of all cells are kept (paths/hard_steps.cuh).
#pragma once

#include <cfloat>
#include <type_traits>

#include "cuda/costs/tile.cuh"
#include "cuda/hardware/launch.cuh"
#include "cuda/hardware/pipeline.cuh"
#include "cuda/select/hard.h"
#include "cuda/strips/tickets.cuh"
#include "paths/path_walk.cuh"

namespace softdtw {

// A group of columns of a strip's last row.
template <class S>
struct alignas(16) HardEdge {
  typename S::Scalar entries[S::kSteps];
  double reference;
};

// A row of edges for every pair, which holds the last edge of each of its blocks in turn, and the warps that carry edges between it and
// pipelines: of a block whose first strip is `first`, and of one whose last strip is `last`.
template <class S>
struct HardRows {
  HardEdge<S>* groups;
  int64_t length;  // groups of a pair

  static int64_t bytes(int64_t batch, const Sizes<S>& sizes) { return batch * sizes.groups * sizeof(HardEdge<S>); }
  friend __device__ void carry_edge_in(
      const HardRows& rows, const Extent& extent, int64_t pair, int first, Pipeline<HardEdge<S>>& pipeline,
      const Progress* progress, int lane) {
    const Strip<S> above(extent, first - 1);
    const HardEdge<S>* const from = rows.groups + pair * rows.length + above.first_column / S::kSteps;
    carry_in(pipeline, above.groups(), progress, lane, [&](int group, HardEdge<S>& to) { copy(from[group], to, false); });
  }
  friend __device__ void carry_edge_out(
      const HardRows& rows, const Extent& extent, int64_t pair, int last, Pipeline<HardEdge<S>>& pipeline,
      Progress* progress, int lane) {
    const Strip<S> strip(extent, last);
    HardEdge<S>* const to = rows.groups + pair * rows.length + strip.first_column / S::kSteps;
    carry_out(
        pipeline, strip.groups(), progress, lane, [&](const HardEdge<S>& from, int group) { copy(from, to[group], true); });
  }

 private:
  __device__ __forceinline__ static void copy(const HardEdge<S>& from, HardEdge<S>& to, bool near) {
#pragma unroll
    for (int i = 0; i < sizeof(HardEdge<S>) / sizeof(int4); ++i)
      reinterpret_cast<int4*>(&to)[i] = load(reinterpret_cast<const int4*>(&from) + i, near);
  }
};

// Scratch memory of a forward pass. Tickets: so many a pair; none, and no rows, where a pair's strips are all of one block.
template <class S>
struct HardMemory {
  char* tickets;
  HardRows<S> rows;
  int* ends;
  StepTable<S> table;
  StripMaps<S> maps;

  HardMemory(const Problem<typename S::Scalar>& problem, int64_t tickets_of_pair, bool with_path, Scratch& scratch) {
    const Sizes<S> sizes(problem);
    const bool has_maps = with_path && has_strip_maps(problem.batch, sizes.strips, StripMaps<S>::columns_of(sizes));
    const auto parts = scratch.parts(
        tickets_of_pair > 0 ? Tickets::bytes(problem.batch, tickets_of_pair) : 0,
        tickets_of_pair > 0 ? HardRows<S>::bytes(problem.batch, sizes) : 0, with_path ? problem.batch * sizeof(int) : 0,
        with_path ? StepTable<S>::bytes(problem.batch, sizes) : 0,
        has_maps ? StripMaps<S>::bytes(problem.batch, sizes) : 0);
    tickets = parts[0];
    rows = {reinterpret_cast<HardEdge<S>*>(parts[1]), sizes.groups};
    ends = reinterpret_cast<int*>(parts[2]);
    table = {reinterpret_cast<unsigned*>(parts[3]), sizes.strips, sizes.chunks};
    if (has_maps) maps = StripMaps<S>(parts[4], sizes);
  }
  int64_t blocks_of_paths(int64_t batch) const { return maps.exist() ? batch * maps.strips : batch; }
};

template <class S>
cudaError_t launch_hard_path(
    const Problem<typename S::Scalar>& problem, const typename S::Scalar* value, const HardMemory<S>& memory, Span* spans,
    cudaStream_t stream, int width_of_others = 0) {
  const cudaError_t error = launch_strip_maps(problem, memory.table, memory.maps, width_of_others, stream);
  if (error != cudaSuccess) return error;
  return launch_kernel(
      hard_path_kernel<S>, memory.blocks_of_paths(problem.batch), kWarp, 0, stream, problem, value, memory.table,
      memory.maps, memory.ends, spans, width_of_others);
}

template <class S>
struct HardLane {
  using T = typename S::Scalar;
  T left[S::kRows];  // the lane's rows at the column it has just left
  T diag;            // the row above them, one column before
  double reference = 0;

  __device__ __forceinline__ void start(bool holds_corner) {
#pragma unroll
    for (int k = 0; k < S::kRows; ++k) left[k] = T(INFINITY);
    diag = holds_corner ? T(0) : T(INFINITY);
  }
  // By the whole warp, whose reference it is. `above`: that of the row above the strip, or infinity where nothing more comes
  // from there.
  __device__ __forceinline__ void renew(double above) {
    if constexpr (sizeof(T) == 4) {
      float lowest = fminf(diag, left[0]);
#pragma unroll
      for (int k = 1; k < S::kRows; ++k) lowest = fminf(lowest, left[k]);
      const float by = fminf(lowest_of_warp(lowest), static_cast<float>(above - reference));
      if (!(fabsf(by) <= FLT_MAX)) return;
#pragma unroll
      for (int k = 0; k < S::kRows; ++k) left[k] -= by;
      diag -= by;
      reference += static_cast<double>(by);
    }
  }

 private:
  // Signed integers are in the order of the numbers that they stand for; a positive NaN is above them all.
  __device__ __forceinline__ static int as_ordered(int bits) { return bits ^ (bits >> 31 & 0x7fffffff); }
  __device__ __forceinline__ static float lowest_of_warp(float own) {
    int lowest = as_ordered(__float_as_int(own));
#if __CUDA_ARCH__ >= 800
    lowest = __reduce_min_sync(kAllLanes, lowest);
#else
#pragma unroll
    for (int distance = kWarp / 2; distance > 0; distance /= 2)
      lowest = min(lowest, __shfl_xor_sync(kAllLanes, lowest, distance));
#endif
    return __int_as_float(as_ordered(lowest));
  }
};

// The row above the strip, at a chunk's columns for lane 0.
template <class S>
struct HardTop {
  using T = typename S::Scalar;
  T entries[S::kSteps];
  double reference;

  __device__ __forceinline__ HardTop(T entry, double reference_) : reference(reference_) {
#pragma unroll
    for (int t = 0; t < S::kSteps; ++t) entries[t] = entry;
  }
  __device__ __forceinline__ void read(const HardEdge<S>& edge) {
    load_group(edge.entries, true, entries);
    reference = edge.reference;
  }
  __device__ __forceinline__ void move_to(double reference_) {
    if constexpr (sizeof(T) == 8) return;
    const T by = static_cast<T>(reference - reference_);
#pragma unroll
    for (int t = 0; t < S::kSteps; ++t) entries[t] += by;
  }
};

// A tile whose general sweep is a loop over parts of the chunk, to be small: it computes costs step by step, and has skip() (hard_tile.cuh).
struct SweptInParts {};
// A tile of which every step into a cell has a cost of its own, (11) of core/elastic.h: its costs_of(t), called for every t in turn,
// has diagonal[k], up[k] and left[k]. has_border: whether there is more than infinity above the first strip, which put_border() puts
// in a chunk's HardTop; what is beside the table is infinity.
struct HasStepCosts : SweptInParts {};
template <class Tile>
constexpr bool kHasStepCosts = std::is_base_of_v<HasStepCosts, std::remove_const_t<Tile>>;
// A tile whose cells outside the band cost infinity.
struct KnowsBand {};
template <class Tile>
constexpr bool kKnowsBand = std::is_base_of_v<KnowsBand, std::remove_const_t<Tile>>;

// A cell from its predecessors; `note` gets its step, where a path is wanted, unless that is the diagonal one.
template <bool kPenalty, bool kPath, bool kOwnCosts, typename T, class Costs, class Note>
__device__ __forceinline__ T
hard_cell(const Costs& costs, int k, bool is_inside, T diag, T up, T left, T penalty, Note&& note) {
  if constexpr (kOwnCosts) {
    diag += costs.diagonal[k];
    up += costs.up[k];
    left += costs.left[k];
  }
  T best;
  if constexpr (kPath) {
    const T side = kPenalty ? lesser(up, left) + penalty : lesser(up, left);
    if (side < diag) note(left < up ? kLeft : kUp);
    best = lesser(side, diag);
  } else {
    // left and diag come from the column before, so their minimum is off the chain that runs down the rows.
    best = lesser(kPenalty ? up + penalty : up, lesser(diag, kPenalty ? left + penalty : left));
  }
  if constexpr (kOwnCosts)
    return is_inside ? best : T(INFINITY);
  else
    return costs.add(k, best, is_inside);
}

// (9) over a chunk. kGeneral: cells outside the band may be here, or the end of the pair. `column(t, bottom)` sees every step, with the entry
// of the lane's last row before it, `left_behind(t)` every one of a general sweep, when it is done.
template <bool kGeneral, bool kPenalty, bool kPath, class S, class Tile, class Column, class Left>
__device__ __forceinline__ void sweep_hard(
    const Extent& extent, const Place<S>& place, int lane, Tile& tile, HardTop<S> top, typename S::Scalar penalty,
    HardLane<S>& state, StepWords<S>& steps, Column&& column, Left&& left_behind) {
  using T = typename S::Scalar;
  constexpr bool kHasParts = kGeneral && std::is_base_of_v<SweptInParts, Tile>;
  constexpr int kPart = kHasParts ? S::kSteps / 2 : S::kSteps;
  InBandBits<S> inside(extent, place);
#pragma unroll 1
  for (int from = 0; from < S::kSteps; from += kPart) {
    StepWords<S> steps_of_part;
#pragma unroll
    for (int i = 0; i < kPart; ++i) {
      const int t = from + i;
      const T bottom = state.left[S::kRows - 1];
      const T handed = __shfl_up_sync(kAllLanes, bottom, 1);
      T up = lane == 0 ? top.entries[i] : handed;
      T diag = state.diag;
      state.diag = up;
      const auto costs = tile.costs_of(i);
#pragma unroll
      for (int k = 0; k < S::kRows; ++k) {
        const T left = state.left[k];
        const bool is_inside = !kGeneral || inside.has(k, i);
        state.left[k] = up = hard_cell<kPenalty, kPath, kHasStepCosts<Tile>>(
            costs, k, is_inside, diag, up, left, penalty, [&](unsigned step) { steps_of_part.add(k, i, step); });
        diag = left;
      }
      column(t, bottom);
      if (kGeneral) left_behind(t);
    }
    if constexpr (kPath) steps.add(steps_of_part, from);
    if constexpr (kHasParts) {
      inside.skip(kPart);
      skip<kPart>(top.entries);
      tile.template skip<kPart>();
    }
  }
}

// The smallest R of the pair's last row so far: where the path ends.
struct HardEnd {
  double value = INFINITY;
  int column = 0;

  __device__ __forceinline__ void see(double r, int at) {
    if (value <= r) return;  // of equal ends the first; a NaN is passed on
    value = r;
    column = at;
  }
};

// A strip under way.
template <bool kPath, class S, class Tile, class P = Problem<typename S::Scalar>>
class HardSweep {
  using T = typename S::Scalar;
  static constexpr int kChunksBetweenRenewals = 32 / S::kSteps;
  const P& problem;
  const Extent& extent;
  const int64_t pair;
  const int index, lane;
  const bool open_ends;
  Surroundings<S> around;
  const T penalty;
  HardLane<S> state;
  HardEnd end;
  Tile tile;

 public:
  const int chunks;

  __device__ HardSweep(
      const P& problem_, bool open_ends_, const Extent& extent_, int64_t pair_, int index_, int lane_,
      typename Tile::Memory& memory)
      : problem(problem_),
        extent(extent_),
        pair(pair_),
        index(index_),
        lane(lane_),
        open_ends(open_ends_),
        around(extent, index),
        penalty(static_cast<T>(problem.penalty_of(pair))),
        tile(problem, extent, around.strip, pair, lane, memory),
        chunks(around.is_last ? around.end_chunk + 1 : around.strip.chunks) {
    around.pin_for_forward();
    state.start(around.is_first && lane == 0 && !has_border());
    tile.fetch(Place<S>(around.strip, extent, 0, lane));
  }
  __device__ __forceinline__ bool has_border() const {
    if constexpr (kHasStepCosts<Tile>)
      return tile.has_border;
    else
      return false;
  }
  // The group of the edge above that a chunk meets. Whether there is one.
  __device__ __forceinline__ int group_above(int chunk) const { return chunk + around.above_offset; }
  __device__ __forceinline__ bool has_group_above(int chunk) const {
    return !around.is_first && group_above(chunk) < around.above.groups();
  }
  __device__ __forceinline__ int groups_above() const { return around.is_first ? 0 : around.above.groups(); }
  // The group of its own edge that a chunk writes; below 0 there is none.
  __device__ __forceinline__ int own_group(int chunk) const { return around.is_last ? -1 : chunk - S::kSkewChunks; }

  // `above` is read where there is a group above, `own` written where there is one of its own.
  __device__ __forceinline__ void sweep(int chunk, const HardEdge<S>& above, HardEdge<S>& own, const StepTable<S>& table) {
    const Place<S> place(around.strip, extent, chunk, lane);
    tile.use(place);
    if (chunk + 1 < chunks) tile.fetch(Place<S>(around.strip, extent, chunk + 1, lane));
    // Open ends: R[0,j] = 0 above the first row.
    const bool starts_anywhere = around.is_first && open_ends;
    HardTop<S> top(starts_anywhere ? T(0) : T(INFINITY), starts_anywhere ? 0.0 : INFINITY);
    if (has_group_above(chunk)) top.read(above);
    if constexpr (kHasStepCosts<Tile>)
      if (around.is_first && has_border()) tile.put_border(extent, place, top);
    if (chunk % kChunksBetweenRenewals == 0) state.renew(top.reference);
    top.move_to(state.reference);

    const bool writes = lane == kWarp - 1 && own_group(chunk) >= 0;
    if (writes) own.reference = state.reference;
    const bool ends_here = around.is_last && (chunk == around.end_chunk || open_ends);
    StepWords<S> steps;
    const bool holds_end = ends_here && lane == around.end_lane;
    const auto left_behind = [&](int t) {
      const int column = place.column + t;
      if (holds_end && (column == extent.m - 1 || (open_ends && column >= 0 && column < extent.m)))
        end.see(state.reference + static_cast<double>(pick(state.left, around.end_row)), column);
    };
    const auto column = [&](int t, T bottom) {
      if (writes) own.entries[t] = bottom;
    };
    constexpr bool kMayHavePenalty = !kHasStepCosts<Tile>;
    if ((!kKnowsBand<Tile> && !place.in_band) || ends_here)
      sweep_hard<true, kMayHavePenalty, kPath>(extent, place, lane, tile, top, penalty, state, steps, column, left_behind);
    else if (kMayHavePenalty && penalty != T(0))
      sweep_hard<false, kMayHavePenalty, kPath>(extent, place, lane, tile, top, penalty, state, steps, column, left_behind);
    else
      sweep_hard<false, false, kPath>(extent, place, lane, tile, top, penalty, state, steps, column, left_behind);
    if constexpr (kPath) table.store(pair, index, chunk, lane, steps);
  }
  // After the last chunk.
  __device__ __forceinline__ void finish(T* value, int* ends) const {
    if (!around.is_last || lane != around.end_lane) return;
    value[pair] = static_cast<T>(end.value);
    if (kPath) ends[pair] = end.column;
  }
};

// The pipelines that a strip takes the edge above from, and leaves its own in; null where it has none.
template <class S>
struct HardPipelines {
  using Edge = HardEdge<S>;
  Pipeline<Edge>*above, *below;
  unsigned taken = 0, room = Pipeline<Edge>::kRoom;

  template <class Sweep>
  __device__ __forceinline__ void start(const Sweep& sweep) {
    if (above != nullptr) above->release_until(taken, min(sweep.groups_above(), sweep.group_above(0)));
  }
  // Before a chunk: where it reads and writes, if that is in a pipeline.
  template <class Sweep>
  __device__ __forceinline__ void open(const Sweep& sweep, int chunk, const Edge*& from, Edge*& to) {
    if (above != nullptr && sweep.has_group_above(chunk)) from = &above->wait(taken);
    const int own = sweep.own_group(chunk);
    if (below == nullptr || own < 0) return;
    below->acquire(room, own + 1);
    to = &below->slot(own);
  }
  // And after it.
  template <class Sweep>
  __device__ __forceinline__ void close(const Sweep& sweep, int chunk, int lane) {
    if (above != nullptr && sweep.has_group_above(chunk)) above->release(taken++);
    const int own = sweep.own_group(chunk);
    if (below != nullptr && own >= 0 && lane == kWarp - 1) below->commit(own);
  }
  template <class Sweep>
  __device__ __forceinline__ void finish(const Sweep& sweep) {
    if (above != nullptr) above->release_until(taken, sweep.groups_above());
  }
};

}  // namespace softdtw
