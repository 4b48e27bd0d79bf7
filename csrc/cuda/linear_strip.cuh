// One warp sweeps one strip in the linear domain (linear.cuh), forward or back.
#pragma once

#include "linear_general.cuh"
#include "strip_gradient.cuh"
#include "strip_job.cuh"

namespace softdtw {

// The factor of a step up or left.
template <typename T>
__device__ __forceinline__ double penalty_factor(const Problem<T>& problem) {
  return problem.warp_penalty == 0 ? 1.0 : exp2(-problem.warp_penalty * problem.scale);
}

// kNormalised: the lane's rows have been renewed and are all reached.
template <bool kNormalised, class S>
__device__ __forceinline__ void store_snapshot(const LinearLane<S>& state, int lane, char* memory) {
  using T = typename S::Scalar;
  Snapshot<S> snapshot;
#pragma unroll
  for (int i = 0; i <= S::kRows; ++i) {
    Wide a = i < S::kRows ? Wide{state.left[i < S::kRows ? i : 0], state.exponent[i < S::kRows ? i : 0]}
                          : Wide{state.diag, state.above};
    if (!kNormalised || i == S::kRows) a = Wide::of(a.a, a.e);
    // Rounding up to 2 would not fit the word.
    const T fraction = sizeof(T) == 4 ? static_cast<T>(__double2float_rz(a.a)) : static_cast<T>(a.a);
    snapshot.s[i] = (kNormalised && i < S::kRows) || a.a > 0 ? fraction : T(1);
    snapshot.m[i] = a.e;
  }
  snapshot.store(memory, lane);
}

template <class S>
__device__ __forceinline__ void load_snapshot(LinearLane<S>& state, int lane, const char* memory) {
  Snapshot<S> snapshot;
  snapshot.load(memory, lane);
#pragma unroll
  for (int i = 0; i <= S::kRows; ++i) {
    const double a = snapshot.m[i] == kNoExponent ? 0.0 : snapshot.s[i];
    const int e = static_cast<int>(snapshot.m[i]);
    if (i < S::kRows) {
      state.left[i < S::kRows ? i : 0] = a;
      state.exponent[i < S::kRows ? i : 0] = e;
    } else {
      state.diag = a;
      state.above = e;
    }
  }
}

// How a chunk is swept.
enum class Sweep : int { kPlain = 0, kChecked = 1, kGeneral = 2 };

// The fastest sweep that a chunk may take. `ends`: the pair's last cell is in it.
template <class S>
__device__ __forceinline__ Sweep sweep_of(
    const Extent& extent, const Place<S>& place, const LinearGroup<S>& top, double step, bool ends) {
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
    const Problem<typename S::Scalar>& problem, const Extent& extent, const ForwardStrip<S>& job, const Saved<S>& saved,
    typename S::Scalar* value) {
  using T = typename S::Scalar;
  const int lane = threadIdx.x;
  Surroundings<S> around(extent, job.strip);
  around.pin_for_forward();
  const Strip<S>& strip = around.strip;
  const bool keeps = saved.snapshots != nullptr;
  const int chunks = around.is_last && !keeps ? around.end_chunk + 1 : strip.chunks;
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
      top.read(reinterpret_cast<const Slot<T>*>(above_edge.group(group)), above_edge.references + group, job.producer.is_near());
    }
    __syncwarp();
    if (__any_sync(kAllLanes, !right)) {
      if (lane == kWarp - 1) job.publish(kAborted);
      return false;
    }
    const Sweep wanted = sweep_of(extent, place, top, step, chunk == around.end_chunk);
    renew_for(wanted, state, lane, top);
    if (keeps && chunk > 0 && chunk % S::kStage == 0) {
      char* const memory = saved.stage(job.pair, job.strip, chunk / S::kStage);
      if (wanted == Sweep::kPlain)
        store_snapshot<true>(state, lane, memory);
      else
        store_snapshot<false>(state, lane, memory);
    }

    const int own_group = chunk - S::kSkewChunks, unit = state.exponent[S::kRows - 1];
    const bool writes = lane == kWarp - 1 && !around.is_last && own_group >= 0;
    Slot<T>* const out = reinterpret_cast<Slot<T>*>(own_edge.group(own_group));
    const bool ends = chunk == around.end_chunk && lane == around.end_lane;
    const int end_row = around.end_row, end_step = around.end_time % S::kSteps;
    Wide last;
    const Sweep sweep = sweep_linear_chunk(
        extent, place, lane, tile, top, step, wanted, state,
        [&](int k, int t, T, auto a, auto checked) {
          if constexpr (checked.value)
            if (ends && k == end_row && t == end_step) last = with_unit(a, state.exponent[k]);
        },
        [&](int t, auto bottom) {
          if (writes) out[t] = Slot<T>::of(bottom);
        });
    if (writes) *reinterpret_cast<int2*>(own_edge.references + own_group) = make_int2(unit, sweep == Sweep::kGeneral);
    if (ends) value[job.pair] = static_cast<T>(-(last.e + log2(last.a)) * problem.gamma * kLn2);
    __syncwarp();
    if (lane == kWarp - 1) job.publish(progress_of(job.round, chunk + 1));
  }
  return true;
}

// What backward keeps of a stage in shared memory: the entries, and the roots of the weights where it costs more to compute
// them again.
template <class S, class Tile>
struct LinearStage {
  using T = typename S::Scalar;
  static constexpr int kCells = S::kStage * S::kSteps * S::kRows;
  static constexpr int kBytes = kCells * kWarp * (sizeof(Slot<T>) + (Tile::kKeepsRoots ? sizeof(T) : 0));

  Slot<T>* const entries;
  T* const roots;

  __device__ LinearStage(int warp, int lane)
      : entries(reinterpret_cast<Slot<T>*>(stage_memory + warp * kBytes) + lane),
        roots(reinterpret_cast<T*>(stage_memory + warp * kBytes + kCells * kWarp * sizeof(Slot<T>)) + lane) {}
  __device__ __forceinline__ static int at(int part, int k, int t) {
    return ((part * S::kSteps + t) * S::kRows + k) * kWarp;
  }
};

template <class S, class Tile>
__device__ void linear_backward_strip(
    const Problem<typename S::Scalar>& problem, const Gradient<typename S::Scalar>& gradient, const Extent& extent,
    const BackwardStrip& job, const Saved<S>& saved, const Flows<S>& flows) {
  using T = typename S::Scalar;
  const int lane = threadIdx.x;
  const Surroundings<S> around(extent, job.strip);
  const Strip<S>& strip = around.strip;
  const int above_groups = around.is_first ? 0 : around.above.groups();
  const int below_groups = around.is_last ? 0 : around.below.groups();
  const int last_chunk = around.is_last ? around.end_chunk : strip.chunks - 1;
  const Edge<S> above_edge = saved.edges.of(job.pair, job.strip - 1, around.above);
  const double step = penalty_factor(problem);
  const LinearStage<S, Tile> kept(threadIdx.y, lane);

  Tile tile(problem, extent, strip, job.pair, lane);
  SinkOf<S, Tile> sink(
      problem, gradient, extent, job.pair, lane, columns_of(around, extent),
      gradient_scale(problem, gradient, job.pair) / tile.unit(), flows.carries_of(job.pair, job.strip, problem.dim));
  LinearFlow<S> flow;
  for (int stage = last_chunk / S::kStage; stage >= 0; --stage) {
    const int first_chunk = stage * S::kStage, parts = min(S::kStage, last_chunk + 1 - first_chunk);
    tile.fetch(Place<S>(strip, extent, first_chunk, lane));
    LinearLane<S> state;
    if (stage > 0) {
      load_snapshot(state, lane, saved.stage(job.pair, job.strip, stage));
      if (stage > 2) prefetch<S>(saved.stage(job.pair, job.strip, stage - 2), lane);
    } else {
      state.start(around.is_first && lane == 0);
    }
    int exponents[S::kStage][S::kRows + 1];
    unsigned sweeps = 0;  // two bits a part
#pragma unroll 1
    for (int part = 0; part < parts; ++part) {
      const int chunk = first_chunk + part;
      const Place<S> place(strip, extent, chunk, lane);
      tile.use(place);
      if (part + 1 < parts) tile.fetch(Place<S>(strip, extent, chunk + 1, lane));
      LinearGroup<S> top;
      const int group = chunk + around.above_offset;
      if (group < above_groups && lane == 0) top.read(reinterpret_cast<const Slot<T>*>(above_edge.group(group)), above_edge.references + group, true);
      const Sweep wanted = sweep_of(extent, place, top, step, chunk == around.end_chunk);
      renew_for(wanted, state, lane, top);
#pragma unroll
      for (int k = 0; k < S::kRows; ++k) exponents[part][k] = state.exponent[k];
      exponents[part][S::kRows] = state.above;
      const Sweep sweep = sweep_linear_chunk(
          extent, place, lane, tile, top, step, wanted, state,
          [&](int k, int t, T root, auto a, auto) {
            kept.entries[kept.at(part, k, t)] = Slot<T>::of(a);
            if (Tile::kKeepsRoots) kept.roots[kept.at(part, k, t)] = root;
          },
          [](int, auto) {});
      sweeps |= static_cast<unsigned>(sweep) << 2 * part;
    }

#pragma unroll 1
    for (int part = parts - 1; part >= 0; --part) {
      const int chunk = first_chunk + part;
      const Place<S> place(strip, extent, chunk, lane);
      if (!Tile::kKeepsRoots && part + 1 < parts) {
        tile.fetch(place);
        tile.use(place);
      }
      LinearGroup<S> below;
      // Lane 31's columns start one right of this group of the strip below.
      const int below_group = chunk - S::kSkewChunks - around.below_offset;
      if (lane == kWarp - 1 && below_group >= 0 && below_group < below_groups) {
        job.producer.wait(around.below.chunks - below_group);
        below.read(
            flows.group(job.pair, around.below, below_group), flows.header(job.pair, around.below, below_group),
            job.producer.is_near());
      }
      __syncwarp();
      const auto was = static_cast<Sweep>(sweeps >> 2 * part & 3);
      const bool below_is_general = __shfl_sync(kAllLanes, static_cast<int>(below.general), kWarp - 1);
      const Sweep sweep = below_is_general ? Sweep::kGeneral : was;
      sink.begin(place);

      const bool leaves = lane == 0 && !around.is_first && chunk < strip.groups();
      Slot<T>* const out = flows.group(job.pair, strip, chunk);
      const auto root = [&](int k, int t, auto any) {
        if constexpr (Tile::kKeepsRoots)
          return kept.roots[kept.at(part, k, t)];
        else if constexpr (any.value)
          return tile.root_any(k, t);
        else
          return tile.root(k, t);
      };
      const auto cell = [&](int k, int t, double e) { sink.template cell<false>(tile, k, t, static_cast<T>(e)); };
      int exponent[S::kRows];
#pragma unroll
      for (int k = 0; k < S::kRows; ++k) exponent[k] = exponents[part][k];
      const int above = exponents[part][S::kRows];
      const int end_row = chunk == around.end_chunk && lane == around.end_lane ? around.end_row : -1;
      const int end_step = around.end_time % S::kSteps;
      const auto entry = [&](int k, int t) { return kept.entries[kept.at(part, k, t)].plain(); };
      const auto column = [&](int t, double handed) {
        sink.template step<false>(t);
        if (leaves) out[t] = Slot<T>::of(handed);
      };
      if (sweep == Sweep::kPlain)
        sweep_linear_reversed<false, S, Tile>(
            lane, -1, -1, exponent, above, Factors<S>(exponent, above), below, flow, entry, root, cell, column);
      else if (sweep == Sweep::kChecked)
        sweep_linear_reversed<true, S, Tile>(
            lane, end_row, end_step, exponent, above, Factors<S>(exponent, above), below, flow, entry, root, cell, column);
      else
        sweep_linear_general_reversed<S, Tile>(
            lane, end_row, end_step, step, below, flow,
            [&](int k, int t) {
              const Slot<T> slot = kept.entries[kept.at(part, k, t)];
              return was == Sweep::kGeneral ? slot.wide() : Wide::of(slot.plain(), exponents[part][k]);
            },
            root,
            [&](int k, int t, double e) { sink.template cell<true>(tile, k, t, static_cast<T>(e)); },
            [&](int t, const Wide& handed) {
              sink.template step<true>(t);
              if (leaves) out[t] = Slot<T>::of(handed);
            });
      if (leaves) *flows.header(job.pair, strip, chunk) = make_int2(above, sweep == Sweep::kGeneral);
      sink.end(place, chunk == last_chunk);
      __syncwarp();
      if (lane == 0) job.publish(progress_of(job.round, strip.chunks - chunk));
    }
  }
  sink.finish(strip, extent);
}

}  // namespace softdtw
