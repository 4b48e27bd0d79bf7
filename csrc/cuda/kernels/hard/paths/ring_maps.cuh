// Few pairs' paths along a band: a pair's rows are cut into segments, which are walked at once, as strips are (strip_maps.cuh). A map has
// for every column of the band in a segment's last row the column of the row above the segment by which a path comes in. ring_walks.cuh has
// who makes them and walks.
#pragma once

#include <algorithm>

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

// The entry of a segment's map at a place of the band, or -1 where there is no column.
template <int kRows>
__device__ __forceinline__ int map_entry(
    const RingBand<kRows>& band, const RowSteps* table, int blocks, int index, int place) {
  const RingSegment<kRows> own{band, blocks, index}, above{band, blocks, index - 1};
  const int column = own.left_end() + place;
  if (place >= band.width || column < 0 || column >= band.extent.m) return -1;
  RingWalk<kRows> walk(band, table, own.last_block(), column);
  const int comes_in_by = walk.walk(own.first_block(), [](int, int, int) {}) - above.left_end();
  // Of cells that no path reaches it may be any.
  return min(max(comes_in_by, 0), band.width - 1);
}

// The column of a segment's last row from which the path goes on back, by the maps of the segments below: map_of(index).
template <int kRows, class MapOf>
__device__ __forceinline__ int last_column(const RingSegment<kRows>& own, MapOf&& map_of) {
  RingSegment<kRows> segment{own.band, own.blocks, own.band.last_block() / own.blocks};
  int column = own.band.extent.m - 1;
  while (segment.index > own.index) {
    column = map_of(segment.index)[column - segment.left_end()];
    --segment.index;
    column += segment.left_end();
  }
  return column;
}

}  // namespace softdtw
