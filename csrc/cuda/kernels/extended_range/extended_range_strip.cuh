// One warp sweeps one strip with the extended range (extended_range.cuh), forward or back.
#pragma once

#include "cuda/gradients/matrix_gradient.cuh"
#include "cuda/gradients/strip_gradient.cuh"
#include "cuda/numbers/extended_range_state.cuh"
#include "cuda/strips/async_prefetch.cuh"
#include "cuda/strips/strip_job.cuh"

namespace softdtw {

// What a band and a penalty change. Without, chunks at the edges of a table take the general sweep.
template <class S, bool kTakesOptions>
struct StripOptions {
  using T = typename S::Scalar;
  using OfStrip = std::conditional_t<kTakesOptions, PenalisedRecurrences<S>, Recurrences<S>>;

  // Whether a chunk may take the plain sweep; and, going back, need not look for cells outside.
  __device__ __forceinline__ static bool may_be_plain(const OfStrip& recurrences, const Place<S>& place) {
    return (kTakesOptions || place.in_band) && !recurrences.has_penalty;
  }
  // Cells outside the band have no share of any other.
  __device__ __forceinline__ static bool goes_back_plainly(const Place<S>& place) { return kTakesOptions || place.in_band; }

  // What cells cost in the plain sweep, split: outside the band so much that no path comes there.
  template <bool kHasOptions, class Tile>
  struct Costs {
    const OfStrip& recurrences;
    const Tile& tile;
    const InBandBits<S> inside;

    __device__ Costs(const OfStrip& recurrences_, const Tile& tile_, const Extent& extent, const Place<S>& place)
        : recurrences(recurrences_), tile(tile_), inside(extent, place) {}
    __device__ __forceinline__ Entry<T> operator()(int k, int t) const {
      const auto cost = OfStrip::Plain::split(tile.cost(k, t), recurrences.plain.scale);
      if constexpr (!kHasOptions) return cost;
      const auto charged = recurrences.charged(cost);
      return {inside.has(k, t) ? charged.m : nowhere<S>(), charged.s};
    }
  };
  // The plain sweep over a chunk, `sweep(entries, costs)`. Chunks away from a band's edges do not pay for them.
  template <bool kByBits, class Tile, class Sweep>
  __device__ __forceinline__ static bool sweep(
      const OfStrip& recurrences, const Tile& tile, const Extent& extent, const Place<S>& place, Width<S>& width,
      ExtendedState<S>& state, Sweep&& sweep) {
    const auto with = [&](auto has_options) {
      const Costs<decltype(has_options)::value, Tile> costs(recurrences, tile, extent, place);
      return sweep_plain<kByBits>(width, state, [&](auto& entries) { sweep(entries, costs); });
    };
    if constexpr (kTakesOptions)
      if (!place.in_band || recurrences.charges()) return with(std::true_type());
    return with(std::false_type());
  }
};

constexpr int kMostAheadWarps = 4;  // of a block

// What backward keeps of a stage in shared memory: the weights.
template <class S>
struct ExtendedStage {
  using T = typename S::Scalar;
  static constexpr int kBytes = S::kStage * S::kSteps * S::kRows * kWarp * sizeof(Weights<T>);

  Weights<T>* const weights;

  __device__ ExtendedStage(int warp, int lane)
      : weights(reinterpret_cast<Weights<T>*>(stage_memory + warp * kBytes) + lane) {}
  __device__ __forceinline__ static int at(int part, int k, int t) {
    return ((part * S::kSteps + t) * S::kRows + k) * kWarp;
  }
};

// A warp's tile in shared memory behind what all warps of its block have before it.
template <class Tile, class... Arguments>
__device__ __forceinline__ Tile tile_behind(int bytes_of_warp, const Arguments&... arguments) {
  auto* const memory = reinterpret_cast<typename Tile::Memory*>(stage_memory + blockDim.y * bytes_of_warp);
  return Tile(memory[threadIdx.y], arguments...);
}

// kIsAhead: for few pairs, whose time is the latency of a chunk, and strips of two rows a lane, which leave registers for it.
// Sums lag behind m (sweep_ahead), what neighbours wrote is fetched ahead of its use, and a chunk is published a little later,
// when what the lane wrote has arrived, for which publishing waits.
template <class S, class Tile, bool kIsAhead, bool kTakesOptions>
__device__ void extended_forward_strip(
    const Problem<typename S::Scalar>& problem, const Extent& extent, const ForwardStrip<S>& job, const Saved<S>& saved,
    typename S::Scalar* value) {
  using T = typename S::Scalar;
  using Options = StripOptions<S, kTakesOptions>;
  const int lane = threadIdx.x;
  Surroundings<S> around(extent, job.strip);
  around.pin_for_forward();
  const Strip<S>& strip = around.strip;
  const bool keeps = saved.memory != nullptr;
  const int chunks = around.is_last && !keeps ? around.end_chunk + 1 : strip.chunks;
  const Edge<S> above_edge = job.edges.of(job.pair, job.strip - 1, around.above);
  const Edge<S> own_edge = job.edges.of(job.pair, job.strip, strip);
  const typename Options::OfStrip recurrences(problem, job.pair);

  __shared__ EdgeSlot<S> slots[kIsAhead ? kMostAheadWarps : 1][2];
  EdgeAhead<S, EdgeSlot<S>> edge_ahead(slots[kIsAhead ? threadIdx.y : 0]);
  const int above_groups = around.is_first ? 0 : min(around.above.groups(), chunks + around.above_offset);

  ExtendedState<S> state;
  state.start(around.is_first && lane == 0);
  Width<S> width;
  T of_lane_above = 0;
  auto tile = [&] {
    if constexpr (kIsOfMatrix<Tile>)
      return tile_behind<MatrixNext<S>>(0, problem, extent, strip, job.pair);
    else
      return Tile(problem, extent, strip, job.pair, lane);
  }();
  tile.fetch(Place<S>(strip, extent, 0, lane));
  for (int chunk = 0; chunk < chunks; ++chunk) {
    const Place<S> place(strip, extent, chunk, lane);
    tile.use(place);
    if (kIsAhead && chunk > 0 && lane == kWarp - 1) job.publish(progress_of(job.round, chunk), is_told(chunk, chunks));
    if (!kIsOfMatrix<Tile> && chunk + 1 < chunks) tile.fetch(Place<S>(strip, extent, chunk + 1, lane));
    ExtendedTop<S> top;
    const int group = chunk + around.above_offset;
    if (kIsAhead && group < above_groups && lane == 0) edge_ahead.take(above_edge, job.producer, group, above_groups, top);
    if (!kIsAhead && !around.is_first && group < around.above.groups() && lane == 0) {
      job.producer.wait(done_at<S>(group));
      top.read(above_edge, group, job.producer.is_near());
    }
    __syncwarp();
    // Not before the edge is there: who waits for its copy waits for all of them.
    if (kIsOfMatrix<Tile> && chunk + 1 < chunks) tile.fetch(Place<S>(strip, extent, chunk + 1, lane));
    if (chunk % S::kStage == 0) {
      state.renew(lane, top.reference);
      of_lane_above = shift_of_lane_above(state);
      width.start(state);
      if (keeps && chunk > 0) state.store(saved.stage(job.pair, job.strip, chunk / S::kStage), lane);
    }
    const T shift = shift_of<S>(top, state, lane, of_lane_above);
    const bool may_be_plain = Options::may_be_plain(recurrences, place) && chunk != around.end_chunk;
    const bool plain = width.plain(recurrences, top, shift, tile.reach, may_be_plain, state);

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
    constexpr bool kByBits = kIsAhead && kHasFastBits;
    const bool is_done =
        plain &&
        Options::template sweep<kByBits>(
            recurrences, tile, extent, place, width, state, [&](auto& entries, const auto& costs) {
              if constexpr (kIsAhead)
                sweep_ahead<kHasFastBits>(
                    lane, top, shift, entries, costs,
                    [&](int, int, const auto& terms, T diag, T up, T left) { return sum_of(terms, diag, up, left); },
                    column);
              else
                sweep_extended(
                    lane, top, shift, entries,
                    [&](int k, int t, auto diag, auto up, auto left) {
                      return recurrences.plain.cell(diag, up, left, costs(k, t));
                    },
                    column);
            });
    if (!is_done)
      with_general_costs<S>(problem, extent, job.pair, place, recurrences, tile, [&](const auto& cost) {
        const auto visit = [&](int k, int t, auto diag, auto up, auto left) {
          const auto cell = recurrences.charged(recurrences.general.cell(diag, up, left, cost(k, t)));
          if (ends && k == end_row && t == end_step) {
            last_m = cell.m;
            last_s = cell.s;
          }
          return cell;
        };
        sweep_general(extent, place, lane, top, of_lane_above, state, visit, column);
      });
    if (writes) own_edge.references[own_group] = state.reference;
    if (ends)
      store_value(
          problem, job.pair, recurrences.uncharged(state.reference, extent.n - 1, extent.m - 1), last_m, last_s, value);
    __syncwarp();
    if (lane == kWarp - 1 && (!kIsAhead || chunk + 1 == chunks)) job.publish(progress_of(job.round, chunk + 1));
  }
}

constexpr int kFewestToLeaveOut = 32;  // chunks of a strip

// Stages are left out where less than kLeftOut of E flows into each of their cells, from the right or from below: most of a long
// strip, since likely paths meet few of its columns. Nothing else makes E count there, but the pair's last cell. What is so left
// out are less than 2^8 such flows a chunk: E anywhere is too small by less than 2^-29 in a table of 2^36 cells.
template <class S, class Tile, bool kTakesOptions>
__device__ void extended_backward_strip(
    const Problem<typename S::Scalar>& problem, const Gradient<typename S::Scalar>& gradient, const Extent& extent,
    const BackwardStrip& job, const Saved<S>& saved, const Flows<S>& flows) {
  using T = typename S::Scalar;
  using Options = StripOptions<S, kTakesOptions>;
  const int lane = threadIdx.x;
  const Surroundings<S> around(extent, job.strip);
  const Strip<S>& strip = around.strip;
  const int below_groups = around.is_last ? 0 : around.below.groups();
  const int last_chunk = around.is_last ? around.end_chunk : strip.chunks - 1;
  const Edge<S> above_edge = saved.edges.of(job.pair, job.strip - 1, around.above);
  const typename Options::OfStrip recurrences(problem, job.pair);
  const ExtendedStage<S> kept(threadIdx.y, lane);

  const T scale = gradient_scale(problem, gradient, job.pair);
  auto tile = [&] {
    if constexpr (kIsOfMatrix<Tile>)
      return tile_behind<MatrixStages<S>>(
          ExtendedStage<S>::kBytes, problem, gradient, extent, strip, job.pair, scale, last_chunk / S::kStage);
    else
      return Tile(problem, extent, strip, job.pair, lane);
  }();
  std::conditional_t<kIsOfMatrix<Tile>, MatrixSink<S>, SinkOf<S, Tile>> sink(
      problem, gradient, extent, job.pair, lane, columns_of(around, extent), scale,
      flows.carries_of(job.row, job.strip, problem.dim));
  ExtendedFlow<S> flow;
  const int above_groups = around.is_first ? 0 : around.above.groups();
  // What a chunk takes over from below: lane 31's columns start one right of this group of the strip below.
  const auto below_group = [&](int chunk) { return chunk - S::kSkewChunks - around.below_offset; };
  const auto takes = [&](int chunk) { return below_group(chunk) >= 0 && below_group(chunk) < below_groups; };
  // In a short strip E counts everywhere. A pair without a gradient gets NaN wherever it is looked for.
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
    const auto leave_out = [&](int chunk) {
      const Place<S> place(strip, extent, chunk, lane);
      sink.leave_out(place);
      if constexpr (kIsOfMatrix<Tile>) tile.leave_out(place);
    };
    const auto await_tile = [&] {
      if constexpr (kIsOfMatrix<Tile>) {
        tile.await();
        for (int part = parts; part < S::kStage; ++part) tile.leave_out(Place<S>(strip, extent, first_chunk + part, lane));
      }
    };
    const auto finish_tile = [&] {
      if constexpr (kIsOfMatrix<Tile>) tile.finish(stage);
    };
    if (may_leave_out && !ends && __all_sync(kAllLanes, flow.most() < kLeftOut<T>) &&
        __all_sync(kAllLanes, inflow(first_chunk, first_chunk + parts) < kLeftOut<T>)) {
      if (visited && !left_out) sink.put_away(Place<S>(strip, extent, first_chunk + parts, lane));
      left_out = true;
      flow = ExtendedFlow<S>();
      await_tile();
#pragma unroll 1
      for (int chunk = first_chunk; chunk < first_chunk + parts; ++chunk) {
        leave_out(chunk);
        if (lane == 0 && !around.is_first && chunk < strip.groups())
#pragma unroll
          for (int t = 0; t < S::kSteps; ++t) flows.group(job.row, strip, chunk)[t] = 0;
      }
      __syncwarp();
      if (lane == 0) job.publish(progress_of(job.round, strip.chunks - first_chunk));
      finish_tile();
      continue;
    }
    if (left_out) sink.take_up(Place<S>(strip, extent, first_chunk + parts - 1, lane));
    left_out = false;
    tile.fetch(Place<S>(strip, extent, first_chunk, lane));
    ExtendedState<S> state;
    if (stage > 0) {
      state.load(saved.stage(job.pair, job.strip, stage), lane);
      if (stage > 2) prefetch<S>(saved.stage(job.pair, job.strip, stage - 2), lane);
    } else {
      state.start(around.is_first && lane == 0);
    }
    await_tile();
    Width<S> width;
    T of_lane_above = 0;
#pragma unroll 1
    for (int part = 0; part < parts; ++part) {
      const int chunk = first_chunk + part;
      const Place<S> place(strip, extent, chunk, lane);
      tile.use(place);
      if (part + 1 < parts) tile.fetch(Place<S>(strip, extent, chunk + 1, lane));
      ExtendedTop<S> top;
      const int group = chunk + around.above_offset;
      if (group < above_groups && lane == 0) top.read(above_edge, group, true);
      if (part == 0) {
        if (stage == 0) state.renew(lane, top.reference);
        of_lane_above = shift_of_lane_above(state);
        width.start(state);
      }
      const T shift = shift_of<S>(top, state, lane, of_lane_above);
      const bool plain = width.plain(recurrences, top, shift, tile.reach, Options::may_be_plain(recurrences, place), state);
      const auto nothing = [](int, auto) {};
      const auto shares = [&](int k, int t) -> Weights<T>& { return kept.weights[kept.at(part, k, t)]; };
      const bool is_done =
          plain && Options::template sweep<false>(
                       recurrences, tile, extent, place, width, state, [&](auto& entries, const auto& costs) {
                         sweep_extended(
                             lane, top, shift, entries,
                             [&](int k, int t, auto diag, auto up, auto left) {
                               return recurrences.plain.cell(diag, up, left, costs(k, t), shares(k, t));
                             },
                             nothing);
                       });
      if (!is_done)
        with_general_costs<S>(problem, extent, job.pair, place, recurrences, tile, [&](const auto& cost) {
          sweep_general(
              extent, place, lane, top, of_lane_above, state,
              [&](int k, int t, auto diag, auto up, auto left) {
                return recurrences.charged(recurrences.general.cell(diag, up, left, cost(k, t), shares(k, t)));
              },
              nothing);
        });
    }

#pragma unroll 1
    for (int part = parts - 1; part >= 0; --part) {
      const int chunk = first_chunk + part;
      const Place<S> place(strip, extent, chunk, lane);
      if (Tile::kUnivariate && part + 1 < parts) {
        tile.fetch(place);
        tile.use(place);
      }
      T below[S::kSteps];
#pragma unroll
      for (int t = 0; t < S::kSteps; ++t) below[t] = 0;
      if (lane == kWarp - 1 && takes(chunk)) {
        job.producer.wait(around.below.chunks - below_group(chunk));
        load_group(flows.group(job.row, around.below, below_group(chunk)), job.producer.is_near(), below);
      }
      __syncwarp();
      if constexpr (kIsOfMatrix<Tile>) tile.stand(place);
      sink.begin(place);

      const bool leaves = lane == 0 && !around.is_first && chunk < strip.groups();
      T* const out = flows.group(job.row, strip, chunk);
      const auto weights = [&](int k, int t) { return kept.weights[kept.at(part, k, t)]; };
      const auto cell = [&](int k, int t, T e) { sink.cell(tile, k, t, e); };
      const auto column = [&](int t, T handed) {
        sink.step(t);
        if (leaves) out[t] = handed;
      };
      if (Options::goes_back_plainly(place) && chunk != around.end_chunk)
        sweep_extended_reversed<false, S>(weights, extent, place, lane, -1, -1, below, flow, cell, column);
      else
        sweep_extended_reversed<true, S>(
            weights, extent, place, lane, chunk == around.end_chunk && lane == around.end_lane ? around.end_row : -1,
            around.end_time % S::kSteps, below, flow, cell, column);
      sink.end(place, !visited);
      visited = true;
      __syncwarp();
      if (lane == 0) job.publish(progress_of(job.round, strip.chunks - chunk));
    }
    finish_tile();
  }
  sink.finish(strip, extent);
}

}  // namespace softdtw
