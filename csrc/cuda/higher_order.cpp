// The ops of second and third order on CUDA: memory, a device and the caller's stream for tangent.cu.
#include <torch/csrc/stable/library.h>

#include "binding/tangent_entry.h"
#include "cuda/kernels/diagonal/tangent_kernels.h"
#include "launch.h"

namespace softdtw {
namespace {

struct CudaTangentBackend {
  template <typename T, int kDirections>
  static void tangents(const Problem<T>& problem, const Tangents<T>& tangents, const Tensor& like) {
    const torch::stable::accelerator::DeviceGuard guard(like.get_device());
    ScratchTensor scratch(like);
    check(
        tangent_sweeps<T, kDirections>(problem, tangents, scratch, current_stream(like)), "tangent",
        kDirections == 1 ? "second-order" : "third-order");
  }
};

}  // namespace
}  // namespace softdtw

SOFTDTW_REGISTER_TANGENTS(CUDA, softdtw::CudaTangentBackend)
