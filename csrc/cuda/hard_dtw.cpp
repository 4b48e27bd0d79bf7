// Hard DTW on CUDA: memory, a device and the caller's stream for hard.cu.
#include <torch/csrc/stable/library.h>

#include "binding/hard_entry.h"
#include "cuda/kernels/hard/hard.h"
#include "cuda/select/hard.h"
#include "launch.h"

namespace softdtw {
namespace {

struct HardCudaBackend {
  // Dimension-major, as the strips read it; where other warps compute the costs, vector by vector; and for few dimensions of
  // squared Euclidean costs as it is.
  static Tensor arrange(const Tensor& series, Cost cost) {
    const bool is_float = series.scalar_type() == ScalarType::Float;
    if (is_float && series.size(2) >= kHardMultivariateDims)
      return series.stride(2) == 1 ? series : torch::stable::contiguous(series);
    if (is_float && series.size(2) > 1 && cost == Cost::kSqEuclidean) return series;
    return dimension_major(series);
  }

  template <typename T>
  static void forward(const Problem<T>& problem, bool open_ends, T* value, Span* spans, const Tensor& like) {
    const torch::stable::accelerator::DeviceGuard guard(like.get_device());
    ScratchTensor scratch(like);
    check(hard_forward(problem, open_ends, value, spans, scratch, current_stream(like)), "hard", "forward");
  }

  template <typename T>
  static void backward(const Problem<T>& problem, const HardGradient<T>& gradient, const Tensor& like) {
    const torch::stable::accelerator::DeviceGuard guard(like.get_device());
    check(hard_backward(problem, gradient, current_stream(like)), "hard", "backward");
  }
};

}  // namespace
}  // namespace softdtw

SOFTDTW_REGISTER_HARD(CUDA, softdtw::HardCudaBackend)
