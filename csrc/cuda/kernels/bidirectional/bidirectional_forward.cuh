// Forward of a table swept from both its ends (bidirectional.cuh): a warp sweeps a strip from one of them. Two strips share a warp that
// prices their cells, ahead of the sweeps.
#pragma once

#include "bidirectional.cuh"
#include "cuda/kernels/warp_specialised/sweeping_warp.cuh"

namespace softdtw {

// What the cells of some chunks cost, split (recurrence.h), and what m may rise by in every lane in a chunk.
struct alignas(16) PricedChunks {
  using S = MeetingShape;
  static constexpr int kChunks = S::kStage / 2;
  struct alignas(16) Cells {
    Entry<float> rows[S::kRows];
  };
  Cells cells[kChunks][S::kSteps][kWarp];
  float rise[kChunks][kWarp];
};
using PricedRing = Ring<PricedChunks, kWarp, 2>;

// Prices a strip's cells.
class Pricer {
  using S = MeetingShape;
  Strip<S> strip;
  SideTile tile;
  PricedRing* ring;
  int chunk = 0, lane;

 public:
  __device__ Pricer(const Side& side, const Problem<float>& problem, int64_t pair, int index, PricedRing& ring_)
      : strip(side.strip(index)), tile(side.tile(problem, strip, pair)), ring(&ring_), lane(threadIdx.x) {
    if (goes_on()) tile.fetch(Place<S>(strip, side.extent, 0, lane));
  }
  __device__ __forceinline__ bool goes_on() const { return chunk < strip.chunks; }
  // The next item of the ring. False, if there is no room for it, or none is left.
  __device__ __forceinline__ bool price(const Extent& extent, float scale) {
    const int item = chunk / PricedChunks::kChunks;
    if (!goes_on() || !ring->has_room(item)) return false;
    PricedChunks& out = ring->place(item);
#pragma unroll 1
    for (int part = 0; part < PricedChunks::kChunks; ++part, ++chunk) {
      tile.use(Place<S>(strip, extent, chunk, lane));
      if (chunk + 1 < strip.chunks) tile.fetch(Place<S>(strip, extent, chunk + 1, lane));
#pragma unroll
      for (int t = 0; t < S::kSteps; ++t) {
        PricedChunks::Cells cells;
#pragma unroll
        for (int k = 0; k < S::kRows; ++k) cells.rows[k] = Recurrences<S>::Plain::split(tile.cost(k, t), scale);
        out.cells[part][t][lane] = cells;
      }
      out.rise[part][lane] = tile.reach * scale * (S::kRows + S::kSteps);
    }
    ring->fill(item);
    return true;
  }
};

// Prices as the sweep reads them.
class PricesOfSide {
  using S = MeetingShape;
  const Side& side;
  const Problem<float>& problem;
  const Strip<S>& strip;
  const int64_t pair;
  PricedRing& ring;
  const int lane;
  const PricedChunks* chunks = nullptr;
  unsigned part = 0, next = 0;  // in the item; the next item

 public:
  static constexpr bool kIsAhead = true;

  __device__ PricesOfSide(
      const Side& side_, const Problem<float>& problem_, const Strip<S>& strip_, int64_t pair_, PricedRing& ring_)
      : side(side_), problem(problem_), strip(strip_), pair(pair_), ring(pinned(ring_)), lane(threadIdx.x) {}
  __device__ __forceinline__ void begin(int) {}
  __device__ __forceinline__ void end(int) {}
  template <class Where>
  __device__ __forceinline__ void use(const Where&, unsigned part_of_stage) {
    part = part_of_stage % PricedChunks::kChunks;
    if (part > 0) return;
    if (next > 0) ring.leave(next - 1);
    chunks = &ring.await(next++);
  }
  template <class Where>
  __device__ __forceinline__ float rise(const Recurrences<S>&, const Where&) const {
    return chunks->rise[part][lane];
  }
  __device__ __forceinline__ Entry<float> price(const Recurrences<S>&, int k, int t) const {
    return chunks->cells[part][t][lane].rows[k];
  }
  __device__ __forceinline__ SideTile tile(const Place<S>& place) const {
    SideTile tile = side.tile(problem, strip, pair);
    tile.fetch(place);
    tile.use(place);
    return tile;
  }
};

}  // namespace softdtw
