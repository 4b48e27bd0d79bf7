// The level engine (linear_domain.cuh) as stencil calls it, and with it the steep one (integer_log2.cuh).
#pragma once

#include <cuda_runtime_api.h>

#include "core/problem.h"
#include "cuda/numbers/pair_status.cuh"

namespace softdtw {

// in_linear_domain: whether the level engine comes first, as it does where float64 is fast; else the steep one has all pairs.
// `saved`: null where nothing is kept; `stride` bytes a pair. A verdict is left for every pair.
template <typename T>
cudaError_t launch_level_forward(
    const Problem<T>& problem, bool in_linear_domain, T* value, char* saved, int64_t stride, Verdict* verdicts,
    cudaStream_t stream);
template <typename T>
cudaError_t launch_level_backward(
    const Problem<T>& problem, bool in_linear_domain, const Gradient<T>& gradient, const char* saved, int64_t stride,
    const Verdict* verdicts, cudaStream_t stream);

}  // namespace softdtw
