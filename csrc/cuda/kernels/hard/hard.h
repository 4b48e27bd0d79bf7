// What hard.cu offers to the backend. No torch header: plain pointers, memory and a stream.
#pragma once

#include <cuda_runtime_api.h>

#include "core/hard_path.h"
#include "cuda/scratch.h"

namespace softdtw {

// spans is null where no path is wanted.
template <typename T>
cudaError_t hard_forward(
    const Problem<T>& problem, bool open_ends, T* value, Span* spans, Scratch& scratch, cudaStream_t stream);
template <typename T>
cudaError_t hard_backward(const Problem<T>& problem, const HardGradient<T>& gradient, cudaStream_t stream);

// Its part for float32 series of many dimensions with squared Euclidean costs: hard_multivariate.cu.
cudaError_t hard_multivariate_forward(
    const Problem<float>& problem, bool open_ends, float* value, Span* spans, Scratch& scratch, cudaStream_t stream);

}  // namespace softdtw
