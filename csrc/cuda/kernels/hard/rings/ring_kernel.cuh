// The kernel of rings in hard DTW (hard_ring.cuh), whatever the series: values, and paths as spans.
//
// A block has a warp's pairs: one warp for them, or with two sides two. Pairs whose band is wider than the ring are left out.
#pragma once

#include "cuda/hardware/launch.cuh"
#include "cuda/kernels/hard/paths/ring_paths.cuh"
#include "hard_ring.cuh"

namespace softdtw {
namespace {

extern __shared__ int4 hard_ring_memory[];

// What a ring of one side leaves after its sweep, which returned `last` and needs its shared memory no longer.
template <class Side, class Paths>
__device__ __forceinline__ void leave_value(
    const Side& side, int64_t pair, bool exists, double last, float* value, const Paths& paths) {
  const bool holds_value = side.holds_last_cell();
  if (holds_value) value[pair] = static_cast<float>(last);
  if constexpr (std::is_same_v<Paths, RingPaths>) {
    const bool has_path = side.band.any_of_pair(holds_value && isfinite(static_cast<float>(last)));
    paths.write(side.band, pair, exists && (side.band.fits || !side.is_whole_valid()), has_path, hard_ring_memory);
  }
}

template <class Series, bool kPenalty, bool kTwoSides, class P, class Paths>
__global__ void __launch_bounds__(kWarp * (1 + kTwoSides)) hard_ring_kernel(
    const __grid_constant__ P problem, const __grid_constant__ HardRingLayout layout, float* value, Paths paths) {
  const int number = threadIdx.x / layout.lanes, pairs = layout.pairs();
  const int64_t own = int64_t{blockIdx.x} * pairs + number;
  const bool exists = own < problem.batch, is_lower = kTwoSides && threadIdx.y == 1;
  HardRingSide<Series, kPenalty, kTwoSides, P, typename Paths::template Steps<Series::kRows>> side(
      problem, layout, min(own, problem.batch - 1), exists, is_lower);
  const bool is_first = exists && !is_lower && side.band.lane == 0;
  if (is_first && !side.is_whole_valid()) value[own] = NAN;
  double* const meets = reinterpret_cast<double*>(hard_ring_memory) + number * layout.columns_that_meet();
  double* const own_meets = meets + is_lower * pairs * layout.columns_that_meet();
  float* const series =
      reinterpret_cast<float*>(reinterpret_cast<double*>(hard_ring_memory) + 2 * pairs * layout.columns_that_meet());
  for (int i = side.band.lane; i < layout.columns_that_meet(); i += side.band.lanes) own_meets[i] = INFINITY;
  const bool any_fits = __any_sync(kAllLanes, side.band.fits);
  double last = 0;
  if (any_fits) {
    side.read_series(layout, series + (is_lower * pairs + number) * layout.floats_of_series);
    last = side.sweep(own_meets, paths.of(own));
  }
  if constexpr (kTwoSides) {
    __syncthreads();
    if (is_lower || !any_fits) return;
    last = side.meeting(meets, meets + pairs * layout.columns_that_meet());
    if (is_first && side.band.fits) value[own] = static_cast<float>(last);
  } else {
    leave_value(side, own, exists, last, value, paths);
  }
}

// A kernel, launched with a warp's pairs for each block.
template <class Kernel, class P, class Paths>
cudaError_t launch_ring_kernel(
    Kernel kernel, const P& problem, const HardRingLayout& layout, int sides, float* value, const Paths& paths,
    cudaStream_t stream) {
  const int64_t bytes = std::max(layout.bytes(), Paths::shared_bytes(layout));
  return launch_kernel(
      kernel, ceil_div(problem.batch, layout.pairs()), dim3(kWarp, sides), bytes, stream, problem, layout, value, paths);
}

// SeriesOf: Series<rows of a lane>, a type of ring_series.cuh, and has_rows(), which of them there are, and has_one_side(), of which.
template <class SeriesOf, bool kPenalty>
cudaError_t launch_ring(
    const Problem<float>& problem, const HardRing& ring, float* value, Span* spans, Scratch& scratch, cudaStream_t stream) {
  const bool has_two_sides = ring.sides == 2;
  const int64_t side_rows = has_two_sides ? upper_rows(static_cast<int>(problem.n)) : problem.n;
  const int64_t side_columns = ring.columns_of_side(call_of(problem, spans != nullptr));
  const auto launch = [&](auto rows) {
    if constexpr (!SeriesOf::has_rows(rows())) {
      return cudaErrorInvalidValue;
    } else {
      using Series = typename SeriesOf::template Series<rows()>;
      const HardRingLayout layout(static_cast<int>(side_rows), static_cast<int>(side_columns), ring, Series::floats_of);
      using P = Problem<float>;
      const auto run = [&](auto kernel, const auto& paths) {
        return launch_ring_kernel(kernel, problem, layout, ring.sides, value, paths, stream);
      };
      if (has_two_sides) return run(hard_ring_kernel<Series, kPenalty, true, P, NoPaths>, NoPaths());
      if constexpr (!SeriesOf::has_one_side(rows())) {
        return cudaErrorInvalidValue;
      } else {
        if (spans == nullptr) return run(hard_ring_kernel<Series, kPenalty, false, P, NoPaths>, NoPaths());
        RingPaths paths = ring_paths(problem.batch, layout, scratch, spans);
        paths.rows = problem.n, paths.columns = problem.m;
        return run(hard_ring_kernel<Series, kPenalty, false, P, RingPaths>, paths);
      }
    }
  };
  switch (ring.of_side.rows) {
    case 4:
      return launch(std::integral_constant<int, 4>());
    case 6:
      return launch(std::integral_constant<int, 6>());
    case 8:
      return launch(std::integral_constant<int, 8>());
    default:
      return launch(std::integral_constant<int, kRowsOfFewPairs>());
  }
}

}  // namespace
}  // namespace softdtw
