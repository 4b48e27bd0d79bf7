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

// Where a strip and its columns lie in the series. Own: Vectors, or VectorsOfSide.
template <class Own>
struct StripOfVectors {
  using S = MultivariateShape;
  const Cost cost;
  const Own x, y;
  const Strip<S> strip;
  const int group, member;
  const float* const origin;

  template <class... Others>
  __device__ StripOfVectors(
      const Problem<float>& problem, const Extent& extent, const Strip<S>& strip_, int64_t pair, const Others&... others)
      : cost(problem.cost),
        x(problem.x, pair, extent.n, problem.dim, others...),
        y(problem.y, pair, extent.m, problem.dim, others...),
        strip(strip_),
        group(threadIdx.x / 4),
        member(threadIdx.x % 4),
        origin(x.at(strip.first_row + S::kStripRows / 2)) {}

  // Where a warp's dimensions end, of which it has `width` from first_dim on, and as many `stride` further, and so on: the last ones are
  // left out while nothing in the strip differs from its origin there. Mostly these are the numbers that flag zero vectors of cosine
  // costs. By a warp.
  __device__ __forceinline__ int end_of_dims(int first_dim, int stride, int width) const {
    int end = x.dim;
#pragma unroll 1
    for (int last = first_dim + (x.dim - 1 - first_dim) / stride * stride; last > first_dim; end = last, last -= stride)
      if (differs(x, strip.first_row, S::kStripRows, last, width) ||
          differs(y, strip.first_column, strip.end_column - strip.first_column, last, width))
        break;
    return end;
  }

 private:
  __device__ __forceinline__ bool differs(const Own& vectors, int first, int count, int first_dim, int width) const {
    constexpr int kAtOnce = 4, kNumbers = 4;
#pragma unroll 1
    for (int d = first_dim; d < min(first_dim + width, x.dim); d += kNumbers)
#pragma unroll 1
      for (int i = 0; i < count; i += kAtOnce * kWarp) {
        bool is_other = false;
#pragma unroll
        for (int j = 0; j < kAtOnce; ++j)
#pragma unroll
          for (int k = 0; k < kNumbers; ++k)
            if (d + k < x.dim)
              is_other |= !(__ldg(vectors.at(first + i + j * kWarp + threadIdx.x) + d + k) == __ldg(origin + d + k));
        if (__any_sync(kAllLanes, is_other)) return true;
      }
    return false;
  }
};
using StripOfSeries = StripOfVectors<Vectors>;

}  // namespace softdtw
