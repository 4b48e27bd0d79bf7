// Hard DTW of float32 series of many dimensions with squared Euclidean costs: what hard.cu hands on to hard_multivariate.cu.
#pragma once

#include <cuda_runtime_api.h>

#include "core/hard_path.h"

namespace softdtw {

struct HardMultivariate {
  static int64_t scratch_bytes(const Problem<float>& problem, bool with_path);
  static cudaError_t forward(
      const Problem<float>& problem, bool open_ends, float* value, Span* spans, void* scratch, cudaStream_t stream);
};

}  // namespace softdtw
