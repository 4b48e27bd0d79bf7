// One warp sweeps one strip in the linear domain (linear.cuh).
#pragma once

#include "linear_general.cuh"
#include "strip_job.cuh"

namespace softdtw {

// The factor of a step up or left.
template <typename T>
__device__ __forceinline__ double penalty_factor(const Problem<T>& problem) {
  return problem.warp_penalty == 0 ? 1.0 : exp2(-problem.warp_penalty * problem.scale);
}

// How a chunk is swept.
enum class Sweep : int { kPlain = 0, kChecked = 1, kGeneral = 2 };

// The fastest sweep that a chunk may take. `ends`: the pair's last cell is in it.
template <class S>
__device__ __forceinline__ Sweep
sweep_of(const Extent& extent, const Place<S>& place, const LinearGroup<S>& top, double step, bool ends) {
  if (step != 1 || __shfl_sync(kAllLanes, static_cast<int>(top.general), 0)) return Sweep::kGeneral;
  if (place.is_entered && !ends) return Sweep::kPlain;
  return place.in_band ? Sweep::kChecked : Sweep::kGeneral;
}

// Sweeps a chunk so, and with the general sweep where that left the range. Both `cell` and `column` must take a double and a
// Wide. Returns the sweep that it was.
template <class S, class Tile, class Cell, class Column>
__device__ __forceinline__ Sweep sweep_linear_chunk(
    const Extent& extent, const Place<S>& place, int lane, const Tile& tile, const LinearGroup<S>& top, double step,
    Sweep sweep, LinearLane<S>& state, Cell&& cell, Column&& column) {
  if (sweep != Sweep::kGeneral) {
    const LinearLane<S> before = state;
    const Factors<S> factors(state.exponent, state.above);
    const bool right = sweep == Sweep::kPlain
                           ? sweep_linear<false>(lane, place.column, tile, top, factors, state, cell, column)
                           : sweep_linear<true>(lane, place.column, tile, top, factors, state, cell, column);
    if (__all_sync(kAllLanes, right)) return sweep;
    state = before;
  }
  sweep_linear_general(extent, place, lane, tile, top, step, state, cell, column);
  return Sweep::kGeneral;
}

template <class S>
__device__ __forceinline__ void renew_for(Sweep sweep, LinearLane<S>& state, int lane, const LinearGroup<S>& top) {
  if (sweep == Sweep::kPlain) renew<false>(state, lane, top);
  if (sweep == Sweep::kChecked) renew<true>(state, lane, top);
}

// False where the pair is given up: its costs are out of range here, or in a strip that this one waits for.
template <class S, class Tile>
__device__ bool linear_forward_strip(
    const Problem<typename S::Scalar>& problem, const Extent& extent, const ForwardStrip<S>& job,
    typename S::Scalar* value) {
  using T = typename S::Scalar;
  const int lane = threadIdx.x;
  Surroundings<S> around(extent, job.strip);
  around.pin_for_forward();
  const Strip<S>& strip = around.strip;
  const int chunks = around.is_last ? around.end_chunk + 1 : strip.chunks;
  const int above_groups = around.is_first ? 0 : around.above.groups();
  const Edge<S> above_edge = job.edges.of(job.pair, job.strip - 1, around.above);
  const Edge<S> own_edge = job.edges.of(job.pair, job.strip, strip);
  const double step = penalty_factor(problem);

  LinearLane<S> state;
  state.start(around.is_first && lane == 0);
  Tile tile(problem, extent, strip, job.pair, lane);
  tile.fetch(Place<S>(strip, extent, 0, lane));
  for (int chunk = 0; chunk < chunks; ++chunk) {
    const Place<S> place(strip, extent, chunk, lane);
    tile.use(place);
    if (chunk + 1 < chunks) tile.fetch(Place<S>(strip, extent, chunk + 1, lane));

    LinearGroup<S> top;
    bool right = tile.in_range;
    const int group = chunk + around.above_offset;
    if (group < above_groups && lane == 0) {
      right = job.producer.wait(group + S::kSkewChunks + 1) && right;
      top.read(
          reinterpret_cast<const Slot<T>*>(above_edge.group(group)), above_edge.references + group, job.producer.is_near());
      if (top.general) flatten(top);
    }
    __syncwarp();
    if (__any_sync(kAllLanes, !right)) {
      if (lane == kWarp - 1) job.publish(kAborted);
      return false;
    }
    const Sweep wanted = sweep_of(extent, place, top, step, chunk == around.end_chunk);
    renew_for(wanted, state, lane, top);
    const int own_group = chunk - S::kSkewChunks, unit = state.exponent[S::kRows - 1];
    const bool writes = lane == kWarp - 1 && !around.is_last && own_group >= 0;
    Slot<T>* const out = reinterpret_cast<Slot<T>*>(own_edge.group(own_group));
    const bool ends = chunk == around.end_chunk && lane == around.end_lane;
    const int end_row = around.end_row, end_step = around.end_time % S::kSteps;
    Wide last;
    const Sweep sweep = sweep_linear_chunk(
        extent, place, lane, tile, top, step, wanted, state,
        [&](int k, int t, auto a) {
          if (ends && k == end_row && t == end_step) last = with_unit(a, state.exponent[k]);
        },
        [&](int t, auto bottom) {
          if (writes) out[t] = Slot<T>::of(bottom);
        });
    if (writes) *reinterpret_cast<int2*>(own_edge.references + own_group) = make_int2(unit, sweep == Sweep::kGeneral);
    if (ends) value[job.pair] = static_cast<T>(-(last.e + log2(last.a)) * problem.gamma_of(job.pair) * kLn2);
    __syncwarp();
    if (lane == kWarp - 1) job.publish(progress_of(job.round, chunk + 1));
  }
  return true;
}

}  // namespace softdtw
