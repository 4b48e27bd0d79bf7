// Strips: the geometry that the stencil and the tiled variant share.
//
// A pair's table is cut into strips of 32 K rows, K = kRows. One warp sweeps a strip from left to right; lane l owns the K
// rows from l K on and is at column first + t - l in step t, so a step is a skewed anti-diagonal of the strip and every
// neighbour is in the lane itself or one lane up. Steps come in chunks of kSteps: a lane's part of a chunk is a K x kSteps
// tile (a parallelogram across the warp, so no fill or drain between chunks). Chunks come in stages of kStage.
//
//           columns ->  first      ...       end
//   lane 0              t = 0 1 2 3 ...
//   lane 1                  1 2 3 4 ...          rows K .. 2K-1
//   ...
//   lane 31                       31 32 ...      its last row is the strip's edge, the next strip's input
#pragma once

#include "core/problem.h"
#include "cuda/hardware/assembly.cuh"

namespace softdtw {

template <typename T, int kRows_, int kSteps_ = 8>
struct Shape {
  using Scalar = T;
  static constexpr int kRows = kRows_;
  static constexpr int kSteps = kSteps_;
  static constexpr int kStage = kRows == 2 && sizeof(T) == 4 ? 4 : 2;  // 64 cells a lane in float32, 32 in float64
  static constexpr int kStripRows = kWarp * kRows;
  static constexpr int kSkewChunks = kWarp / kSteps;  // a strip's edge leaves lane 31 this many chunks after lane 0's
};

// One strip of one pair: rows [first_row, first_row + kStripRows) and the columns of the band that they meet.
template <class S>
struct Strip {
  int first_row, first_column, end_column, chunks;

  __device__ Strip(int first_row_, int first_column_, int end_column_, int chunks_)
      : first_row(first_row_), first_column(first_column_), end_column(end_column_), chunks(chunks_) {}
  __device__ Strip(const Extent& extent, int index) {
    first_row = index * S::kStripRows;
    // One column ahead of the band: no path enters the first column from its upper left, so strips exchange one row only.
    const int first = max(0, first_row + extent.low - 1);
    first_column = first - first % S::kSteps;
    const int last_row = min(extent.n, first_row + S::kStripRows) - 1;
    end_column = min(extent.m, last_row + extent.high + 1);
    chunks = (end_column - first_column + kWarp + S::kSteps - 1) / S::kSteps;
  }
  // Of the edge: the strip's columns alone, without the chunks in which its lanes wake and fall asleep.
  __device__ int groups() const { return chunks - S::kSkewChunks; }
};

template <class S>
__device__ __forceinline__ int strips_of(const Extent& extent) {
  return (extent.n + S::kStripRows - 1) / S::kStripRows;
}

// Keeps a number in its register: the compiler would rather compute it again in every chunk.
__device__ __forceinline__ void pin(int& number) { ptx::pin(number); }

template <class S>
struct Place;

// A strip among its neighbours, and where the pair's last cell lies in it.
template <class S>
struct Surroundings {
  Strip<S> strip, above, below;  // itself, where there is none
  bool is_first, is_last;
  int above_offset, below_offset;  // in groups: this strip's first column in the one above, the one below's in this one
  int end_lane, end_row, end_time, end_chunk;  // end_row in the lane's tile; -1 for lane and chunk if it is not here

  // What differs where a table is swept from both its ends (bidirectional.cuh): whether strips end before their table does, how paths
  // enter the first of them, and in which chunk, if that needs the general sweep.
  static constexpr bool kIsCut = false;
  using Place = softdtw::Place<S>;
  __device__ __forceinline__ bool holds_corner(int lane) const { return is_first && lane == 0; }
  template <class Cell>
  __device__ __forceinline__ void enter(const Place&, int, int, Cell&) const {}
  static constexpr int entry_chunk = -1;
  // What lanes above those that paths have reached refer to. Of a band the upper lanes leave first: they stay where they are.
  template <class Top, class State>
  __device__ __forceinline__ double reference_above(const Top& top, const State& state) const {
    return top.exists ? top.reference : state.reference;
  }

  __device__ Surroundings(const Extent& extent, int index)
      : strip(extent, index), above(extent, max(0, index - 1)), below(extent, min(index + 1, strips_of<S>(extent) - 1)) {
    is_first = index == 0;
    is_last = index == strips_of<S>(extent) - 1;
    above_offset = (strip.first_column - above.first_column) / S::kSteps;
    below_offset = (below.first_column - strip.first_column) / S::kSteps;
    const int row = extent.n - 1 - strip.first_row;
    end_lane = is_last ? row / S::kRows : -1;
    end_row = row % S::kRows;
    end_time = extent.m - 1 - strip.first_column + end_lane;
    end_chunk = is_last ? end_time / S::kSteps : -1;
  }
  __device__ __forceinline__ void pin_for_forward() {
    pin(strip.first_row);
    pin(strip.first_column);
    pin(strip.chunks);
    pin(above.chunks);
    pin(above_offset);
    pin(end_chunk);
  }
};

// The longest strip, in chunks, and the number of strips, of any pair of a problem: what memory is laid out by.
template <class S>
struct Sizes {
  int64_t strips, chunks, groups;  // groups: of the whole table's columns

  template <typename T>
  explicit Sizes(const Problem<T>& problem) {
    strips = (problem.n + S::kStripRows - 1) / S::kStripRows;
    int64_t width = problem.m;
    if (problem.bandwidth >= 0 && !problem.bandwidths && !problem.x_lengths && !problem.y_lengths) {
      const int64_t shift = problem.m > problem.n ? problem.m - problem.n : problem.n - problem.m;
      const int64_t radius = problem.bandwidth < width ? problem.bandwidth : width;
      const int64_t banded = S::kStripRows + shift + 2 * radius + S::kSteps;
      width = banded < width ? banded : width;
    }
    chunks = (width + kWarp + S::kSteps - 1) / S::kSteps;
    groups = (problem.m + S::kSteps - 1) / S::kSteps;
  }
};

}  // namespace softdtw
