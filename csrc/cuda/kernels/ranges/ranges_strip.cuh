// One warp sweeps one strip (strip.cuh) of (10), chunk by chunk.
#pragma once

#include "core/ranges.h"
#include "cuda/costs/tile.cuh"

namespace softdtw {

// A group of columns of a strip's last row.
template <class S>
struct RangesEdge {
  double values[S::kSteps];
  int32_t starts[S::kSteps];
};

// A row of (10) in global memory, by column.
struct RangesRow {
  double* values;
  int32_t* starts;
};

__device__ __forceinline__ Reached from_lane_above(const Reached& own) {
  return {__shfl_up_sync(kAllLanes, own.value, 1), __shfl_up_sync(kAllLanes, own.start, 1)};
}

// A strip under way. `bottom`: the last of those that the block sweeps at a time, whose last row goes to global memory; of the others
// it goes to the strip below.
template <class S, class Tile>
class RangesSweep {
  using T = typename S::Scalar;
  static constexpr Reached kNowhere{INFINITY, -1};
  const Extent& extent;
  const int lane, out_lane, out_row;
  const bool is_first, is_bottom;
  const Strip<S> strip;
  const double penalty;
  Reached left[S::kRows];  // the lane's rows at the column it has just left
  Reached diagonal;        // the row above them, one column before
  Tile tile;

 public:
  __device__ RangesSweep(const Problem<T>& problem, const Extent& extent_, int64_t pair, int index, int bottom, int lane_)
      : extent(extent_),
        lane(lane_),
        out_lane((last_row(extent_, bottom) % S::kStripRows) / S::kRows),
        out_row(last_row(extent_, bottom) % S::kRows),
        is_first(index == 0),
        is_bottom(index == bottom),
        strip(extent_, index),
        penalty(problem.warp_penalty),
        diagonal(is_first && lane_ == 0 ? Reached{0, 0} : kNowhere),
        tile(problem, extent_, strip, pair, lane_) {
#pragma unroll
    for (int k = 0; k < S::kRows; ++k) left[k] = kNowhere;
    tile.fetch(Place<S>(strip, extent, 0, lane));
  }
  // The group of its own edge that a chunk writes; below 0 there is none.
  __device__ __forceinline__ static int own_group(int chunk) { return chunk - S::kSkewChunks; }
  __device__ __forceinline__ int chunks() const { return strip.chunks; }

  // `above` is the edge of the strip above, and null for the block's first one, which finds its own in `row`.
  __device__ __forceinline__ void sweep(int chunk, const RangesEdge<S>* above, RangesEdge<S>& own, const RangesRow& row) {
    const Place<S> place(strip, extent, chunk, lane);
    tile.use(place);
    if (chunk + 1 < strip.chunks) tile.fetch(Place<S>(strip, extent, chunk + 1, lane));
    const int first = chunk * S::kSteps;  // the column of lane 0
    const bool writes = lane == kWarp - 1 && own_group(chunk) >= 0;
#pragma unroll
    for (int t = 0; t < S::kSteps; ++t) {
      if (writes) own.values[t] = left[S::kRows - 1].value, own.starts[t] = left[S::kRows - 1].start;
      const Reached handed = from_lane_above(left[S::kRows - 1]);
      const Reached up = lane == 0 ? row_above(above, row, first + t, t) : handed;
      step(t, place.column + t, up);
      if (is_bottom && lane == out_lane) write(row, place.column + t);
    }
  }

 private:
  __device__ static int last_row(const Extent& extent, int index) { return min((index + 1) * S::kStripRows, extent.n) - 1; }

  // A range may start anywhere: it comes diagonally from the row above the table. What comes down from there starts one column later
  // and is never better.
  __device__ __forceinline__ Reached row_above(const RangesEdge<S>* above, const RangesRow& row, int column, int t) const {
    if (is_first) return {0, column + 1};
    if (above != nullptr) return {above->values[t], above->starts[t]};
    return column < extent.m ? Reached{row.values[column], row.starts[column]} : kNowhere;
  }
  __device__ __forceinline__ void step(int t, int column, Reached up) {
    Reached before = diagonal;
    diagonal = up;
#pragma unroll
    for (int k = 0; k < S::kRows; ++k) {
      const Reached from_left = left[k];
      // They come from the column before, so the better of them is off the chain that runs down the rows.
      const Reached side = better(after(from_left, penalty), before);
      const double cost = column >= 0 ? or_infinite(tile.cost(k, t)) : double(INFINITY);
      up = left[k] = after(better(side, after(up, penalty)), cost);
      before = from_left;
    }
  }
  __device__ __forceinline__ void write(const RangesRow& row, int column) const {
    if (column < 0 || column >= extent.m) return;
#pragma unroll
    for (int k = 0; k < S::kRows; ++k)
      if (k == out_row) row.values[column] = left[k].value, row.starts[column] = left[k].start;
  }
};

}  // namespace softdtw
