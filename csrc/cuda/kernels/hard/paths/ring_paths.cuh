// What rings give beside values (rings/ring_kernel.cuh): nothing, or paths as spans, from the steps that their lanes have noted.
//
// The lanes of a ring walk back themselves once they have swept.
#pragma once

#include "core/hard_path.h"
#include "cuda/scratch.h"
#include "ring_walk.cuh"

namespace softdtw {

struct NoPaths {
  template <int kRows>
  using Steps = NoSteps;

  static int64_t shared_bytes(const RingLayout&) { return 0; }
  __device__ RowSteps* of(int64_t) const { return nullptr; }
};

struct RingPaths {
  template <int kRows>
  using Steps = RingSteps<kRows>;
  RowSteps* table = nullptr;
  int64_t rows_of_pair = 0;  // of the table
  Span* spans = nullptr;
  int64_t rows = 0, columns = 0;  // of the spans of a pair, border included where there is one
  int before = 0;                 // rows of the border, and columns, that are none of the ring's table

  static int64_t shared_bytes(const RingLayout& layout) { return ring_walk_bytes(layout.rows); }
  __device__ RowSteps* of(int64_t pair) const { return table + pair * rows_of_pair; }
  // All rows of a pair that has its value from its ring, or that none is to have: is_own. By the whole warp, whose shared memory the walk
  // takes.
  template <int kRows>
  __device__ __forceinline__ void write(
      const RingBand<kRows>& band, int64_t pair, bool is_own, bool has_path, void* memory) const {
    Span* const own = spans + pair * rows;
    if (is_own) write_others(band, own, has_path);
    const auto visit = [&](int row, int first, int last) {
      ptx::store_where(row >= 0, own + (row + before), first + before, last + before);
    };
    RingWalk<kRows>(band, of(pair), static_cast<RowSteps*>(memory), is_own && has_path).walk(visit);
  }

 private:
  // Rows without a path, and the border.
  template <int kRows>
  __device__ __forceinline__ void write_others(const RingBand<kRows>& band, Span* own, bool has_path) const {
    const int end = static_cast<int>(columns);
    for (int64_t row = (has_path ? band.extent.n + before : 0) + band.lane; row < rows; row += band.lanes)
      own[row] = {end, end - 1};
    if (has_path && before > 0 && band.lane == 0) own[0] = {0, 0};
  }
};

// With memory for the steps of all pairs.
inline RingPaths ring_paths(int64_t batch, const RingLayout& layout, Scratch& scratch, Span* spans) {
  RingPaths paths;
  paths.spans = spans;
  paths.rows_of_pair = int64_t{words_of_steps(layout)} * layout.lanes * layout.rows;
  const auto parts = scratch.parts(batch * paths.rows_of_pair * int64_t{sizeof(RowSteps)});
  paths.table = reinterpret_cast<RowSteps*>(parts[0]);
  return paths;
}

}  // namespace softdtw
