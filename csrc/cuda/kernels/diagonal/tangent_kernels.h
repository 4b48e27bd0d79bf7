// Second and third order on CUDA, as higher_order.cpp sees them. No torch header.
#pragma once

#include <cuda_runtime_api.h>

#include "core/tangent.h"
#include "cuda/scratch.h"

namespace softdtw {

template <typename T, int kDirections>
cudaError_t tangent_sweeps(const Problem<T>& problem, const Tangents<T>& tangents, Scratch& scratch, cudaStream_t stream);

}  // namespace softdtw
