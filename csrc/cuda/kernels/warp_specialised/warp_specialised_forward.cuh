// The team of a strip in forward (warp_specialised.cuh): one warp computes cells, ahead of the one that sweeps.
#pragma once

#include "cuda/costs/few_dims_tile.cuh"
#include "options.cuh"
#include "sweeping_warp.cuh"

namespace softdtw {

// What the cells of some chunks, or of a stage, cost, split (recurrence.h), and what m may rise by in every lane in a chunk.
template <class S_, int kChunks_ = S_::kStage>
struct alignas(16) SplitCosts {
  using S = S_;
  using T = typename S::Scalar;
  static constexpr int kChunks = kChunks_;
  struct alignas(16) Cells {
    Entry<T> rows[S::kRows];
  };
  Cells cells[kChunks][S::kSteps][kWarp];
  T rise[kChunks][kWarp];

  // A lane's tile, as Options see it. `in_band`: no path may leave the band in it.
  template <class Options, class Tile, class Own>
  __device__ __forceinline__ void split(
      int part, int lane, const Tile& tile, const Own& recurrences, bool in_band, T may_rise) {
#pragma unroll
    for (int t = 0; t < S::kSteps; ++t) {
      Cells own;
#pragma unroll
      for (int k = 0; k < S::kRows; ++k) own.rows[k] = Options::split_cost(recurrences, tile, k, t);
      cells[part][t][lane] = own;
    }
    if (Options::kTakesBands && !in_band)
      for_each_cell<S>([&](int k, int t) {
        if (!Options::is_inside(tile, k, t)) cells[part][t][lane].rows[k].m = nowhere<S>();
      });
    rise[part][lane] = may_rise;
  }
};

template <class Item>
using SplitCostPipeline = Pipeline<Item, kWarp, 2>;

// As the sweep reads them (sweeping_warp.cuh).
template <class Item>
struct SplitCostReader {
  using S = typename Item::S;
  static constexpr bool kIsAhead = true;
  SplitCostPipeline<Item>& pipeline;
  const int lane;
  const Item* item = nullptr;
  int part = 0;

  __device__ explicit SplitCostReader(SplitCostPipeline<Item>& pipeline_)
      : pipeline(pinned(pipeline_)), lane(threadIdx.x) {}
  template <class Where>
  __device__ __forceinline__ typename S::Scalar rise(const Recurrences<S>&, const Where&) const {
    return item->rise[part][lane];
  }
  __device__ __forceinline__ Entry<typename S::Scalar> split_cost(const Recurrences<S>&, int k, int t) const {
    return item->cells[part][t][lane].rows[k];
  }
};

// A tile that reads ahead, in a band.
template <class S, class Tile>
struct TileAhead<InBand<S, Tile>> : TileAhead<Tile>, BandOfTile<S> {
  template <class... Others>
  __device__ TileAhead(
      typename TileAhead<Tile>::Memory& memory, const Problem<float>& problem, const Extent& extent, const Strip<S>& strip,
      int64_t pair, int lane, const Others&... others)
      : TileAhead<Tile>(memory, problem, extent, strip, pair, lane, others...), BandOfTile<S>(extent) {}
  __device__ __forceinline__ void use(const Place<S>& place) {
    TileAhead<Tile>::use(place);
    this->look(place);
  }
};

// What the warps of a team share.
template <class S, class Tile>
struct SpecialisedForward {
  SplitCostPipeline<SplitCosts<S>> split_costs;
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
  const int lane = threadIdx.x;
  const Surroundings<S> around(extent, index);
  const int chunks = forward_chunks(around, keeps);
  using Options = TileOptions<S, Tile>;
  const typename Options::OfStrip recurrences(problem, pair);
  SplitCostPipeline<SplitCosts<S>>& pipeline = pinned(team.split_costs);
  TileAhead<Tile> tile(team.tile, problem, extent, around.strip, pair, lane);
  tile.fetch(Place<S>(around.strip, extent, 0, lane));
  unsigned room = pipeline.kRoom;
  for (int chunk = 0; chunk < chunks; ++chunk) {
    const Place<S> place(around.strip, extent, chunk, lane);
    tile.use(place);
    if (chunk + 1 < chunks) tile.fetch(Place<S>(around.strip, extent, chunk + 1, lane));
    const int stage = chunk / S::kStage, part = chunk % S::kStage;
    if (part == 0) pipeline.acquire(room, stage + 1);
    const bool may_be_plain =
        (Options::kTakesBands || place.in_band) && !recurrences.has_penalty && chunk != around.end_chunk;
    const typename S::Scalar rise = Width<S>::rise_of(recurrences, tile.reach, may_be_plain);
    pipeline.slot(stage).template split<Options>(part, lane, tile, recurrences, place.in_band, rise);
    if (part == S::kStage - 1 || chunk + 1 == chunks) pipeline.commit(stage);
  }
}

// Stage by stage.
template <class S, class Tile>
struct SplitCostsOfStrip : SplitCostReader<SplitCosts<S>> {
  using OfStrip = typename TileOptions<S, Tile>::OfStrip;
  static constexpr bool kTakesBands = TileOptions<S, Tile>::kTakesBands;
  const Problem<typename S::Scalar>& problem;
  const Extent& extent;
  const Strip<S>& strip;
  const int64_t pair;

  __device__ SplitCostsOfStrip(
      const Problem<typename S::Scalar>& problem_, const Extent& extent_, const Strip<S>& strip_, int64_t pair_,
      SplitCostPipeline<SplitCosts<S>>& pipeline_)
      : SplitCostReader<SplitCosts<S>>(pipeline_), problem(problem_), extent(extent_), strip(strip_), pair(pair_) {}
  __device__ __forceinline__ void begin(int stage) { this->item = &this->pipeline.wait(stage); }
  __device__ __forceinline__ void end(int stage) { this->pipeline.release(stage); }
  __device__ __forceinline__ void use(const Place<S>&, int part_) { this->part = part_; }
  __device__ __forceinline__ Tile tile(const Place<S>& place) const {
    Tile tile(problem, extent, strip, pair, this->lane);
    tile.fetch(place);
    tile.use(place);
    return tile;
  }
};

// Sweeps a strip.
template <class S, class Tile>
__device__ void specialised_forward(
    const Problem<typename S::Scalar>& problem, const Extent& extent, int64_t pair, int index, const Saved<S>& saved,
    bool files, EdgePipeline<S>& above_edges, EdgePipeline<S>& below_edges,
    SplitCostPipeline<SplitCosts<S>>& split_cost_pipeline, typename S::Scalar* value) {
  const Surroundings<S> around(extent, index);
  SplitCostsOfStrip<S, Tile> split_costs(problem, extent, around.strip, pair, split_cost_pipeline);
  const int chunks = forward_chunks(around, saved.memory != nullptr);
  sweep_strip(problem, extent, around, pair, index, chunks, saved, files, above_edges, below_edges, split_costs, value);
}

}  // namespace softdtw
