// Squared Euclidean costs of series of few dimensions in forward, where a strip's own lanes compute them: a lane holds the
// vectors of its rows and reads those of its columns, whose neighbours other lanes have read just before.
#pragma once

#include "products.h"
#include "tile.cuh"
#include "vectors.cuh"

namespace softdtw {

// Of vectors of up to four times kGroups numbers. kFours: which can be read four at a time.
template <class S, int kGroups, bool kFours = true>
class FewTile {
  const Vectors columns;
  float4 rows[S::kRows][kGroups];
  float costs[S::kRows][S::kSteps];

 public:
  static constexpr bool kUnivariate = false;
  float reach = 0;  // no cost of the tile is larger; NaN if one is NaN

  __device__ FewTile(const Problem<float>& problem, const Extent& extent, const Strip<S>& strip, int64_t pair, int lane)
      : columns(problem.y, pair, extent.m, problem.dim) {
    const Vectors x(problem.x, pair, extent.n, problem.dim);
#pragma unroll
    for (int k = 0; k < S::kRows; ++k)
#pragma unroll
      for (int i = 0; i < kGroups; ++i)
        rows[k][i] = load_four<kFours>(x.at(strip.first_row + lane * S::kRows + k), 4 * i, x.dim);
  }
  __device__ __forceinline__ void fetch(const Place<S>&) {}
  __device__ __forceinline__ void use(const Place<S>& place) {
    const float* vectors[S::kSteps];
#pragma unroll
    for (int t = 0; t < S::kSteps; ++t) {
      vectors[t] = columns.at(max(place.column + t, 0));
#pragma unroll
      for (int k = 0; k < S::kRows; ++k) costs[k][t] = 0;
    }
#pragma unroll
    for (int i = 0; i < kGroups; ++i) {
      if (i > 0 && 4 * i >= columns.dim) continue;
#pragma unroll
      for (int t = 0; t < S::kSteps; ++t) {
        const float4 four = load_four<kFours>(vectors[t], 4 * i, columns.dim);
#pragma unroll
        for (int k = 0; k < S::kRows; ++k) costs[k][t] = add_square(rows[k][i] - four, costs[k][t]);
      }
    }
    reach = 0;
#pragma unroll
    for (int t = 0; t < S::kSteps; ++t)
#pragma unroll
      for (int k = 0; k < S::kRows; ++k) reach = greater(reach, costs[k][t]);
  }
  __device__ __forceinline__ float cost(int k, int t) const { return costs[k][t]; }
};

}  // namespace softdtw
