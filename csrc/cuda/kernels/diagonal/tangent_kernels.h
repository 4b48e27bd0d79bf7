// Second and third order on CUDA, as higher_order.cpp sees them. No torch header.
#pragma once

#include <cuda_runtime_api.h>

#include "core/tangent.h"

namespace softdtw {

template <typename T, int kDirections>
int64_t tangent_scratch_bytes(const Problem<T>& problem);

template <typename T, int kDirections>
cudaError_t tangent_sweeps(const Problem<T>& problem, const Tangents<T>& tangents, void* scratch, cudaStream_t stream);

}  // namespace softdtw
