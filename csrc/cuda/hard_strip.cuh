// One warp sweeps one strip (strip.cuh) of hard DTW, (9).
//
// A lane holds R of its rows relative to a reference of its own, a float64 that is renewed every stage to the smallest of
// them: so float32 rounds a cell against what its neighbours differ by, not against R. A cell is two minima and an addition.
// Minima are those that pass NaN on: every cell is a predecessor of the last one, so a NaN cost spoils its pair.
//
// Where a path is wanted, each lane keeps the step of every cell of its tile, two bits each, in one word (two with four rows)
// per chunk: N M / 4 bytes, and one coalesced store per warp and chunk.
#pragma once

#include "../hard_path.h"
#include "inbox.cuh"
#include "strip_job.cuh"
#include "tile.cuh"

namespace softdtw {

// The steps of a lane's tile of a chunk.
template <class S>
struct StepWords {
  static constexpr int kBits = 2, kCells = S::kRows * S::kSteps, kWords = kCells * kBits / 32;
  unsigned words[kWords] = {};

  __device__ __forceinline__ static int bit(int k, int t) { return (t * S::kRows + k) * kBits; }
  __device__ __forceinline__ void add(int k, int t, unsigned step) { words[bit(k, t) / 32] |= step << bit(k, t) % 32; }
};

// Steps of all pairs: [pair][strip][chunk][lane][word].
template <class S>
struct StepTable {
  unsigned* words = nullptr;
  int64_t strips = 0, chunks = 0;

  static int64_t bytes(int64_t batch, const Sizes<S>& sizes) {
    return batch * sizes.strips * sizes.chunks * kWarp * StepWords<S>::kWords * sizeof(unsigned);
  }
  __device__ __forceinline__ unsigned* chunk(int64_t pair, int strip, int chunk) const {
    return words + ((pair * strips + strip) * chunks + chunk) * kWarp * StepWords<S>::kWords;
  }
};

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
  // A lane that no path has reached yet takes over the reference of the nearest lane above that one has.
  __device__ __forceinline__ void renew(int lane, double top_reference) {
    T lowest = diag;
#pragma unroll
    for (int k = 0; k < S::kRows; ++k) lowest = DeviceMath<T>::min(lowest, left[k]);
    const bool reached = lowest < T(INFINITY);
    if (reached) {
#pragma unroll
      for (int k = 0; k < S::kRows; ++k) left[k] -= lowest;
      diag -= lowest;
      reference += static_cast<double>(lowest);
    }
    const unsigned reached_lanes = __ballot_sync(kAllLanes, reached);
    if (reached_lanes != kAllLanes) {
      if (lane == 0 && !reached) reference = top_reference;
      const double nearest = __shfl_sync(kAllLanes, reference, 31 - __clz((reached_lanes | 1u) & ((2u << lane) - 1u)));
      if (!reached) reference = nearest;
    }
  }
};

// A group of the edge above in shared memory.
template <class S>
struct alignas(16) HardSlot {
  typename S::Scalar entries[S::kSteps];
  double reference;
};

// The columns of the edge above a chunk, for lane 0, relative to a reference.
template <class S>
struct HardTop {
  using T = typename S::Scalar;
  T entries[S::kSteps];
  double reference = 0;

  __device__ __forceinline__ explicit HardTop(T entry) {
#pragma unroll
    for (int t = 0; t < S::kSteps; ++t) entries[t] = entry;
  }
  __device__ __forceinline__ void read(const Edge<S>& edge, int g, bool near) {
    load_group(edge.group(g), near, entries);
    reference = load(edge.references + g, near);
  }
  __device__ __forceinline__ void read(const HardSlot<S>& slot) {
    load_group(slot.entries, true, entries);
    reference = slot.reference;
  }
};

// (9) over a chunk. `above` brings what comes from the row above the lane to the lane's reference. kGeneral: cells outside the
// band may be here, or the end of the pair. `cell(k, t, r)` sees every cell of a general sweep, `column(t, bottom)` every step,
// with the entry of the lane's last row before it.
template <bool kGeneral, bool kPenalty, bool kPath, class S, class Tile, class Cell, class Column>
__device__ __forceinline__ void sweep_hard(
    const Extent& extent, const Place<S>& place, int lane, const Tile& tile, const HardTop<S>& top,
    typename S::Scalar above, typename S::Scalar penalty, HardLane<S>& state, StepWords<S>& steps, Cell&& cell,
    Column&& column) {
  using T = typename S::Scalar;
#pragma unroll
  for (int t = 0; t < S::kSteps; ++t) {
    const T bottom = state.left[S::kRows - 1];
    const T handed = __shfl_up_sync(kAllLanes, bottom, 1);
    T up = (lane == 0 ? top.entries[t] : handed) + above;
    T diag = state.diag;
    state.diag = up;
#pragma unroll
    for (int k = 0; k < S::kRows; ++k) {
      const T left = state.left[k];
      T best;
      if constexpr (kPath) {
        const T side = kPenalty ? lesser(up, left) + penalty : lesser(up, left);
        if (side < diag) steps.add(k, t, left < up ? kLeft : kUp);
        best = lesser(side, diag);
      } else {
        // left and diag come from the column before, so their minimum is off the chain that runs down the rows.
        best = lesser(kPenalty ? up + penalty : up, lesser(diag, kPenalty ? left + penalty : left));
      }
      T r = best + tile.cost(k, t);
      if (kGeneral) {
        if (!place.holds(extent, k, t)) r = T(INFINITY);
        cell(k, t, r);
      }
      state.left[k] = up = r;
      diag = left;
    }
    column(t, bottom);
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

// kIsAhead: for few pairs, whose time is the latency of a chunk. What neighbours wrote is fetched ahead of its use, and a chunk is
// published a little later, when what the lane wrote has arrived, for which publishing waits.
template <bool kPath, bool kIsAhead, class S, class Tile>
__device__ __forceinline__ void hard_forward_strip(
    const Problem<typename S::Scalar>& problem, bool open_ends, const Extent& extent, const ForwardStrip<S>& job,
    HardSlot<S> (&slots)[2], const StepTable<S>& table, typename S::Scalar* value, int* ends) {
  using T = typename S::Scalar;
  const int lane = threadIdx.x;
  Surroundings<S> around(extent, job.strip);
  around.pin_for_forward();
  const Strip<S>& strip = around.strip;
  const int chunks = around.is_last ? around.end_chunk + 1 : strip.chunks;
  const Edge<S> above_edge = job.edges.of(job.pair, job.strip - 1, around.above);
  const Edge<S> own_edge = job.edges.of(job.pair, job.strip, strip);
  const T penalty = static_cast<T>(problem.penalty_of(job.pair));
  const bool watches_end = around.is_last && open_ends;

  EdgeAhead<S, HardSlot<S>> edge_ahead(slots);
  const int above_groups = around.is_first ? 0 : min(around.above.groups(), chunks + around.above_offset);

  HardLane<S> state;
  state.start(around.is_first && lane == 0);
  HardEnd end;
  T lane_above = 0;
  Tile tile(problem, extent, strip, job.pair, lane);
  tile.fetch(Place<S>(strip, extent, 0, lane));
  for (int chunk = 0; chunk < chunks; ++chunk) {
    const Place<S> place(strip, extent, chunk, lane);
    tile.use(place);
    forbid_infinite_costs(problem, tile);
    if (kIsAhead && chunk > 0 && lane == kWarp - 1) job.publish(progress_of(job.round, chunk), is_told(chunk, chunks));
    if (chunk + 1 < chunks) tile.fetch(Place<S>(strip, extent, chunk + 1, lane));
    // Open ends: R[0,j] = 0 above the first row.
    HardTop<S> top(around.is_first && open_ends ? T(0) : T(INFINITY));
    const int group = chunk + around.above_offset;
    if (kIsAhead && group < above_groups && lane == 0) edge_ahead.take(above_edge, job.producer, group, above_groups, top);
    if (!kIsAhead && group < above_groups && lane == 0) {
      job.producer.wait(done_at<S>(group));
      top.read(above_edge, group, job.producer.is_near());
    }
    __syncwarp();
    if (chunk % S::kStage == 0) {
      state.renew(lane, top.reference);
      lane_above = static_cast<T>(__shfl_up_sync(kAllLanes, state.reference, 1) - state.reference);
    }
    const T above = lane == 0 ? static_cast<T>(top.reference - state.reference) : lane_above;

    const int own_group = chunk - S::kSkewChunks;
    const bool writes = lane == kWarp - 1 && !around.is_last && own_group >= 0;
    T* const out = own_edge.group(own_group);
    if (writes) own_edge.references[own_group] = state.reference;
    const bool ends_here = chunk == around.end_chunk || watches_end;
    StepWords<S> steps;
    const auto cell = [&](int k, int t, T r) {
      if (!ends_here || lane != around.end_lane || k != around.end_row) return;
      const int column = place.column + t;
      if (column == extent.m - 1 || (open_ends && column >= 0 && column < extent.m))
        end.see(state.reference + static_cast<double>(r), column);
    };
    const auto column = [&](int t, T bottom) {
      if (writes) out[t] = bottom;
    };
    if (!place.in_band || ends_here)
      sweep_hard<true, true, kPath>(extent, place, lane, tile, top, above, penalty, state, steps, cell, column);
    else if (penalty != T(0))
      sweep_hard<false, true, kPath>(extent, place, lane, tile, top, above, penalty, state, steps, cell, column);
    else
      sweep_hard<false, false, kPath>(extent, place, lane, tile, top, above, penalty, state, steps, cell, column);
    if constexpr (kPath) {
      unsigned* const to = table.chunk(job.pair, job.strip, chunk) + lane * StepWords<S>::kWords;
      if constexpr (StepWords<S>::kWords == 2)
        *reinterpret_cast<uint2*>(to) = make_uint2(steps.words[0], steps.words[1]);
      else
        *to = steps.words[0];
    }
    __syncwarp();
    if (lane == kWarp - 1 && (!kIsAhead || chunk + 1 == chunks)) job.publish(progress_of(job.round, chunk + 1));
  }
  if (around.is_last && lane == around.end_lane) {
    value[job.pair] = static_cast<T>(end.value);
    if (kPath) ends[job.pair] = end.column;
  }
}

// A ready-made cost of +inf forbids its cell; load_costs() limits it to a number.
template <class S>
__device__ __forceinline__ void forbid_infinite_costs(const Problem<typename S::Scalar>& problem, DenseTile<S>& tile) {
  if (problem.cost != Cost::kMatrix) return;
#pragma unroll
  for (int k = 0; k < S::kRows; ++k)
#pragma unroll
    for (int t = 0; t < S::kSteps; ++t)
      if (tile.costs[k][t] >= Unreachable<typename S::Scalar>::value) tile.costs[k][t] = INFINITY;
}
template <class S>
__device__ __forceinline__ void forbid_infinite_costs(const Problem<typename S::Scalar>&, UnivariateTile<S>&) {}

// The best path of one pair, by one warp: a chunk of steps is loaded by all lanes at once, and each lane takes the same walk.
template <class S>
struct PathWalk {
  const Extent& extent;
  const StepTable<S>& table;
  const int64_t pair;
  const int lane;
  Strip<S> strip;
  int index, chunk = -1;
  unsigned words[StepWords<S>::kWords], earlier[StepWords<S>::kWords];

  __device__ PathWalk(const Extent& extent_, const StepTable<S>& table_, int64_t pair_, int lane_)
      : extent(extent_), table(table_), pair(pair_), lane(lane_), strip(extent_, 0), index(-1) {}

  __device__ __forceinline__ void load_into(unsigned (&to)[StepWords<S>::kWords], int chunk_) const {
#pragma unroll
    for (int i = 0; i < StepWords<S>::kWords; ++i)
      to[i] = chunk_ >= 0 ? table.chunk(pair, index, chunk_)[lane * StepWords<S>::kWords + i] : 0;
  }
  __device__ __forceinline__ int step(int row, int column) {
    if (row / S::kStripRows != index) {
      index = row / S::kStripRows;
      strip = Strip<S>(extent, index);
      chunk = -1;
    }
    const int own_row = row - strip.first_row, owner = own_row / S::kRows, k = own_row % S::kRows;
    const int time = column - strip.first_column + owner, wanted = time / S::kSteps;
    if (wanted != chunk) {
      if (chunk >= 0 && wanted == chunk - 1) {
#pragma unroll
        for (int i = 0; i < StepWords<S>::kWords; ++i) words[i] = earlier[i];
      } else {
        load_into(words, wanted);
      }
      chunk = wanted;
      load_into(earlier, chunk - 1);  // ahead of its use
    }
    const int bit = StepWords<S>::bit(k, time % S::kSteps);
    unsigned word = words[0];
    if constexpr (StepWords<S>::kWords == 2) word = bit >= 32 ? words[1] : word;
    return __shfl_sync(kAllLanes, word, owner) >> bit % 32 & 3;
  }
};

}  // namespace softdtw
