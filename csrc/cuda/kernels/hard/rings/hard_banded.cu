// Hard DTW of one dimension with a band, by rings of lanes (hard_ring.cuh), in float32.
#include "hard_banded.h"

#include "ring_kernel.cuh"

namespace softdtw {
namespace {

template <class CellCost>
struct NumbersOf {
  template <int kRows>
  using Series = HardNumbers<kRows, CellCost>;
  static constexpr bool has_rows(int) { return true; }
  static constexpr bool has_one_side(int) { return true; }
};

}  // namespace

// Only squared differences have a sweep of their own without a penalty.
cudaError_t hard_ring_forward(
    const Problem<float>& problem, const HardRing& ring, float* value, Span* spans, Scratch& scratch, cudaStream_t stream) {
  const auto run = [&](auto launch) { return launch(problem, ring, value, spans, scratch, stream); };
  if (ring.cost_blocks > 0) return run(hard_cost_ring_forward);
  if (problem.dim > 1) return run(hard_ring_forward_of_vectors);
  if (problem.cost != Cost::kSqEuclidean) return run(launch_ring<NumbersOf<HardAnyCost>, true>);
  const bool has_penalty = call_of(problem, false).has_penalty;
  return has_penalty ? run(launch_ring<NumbersOf<HardSquared>, true>) : run(launch_ring<NumbersOf<HardSquared>, false>);
}

}  // namespace softdtw
