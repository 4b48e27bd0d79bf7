// The ring (banded.cu) as stencil calls it.
#pragma once

#include <cuda_runtime_api.h>

#include "core/problem.h"
#include "cuda/numbers/pair_status.cuh"

namespace softdtw {

// What forward keeps of a pair for backward.
int64_t banded_bytes_of_pair(const Problem<float>& problem);
// `saved`: null where nothing is kept; `stride` bytes a pair, a multiple of 16. A status is left for every pair.
cudaError_t launch_banded_forward(
    const Problem<float>& problem, float* value, char* saved, int64_t stride, PairStatus* statuses, cudaStream_t stream);
cudaError_t launch_banded_backward(
    const Problem<float>& problem, const Gradient<float>& gradient, const char* saved, int64_t stride,
    const PairStatus* statuses, cudaStream_t stream);
// Of several dimensions.
cudaError_t launch_banded_vectors_forward(
    const Problem<float>& problem, float* value, char* saved, int64_t stride, PairStatus* statuses, cudaStream_t stream);
cudaError_t launch_banded_vectors_backward(
    const Problem<float>& problem, const Gradient<float>& gradient, const char* saved, int64_t stride,
    const PairStatus* statuses, cudaStream_t stream);
// As parts of them: the pairs given up so far, and those of them that are taken here.
cudaError_t launch_banded_log2_forward(
    const Problem<float>& problem, float* value, char* saved, int64_t stride, PairStatus* statuses, cudaStream_t stream);
cudaError_t launch_banded_log2_backward(
    const Problem<float>& problem, const Gradient<float>& gradient, const char* saved, int64_t stride,
    const PairStatus* statuses, cudaStream_t stream);

}  // namespace softdtw
