// Launches that walk back along few pairs' paths once their rings have noted the steps (ring_paths.cuh), all segments of a pair at once: a block
// for each pair, to whose shared memory all of its steps go, or where these are too many, a launch that makes maps and one that walks.
#pragma once

#include "cuda/hardware/launch.cuh"
#include "ring_paths.cuh"

namespace softdtw {

extern __shared__ uint4 ring_walk_memory[];

constexpr int kRingMapThreads = 128;
constexpr int ring_block_threads(int rows) { return rows == 4 ? 1024 : 512; }

// By lanes of a ring that are a segment's; map_of: of the pair.
template <int kRows, class MapOf>
__device__ __forceinline__ void write_segment(
    const RingPaths& paths, const RingSegment<kRows>& own, const RowSteps* table, int64_t pair, MapOf&& map_of) {
  paths.write_rows(own.band, table, pair, own.last_block(), own.first_block(), last_column(own, map_of));
}

// A block for each pair.
template <int kRows, class P>
__global__ void __launch_bounds__(ring_block_threads(kRows)) ring_block_path_kernel(
    const __grid_constant__ P problem, const __grid_constant__ RingLayout layout, const float* value, RingPaths paths) {
  ptx::wait_for_kernel_before();
  const int64_t pair = blockIdx.x;
  const Extent extent = problem.extent(pair);
  const RingBand<kRows> band(layout, extent, true);
  if (extent.valid() && !band.fits) return;
  const bool has_path = band.fits && isfinite(value[pair]);
  if (threadIdx.x < band.lanes) paths.write_others(band, pair, has_path);
  if (!has_path) return;
  const int fours = static_cast<int>(paths.rows_of_pair * sizeof(RowSteps) / sizeof(uint4));
  const uint4* const from = reinterpret_cast<const uint4*>(paths.of(pair));
  for (int i = threadIdx.x; i < fours; i += ring_block_threads(kRows)) ring_walk_memory[i] = from[i];
  __syncthreads();
  const RowSteps* const table = reinterpret_cast<const RowSteps*>(ring_walk_memory);
  int* const maps = reinterpret_cast<int*>(ring_walk_memory + fours);
  const int blocks = paths.maps.blocks, segments = band.last_block() / blocks + 1;
  for (int i = threadIdx.x; i < (segments - 1) * band.width; i += ring_block_threads(kRows))
    maps[i] = map_entry(band, table, blocks, i / band.width + 1, i % band.width);
  __syncthreads();
  const auto map_of = [&](int segment) { return maps + (segment - 1) * band.width; };
  for (int index = threadIdx.x / band.lanes; index < segments; index += ring_block_threads(kRows) / band.lanes)
    write_segment(paths, RingSegment<kRows>{band, blocks, index}, table, pair, map_of);
}

// A thread for every column of the band in the last row of every segment but the first.
template <int kRows, class P>
__global__ void __launch_bounds__(kRingMapThreads)
    ring_map_kernel(const __grid_constant__ P problem, const __grid_constant__ RingLayout layout, RingPaths paths) {
  ptx::let_next_kernel_start();
  ptx::wait_for_kernel_before();
  const int blocks_of_map = (paths.maps.width + kRingMapThreads - 1) / kRingMapThreads;
  const int64_t map = blockIdx.x / blocks_of_map, pair = map / (paths.maps.segments - 1);
  const RingBand<kRows> band(layout, problem.extent(pair), true);
  const int index = static_cast<int>(map % (paths.maps.segments - 1)) + 1;
  if (!band.fits || index * paths.maps.blocks > band.last_block()) return;
  const int place = static_cast<int>(blockIdx.x % blocks_of_map) * kRingMapThreads + threadIdx.x;
  const int entry = map_entry(band, paths.of(pair), paths.maps.blocks, index, place);
  if (entry >= 0) paths.maps.of(pair, index)[place] = entry;
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
  if (!has_path || index * paths.maps.blocks > band.last_block()) return;
  const auto map_of = [&](int segment) { return paths.maps.of(pair, segment); };
  write_segment(paths, RingSegment<kRows>{band, paths.maps.blocks, index}, paths.of(pair), pair, map_of);
}

// After the rings; nothing where their lanes have walked.
template <int kRows, class P>
cudaError_t launch_ring_paths(
    const P& problem, const RingLayout& layout, const float* value, const RingPaths& paths, cudaStream_t stream) {
  if (paths.walks == RingWalks::kOfLanes) return cudaSuccess;
  if (paths.walks == RingWalks::kOfBlocks) {
    const int64_t bytes = paths.rows_of_pair * int64_t{sizeof(RowSteps)} + paths.maps.bytes(1);
    return launch_kernel_at(
        overlapping(), ring_block_path_kernel<kRows, P>, problem.batch, ring_block_threads(kRows), bytes, stream, problem,
        layout, value, paths);
  }
  const int64_t maps = problem.batch * (paths.maps.segments - 1) * ceil_div(paths.maps.width, kRingMapThreads);
  const cudaError_t error =
      launch_kernel_at(overlapping(), ring_map_kernel<kRows, P>, maps, kRingMapThreads, 0, stream, problem, layout, paths);
  if (error != cudaSuccess) return error;
  const int64_t blocks = ceil_div(problem.batch * paths.maps.segments, layout.pairs());
  return launch_kernel_at(
      overlapping(), ring_path_kernel<kRows, P>, blocks, kWarp, 0, stream, problem, layout, value, paths);
}

}  // namespace softdtw
