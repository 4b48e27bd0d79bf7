// The series as those warps of a strip (multivariate.cu) see them that compute with vectors: costs (multivariate_costs_few.cuh, multivariate_costs_many.cuh) and gradients
// (multivariate_gradient.cuh).
#pragma once

#include "cuda/costs/cost_pipeline.cuh"
#include "cuda/hardware/tensor_core.cuh"
#include "cuda/hardware/vectors.cuh"
#include "cuda/kernels/multivariate/costs/vector_cost.cuh"
#include "cuda/select/blocks.h"

namespace softdtw {

constexpr int kTileRows = HeldRows::kTileRows, kTiles = HeldRows::kTiles;

constexpr int kMatrixDims = 16;  // below so many dimensions differences are cheaper
template <class CostType>
__host__ __device__ __forceinline__ bool has_products(int64_t dim) {
  return kIsOfSquares<CostType> && dim >= kMatrixDims;
}

// Where a strip and its columns lie in the series.
struct StripOfSeries {
  using S = MultivariateShape;
  const Cost cost;
  const Vectors x, y;
  const Strip<S> strip;
  const int group, member;
  const float* const origin;

  __device__ StripOfSeries(const Problem<float>& problem, const Extent& extent, const Strip<S>& strip_, int64_t pair)
      : cost(problem.cost),
        x(problem.x, pair, extent.n, problem.dim),
        y(problem.y, pair, extent.m, problem.dim),
        strip(strip_),
        group(threadIdx.x / 4),
        member(threadIdx.x % 4),
        origin(x.at(strip.first_row + S::kStripRows / 2)) {}
};

}  // namespace softdtw
