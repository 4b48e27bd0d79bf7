// Few pairs' paths along a band: a pair's rows are cut into segments, which are walked at once, as strips are (strip_maps.cuh). A map has
// for every column of the band in a segment's last row the column of the row above the segment by which a path comes in.
#pragma once

#include "cuda/hardware/launch.cuh"
#include "ring_steps.cuh"

namespace softdtw {

// Columns count from the left end of the band in their row.
struct RingMaps {
  // [pair][segment][column]. Of the first segment there is nothing above: its place stays empty.
  int* columns = nullptr;
  int blocks = 0;  // a lane's, that a segment has
  int segments = 0, width = 0;

  RingMaps() = default;
  __host__ RingMaps(const RingLayout& layout, int64_t rows_of_pair)
      : blocks(std::max(rows_of_segment(rows_of_pair) / layout.rows, 1)),
        segments(static_cast<int>(ceil_div(rows_of_pair, blocks * layout.rows))),
        width(layout.widest()) {}
  __host__ int64_t bytes(int64_t batch) const { return batch * segments * width * int64_t{sizeof(int)}; }
  // About so many: walks along a segment, and look-ups, one for each segment below, take least together.
  __host__ static int rows_of_segment(int64_t rows_of_pair) { return rows_of_pair <= 640 ? 32 : 64; }

  __host__ __device__ bool exist() const { return columns != nullptr; }
  __device__ __forceinline__ int* of(int64_t pair, int segment) const {
    return columns + (pair * segments + segment) * width;
  }
};

// A segment of a pair's rows.
template <int kRows>
struct RingSegment {
  const RingBand<kRows>& band;
  int blocks, index;

  __device__ int first_block() const { return index * blocks; }
  __device__ int last_block() const { return min(first_block() + blocks - 1, band.last_block()); }
  __device__ int last_row() const { return min((last_block() + 1) * kRows, band.extent.n) - 1; }
  __device__ int left_end() const { return last_row() + band.extent.low; }
};

constexpr int kRingMapThreads = 128;

// A thread for every column of the band in the last row of every segment but the first.
template <int kRows, class P>
__global__ void __launch_bounds__(kRingMapThreads) ring_map_kernel(
    const __grid_constant__ P problem, const __grid_constant__ RingLayout layout, const RowSteps* table,
    int64_t rows_of_pair, RingMaps maps) {
  ptx::let_next_kernel_start();
  ptx::wait_for_kernel_before();
  const int blocks_of_map = (maps.width + kRingMapThreads - 1) / kRingMapThreads;
  const int64_t map = blockIdx.x / blocks_of_map, pair = map / (maps.segments - 1);
  const RingBand<kRows> band(layout, problem.extent(pair), true);
  const RingSegment<kRows> own{band, maps.blocks, static_cast<int>(map % (maps.segments - 1)) + 1};
  const RingSegment<kRows> above{band, maps.blocks, own.index - 1};
  if (!band.fits || own.first_block() > band.last_block()) return;
  const int place = static_cast<int>(blockIdx.x % blocks_of_map) * kRingMapThreads + threadIdx.x;
  const int column = own.left_end() + place;
  if (place >= band.width || column < 0 || column >= band.extent.m) return;
  RingWalk<kRows> walk(band, table + pair * rows_of_pair, own.last_block(), column);
  const int comes_in_by = walk.walk(own.first_block(), [](int, int, int) {}) - above.left_end();
  // Of cells that no path reaches it may be any.
  maps.of(pair, own.index)[place] = min(max(comes_in_by, 0), band.width - 1);
}

template <int kRows, class P>
cudaError_t launch_ring_maps(
    const P& problem, const RingLayout& layout, const RowSteps* table, int64_t rows_of_pair, const RingMaps& maps,
    cudaStream_t stream) {
  const int64_t blocks = problem.batch * (maps.segments - 1) * ceil_div(maps.width, kRingMapThreads);
  return launch_kernel_at(
      overlapping(), ring_map_kernel<kRows, P>, blocks, kRingMapThreads, 0, stream, problem, layout, table, rows_of_pair,
      maps);
}

}  // namespace softdtw
