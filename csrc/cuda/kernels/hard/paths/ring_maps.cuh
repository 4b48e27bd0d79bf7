// Few pairs' paths along a band: a pair's rows are cut into segments, which are walked at once, as strips are (strip_maps.cuh). A map has
// for every column of the band in a segment's last row the column of the row above the segment by which a path comes in.
#pragma once

#include "cuda/hardware/launch.cuh"
#include "ring_steps.cuh"

namespace softdtw {

// Columns count from the left end of the band in their row.
struct RingMaps {
  int* columns =
      nullptr;  // [pair][segment][column]; of the first segment there is nothing above, and its place stays empty
  int segments = 0, width = 0;

  RingMaps() = default;
  __host__ RingMaps(const RingLayout& layout, int64_t rows_of_pair)
      : segments(segments_of(layout.rows, static_cast<int>(rows_of_pair))), width(layout.widest()) {}
  __host__ int64_t bytes(int64_t batch) const { return batch * segments * width * int64_t{sizeof(int)}; }
  // Of a segment: some 64 rows, so that both the walks and the look-ups, one for each segment below, are short.
  __host__ __device__ static constexpr int blocks_of_segment(int rows) { return 64 / rows; }
  __host__ __device__ static int segments_of(int rows, int n) {
    const int of_segment = blocks_of_segment(rows) * rows;
    return (n + of_segment - 1) / of_segment;
  }

  __host__ __device__ bool exist() const { return columns != nullptr; }
  __device__ __forceinline__ int* of(int64_t pair, int segment) const {
    return columns + (pair * segments + segment) * width;
  }
};

// A segment of a pair's rows.
template <int kRows>
struct RingSegment {
  const RingBand<kRows>& band;
  int index;

  __device__ int first_block() const { return index * RingMaps::blocks_of_segment(kRows); }
  __device__ int last_block() const {
    return min(first_block() + RingMaps::blocks_of_segment(kRows) - 1, band.last_block());
  }
  __device__ int last_row() const { return min((last_block() + 1) * kRows, band.extent.n) - 1; }
  __device__ int left_end() const { return last_row() + band.extent.low; }
};

constexpr int kRingMapThreads = 128;

// A thread for every column of the band in the last row of every segment but the first.
template <int kRows, class P>
__global__ void __launch_bounds__(kRingMapThreads) ring_map_kernel(
    const __grid_constant__ P problem, const __grid_constant__ RingLayout layout, const RowSteps* table,
    int64_t rows_of_pair, RingMaps maps) {
  const int blocks_of_segment = (maps.width + kRingMapThreads - 1) / kRingMapThreads;
  const int64_t of_pairs = blockIdx.x / blocks_of_segment, pair = of_pairs / (maps.segments - 1);
  const RingBand<kRows> band(layout, problem.extent(pair), true);
  const RingSegment<kRows> own{band, static_cast<int>(of_pairs % (maps.segments - 1)) + 1}, above{band, own.index - 1};
  if (!band.fits || own.first_block() > band.last_block()) return;
  const int place = static_cast<int>(blockIdx.x % blocks_of_segment) * kRingMapThreads + threadIdx.x;
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
  const int64_t blocks_of_segment = (maps.width + kRingMapThreads - 1) / kRingMapThreads;
  const int64_t blocks = problem.batch * (maps.segments - 1) * blocks_of_segment;
  return launch_kernel(
      ring_map_kernel<kRows, P>, blocks, kRingMapThreads, 0, stream, problem, layout, table, rows_of_pair, maps);
}

}  // namespace softdtw
