// What ranges.cu offers to the backend. No torch header: plain pointers and a stream.
#pragma once

#include <cuda_runtime_api.h>

#include "core/ranges.h"

namespace softdtw {

// value and start (B, M), by the ranges' last column (10).
template <typename T>
cudaError_t best_ranges(const Problem<T>& problem, double* value, int32_t* start, cudaStream_t stream);

}  // namespace softdtw
