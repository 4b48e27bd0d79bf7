// The steps that a sweep of hard DTW notes, and the walk back over them.
//
// Each lane keeps the step of every cell of its tile, two bits each, in one word (two with four rows) per chunk: N M / 4 bytes, and
// one coalesced store per warp and chunk. A path is walked by one warp, row by row: the columns that it meets in a row of a lane's
// tile are found at once, from the bits of that row.
#pragma once

#include "../hard_path.h"
#include "strip.cuh"

namespace softdtw {

// The steps of a lane's tile of a chunk, row after row.
template <class S>
struct StepWords {
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
    unsigned* const to = of(pair, strip, chunk, lane);
    if constexpr (Words::kWords == 2)
      *reinterpret_cast<uint2*>(to) = make_uint2(steps.words[0], steps.words[1]);
    else
      *to = steps.words[0];
  }
  __device__ __forceinline__ Words load(int64_t pair, int strip, int chunk, int lane) const {
    Words steps;
    if (chunk < 0) return steps;
    const unsigned* const from = of(pair, strip, chunk, lane);
    if constexpr (Words::kWords == 2) {
      const uint2 two = *reinterpret_cast<const uint2*>(from);
      steps.words[0] = two.x, steps.words[1] = two.y;
    } else {
      steps.words[0] = *from;
    }
    return steps;
  }
};

// The best path of one pair, by one warp: all lanes take the same walk, each with its own tile of a chunk at hand.
template <class S>
class PathWalk {
  static constexpr int kAhead = 4;  // chunks: on their way
  const Extent& extent;
  const StepTable<S>& table;
  const int64_t pair;
  const int lane;
  int index = -1, first_row = 0, first_column = 0;  // of the strip
  int chunk = -1;
  StepWords<S> steps, ahead[kAhead];

 public:
  __device__ PathWalk(const Extent& extent_, const StepTable<S>& table_, int64_t pair_, int lane_)
      : extent(extent_), table(table_), pair(pair_), lane(lane_) {}

  __device__ __forceinline__ Arrival arrive(int row, int column) {
    if (index < 0 || row < first_row) {
      index = row / S::kStripRows;
      const Strip<S> strip(extent, index);
      first_row = strip.first_row;
      first_column = strip.first_column;
      chunk = -1;
    }
    const int own_row = row - first_row, owner = own_row / S::kRows, k = own_row % S::kRows;
    while (true) {
      const int time = column - first_column + owner, t = time % S::kSteps;
      look_at(time / S::kSteps);
      const unsigned row_bits = bits_of(owner, k);
      // Of every step that is not to the left, its lower bit; and of the table's first column.
      unsigned stops = ~(row_bits >> 1) & 0x55555555u;
      if (column <= t) stops |= 1u << 2 * (t - column);
      stops &= 0xffffffffu >> (30 - 2 * t);
      if (stops != 0) {
        const int at = (31 - __clz(stops)) / 2;
        return {column - (t - at), (row_bits >> 2 * at & 3) == kDiagonal ? kDiagonal : kUp};
      }
      column -= t + 1;
    }
  }

 private:
  __device__ __forceinline__ void look_at(int wanted) {
    if (chunk >= 0 && wanted <= chunk && wanted > chunk - kAhead) {
      for (; chunk > wanted; --chunk) {
        steps = ahead[0];
#pragma unroll
        for (int i = 0; i + 1 < kAhead; ++i) ahead[i] = ahead[i + 1];
        ahead[kAhead - 1] = table.load(pair, index, chunk - 1 - kAhead, lane);
      }
      return;
    }
    chunk = wanted;
    steps = table.load(pair, index, chunk, lane);
#pragma unroll
    for (int i = 0; i < kAhead; ++i) ahead[i] = table.load(pair, index, chunk - 1 - i, lane);
  }
  __device__ __forceinline__ unsigned bits_of(int owner, int k) const {
    unsigned word = steps.words[0];
    if constexpr (StepWords<S>::kWords == 2) word = k >= 2 ? steps.words[1] : word;
    return __shfl_sync(kAllLanes, word, owner) >> (k * StepWords<S>::kRowBits) % 32;
  }
};

template <class S>
__global__ void __launch_bounds__(kWarp) hard_path_kernel(
    const __grid_constant__ Problem<typename S::Scalar> problem, const typename S::Scalar* value, StepTable<S> table,
    const int* ends, Span* spans) {
  const int64_t pair = blockIdx.x;
  const Extent extent = problem.extent(pair);
  const bool exists = extent.valid() && isfinite(value[pair]);
  const int m = static_cast<int>(problem.m), lane = threadIdx.x;
  spans += pair * problem.n;
  for (int row = (exists ? extent.n : 0) + lane; row < problem.n; row += kWarp) spans[row] = {m, m - 1};
  if (!exists) return;
  PathWalk<S> walk(extent, table, pair, lane);
  walk_back(
      extent.n, ends[pair], [&](int row, int column) { return walk.arrive(row, column); },
      [&](int row, Span span) {
        if (lane == 0) spans[row] = span;
      });
}

}  // namespace softdtw
