// Few pairs of float32 series of one dimension, whose tables are swept from both ends at once: what tiled hands on to bidirectional.cu.
#pragma once

#include "cuda/select/variant.h"

namespace softdtw {

struct Meeting {
  // Whether a problem's shape is one of them, and memory is laid out for it. Mirrored in torchsoftdtw/_kernels/saved_state.py.
  static bool applies(const Problem<float>& problem, int rows_per_thread);
  // And the current device is better used so.
  static bool pays(const Problem<float>& problem, int rows_per_thread, bool keeps);
  static int64_t saved_bytes(const Problem<float>& problem);
  static int64_t forward_scratch_bytes(const Problem<float>& problem, bool save);
  static int64_t backward_scratch_bytes(const Problem<float>& problem);
  static cudaError_t forward(const Problem<float>& problem, float* value, void* saved, void* scratch, cudaStream_t stream);
  static cudaError_t backward(
      const Problem<float>& problem, const Gradient<float>& gradient, const void* saved, void* scratch,
      cudaStream_t stream);
};

}  // namespace softdtw
