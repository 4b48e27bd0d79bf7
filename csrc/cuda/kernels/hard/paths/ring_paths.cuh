// What rings give beside values (rings/ring_kernel.cuh): nothing, or paths as spans, from the steps that their lanes have noted.
//
// The lanes of a ring walk back themselves once they have swept, all by the same way. Of few pairs a ring leaves that to the launches of
// ring_walks.cuh.
#pragma once

#include "core/hard_path.h"
#include "cuda/hardware/device.h"
#include "cuda/scratch.h"
#include "cuda/select/hard.h"
#include "ring_maps.cuh"

namespace softdtw {

struct NoPaths {
  template <int kRows>
  using Steps = NoSteps;

  __device__ RowSteps* of(int64_t) const { return nullptr; }
  __device__ __forceinline__ void let_walks_start() const {}
};

struct RingPaths {
  template <int kRows>
  using Steps = RingSteps<kRows>;
  RingWalks walks = RingWalks::kOfLanes;
  RowSteps* table = nullptr;
  int64_t rows_of_pair = 0;  // of the table
  RingMaps maps;
  Span* spans = nullptr;
  int64_t rows = 0, columns = 0;  // of the spans of a pair, border included where there is one
  int before = 0;                 // rows of the border, and columns, that are none of the ring's table

  __device__ RowSteps* of(int64_t pair) const { return table + pair * rows_of_pair; }
  // The launches that come next, if they do: they wait until the steps are there.
  __device__ __forceinline__ void let_walks_start() const {
    if (walks != RingWalks::kOfLanes) ptx::let_next_kernel_start();
  }
  // All rows, of a pair that has its value from its ring, or that none is to have: with all lanes of the ring.
  template <int kRows>
  __device__ __forceinline__ void write(const RingBand<kRows>& band, int64_t pair, bool has_path) const {
    write_others(band, pair, has_path);
    if (has_path) write_rows(band, of(pair), pair, band.last_block(), 0, band.extent.m - 1);
  }
  // Rows without a path, and the border.
  template <int kRows>
  __device__ __forceinline__ void write_others(const RingBand<kRows>& band, int64_t pair, bool has_path) const {
    Span* const own = spans + pair * rows;
    const int end = static_cast<int>(columns);
    for (int64_t row = (has_path ? band.extent.n + before : 0) + band.lane; row < rows; row += band.lanes)
      own[row] = {end, end - 1};
    if (has_path && before > 0 && band.lane == 0) own[0] = {0, 0};
  }
  // Of the blocks from one to another, from a column of the last row on. own_table: the pair's, wherever it is.
  template <int kRows>
  __device__ __forceinline__ void write_rows(
      const RingBand<kRows>& band, const RowSteps* own_table, int64_t pair, int from_block, int to_block,
      int column) const {
    Span* const own = spans + pair * rows;
    RingWalk<kRows>(band, own_table, from_block, column).walk(to_block, [&](int row, int first, int last) {
      if ((row & (band.lanes - 1)) == band.lane) own[row + before] = {first + before, last + before};
    });
  }
};

// Memory for the steps of all pairs, and for maps where these are in device memory.
inline RingPaths ring_paths(int64_t batch, int64_t rows, const RingLayout& layout, Scratch& scratch, Span* spans) {
  RingPaths paths;
  paths.spans = spans;
  paths.rows_of_pair = int64_t{words_of_steps(layout)} * layout.lanes * layout.rows;
  paths.maps = RingMaps(layout, rows);
  const int64_t bytes = paths.rows_of_pair * int64_t{sizeof(RowSteps)};
  paths.walks = ring_walks(batch, rows, paths.maps.width, bytes + paths.maps.bytes(1), current_device());
  const bool has_maps = paths.walks == RingWalks::kOfMaps;
  const auto parts = scratch.parts(batch * bytes, has_maps ? paths.maps.bytes(batch) : 0);
  paths.table = reinterpret_cast<RowSteps*>(parts[0]);
  if (has_maps) paths.maps.columns = reinterpret_cast<int*>(parts[1]);
  return paths;
}

}  // namespace softdtw
