// The steps that a sweep of hard DTW notes, and the walk back over them.
//
// Each lane keeps the step of every cell of its tile, two bits each, in up to four words per chunk: N M / 4 bytes, and one coalesced
// store per warp and chunk. A path is walked by one warp, row by row: the columns that it meets in a row of a lane's tile are found
// at once, from the bits of that row.
#pragma once

#include "core/hard_path.h"
#include "cuda/strips/strip.cuh"

namespace softdtw {

// The steps of a lane's tile of a chunk, row after row.
template <class S>
struct alignas(sizeof(unsigned) * (S::kRows * S::kSteps / 16)) StepWords {
  static constexpr int kBits = 2, kRowBits = S::kSteps * kBits, kWords = S::kRows * kRowBits / 32;
  unsigned words[kWords] = {};

  __device__ __forceinline__ void add(int k, int t, unsigned step) {
    const int bit = k * kRowBits + t * kBits;
    words[bit / 32] |= step << bit % 32;
  }
};

// Steps of all pairs: [pair][strip][chunk][lane][word].
template <class S>
struct StepTable {
  using Words = StepWords<S>;
  unsigned* words = nullptr;
  int64_t strips = 0, chunks = 0;

  static int64_t bytes(int64_t batch, const Sizes<S>& sizes) {
    return batch * sizes.strips * sizes.chunks * kWarp * Words::kWords * sizeof(unsigned);
  }
  __device__ __forceinline__ unsigned* of(int64_t pair, int strip, int chunk, int lane) const {
    return words + (((pair * strips + strip) * chunks + chunk) * kWarp + lane) * Words::kWords;
  }
  __device__ __forceinline__ void store(int64_t pair, int strip, int chunk, int lane, const Words& steps) const {
    *reinterpret_cast<Words*>(of(pair, strip, chunk, lane)) = steps;
  }
  __device__ __forceinline__ Words load(int64_t pair, int strip, int chunk, int lane) const {
    return chunk < 0 ? Words() : *reinterpret_cast<const Words*>(of(pair, strip, chunk, lane));
  }
};

// The best path of one pair, from its end, by one warp: all lanes take the same walk, each with its own tile of a chunk at hand.
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
    int row = extent.n - 1, column = end_column;
    while (row >= 0) {
      index = row / S::kStripRows;
      const Strip<S> strip(extent, index);
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
          const bool is_diagonal = leave_row(k);
          visit(row--, Span{max(column_now(), 0), max(last, 0)}, is_diagonal);
          t -= is_diagonal;
        }
      }
      ++owner, ++t;  // as they were in the strip's first row
      column = column_now();
    }
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
  // Follows the path to the left, in row k. Returns whether it comes there by a diagonal step.
  __device__ __forceinline__ bool leave_row(int k) {
    constexpr int kRowBits = StepWords<S>::kRowBits;
    while (true) {
      const unsigned bits = tile.words[k * kRowBits / 32] >> k * kRowBits % 32;
      // The lower bit of each step that is not to the left.
      const unsigned stops = ~(bits >> 1) & (0x55555555u >> (30 - 2 * t));
      if (stops != 0) {
        const int bit = 31 - __clz(stops);
        t = bit / 2;
        return (bits >> bit & 1) == 0;
      }
      t = -1;
      go_back();
    }
  }
};
static_assert(kDiagonal == 0 && kUp == 1 && kLeft == 2, "their bits, as leave_row() reads them");

// Pairs whose band has no more than `width_of_others` columns are done.
template <class S>
__global__ void __launch_bounds__(kWarp) hard_path_kernel(
    const __grid_constant__ Problem<typename S::Scalar> problem, const typename S::Scalar* value, StepTable<S> table,
    const int* ends, Span* spans, int width_of_others) {
  const int64_t pair = blockIdx.x;
  const Extent extent = problem.extent(pair);
  if (extent.valid() && extent.high - extent.low < width_of_others) return;
  const bool exists = extent.valid() && isfinite(value[pair]);
  const int m = static_cast<int>(problem.m), lane = threadIdx.x;
  spans += pair * problem.n;
  for (int row = (exists ? extent.n : 0) + lane; row < problem.n; row += kWarp) spans[row] = {m, m - 1};
  if (!exists) return;
  PathWalk<S>(table, pair, lane).walk(extent, ends[pair], [&](int row, Span span, bool) {
    if (lane == 0) spans[row] = span;
  });
}

}  // namespace softdtw
