// Hard elastic measures of one dimension with a band, by the rings of hard DTW (kernels/hard/rings/ring_kernel.cuh), in float32.
#include "cuda/kernels/elastic/elastic_kernels.h"
#include "cuda/kernels/hard/rings/ring_kernel.cuh"
#include "elastic_ring.cuh"

namespace softdtw {
namespace {

// Calls f with a null pointer of the series' type.
template <int kRows, class F>
cudaError_t with_elastic_ring(Measure measure, F&& f) {
  return with_measure<float>(measure, [&](auto type) {
    using Type = decltype(type);
    if constexpr (kIs<Type, Twed>)
      return f(static_cast<TwedRing<kRows>*>(nullptr));
    else if constexpr (kIs<Type, Msm>)
      return f(static_cast<MsmRing<kRows>*>(nullptr));
    else if constexpr (kIs<Type, Weighted>)
      return f(static_cast<WeightedRing<kRows>*>(nullptr));
    else if constexpr (kIs<Type, Edit>)
      return f(static_cast<EditRing<kRows, EditMatch>*>(nullptr));
    else
      return f(static_cast<EditRing<kRows, ThresholdMatch>*>(nullptr));
  });
}

}  // namespace

cudaError_t elastic_ring_forward(
    const ElasticProblem<float>& problem, const HardRing& ring, float* value, Span* spans, Scratch& scratch,
    cudaStream_t stream) {
  const ElasticRingTable table(problem);
  const int shift = table.shift();
  const auto with = [&](auto* series) {
    using Series = std::remove_pointer_t<decltype(series)>;
    const HardRingLayout layout(
        static_cast<int>(problem.n) + shift, static_cast<int>(problem.m) + shift, ring, Series::floats_of);
    const auto run = [&](auto kernel, const auto& paths) {
      return launch_ring_kernel(kernel, table, layout, 1, value, paths, stream);
    };
    if (spans == nullptr) return run(hard_ring_kernel<Series, false, false, ElasticRingTable, NoPaths>, NoPaths());
    RingPaths paths = ring_paths(problem.batch, layout, scratch, spans);
    paths.rows = problem.n + 1, paths.columns = problem.m + 1, paths.before = 1 - shift;
    return run(hard_ring_kernel<Series, false, false, ElasticRingTable, RingPaths>, paths);
  };
  return ring.of_side.rows == 4 ? with_elastic_ring<4>(problem.measure, with) : with_elastic_ring<8>(problem.measure, with);
}

}  // namespace softdtw
