// What hard.cu offers to the backend. No torch header: plain pointers and a stream.
#pragma once

#include <cuda_runtime_api.h>

#include "core/hard_path.h"

namespace softdtw {

template <typename T>
int64_t hard_scratch_bytes(const Problem<T>& problem, bool with_path);
// spans is null where no path is wanted.
template <typename T>
cudaError_t hard_forward(
    const Problem<T>& problem, bool open_ends, T* value, Span* spans, void* scratch, cudaStream_t stream);
template <typename T>
cudaError_t hard_backward(const Problem<T>& problem, const HardGradient<T>& gradient, cudaStream_t stream);

}  // namespace softdtw
