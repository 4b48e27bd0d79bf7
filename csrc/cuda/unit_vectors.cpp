// Unit vectors on CUDA: a device and the caller's stream for unit_vectors.cu.
#include <torch/csrc/stable/library.h>

#include "binding/unit_vectors_entry.h"
#include "cuda/kernels/unit_vectors/unit_vectors.h"
#include "launch.h"

namespace softdtw {
namespace {

struct UnitVectorsCudaBackend {
  static void forward(const UnitVectors (&both)[2], const Tensor& like) {
    const torch::stable::accelerator::DeviceGuard guard(like.get_device());
    check(unit_vectors(both[0], both[1], current_stream(like)), "unit vectors", "forward");
  }

  static void backward(const UnitGradient (&both)[2], const Tensor& like) {
    const torch::stable::accelerator::DeviceGuard guard(like.get_device());
    check(unit_vectors_backward(both[0], both[1], current_stream(like)), "unit vectors", "backward");
  }
};

}  // namespace
}  // namespace softdtw

SOFTDTW_REGISTER_UNIT_VECTORS(CUDA, softdtw::UnitVectorsCudaBackend)
