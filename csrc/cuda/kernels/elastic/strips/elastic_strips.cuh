// Hard values and paths of elastic measures by blocks of strips (hard_block.cuh), with a tile of elastic_tile.cuh.
#pragma once

#include "cuda/kernels/elastic/elastic_table.cuh"
#include "cuda/kernels/hard/hard_block.cuh"

namespace softdtw {

// A warp for each pair, or with maps for each of its strips, but those whose band has no more than `width_of_others` columns. Rows and columns of spans count from the border.
template <class S>
__global__ void __launch_bounds__(kWarp) elastic_path_kernel(
    const __grid_constant__ ElasticTable<typename S::Scalar> problem, const typename S::Scalar* value, StepTable<S> table,
    StripMaps<S> maps, const int* ends, Span* spans, int width_of_others) {
  const PathOfBlock<S> path(table, maps);
  const int64_t pair = path.pair;
  const Extent extent = problem.extent(pair);
  if (extent.valid() && extent.high - extent.low < width_of_others) return;
  const bool exists = extent.valid() && isfinite(value[pair]);
  const int m = static_cast<int>(problem.m), lane = threadIdx.x, beyond = 1 - problem.shift();
  spans += pair * (problem.n + 1);
  if (path.has_first_row())
    for (int row = (exists ? extent.n + 1 : 0) + lane; row <= problem.n; row += kWarp) spans[row] = {m + 1, m};
  if (!exists) return;
  path.walk(extent, ends[pair], lane, [&](int row, Span span, bool is_diagonal) {
    if (lane != 0) return;
    spans[row + 1] = {span.first + beyond, span.last + beyond};
    if (row == 0) spans[0] = {0, span.first + beyond - is_diagonal};
  });
}

template <class Tile, bool kPath, bool kMayHaveGroups, class S = typename Tile::Shape>
cudaError_t launch_elastic(
    const ElasticTable<typename S::Scalar>& problem, typename S::Scalar* value, Span* spans, Scratch& scratch,
    cudaStream_t stream, int width_of_others = 0) {
  const Problem<typename S::Scalar> sizes = problem.sizes();
  const HardBlocks<S> blocks(sizes);
  const HardMemory<S> memory(sizes, blocks.tickets(), kPath, scratch);
  cudaError_t error =
      launch_hard_sweep<Tile, kPath, kMayHaveGroups>(problem, blocks, false, value, memory, stream, width_of_others);
  if constexpr (kPath) {
    if (error == cudaSuccess) error = launch_strip_maps(problem, memory.table, memory.maps, width_of_others, stream);
    if (error == cudaSuccess)
      error = launch_kernel(
          elastic_path_kernel<S>, memory.blocks_of_paths(problem.batch), kWarp, 0, stream, problem, value, memory.table,
          memory.maps, memory.ends, spans, width_of_others);
  }
  return error;
}

}  // namespace softdtw
