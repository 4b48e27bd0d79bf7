// The best ranges of series on CUDA: a device and the caller's stream for ranges.cu.
#include <torch/csrc/stable/library.h>

#include "binding/ranges_entry.h"
#include "cuda/kernels/ranges/ranges.h"
#include "launch.h"

namespace softdtw {
namespace {

struct RangesCudaBackend {
  static Tensor arrange(const Tensor& series) { return dimension_major(series); }

  template <typename T>
  static void best_ranges(const Problem<T>& problem, double* value, int32_t* start, const Tensor& like) {
    const torch::stable::accelerator::DeviceGuard guard(like.get_device());
    check(softdtw::best_ranges(problem, value, start, current_stream(like)), "ranges", "forward");
  }
};

}  // namespace
}  // namespace softdtw

SOFTDTW_REGISTER_RANGES(CUDA, softdtw::RangesCudaBackend)
