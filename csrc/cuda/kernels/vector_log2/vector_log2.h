// Integer log2 of vectors (vector_log2.cu) as stencil calls it.
#pragma once

#include <cuda_runtime_api.h>

#include "core/problem.h"
#include "cuda/numbers/pair_status.cuh"

namespace softdtw {

// What forward keeps of a pair for backward; what it needs of one where nothing is kept; and what backward needs beside it.
struct VectorBytes {
  int64_t kept, edge, flow;
};
VectorBytes vector_bytes_of_pair(const Problem<float>& problem);
// `memory`: what is kept, or edges; `stride` bytes a pair, a multiple of 8. A status is left for every pair.
cudaError_t launch_vector_forward(
    const Problem<float>& problem, bool keeps, float* value, char* memory, int64_t stride, PairStatus* statuses,
    cudaStream_t stream);
// Adds to the gradient of y.
cudaError_t launch_vector_backward(
    const Problem<float>& problem, const Gradient<float>& gradient, char* saved, int64_t stride, char* flows,
    const PairStatus* statuses, cudaStream_t stream);

}  // namespace softdtw
