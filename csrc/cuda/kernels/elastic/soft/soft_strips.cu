// Soft elastic measures of one dimension by strips: which measure is whose, and what has no kernel of its own.
#include "soft_strips.h"

#include "cuda/kernels/elastic/elastic_gradient.cuh"
#include "soft_cell.cuh"

namespace softdtw {
namespace {

// Calls f with a null pointer of the tile's type.
template <typename T, class F>
cudaError_t with_soft_tile(const ElasticProblem<T>& problem, F&& f) {
  using S = SoftShape<T>;
  if (problem.measure == Measure::kEdit) return f(static_cast<SoftEdit<S>*>(nullptr));
  if (problem.measure == Measure::kTwed) return f(static_cast<SoftTwed<S>*>(nullptr));
  if (problem.measure == Measure::kMsm) return f(static_cast<SoftMsm<S>*>(nullptr));
  if (problem.measure == Measure::kWeighted) return f(static_cast<SoftWeighted<S>*>(nullptr));
  return f(static_cast<SoftThreshold<S>*>(nullptr));
}

}  // namespace

template <typename T>
bool has_soft_strips(const ElasticProblem<T>& problem) {
  return has_elastic_univariate(problem);
}

template <typename T>
int64_t soft_strips_bytes(const ElasticProblem<T>& problem) {
  return SoftSaved<SoftShape<T>>::bytes(ElasticTable<T>(problem));
}

template <typename T>
cudaError_t soft_strips_forward(
    const ElasticProblem<T>& problem, T* value, void* saved, Scratch& scratch, cudaStream_t stream) {
  return with_soft_tile(problem, [&](auto* tile) {
    return launch_soft_forward<std::remove_pointer_t<decltype(tile)>>(problem, value, saved, scratch, stream);
  });
}

template <typename T>
cudaError_t soft_strips_backward(
    const ElasticProblem<T>& problem, const ElasticGradient<T>& gradient, const void* saved, Scratch& scratch,
    cudaStream_t stream) {
  const bool has_times = gradient.x_times != nullptr && problem.x_times.data != nullptr;
  const bool is_all = has_times || gradient.parameter != nullptr || gradient.gamma != nullptr;
  return with_soft_tile(problem, [&](auto* tile) {
    using Tile = std::remove_pointer_t<decltype(tile)>;
    if (is_all) return launch_soft_backward<Tile, true>(problem, gradient, saved, scratch, stream);
    if constexpr (std::is_same_v<Tile, SoftThreshold<SoftShape<T>>>)
      return elastic_gradient<ElasticShares<T>>(problem, gradient, {nullptr, nullptr, ElasticLayout(problem)}, stream);
    else
      return launch_soft_backward<Tile, false>(problem, gradient, saved, scratch, stream);
  });
}

#define SOFTDTW_INSTANTIATE(T)                                                                               \
  template bool has_soft_strips<T>(const ElasticProblem<T>&);                                                \
  template int64_t soft_strips_bytes<T>(const ElasticProblem<T>&);                                           \
  template cudaError_t soft_strips_forward<T>(const ElasticProblem<T>&, T*, void*, Scratch&, cudaStream_t);  \
  template cudaError_t soft_strips_backward<T>(                                                              \
      const ElasticProblem<T>&, const ElasticGradient<T>&, const void*, Scratch&, cudaStream_t);
SOFTDTW_INSTANTIATE(float)
SOFTDTW_INSTANTIATE(double)

}  // namespace softdtw
