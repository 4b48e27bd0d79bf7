// Soft elastic measures of one dimension by strips: which measure is whose, and what has no kernel of its own.
#include "soft_strips.h"

#include "cuda/gradients/series_gradient.cuh"
#include "cuda/hardware/launch.cuh"
#include "cuda/kernels/elastic/elastic_masses.cuh"
#include "soft_cell.cuh"

namespace softdtw {
namespace {

constexpr int kNumbersThreads = 128;

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

// What a pair has one number of, from its strips: a thread for each pair.
template <typename T>
__global__ void __launch_bounds__(kNumbersThreads) soft_numbers(
    const __grid_constant__ ElasticProblem<T> problem, const __grid_constant__ ElasticGradient<T> gradient,
    const SoftNumbers* numbers, int64_t strips) {
  const int64_t pair = static_cast<int64_t>(blockIdx.x) * kNumbersThreads + threadIdx.x;
  if (pair >= problem.batch) return;
  const Extent extent = problem.extent(pair);
  T of_parameter = gradient.without_value(pair), of_gamma = of_parameter;
  if (has_gradient(gradient, extent, pair)) {
    SoftNumbers sum = {0, 0};
    for (int strip = 0; strip < strips_of<SoftShape<T>>(extent); ++strip) {
      sum.cost += numbers[pair * strips + strip].cost;
      sum.parameter += numbers[pair * strips + strip].parameter;
    }
    const double arriving = gradient.arriving(pair), value = gradient.value[pair];
    of_parameter = static_cast<T>(sum.parameter * arriving);
    of_gamma = static_cast<T>((value - sum.cost) / problem.gamma_of(pair) * arriving);
  }
  if (gradient.parameter != nullptr) gradient.parameter[pair] = of_parameter;
  if (gradient.gamma != nullptr) gradient.gamma[pair] = of_gamma;
}

}  // namespace

template <typename T>
cudaError_t launch_soft_numbers(
    const ElasticProblem<T>& problem, const ElasticGradient<T>& gradient, const SoftNumbers* numbers, cudaStream_t stream) {
  const int64_t blocks = (problem.batch + kNumbersThreads - 1) / kNumbersThreads;
  return launch_kernel(
      soft_numbers<T>, blocks, kNumbersThreads, 0, stream, problem, gradient, numbers, Sizes<SoftShape<T>>(problem).strips);
}

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

#define SOFTDTW_INSTANTIATE(T)                                                                              \
  template cudaError_t launch_soft_numbers<T>(                                                              \
      const ElasticProblem<T>&, const ElasticGradient<T>&, const SoftNumbers*, cudaStream_t);               \
  template bool has_soft_strips<T>(const ElasticProblem<T>&);                                               \
  template int64_t soft_strips_bytes<T>(const ElasticProblem<T>&);                                          \
  template cudaError_t soft_strips_forward<T>(const ElasticProblem<T>&, T*, void*, Scratch&, cudaStream_t); \
  template cudaError_t soft_strips_backward<T>(                                                             \
      const ElasticProblem<T>&, const ElasticGradient<T>&, const void*, Scratch&, cudaStream_t);
SOFTDTW_INSTANTIATE(float)
SOFTDTW_INSTANTIATE(double)

}  // namespace softdtw
