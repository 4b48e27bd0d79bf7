// Gradients of series from a table of weights, in two launches: series_gradient.cu.
#pragma once

#include "core/cost.h"

namespace softdtw {

// Whether a pair has a gradient to be computed. If not, invalid_backward() answers.
template <typename T>
__device__ __forceinline__ bool has_gradient(const Gradient<T>& gradient, const Extent& extent, int64_t pair) {
  return extent.valid() && isfinite(gradient.value[pair]);
}

template <typename T>
cudaError_t launch_series_gradients(
    const Problem<T>& problem, const Gradient<T>& gradient, const T* table, cudaStream_t stream);

}  // namespace softdtw
