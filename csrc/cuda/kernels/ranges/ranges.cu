// The best ranges of a series by their ends, (10), by strips that are swept on the chip (ranges_strip.cuh).
//
// Threads to work: block b is pair b, and its W warps have W consecutive strips. They go on together, a chunk at a time, and meet
// at a barrier after each; every strip is as many chunks behind the one above as it takes for the edge between them to be there.
// Where a pair has more strips, the block takes the next W when these are done. The last row of those it has done stands where the
// result is to be: the first warp of the next ones reads a column of it well before their last warp writes that column.
//
// A long series makes one block busy for long. It is up to the caller to pass it as many short ones (torchsoftdtw/_matches).
#include <algorithm>
#include <type_traits>

#include "cuda/hardware/launch.cuh"
#include "ranges.h"
#include "ranges_strip.cuh"

namespace softdtw {
namespace {

constexpr int kMostWarps = 8;

template <class S, class Tile>
__global__ void __launch_bounds__(kWarp* kMostWarps)
    best_ranges_kernel(const __grid_constant__ Problem<typename S::Scalar> problem, double* value, int32_t* start) {
  __shared__ RangesEdge<S> edges[kMostWarps][2];  // of a strip, its groups in turn
  const int lane = threadIdx.x, warp = threadIdx.y, warps = blockDim.y;
  const int64_t pair = blockIdx.x;
  const Extent extent = problem.extent(pair);
  const RangesRow row{value + pair * problem.m, start + pair * problem.m};
  constexpr int kBehind = S::kSkewChunks + 1;  // a group of an edge is written kSkewChunks after it is swept, and read next
  const int strips = strips_of<S>(extent);
  for (int first = 0; first < strips; first += warps) {
    const int bottom = min(first + warps, strips) - 1, index = min(first + warp, bottom);
    RangesSweep<S, Tile> sweep(problem, extent, pair, index, bottom, lane);
    const int chunks = first + warp <= bottom ? sweep.chunks() : 0, stop = kBehind * (bottom - first) + sweep.chunks();
    for (int time = 0; time < stop; ++time) {
      const int chunk = time - kBehind * warp;
      if (chunk >= 0 && chunk < chunks) {
        const RangesEdge<S>* const above = warp == 0 ? nullptr : &edges[warp - 1][chunk & 1];
        sweep.sweep(chunk, above, edges[warp][sweep.own_group(chunk) & 1], row);
      }
      __syncthreads();
    }
  }
}

template <class Tile, class S>
cudaError_t launch(const Problem<typename S::Scalar>& problem, double* value, int32_t* start, cudaStream_t stream) {
  const int64_t strips = (problem.n + S::kStripRows - 1) / S::kStripRows;
  const dim3 threads(kWarp, static_cast<unsigned>(std::min<int64_t>(strips, kMostWarps)));
  return launch_kernel(best_ranges_kernel<S, Tile>, problem.batch, threads, 0, stream, problem, value, start);
}

}  // namespace

template <typename T>
cudaError_t best_ranges(const Problem<T>& problem, double* value, int32_t* start, cudaStream_t stream) {
  using S = Shape<T, sizeof(T) == 4 ? 4 : 2>;
  if constexpr (std::is_same_v<T, float>)
    if (problem.cost == Cost::kSqEuclidean && problem.dim == 1)
      return launch<UnivariateTile<S>, S>(problem, value, start, stream);
  return launch<DenseTile<S>, S>(problem, value, start, stream);
}

template cudaError_t best_ranges<float>(const Problem<float>&, double*, int32_t*, cudaStream_t);
template cudaError_t best_ranges<double>(const Problem<double>&, double*, int32_t*, cudaStream_t);

}  // namespace softdtw
