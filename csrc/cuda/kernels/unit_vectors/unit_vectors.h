// What unit_vectors.cu offers to the backend. No torch header: plain pointers and a stream.
#pragma once

#include <cuda_runtime_api.h>

#include "core/unit_vectors.h"

namespace softdtw {

// unit (count, width) and inverse (count,) of vectors (count, dim).
cudaError_t unit_vectors(const Vectors& vectors, float* unit, double* inverse, cudaStream_t stream);

// grad (count, dim), from grad_unit and vectors (count, width), which are unit ones.
cudaError_t unit_vectors_backward(
    const Vectors& vectors, const float* grad_unit, const double* inverse, float* grad, cudaStream_t stream);

}  // namespace softdtw
