// What rings give beside values (rings/ring_kernel.cuh): nothing, or paths as spans, from the steps that their lanes have noted.
//
// The lanes of a ring walk back themselves once they have swept, all by the same way. Of few pairs a ring leaves that to launches
// which walk all parts of a path at once (ring_maps.cuh).
#pragma once

#include "core/hard_path.h"
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
  RowSteps* table;
  int64_t rows_of_pair;  // of the table
  RingMaps maps;
  Span* spans;
  int64_t rows, columns;  // of the spans of a pair, border included where there is one
  int before = 0;         // rows of the border, and columns, that are none of the ring's table

  __device__ RowSteps* of(int64_t pair) const { return table + pair * rows_of_pair; }
  // The launches that come next, if they do: they wait until the steps are there.
  __device__ __forceinline__ void let_walks_start() const {
    if (maps.exist()) ptx::let_next_kernel_start();
  }
  // All rows, of a pair that has its value from its ring, or that none is to have: with all lanes of the ring.
  template <int kRows>
  __device__ __forceinline__ void write(const RingBand<kRows>& band, int64_t pair, bool has_path) const {
    write_others(band, pair, has_path);
    if (has_path) write_rows(band, pair, band.last_block(), 0, band.extent.m - 1);
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
  // Of the blocks from one to another, from a column of the last row on.
  template <int kRows>
  __device__ __forceinline__ void write_rows(
      const RingBand<kRows>& band, int64_t pair, int from_block, int to_block, int column) const {
    Span* const own = spans + pair * rows;
    RingWalk<kRows>(band, of(pair), from_block, column).walk(to_block, [&](int row, int first, int last) {
      if ((row & (band.lanes - 1)) == band.lane) own[row + before] = {first + before, last + before};
    });
  }
};

// Memory for the steps of all pairs, and for maps where they pay.
inline RingPaths ring_paths(int64_t batch, int64_t rows, const RingLayout& layout, Scratch& scratch, Span* spans) {
  const int64_t rows_of_pair = int64_t{words_of_steps(layout)} * layout.lanes * layout.rows;
  const int64_t bytes = batch * rows_of_pair * int64_t{sizeof(RowSteps)};
  RingMaps maps(layout, rows);
  if (!has_ring_maps(batch, rows, maps.width)) {
    const auto parts = scratch.parts(bytes);
    return {reinterpret_cast<RowSteps*>(parts[0]), rows_of_pair, {}, spans, 0, 0};
  }
  const auto parts = scratch.parts(bytes, maps.bytes(batch));
  maps.columns = reinterpret_cast<int*>(parts[1]);
  return {reinterpret_cast<RowSteps*>(parts[0]), rows_of_pair, maps, spans, 0, 0};
}

// The lanes of a ring for every segment of every pair's rows.
template <int kRows, class P>
__global__ void __launch_bounds__(kWarp) ring_path_kernel(
    const __grid_constant__ P problem, const __grid_constant__ RingLayout layout, const float* value, RingPaths paths) {
  ptx::wait_for_kernel_before();
  const int64_t segments = paths.maps.segments, all = problem.batch * segments;
  const int64_t number = int64_t{blockIdx.x} * layout.pairs() + threadIdx.x / layout.lanes, own = min(number, all - 1);
  const int64_t pair = own / segments;
  const int index = static_cast<int>(own % segments);
  const Extent extent = problem.extent(pair);
  const RingBand<kRows> band(layout, extent, true);
  if (number >= all || (extent.valid() && !band.fits)) return;
  const bool has_path = band.fits && isfinite(value[pair]);
  if (index == 0) paths.write_others(band, pair, has_path);
  if (!has_path) return;
  RingSegment<kRows> segment{band, paths.maps.blocks, band.last_block() / paths.maps.blocks};
  if (index > segment.index) return;
  int column = extent.m - 1;
  while (segment.index > index) {
    column = paths.maps.of(pair, segment.index)[column - segment.left_end()];
    --segment.index;
    column += segment.left_end();
  }
  paths.write_rows(band, pair, segment.last_block(), segment.first_block(), column);
}

// After the rings; nothing where they have walked.
template <int kRows, class P>
cudaError_t launch_ring_paths(
    const P& problem, const RingLayout& layout, const float* value, const RingPaths& paths, cudaStream_t stream) {
  if (!paths.maps.exist()) return cudaSuccess;
  const cudaError_t error = launch_ring_maps<kRows>(problem, layout, paths.table, paths.rows_of_pair, paths.maps, stream);
  if (error != cudaSuccess) return error;
  const int64_t segments = problem.batch * paths.maps.segments;
  return launch_kernel_at(
      overlapping(), ring_path_kernel<kRows, P>, ceil_div(segments, layout.pairs()), kWarp, 0, stream, problem, layout,
      value, paths);
}

}  // namespace softdtw
