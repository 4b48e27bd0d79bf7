// What unit_vectors.cu offers to the backend. No torch header: plain pointers and a stream.
#pragma once

#include <cuda_runtime_api.h>

#include "core/unit_vectors.h"

namespace softdtw {

// Those of x and of y.
cudaError_t unit_vectors(const UnitVectors& of_x, const UnitVectors& of_y, cudaStream_t stream);

// Of one without vectors nothing is computed.
cudaError_t unit_vectors_backward(const UnitGradient& to_x, const UnitGradient& to_y, cudaStream_t stream);

}  // namespace softdtw
