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
__device__ __forceinline__ Reached choose(bool condition, const Reached& a, const Reached& b) {
  return {condition ? a.value : b.value, condition ? a.start : b.start};
}

// Some entries of a lane. Numbers of a type stand together: as structs, which have padding, the compiler would keep them in memory.
template <int kCount>
struct ReachedRows {
  double values[kCount];
  int32_t starts[kCount];

  __device__ __forceinline__ Reached operator[](int k) const { return {values[k], starts[k]}; }
  __device__ __forceinline__ void set(int k, const Reached& entry) {
    values[k] = entry.value;
    starts[k] = entry.start;
  }
};

// A strip under way. `bottom`: the last of those that the block sweeps at a time, whose last row goes to global memory; of the others
// it goes to the strip below.
template <class S, class Tile>
class RangesSweep {
  using T = typename S::Scalar;
  const Extent& extent;
  const int lane, out_lane, out_row;
  const bool is_first, is_bottom;
  const Strip<S> strip;
  const double penalty;
  ReachedRows<S::kRows> left;  // the lane's rows at the column it has just left
  ReachedRows<1> diagonal;     // the row above them, one column before
  Tile tile;

 public:
  __device__ __forceinline__
  RangesSweep(const Problem<T>& problem, const Extent& extent_, int64_t pair, int index, int bottom, int lane_)
      : extent(extent_),
        lane(lane_),
        out_lane((last_row(extent_, bottom) % S::kStripRows) / S::kRows),
        out_row(last_row(extent_, bottom) % S::kRows),
        is_first(index == 0),
        is_bottom(index == bottom),
        strip(extent_, index),
        penalty(problem.warp_penalty),
        tile(problem, extent_, strip, pair, lane_) {
#pragma unroll
    for (int k = 0; k < S::kRows; ++k) left.set(k, nowhere());
    diagonal.set(0, choose(is_first && lane == 0, {0, 0}, nowhere()));
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
    ReachedRows<S::kSteps> entering;
#pragma unroll
    for (int t = 0; t < S::kSteps; ++t) entering.set(t, row_above(above, row, first + t, t));
    const bool writes = lane == kWarp - 1 && own_group(chunk) >= 0;
#pragma unroll
    for (int t = 0; t < S::kSteps; ++t) {
      const Reached bottom = left[S::kRows - 1];
      if (writes) own.values[t] = bottom.value, own.starts[t] = bottom.start;
      const Reached handed = from_lane_above(bottom);
      step(t, place.column + t, choose(lane == 0, entering[t], handed));
      if (is_bottom && lane == out_lane) write(row, place.column + t);
    }
  }

 private:
  __device__ __forceinline__ static Reached nowhere() { return {INFINITY, -1}; }
  __device__ __forceinline__ static int last_row(const Extent& extent, int index) {
    return min((index + 1) * S::kStripRows, extent.n) - 1;
  }

  // A range may start anywhere: it comes diagonally from the row above the table. What comes down from there starts one column later
  // and is never better.
  __device__ __forceinline__ Reached row_above(const RangesEdge<S>* above, const RangesRow& row, int column, int t) const {
    if (is_first) return {0, column + 1};
    if (above != nullptr) return {above->values[t], above->starts[t]};
    if (column >= extent.m) return nowhere();
    return {row.values[column], row.starts[column]};
  }
  __device__ __forceinline__ void step(int t, int column, Reached up) {
    Reached before = diagonal[0];
    diagonal.set(0, up);
#pragma unroll
    for (int k = 0; k < S::kRows; ++k) {
      const Reached from_left = left[k];
      // They come from the column before, so the better of them is off the chain that runs down the rows.
      const Reached side = better(after(from_left, penalty), before);
      const double cost = column >= 0 ? or_infinite(tile.cost(k, t)) : double(INFINITY);
      up = after(better(side, after(up, penalty)), cost);
      left.set(k, up);
      before = from_left;
    }
  }
  __device__ __forceinline__ void write(const RangesRow& row, int column) const {
    Reached entry = left[0];
#pragma unroll
    for (int k = 1; k < S::kRows; ++k) entry = choose(k == out_row, left[k], entry);
    if (column >= 0 && column < extent.m) row.values[column] = entry.value, row.starts[column] = entry.start;
  }
};

}  // namespace softdtw
