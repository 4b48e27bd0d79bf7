// Values of hard DTW of one dimension with a band, by rings of lanes (hard_ring.cuh), in float32.
//
// A block has a warp's pairs: one warp for them, or with two sides two. Pairs whose band is wider than the ring are left out.
#include "hard_banded.h"

#include "cuda/hardware/launch.cuh"
#include "hard_ring.cuh"

namespace softdtw {
namespace {

extern __shared__ int4 hard_ring_memory[];

template <int kRows, class CellCost, bool kPenalty, bool kTwoSides>
__global__ void __launch_bounds__(kWarp * (1 + kTwoSides)) hard_ring_kernel(
    const __grid_constant__ Problem<float> problem, const __grid_constant__ HardRingLayout layout, float* value) {
  const int number = threadIdx.x / layout.lanes, pairs = layout.pairs();
  const int64_t own = int64_t{blockIdx.x} * pairs + number;
  const bool exists = own < problem.batch, is_lower = kTwoSides && threadIdx.y == 1;
  HardRingSide<kRows, CellCost, kPenalty, kTwoSides> side(problem, layout, min(own, problem.batch - 1), exists, is_lower);
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
    side.read_series(layout, series + (is_lower * pairs + number) * layout.floats_of_pair());
    last = side.sweep(own_meets);
  }
  if constexpr (kTwoSides) {
    __syncthreads();
    if (is_lower || !any_fits) return;
    last = side.meeting(meets, meets + pairs * layout.columns_that_meet());
    if (is_first && side.band.fits) value[own] = static_cast<float>(last);
  } else {
    if (side.holds_last_cell()) value[own] = static_cast<float>(last);
  }
}

// Calls f with the rows of a lane, as the type of a number.
template <class F>
cudaError_t with_rows(int rows, F&& f) {
  if (rows == 4) return f(std::integral_constant<int, 4>());
  if (rows == 6) return f(std::integral_constant<int, 6>());
  return rows == 8 ? f(std::integral_constant<int, 8>()) : f(std::integral_constant<int, kRowsOfFewPairs>());
}

template <class CellCost, bool kPenalty>
cudaError_t launch(const Problem<float>& problem, const HardRing& ring, float* value, cudaStream_t stream) {
  const bool has_two_sides = ring.sides == 2;
  const int64_t rows = has_two_sides ? upper_rows(static_cast<int>(problem.n)) : problem.n;
  const HardRingLayout layout(
      static_cast<int>(rows), static_cast<int>(ring.columns_of_side(call_of(problem, false))), ring);
  const auto run = [&](auto kernel) {
    return launch_kernel(
        kernel, ceil_div(problem.batch, layout.pairs()), dim3(kWarp, ring.sides), layout.bytes(), stream, problem, layout,
        value);
  };
  return with_rows(layout.rows, [&](auto rows) {
    if (has_two_sides) return run(hard_ring_kernel<rows(), CellCost, kPenalty, true>);
    if constexpr (rows() == kRowsOfFewPairs)
      return cudaErrorInvalidValue;
    else
      return run(hard_ring_kernel<rows(), CellCost, kPenalty, false>);
  });
}

}  // namespace

// Only squared differences have a sweep of their own without a penalty.
cudaError_t hard_ring_forward(const Problem<float>& problem, const HardRing& ring, float* value, cudaStream_t stream) {
  const bool has_penalty = call_of(problem, false).has_penalty;
  if (problem.cost != Cost::kSqEuclidean) return launch<HardAnyCost, true>(problem, ring, value, stream);
  return has_penalty ? launch<HardSquared, true>(problem, ring, value, stream)
                     : launch<HardSquared, false>(problem, ring, value, stream);
}

}  // namespace softdtw
