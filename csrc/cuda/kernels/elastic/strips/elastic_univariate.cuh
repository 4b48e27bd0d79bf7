// The tiles of hard elastic measures of one dimension, with costs from registers.
#pragma once

#include "elastic_strips.cuh"
#include "elastic_tile.cuh"

namespace softdtw {

template <class S>
struct AbsoluteDistances {
  template <int kAbove>
  using Distances = UnivariateDistances<S, AbsoluteCost<typename S::Scalar>, kAbove>;
};
template <class S>
struct SquaredDistances {
  template <int kAbove>
  using Distances = UnivariateDistances<S, SquaredCost<typename S::Scalar>, kAbove>;
};

// Calls f with a null pointer of the tile's type.
template <class S, class F>
cudaError_t with_univariate_tile(const ElasticProblem<typename S::Scalar>& problem, F&& f) {
  using Absolute = AbsoluteDistances<S>;
  using Squared = SquaredDistances<S>;
  return with_measure<typename S::Scalar>(problem.measure, [&](auto type) {
    using Type = decltype(type);
    if constexpr (kIs<Type, Twed>) {
      if (problem.x_times.data != nullptr) return f(static_cast<TwedTile<S, Absolute::template Distances, true>*>(nullptr));
      return f(static_cast<TwedTile<S, Absolute::template Distances, false>*>(nullptr));
    } else if constexpr (kIs<Type, Msm>) {
      return f(static_cast<MsmTile<S, Absolute::template Distances>*>(nullptr));
    } else if constexpr (kIs<Type, Weighted>) {
      return f(static_cast<WeightedTile<S, Squared::template Distances>*>(nullptr));
    } else if constexpr (kIs<Type, Edit>) {
      return f(static_cast<EditTile<EditMatch, S, Absolute::template Distances>*>(nullptr));
    } else {
      return f(static_cast<EditTile<ThresholdMatch, S, Absolute::template Distances>*>(nullptr));
    }
  });
}

// Strips of `kRows` rows a lane.
template <typename T, int kRows, bool kPath, bool kMayHaveGroups>
cudaError_t launch_univariate(
    const ElasticProblem<T>& problem, int width_of_others, T* value, Span* spans, Scratch& scratch, cudaStream_t stream) {
  return with_univariate_tile<Shape<T, kRows>>(problem, [&](auto* tile) {
    using Tile = std::remove_pointer_t<decltype(tile)>;
    return launch_elastic<Tile, kPath, kMayHaveGroups>(
        ElasticTable<T>(problem), value, spans, scratch, stream, width_of_others);
  });
}

}  // namespace softdtw
