// Hard elastic measures by strips, with any cost and number of dimensions, or from ready-made costs.
#include "cuda/kernels/elastic/elastic_kernels.h"
#include "elastic_strips.cuh"
#include "elastic_tile.cuh"

namespace softdtw {
namespace {

template <typename T>
using DenseShape = Shape<T, sizeof(T) == 4 ? 4 : 2>;
template <typename T>
struct Dense {
  template <int kAbove>
  using Distances = DenseDistances<DenseShape<T>, kAbove>;
};

}  // namespace

template <typename T>
bool has_elastic_dense(const ElasticProblem<T>& problem) {
  return problem.measure != Measure::kMsm;
}

template <typename T>
cudaError_t elastic_dense_forward(
    const ElasticProblem<T>& problem, T* value, Span* spans, Scratch& scratch, cudaStream_t stream) {
  using S = DenseShape<T>;
  const ElasticTable<T> table(problem);
  const auto run = [&](auto* tile) {
    using Tile = std::remove_pointer_t<decltype(tile)>;
    if (spans != nullptr) return launch_elastic<Tile, true, true>(table, value, spans, scratch, stream);
    return launch_elastic<Tile, false, true>(table, value, spans, scratch, stream);
  };
  if (problem.measure == Measure::kMatrix) return run(static_cast<ReadyTile<Shape<T, 2>>*>(nullptr));
  return with_measure<T>(problem.measure, [&](auto type) {
    using Type = decltype(type);
    if constexpr (kIs<Type, Twed>) {
      return run(static_cast<TwedTile<S, Dense<T>::template Distances, true>*>(nullptr));
    } else if constexpr (kIs<Type, Weighted>) {
      return run(static_cast<WeightedTile<S, Dense<T>::template Distances>*>(nullptr));
    } else if constexpr (kIs<Type, Msm>) {
      return cudaErrorInvalidValue;
    } else if constexpr (kIs<Type, Edit>) {
      return run(static_cast<EditTile<EditMatch, S, Dense<T>::template Distances>*>(nullptr));
    } else {
      return run(static_cast<EditTile<ThresholdMatch, S, Dense<T>::template Distances>*>(nullptr));
    }
  });
}

#define SOFTDTW_INSTANTIATE(T)                                  \
  template bool has_elastic_dense<T>(const ElasticProblem<T>&); \
  template cudaError_t elastic_dense_forward<T>(const ElasticProblem<T>&, T*, Span*, Scratch&, cudaStream_t);
SOFTDTW_INSTANTIATE(float)
SOFTDTW_INSTANTIATE(double)

}  // namespace softdtw
