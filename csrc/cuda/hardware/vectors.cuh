// Series and matrices of float32 that are read four numbers at a time.
#pragma once

#include "core/problem.h"

namespace softdtw {

// Series with the dimensions of a vector next to each other; vectors past the pair's end repeat its last one.
struct Vectors {
  const float* data;
  int64_t stride;
  int count, dim;

  // is_reversed: the last one first.
  __device__ Vectors(
      const SeriesView<const float>& series, int64_t pair, int count_, int64_t dim_, bool is_reversed = false)
      : data(series.pair(pair).data + (is_reversed ? (count_ - 1) * series.row_stride : 0)),
        stride(is_reversed ? -series.row_stride : series.row_stride),
        count(count_),
        dim(static_cast<int>(dim_)) {}
  __device__ __forceinline__ const float* at(int i) const { return data + min(i, count - 1) * stride; }
  // The coordinates of one that there is.
  __device__ __forceinline__ View<const float> view() const { return {data, 0, stride, 1}; }
};

// Of a table that is seen from either end (kernels/bidirectional): vectors before the first one repeat that.
struct VectorsOfSide : Vectors {
  using Vectors::Vectors;
  __device__ __forceinline__ const float* at(int i) const { return Vectors::at(max(i, 0)); }
};

// Whether four numbers side by side in the rows of matrices can be moved at once.
template <typename T>
__device__ __forceinline__ bool rows_have_fours(const View<T>& matrices) {
  return matrices.column_stride == 1 && ((matrices.row_stride | matrices.batch_stride) & 3) == 0 &&
         (reinterpret_cast<uintptr_t>(matrices.data) & 15) == 0;
}

// Coordinates d to d + 3 of a vector; 0 past the last one. d is a multiple of four, kFours: and so is their number.
template <bool kFours>
__device__ __forceinline__ float4 load_four(const float* vector, int d, int dim) {
  if (kFours) return d < dim ? __ldg(reinterpret_cast<const float4*>(vector + d)) : float4{};
  return {
      d < dim ? vector[d] : 0, d + 1 < dim ? vector[d + 1] : 0, d + 2 < dim ? vector[d + 2] : 0,
      d + 3 < dim ? vector[d + 3] : 0};
}

__device__ __forceinline__ float4 operator-(const float4& a, const float4& b) {
  return {a.x - b.x, a.y - b.y, a.z - b.z, a.w - b.w};
}
__device__ __forceinline__ float add_square(const float4& a, float sum) {
  return fmaf(a.w, a.w, fmaf(a.z, a.z, fmaf(a.y, a.y, fmaf(a.x, a.x, sum))));
}
// What four coordinates of a difference add to a cost, of a type of core/cost_types.h.
template <class CostType>
__device__ __forceinline__ float add_shares(const float4& a, float sum) {
  return CostType::share(a.w, CostType::share(a.z, CostType::share(a.y, CostType::share(a.x, sum))));
}

}  // namespace softdtw
