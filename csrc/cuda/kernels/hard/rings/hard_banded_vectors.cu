// Hard DTW of up to eight dimensions with a band, by rings of lanes (hard_ring.cuh), in float32.
#include "hard_banded.h"
#include "ring_kernel.cuh"

namespace softdtw {
namespace {

template <int kFours, class CostType>
struct VectorsOf {
  template <int kRows>
  using Series = HardVectors<kRows, kFours, CostType>;
  static constexpr bool has_rows(int rows) { return are_rows_of_vectors(rows, 4 * kFours); }
  static constexpr bool has_one_side(int rows) { return rows != kRowsOfFewPairs; }
};

}  // namespace

cudaError_t hard_ring_forward_of_vectors(
    const Problem<float>& problem, const HardRing& ring, float* value, Span* spans, Scratch& scratch, cudaStream_t stream) {
  static_assert(kFewDims == 8);
  const auto run = [&](auto launch) { return launch(problem, ring, value, spans, scratch, stream); };
  return with_squared_or_not(problem.cost, [&](auto type) {
    using CostType = decltype(type);
    return problem.dim <= 4 ? run(launch_ring<VectorsOf<1, CostType>, true>)
                            : run(launch_ring<VectorsOf<2, CostType>, true>);
  });
}

}  // namespace softdtw
