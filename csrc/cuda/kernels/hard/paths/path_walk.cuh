// The walk back over the steps that a sweep has noted, row by row: by a warp for each pair, or for each strip of one.
#pragma once

#include "core/hard_path.h"
#include "strip_maps.cuh"

namespace softdtw {

// The best path of one pair, from its end, by a warp: all lanes take the same walk, each with its own tile of a chunk at hand.
// Whatever the sweep noted, the walk ends, and reads nothing beyond the table of steps: left of its first chunk all steps are
// diagonal.
template <class S>
class PathWalk {
  const StepTable<S>& table;
  const int64_t pair;
  const int lane;
  // The cell that the walk is at is in row k of lane `owner` of the strip, at step t of the chunk, where t is below 0 if it is in the
  // chunk before.
  int index = 0, chunk = 0, owner = 0, t = 0;
  StepWords<S> own, next, after_next;  // the lane's tile, and those of the chunks before, on their way
  StepWords<S> tile;                   // the owner's

 public:
  __device__ PathWalk(const StepTable<S>& table_, int64_t pair_, int lane_) : table(table_), pair(pair_), lane(lane_) {}

  // Calls visit(row, span, is_diagonal) for every row from the last to the first, and whether it is entered by a diagonal step.
  template <class Visit>
  __device__ __forceinline__ void walk(const Extent& extent, int end_column, Visit&& visit) {
    for (int i = strips_of<S>(extent) - 1, column = end_column; i >= 0; --i) column = walk_strip(extent, i, column, visit);
  }
  // The same in a strip, from a column of its last row. Returns the column from which it is entered.
  template <class Visit>
  __device__ __forceinline__ int walk_strip(const Extent& extent, int strip_index, int column, Visit&& visit) {
    index = strip_index;
    const Strip<S> strip(extent, index);
    int row = last_row_of(strip, extent);
    const int own_row = row - strip.first_row;
    owner = own_row / S::kRows;
    start(column - strip.first_column + owner);
    const auto column_now = [&] { return strip.first_column + chunk * S::kSteps + t - owner; };
    for (int from = own_row % S::kRows; owner >= 0; --owner, --t, from = S::kRows - 1) {
      look_at_owner();
#pragma unroll
      for (int k = S::kRows - 1; k >= 0; --k) {
        if (k > from) continue;
        if (t < 0) go_back();
        const int last = column_now();
        const bool is_diagonal = leave_row(tile, k, t, [&] { go_back(); });
        visit(row--, Span{max(column_now(), 0), max(last, 0)}, is_diagonal);
        t -= is_diagonal;
      }
    }
    ++owner, ++t;  // as they were in the strip's first row
    return column_now();
  }

 private:
  __device__ __forceinline__ void start(int time) {
    chunk = time / S::kSteps;
    t = time % S::kSteps;
    own = table.load(pair, index, chunk, lane);
    next = table.load(pair, index, chunk - 1, lane);
    after_next = table.load(pair, index, chunk - 2, lane);
  }
  __device__ __forceinline__ void go_back() {
    t += S::kSteps;
    --chunk;
    own = next;
    next = after_next;
    after_next = table.load(pair, index, chunk - 2, lane);
    look_at_owner();
  }
  __device__ __forceinline__ void look_at_owner() {
#pragma unroll
    for (int i = 0; i < StepWords<S>::kWords; ++i) tile.words[i] = __shfl_sync(kAllLanes, own.words[i], owner);
  }
};

static_assert(kDiagonal == 0 && kUp == 1 && kLeft == 2, "their bits, as paths are walked by");

// A block's part of the paths: a pair's whole path, or with maps what a strip has of it.
template <class S>
class PathOfBlock {
  const StepTable<S>& table;
  const StripMaps<S>& maps;
  const int index;

 public:
  const int64_t pair;

  __device__ PathOfBlock(const StepTable<S>& table_, const StripMaps<S>& maps_)
      : table(table_),
        maps(maps_),
        index(maps.exist() ? static_cast<int>(blockIdx.x % maps.strips) : 0),
        pair(maps.exist() ? blockIdx.x / maps.strips : blockIdx.x) {}
  __device__ __forceinline__ bool has_first_row() const { return index == 0; }
  // As PathWalk::walk().
  template <class Visit>
  __device__ __forceinline__ void walk(const Extent& extent, int end_column, int lane, Visit&& visit) const {
    PathWalk<S> walk(table, pair, lane);
    if (!maps.exist()) return walk.walk(extent, end_column, visit);
    const int last = strips_of<S>(extent) - 1;
    if (index > last) return;
    int column = end_column;
    for (int i = last; i > index; --i) column = maps.column_above(extent, pair, i, column);
    walk.walk_strip(extent, index, column, visit);
  }
};

// Pairs whose band has no more than `width_of_others` columns are done.
template <class S>
__global__ void __launch_bounds__(kWarp) hard_path_kernel(
    const __grid_constant__ Problem<typename S::Scalar> problem, const typename S::Scalar* value, StepTable<S> table,
    StripMaps<S> maps, const int* ends, Span* spans, int width_of_others) {
  const PathOfBlock<S> path(table, maps);
  const int64_t pair = path.pair;
  const Extent extent = problem.extent(pair);
  if (extent.valid() && extent.high - extent.low < width_of_others) return;
  const bool exists = extent.valid() && isfinite(value[pair]);
  const int m = static_cast<int>(problem.m), lane = threadIdx.x;
  spans += pair * problem.n;
  if (path.has_first_row())
    for (int row = (exists ? extent.n : 0) + lane; row < problem.n; row += kWarp) spans[row] = {m, m - 1};
  if (!exists) return;
  path.walk(extent, ends[pair], lane, [&](int row, Span span, bool) {
    if (lane == 0) spans[row] = span;
  });
}

}  // namespace softdtw
