// The team of a strip in forward (warp_specialised.cuh): one warp computes cells, ahead of the one that sweeps.
#pragma once

#include "cuda/costs/few_dims_tile.cuh"
#include "sweeping_warp.cuh"

namespace softdtw {

// What the cells of a stage cost, split (recurrence.h), and what m may rise by in every lane in a chunk.
template <class S>
struct alignas(16) SplitCosts {
  using T = typename S::Scalar;
  struct alignas(16) Cells {
    Entry<T> rows[S::kRows];
  };
  Cells cells[S::kStage][S::kSteps][kWarp];
  T rise[S::kStage][kWarp];
};

template <class S>
using SplitCostPipeline = Pipeline<SplitCosts<S>, kWarp, 2>;

// What the warps of a team share.
template <class S, class Tile>
struct SpecialisedForward {
  SplitCostPipeline<S> split_costs;
  typename TileAhead<Tile>::Memory tile;
};

// The chunks of a strip that forward sweeps.
template <class S>
__device__ __forceinline__ int forward_chunks(const Surroundings<S>& around, bool keeps) {
  return around.is_last && !keeps ? around.end_chunk + 1 : around.strip.chunks;
}

// SplitCosts the cells of a strip, stage by stage.
template <class S, class Tile>
__device__ void specialised_split_costs(
    const Problem<typename S::Scalar>& problem, const Extent& extent, int64_t pair, int index, bool keeps,
    SpecialisedForward<S, Tile>& team) {
  using T = typename S::Scalar;
  const int lane = threadIdx.x;
  const Surroundings<S> around(extent, index);
  const int chunks = forward_chunks(around, keeps);
  const Recurrences<S> recurrences(problem, pair);
  SplitCostPipeline<S>& pipeline = pinned(team.split_costs);
  TileAhead<Tile> tile(team.tile, problem, extent, around.strip, pair, lane);
  tile.fetch(Place<S>(around.strip, extent, 0, lane));
  unsigned room = pipeline.kRoom;
  for (int chunk = 0; chunk < chunks; ++chunk) {
    const Place<S> place(around.strip, extent, chunk, lane);
    tile.use(place);
    if (chunk + 1 < chunks) tile.fetch(Place<S>(around.strip, extent, chunk + 1, lane));
    const int stage = chunk / S::kStage, part = chunk % S::kStage;
    if (part == 0) pipeline.acquire(room, stage + 1);
    SplitCosts<S>& split_costs = pipeline.slot(stage);
#pragma unroll
    for (int t = 0; t < S::kSteps; ++t) {
      typename SplitCosts<S>::Cells cells;
#pragma unroll
      for (int k = 0; k < S::kRows; ++k) cells.rows[k] = recurrences.plain.split(tile.cost(k, t), recurrences.plain.scale);
      split_costs.cells[part][t][lane] = cells;
    }
    const bool may_be_plain = place.in_band && !recurrences.has_penalty && chunk != around.end_chunk;
    split_costs.rise[part][lane] = Width<S>::rise_of(recurrences, tile.reach, may_be_plain);
    if (part == S::kStage - 1 || chunk + 1 == chunks) pipeline.commit(stage);
  }
}

// SplitCosts as the sweep reads them, stage by stage.
template <class S, class Tile>
struct SplitCostsOfStrip {
  using T = typename S::Scalar;
  static constexpr bool kIsAhead = true;
  const Problem<T>& problem;
  const Extent& extent;
  const Strip<S>& strip;
  const int64_t pair;
  SplitCostPipeline<S>& pipeline;
  const int lane;
  const SplitCosts<S>* split_costs = nullptr;
  int part = 0;

  __device__ SplitCostsOfStrip(
      const Problem<T>& problem_, const Extent& extent_, const Strip<S>& strip_, int64_t pair_,
      SplitCostPipeline<S>& split_cost_pipeline)
      : problem(problem_),
        extent(extent_),
        strip(strip_),
        pair(pair_),
        pipeline(pinned(split_cost_pipeline)),
        lane(threadIdx.x) {}
  __device__ __forceinline__ void begin(int stage) { split_costs = &pipeline.wait(stage); }
  __device__ __forceinline__ void end(int stage) { pipeline.release(stage); }
  __device__ __forceinline__ void use(const Place<S>&, int part_) { part = part_; }
  __device__ __forceinline__ T rise(const Recurrences<S>&, const Place<S>&) const { return split_costs->rise[part][lane]; }
  __device__ __forceinline__ Entry<T> split_cost(const Recurrences<S>&, int k, int t) const {
    return split_costs->cells[part][t][lane].rows[k];
  }
  __device__ __forceinline__ Tile tile(const Place<S>& place) const {
    Tile tile(problem, extent, strip, pair, lane);
    tile.fetch(place);
    tile.use(place);
    return tile;
  }
};

// Sweeps a strip.
template <class S, class Tile>
__device__ void specialised_forward(
    const Problem<typename S::Scalar>& problem, const Extent& extent, int64_t pair, int index, const Saved<S>& saved,
    bool files, EdgePipeline<S>& above_edges, EdgePipeline<S>& below_edges, SplitCostPipeline<S>& split_cost_pipeline,
    typename S::Scalar* value) {
  const Surroundings<S> around(extent, index);
  SplitCostsOfStrip<S, Tile> split_costs(problem, extent, around.strip, pair, split_cost_pipeline);
  const int chunks = forward_chunks(around, saved.memory != nullptr);
  sweep_strip(problem, extent, around, pair, index, chunks, saved, files, above_edges, below_edges, split_costs, value);
}

}  // namespace softdtw
