// The warps that rebuild stages in backward of a table swept from both its ends (bidirectional.cuh): those that the warp which goes back over
// them has asked for, from right to left.
#pragma once

#include "bidirectional.cuh"
#include "cuda/kernels/warp_specialised/warp_specialised_backward.cuh"

namespace softdtw {

// Enough to keep up with the warp that goes back, which takes a quarter of their time.
constexpr int kBidirectionalRebuilders = 4;
using BidirectionalStages = SpecialisedStages<BidirectionalShape, kBidirectionalRebuilders>;

// Which stages are to be rebuilt. Whoever rebuilds takes a turn, for the next stage; the one who asks sees the turns in order.
class StageQueue {
  using Word = unsigned long long;
  static constexpr unsigned kFinished = 0, kFirst = 1u << 30;
  Word word;     // turns taken, and the next stage from kFirst on
  int released;  // turns whose buffers are free again
  int limit;     // the last stage that is still needed
  int stages[BidirectionalStages::kBuffers];

  __device__ __forceinline__ Word look() { return atomicAdd(&word, Word{0}); }
  __device__ __forceinline__ static unsigned next_of(Word seen) { return static_cast<unsigned>(seen); }
  __device__ __forceinline__ static Word with_next(Word seen, unsigned next) { return (seen >> 32 << 32) | next; }
  // Replaces the next stage, unless `keep` says that it may stay, and returns what was there.
  template <class Keep>
  __device__ __forceinline__ Word set_next(unsigned next, Keep&& keep) {
    for (Word seen = look();;) {
      if (keep(next_of(seen))) return seen;
      const Word before = atomicCAS(&word, seen, with_next(seen, next));
      if (before == seen) return seen;
      seen = before;
    }
  }

 public:
  struct Turn {
    int number, stage;  // none: stage < 0
  };

  __device__ void start(int stage) {
    word = kFirst + stage;
    released = 0;
    limit = stage;
  }

  // By one who rebuilds, a whole warp. `waits`: until there is one, or there will be none any more.
  __device__ Turn take(int lane, bool waits) {
    int number = 0, stage = -1;
    if (lane == 0)
      for (Word seen = look();;) {
        const unsigned next = next_of(seen);
        if (next >= kFirst) {
          const Word before = atomicCAS(&word, seen, seen + (Word{1} << 32) - 1);
          if (before == seen) {
            number = static_cast<int>(seen >> 32);
            stage = static_cast<int>(next - kFirst);
            break;
          }
          seen = before;
          continue;
        }
        if (next == kFinished || !waits) break;
        __nanosleep(100);
        seen = look();
      }
    return {__shfl_sync(kAllLanes, number, 0), __shfl_sync(kAllLanes, stage, 0)};
  }
  // Waits for a turn's buffer. Turns may be taken long before, when the phase of its mbarrier does not tell yet.
  __device__ __forceinline__ void await_buffer(const BidirectionalStages& buffers, int number, int lane) {
    constexpr int kBuffers = BidirectionalStages::kBuffers;
    if (number < kBuffers) return;
    if (lane == 0)
      while (atomicAdd(&released, 0) + kBuffers <= number) __nanosleep(100);
    __syncwarp();
    buffers.used[number % kBuffers].wait(number / kBuffers - 1);
  }
  __device__ __forceinline__ bool is_needed(int stage, int lane) {
    int needed = 0;
    if (lane == 0) needed = stage <= atomicAdd(&limit, 0);
    return __shfl_sync(kAllLanes, needed, 0);
  }
  // Which stage a buffer holds: written before it is handed over.
  __device__ __forceinline__ int& held(int buffer) { return stages[buffer]; }

  // By the one who asks: frees a turn's buffer, as those of all before it have been.
  __device__ __forceinline__ void release(BidirectionalStages& buffers, int number, int lane) {
    buffers.used[number % BidirectionalStages::kBuffers].arrive();
    __syncwarp();
    if (lane == 0) atomicExch(&released, number + 1);
  }
  // By one lane of the one who asks: for the stages from this one on.
  __device__ void ask_from(int stage) {
    atomicExch(&limit, stage);
    set_next(kFirst + stage, [](unsigned) { return false; });
  }
  // None above this one is needed any more.
  __device__ void skip_to(int stage) {
    atomicExch(&limit, stage);
    set_next(kFirst + stage, [&](unsigned next) { return next <= kFirst + stage; });
  }
  // No more stages; returns how many turns have been taken.
  __device__ int finish() {
    atomicExch(&limit, -1);
    return static_cast<int>(set_next(kFinished, [](unsigned) { return false; }) >> 32);
  }
};

// Rebuilds stages of a strip, with other warps, until there are none any more.
template <class Tile>
__device__ void rebuild_side(
    const SideOf<Tile>& side, const SideMemoryOf<Tile>& saved, const Problem<float>& problem, int64_t pair, int index,
    int rebuilder, BidirectionalStages& bidirectional_stages, StageQueue& stage_queue) {
  using S = BidirectionalShape;
  BidirectionalStages& stages = pinned(bidirectional_stages);
  StageQueue& queue = pinned(stage_queue);
  const int lane = threadIdx.x;
  const SideStrip<kHasBand<Tile>> around(side, index);
  const int above_groups = index > 0 ? side.groups(index - 1) : 0;
  const Edge<S> above_edge = saved.edge(pair, index - 1);
  const typename TileOptions<S, Tile>::OfStrip recurrences(problem, pair);
  BidirectionalStages::Sources& sources = stages.sources[rebuilder];
  Tile tile = side.template tile<Tile>(problem, around.strip, pair);
  const auto fetch = [&](int stage, int slot_of_edges) {
    fetch_sources<S>(
        stage, saved.stage(pair, index, stage), above_edge, around.above_offset, above_groups, lane, sources.snapshot,
        sources.edges[slot_of_edges]);
  };
  const auto fetch_columns = [&](int stage) { tile.fetch(Place<S>(around.strip, side.extent, stage * S::kStage, lane)); };
  const View<const float> columns = side.seen(problem.y, pair, side.extent.m);
  auto next = queue.take(lane, true);
  bool is_fetched = false;
  for (int edges = 0; next.stage >= 0; edges = 1 - edges) {
    const auto own = next;
    if (!is_fetched) {
      fetch(own.stage, edges);
      fetch_columns(own.stage);
    }
    const int buffer = own.number % stages.kBuffers;
    __pipeline_wait_prior(0);
    __syncwarp();
    ExtendedState<S> state;
    if (own.stage > 0)
      state.load(sources.snapshot, lane);
    else
      state.start(around.holds_corner(lane));
    __syncwarp();
    next = queue.take(lane, false);
    is_fetched = next.stage >= 0;
    if (is_fetched) fetch(next.stage, 1 - edges);
    queue.await_buffer(stages, own.number, lane);
    if (lane == 0) queue.held(buffer) = own.stage;
    const int next_chunk = is_fetched ? next.stage * S::kStage : -1;
    if (queue.is_needed(own.stage, lane)) {
      copy_columns<S>(columns, side.extent.m, around.strip, own.stage, lane, stages.columns[buffer]);
      rebuild_stage<S>(
          around, problem, side.extent, pair, recurrences, own.stage * S::kStage, S::kStage, next_chunk, above_groups,
          sources.edges[edges], lane, state, tile, stages.weights[buffer]);
      __pipeline_wait_prior(0);
    } else if (is_fetched) {
      fetch_columns(next.stage);
    }
    stages.rebuilt[buffer].arrive();
    if (!is_fetched) next = queue.take(lane, true);
  }
}

}  // namespace softdtw
