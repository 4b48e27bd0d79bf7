// The team of a strip in backward (warp_specialised.cuh): two warps rebuild stages, ahead of the one that goes back over them.
#pragma once

#include "cuda/gradients/strip_gradient.cuh"
#include "cuda/hardware/pipeline.cuh"
#include "cuda/numbers/extended_range_state.cuh"
#include "cuda/strips/async_prefetch.cuh"
#include "cuda/strips/strip_job.cuh"
#include "options.cuh"

namespace softdtw {

// A group between the pipeline's slot and global memory.
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

template <class S>
using FlowPipeline = Pipeline<FlowSlot<S>>;

constexpr int kRebuilders = 2;

// A stage's weights.
template <class S>
struct StageWeights {
  struct alignas(16) Cells {
    Weights<typename S::Scalar> rows[S::kRows];
  };
  Cells chunks[S::kStage][S::kSteps][kWarp];
};

// What the warps of a strip share in backward: stages of weights, of which one is used while others are rebuilt.
template <class S, int kWarps = kRebuilders>
struct alignas(16) SpecialisedStages {
  using T = typename S::Scalar;
  static constexpr int kBuffers = kWarps + 1;
  // A rebuilding warp's own: its coming stage's snapshot, and the edges above two of its stages.
  struct alignas(16) Sources {
    char snapshot[Snapshot<S>::kBytes];
    EdgeSlot<S> edges[2][S::kStage];
  };
  StageWeights<S> weights[kBuffers];
  Sources sources[kWarps];
  // The columns that the lanes meet in a stage, for the warp that goes back.
  static constexpr int kColumns = S::kStage * S::kSteps + kWarp;
  T columns[kBuffers][kColumns];
  Mbarrier<kWarp> rebuilt[kBuffers], used[kBuffers];

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

// Copies of a stage's snapshot, and of the groups of the edge above that it meets, run while a warp rebuilds another stage.
template <class S>
__device__ __forceinline__ void fetch_sources(
    int stage, const char* snapshot, const Edge<S>& edge, int above_offset, int above_groups, int lane, char* to,
    EdgeSlot<S> (&slots)[S::kStage]) {
  using T = typename S::Scalar;
  constexpr int kPieces = 2 * S::kSteps * sizeof(T) / 16;  // of a group's entries
  const bool is_reference = lane >= S::kStage * kPieces;
  const int part = is_reference ? lane - S::kStage * kPieces : lane / kPieces;
  const int group = stage * S::kStage + part + above_offset;
  if (part < S::kStage && group < above_groups) {
    EdgeSlot<S>& slot = slots[part];
    constexpr int kAtOnce = 16 / sizeof(T);
    const int piece = lane % kPieces * kAtOnce;
    if (is_reference)
      __pipeline_memcpy_async(&slot.reference, edge.references + group, sizeof(double));
    else
      __pipeline_memcpy_async(slot.entries + piece, edge.group(group) + piece, 16);
  }
  if (stage > 0) copy_snapshot<S>(to, snapshot, lane);
  __pipeline_commit();
}

// Copies the columns that a strip's lanes meet in a stage, the nearest ones where there are none.
template <class S>
__device__ __forceinline__ void copy_columns(
    const View<const typename S::Scalar>& columns, int count, const Strip<S>& strip, int stage, int lane,
    typename S::Scalar (&to)[S::kStage * S::kSteps + kWarp]) {
#pragma unroll
  for (int i = lane; i < S::kStage * S::kSteps + kWarp; i += kWarp) {
    const int column = strip.first_column + stage * S::kStage * S::kSteps - (kWarp - 1) + i;
    __pipeline_memcpy_async(
        &to[i], columns.data + min(max(column, 0), count - 1) * columns.row_stride, sizeof(typename S::Scalar));
  }
  __pipeline_commit();
}

// Rebuilds a stage's chunks from the state at its start and the edge above. `next_chunk`: whose costs the warp will need
// afterwards, or less than 0.
template <class S, class Around, class Tile>
__device__ __forceinline__ void rebuild_stage(
    const Around& around, const Problem<typename S::Scalar>& problem, const Extent& extent, int64_t pair,
    const typename TileOptions<S, Tile>::OfStrip& recurrences, int first_chunk, int parts, int next_chunk, int above_groups,
    const EdgeSlot<S> (&edges)[S::kStage], int lane, ExtendedState<S>& state, Tile& tile, StageWeights<S>& stage_weights) {
  using T = typename S::Scalar;
  using Place = typename Around::Place;
  using Options = TileOptions<S, Tile>;
  Width<S> width;
  ExtendedTop<S> top;
  double above_reference = 0;
  T of_lane_above = 0, shift = 0;
#pragma unroll 1
  for (int part = 0; part < parts; ++part) {
    const int chunk = first_chunk + part;
    const Place place(around.strip, extent, chunk, lane);
    tile.use(place);
    if (part + 1 < parts || next_chunk >= 0)
      tile.fetch(Place(around.strip, extent, part + 1 < parts ? chunk + 1 : next_chunk, lane));
    if (chunk + around.above_offset < above_groups)
      top.read(edges[part]);
    else if (top.exists)
      top = ExtendedTop<S>();
    if (part == 0) {
      if (first_chunk == 0) state.renew(lane, top.reference);
      of_lane_above = shift_of_lane_above(state);
      width.start(state);
    }
    if (part == 0 || top.reference != above_reference) {
      shift = shift_of<S>(top, state, lane, of_lane_above);
      above_reference = top.reference;
    }
    auto& weights = stage_weights.chunks[part];
    const auto kept = [&](int k, int t) -> Weights<T>& { return weights[t][lane].rows[k]; };
    const auto column = [](int, auto) {};
    const bool may_be_plain =
        (Options::kTakesBands || place.in_band) && !recurrences.has_penalty && chunk != around.entry_chunk;
    const T rise = Width<S>::rise_of(recurrences, tile.reach, may_be_plain);
    const bool plain =
        width.plain(rise, shift, top.wide, state) && sweep_plain<kHasFastBits>(width, state, [&](auto& entries) {
          sweep_ahead<kHasFastBits>(
              lane, top, shift, entries,
              [&](int k, int t) {
                const Entry<T> own = Options::split_cost(recurrences, tile, k, t);
                return Entry<T>{Options::is_inside(tile, k, t) ? own.m : nowhere<S>(), own.s};
              },
              [&](int k, int t, const auto& terms, T diag, T up, T left) {
                return sum_of(terms, diag, up, left, kept(k, t));
              },
              column);
        });
    if (!plain)
      with_general_costs<S>(problem, extent, pair, place, recurrences, tile, [&](const auto& cost) {
        sweep_general(
            extent, place, lane, top, of_lane_above, state,
            [&](int k, int t, auto diag, auto up, auto left) {
              around.enter(place, k, t, diag);
              return recurrences.charged(recurrences.general.cell(diag, up, left, cost(k, t), kept(k, t)));
            },
            column);
      });
  }
}

// Rebuilds every kRebuilders-th stage of a strip, from the last to the first. Turns count all of them.
template <class S, class Tile>
__device__ void specialised_rebuild(
    const Problem<typename S::Scalar>& problem, const Extent& extent, int64_t pair, int index, const Saved<S>& saved,
    int rebuilder, SpecialisedStages<S>& specialised_stages) {
  SpecialisedStages<S>& stages = pinned(specialised_stages);
  const int lane = threadIdx.x;
  const Surroundings<S> around(extent, index);
  const Strip<S>& strip = around.strip;
  const int last_chunk = last_chunk_of(around), last_stage = last_chunk / S::kStage;
  const int above_groups = around.is_first ? 0 : around.above.groups();
  const Edge<S> above_edge = saved.edges.of(pair, index - 1, around.above);
  const typename TileOptions<S, Tile>::OfStrip recurrences(problem, pair);
  typename SpecialisedStages<S>::Sources& sources = stages.sources[rebuilder];
  Tile tile(problem, extent, strip, pair, lane);
  const auto fetch = [&](int stage, int slot_of_edges) {
    fetch_sources(
        stage, saved.stage(pair, index, stage), above_edge, around.above_offset, above_groups, lane, sources.snapshot,
        sources.edges[slot_of_edges]);
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
    ExtendedState<S> state;
    if (stage > 0)
      state.load(sources.snapshot, lane);
    else
      state.start(around.is_first && lane == 0);
    __syncwarp();
    if (next_stage >= 0) fetch(next_stage, 1 - edges);
    if (use > 0) stages.used[buffer].wait(use - 1);
    rebuild_stage<S>(
        around, problem, extent, pair, recurrences, first_chunk, parts, next_stage * S::kStage, above_groups,
        sources.edges[edges], lane, state, tile, stages.weights[buffer]);
    stages.rebuilt[buffer].arrive();
  }
}

// A lane's rows of x, and its columns of y in a chunk.
template <class S, class OfDifference>
struct SpecialisedTile {
  using T = typename S::Scalar;
  const OfDifference of_difference;
  T x[S::kRows], y[S::kSteps];

  __device__ explicit SpecialisedTile(Cost cost) : of_difference(cost) {}
  __device__ __forceinline__ T slope(int k, int t) const { return of_difference.slope(x[k] - y[t]); }
};

// Goes back over the stages of a strip. What flows up from the strip below comes from one pipeline and what flows on from this
// strip goes to another, with the sums of dy beside it.
template <class S, class Tile>
__device__ void specialised_backward(
    const Problem<typename S::Scalar>& problem, const Gradient<typename S::Scalar>& gradient, const Extent& extent,
    int64_t pair, int index, SpecialisedStages<S>& specialised_stages, FlowPipeline<S>& below_flows,
    FlowPipeline<S>& above_flows) {
  using T = typename S::Scalar;
  SpecialisedStages<S>& stages = pinned(specialised_stages);
  FlowPipeline<S>&below_pipeline = pinned(below_flows), &above_pipeline = pinned(above_flows);
  const int lane = threadIdx.x;
  const Surroundings<S> around(extent, index);
  const Strip<S>& strip = around.strip;
  const int below_groups = around.is_last ? 0 : around.below.groups(), own_groups = strip.groups();
  const int last_chunk = last_chunk_of(around);
  SpecialisedTile<S, typename Tile::OfDifference> tile(problem.cost);
  const View<const T> rows = problem.x.pair(pair), columns = problem.y.pair(pair);
#pragma unroll
  for (int k = 0; k < S::kRows; ++k)
    tile.x[k] = rows.data[min(strip.first_row + lane * S::kRows + k, extent.n - 1) * rows.row_stride];
  const auto fetch = [&](int stage, int buffer) {
    copy_columns<S>(columns, extent.m, strip, stage, lane, stages.columns[buffer]);
  };
  // Sums of dy that the strip above goes on adding to need not be stored.
  const bool stores = around.is_first || around.above.end_column < strip.end_column;
  SinkOf<S, Tile> sink(
      problem, gradient, extent, pair, lane, Columns{0, 0, 0, stores ? strip.end_column : 0},
      gradient_scale(problem, gradient, pair), nullptr);
  ExtendedFlow<S> flow;
  T sum_next = 0;
  unsigned taken = 0;
  // Lane 31's columns start one right of this group of the strip below.
  const auto below_group = [&](int chunk) { return chunk - S::kSkewChunks - around.below_offset; };
  below_pipeline.release_until(taken, max(0, min(below_groups, below_groups - 1 - below_group(last_chunk))));
  unsigned room = above_pipeline.kRoom;
  int turn = 0;
  fetch(last_chunk / S::kStage, 0);
  for (int stage = last_chunk / S::kStage; stage >= 0; --stage, ++turn) {
    const int first_chunk = stage * S::kStage, parts = min(S::kStage, last_chunk + 1 - first_chunk);
    const int buffer = turn % stages.kBuffers;
    __pipeline_wait_prior(0);
    __syncwarp();
    if (stage > 0) fetch(stage - 1, 1 - turn % 2);
    const T* const window = stages.columns[turn % 2] + kWarp - 1 - lane;
    if (!around.is_first) above_pipeline.acquire(room, max(0, own_groups - first_chunk));
    stages.rebuilt[buffer].wait(turn / stages.kBuffers);
    // The first loop is for chunks that need no check, without a jump in it.
    for (int part = parts - 1; part >= 0;) {
      T below[S::kSteps], sums[S::kSteps];
      const auto begin = [&](const Place<S>& place, int chunk) {
#pragma unroll
        for (int t = 0; t < S::kSteps; ++t) {
          tile.y[t] = window[part * S::kSteps + t];
          below[t] = sums[t] = 0;
        }
        if (below_group(chunk) >= 0 && below_group(chunk) < below_groups) {
          const FlowSlot<S>& slot = below_pipeline.wait(taken);
          load_group(slot.flows, true, below);
          load_group(slot.sums, true, sums);
          below_pipeline.release(taken++);
        }
        sink.start(place);
      };
      const auto sweep = [&](auto general, const Place<S>& place, int chunk, int end_row) {
        const int own_item = own_groups - 1 - chunk;
        const bool leaves = !around.is_first && own_item >= 0 && lane == 0;
        const auto& cells = stages.weights[buffer].chunks[part];
        FlowSlot<S>& out = above_pipeline.slot(own_item);
        // Loads from shared memory do not pass stores to it, so these are few.
        constexpr int kAtOnce = 4;
        T flows_on[kAtOnce], sums_on[kAtOnce];
        sweep_extended_reversed<decltype(general)::value, S>(
            [&](int k, int t) { return cells[t][lane].rows[k]; }, extent, place, lane, end_row, around.end_time % S::kSteps,
            below, flow, [&](int k, int t, T e) { sink.cell(tile, k, t, e); },
            [&](int t, T handed) {
              sink.step(t, t + 1 < S::kSteps ? sums[(t + 1) % S::kSteps] : sum_next);
              flows_on[t % kAtOnce] = handed;
              sums_on[t % kAtOnce] = sink.carry;
              if (t % kAtOnce == 0 && leaves) {
                store_group(out.flows + t, flows_on);
                store_group(out.sums + t, sums_on);
              }
            });
        sum_next = sums[0];
        if (leaves) above_pipeline.commit(own_item);
        --part;
      };
#pragma unroll 1
      while (part >= 0) {
        const int chunk = first_chunk + part;
        const Place<S> place(strip, extent, chunk, lane);
        begin(place, chunk);
        if ((!TileOptions<S, Tile>::kTakesBands && !place.in_band) || chunk == around.end_chunk) break;
        sweep(std::false_type(), place, chunk, -1);
      }
      if (part < 0) break;
      const int chunk = first_chunk + part;
      const bool ends = chunk == around.end_chunk && lane == around.end_lane;
      sweep(std::true_type(), Place<S>(strip, extent, chunk, lane), chunk, ends ? around.end_row : -1);
    }
    stages.used[buffer].arrive();
  }
  below_pipeline.release_until(taken, below_groups);
  sink.finish(strip, extent);
}

}  // namespace softdtw
