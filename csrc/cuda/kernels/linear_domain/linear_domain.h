// The linear domain (linear_domain.cuh) as stencil calls it, and with it integer log2 (integer_log2.cuh).
#pragma once

#include <cuda_runtime_api.h>

#include "core/problem.h"
#include "cuda/numbers/pair_status.cuh"

namespace softdtw {

// in_linear_domain: whether the linear domain comes first, as it does where float64 is fast; else integer log2 has all pairs.
// `saved`: null where nothing is kept; `stride` bytes a pair. A status is left for every pair.
// Backward may start beside the kernel before it in the stream: that has to be one of the same backward, which lets the next one start.
template <typename T>
cudaError_t launch_short_pairs_forward(
    const Problem<T>& problem, bool in_linear_domain, T* value, char* saved, int64_t stride, PairStatus* statuses,
    cudaStream_t stream);
template <typename T>
cudaError_t launch_short_pairs_backward(
    const Problem<T>& problem, bool in_linear_domain, const Gradient<T>& gradient, const char* saved, int64_t stride,
    PairStatus* statuses, cudaStream_t stream);

}  // namespace softdtw
