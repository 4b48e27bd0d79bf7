// The CUDA backend: makes a plan, and gives what it says memory, a device and the caller's stream.
#include <torch/csrc/stable/library.h>

#include "binding/entry.h"
#include "cuda/numbers/pair_status.cuh"
#include "cuda/select/blocks.h"
#include "cuda/select/face.h"
#include "launch.h"

namespace softdtw {
namespace {

// The name of a plan takes time to put together, and no call needs it that succeeds.
void check(cudaError_t error, const Plan& plan, const char* direction) {
  if (error != cudaSuccess) softdtw::check(error, plan.name().c_str(), direction);
}

struct CudaBackend {
  using Plan = softdtw::Plan;

  static Plan plan(const Call& call, const std::string& kernel, int64_t rows, int device) {
    STD_TORCH_CHECK(
        is_known_kernel(kernel),
        "kernel: expected 'auto', 'diagonal', 'stencil' or 'tiled' for CUDA tensors, or one of their ",
        "specialisations, got '", kernel, "'");
    const torch::stable::accelerator::DeviceGuard guard(device);
    const std::optional<Plan> plan = plan_of(kernel, call, static_cast<int>(rows), current_device());
    STD_TORCH_CHECK(
        plan.has_value(), "kernel: '", kernel, "' does not take these series and options",
        rows > 0 ? " with so many rows" : "");
    return *plan;
  }
  static Plan plan_from_code(int code) {
    const std::optional<Plan> plan = Plan::from_code(code);
    STD_TORCH_CHECK(
        plan.has_value(), "saved: expected what forward with save=True returns on CUDA; this pass saved nothing");
    return *plan;
  }

  static Order order(const Call& call, const Plan& plan, Pass pass) {
    for (const Specialization of_vectors :
         {Specialization::kMultivariate, Specialization::kFewDims, Specialization::kVectorLog2,
          Specialization::kBidirectional, Specialization::kBanded})
      if (plan.is(of_vectors)) return Order::kVectors;
    const bool in_fours =
        pass == Pass::kForward && plan.kernel == Kernel::kStencil && reads_vectors(call, plan.forward_rows);
    return in_fours ? Order::kFours : Order::kDimensionMajor;
  }
  // One for all plans that a name may have, since torch.compile knows the name alone.
  static Order gradient_order(const Call& call, const Plan& plan) {
    return call.is_multivariate() && plan.kernel != Kernel::kDiagonal ? Order::kVectors : Order::kDimensionMajor;
  }

  // Dimension-major, so that the lanes of a warp, which hold neighbouring rows and columns, read neighbouring words. Or vector
  // by vector, for those that read several numbers of one at once.
  static Tensor arrange(const Tensor& series, Order order) {
    if (series.size(2) == 1) return series;
    if (order == Order::kFours) {
      if (series.size(2) % 4 != 0) return torch::stable::pad(series, {0, 4 - series.size(2) % 4});
      const auto is_ready = [](const Tensor& tensor) {
        return tensor.stride(2) == 1 && reads_fours(view<float>(tensor), tensor.size(2));
      };
      if (is_ready(series)) return series;
      const Tensor dense = torch::stable::contiguous(series);
      return is_ready(dense) ? dense : torch::stable::clone(dense);
    }
    if (order == Order::kVectors) return series.stride(2) == 1 ? series : torch::stable::contiguous(series);
    if (series.stride(1) == 1) return series;
    return torch::stable::transpose(torch::stable::contiguous(torch::stable::transpose(series, 1, 2)), 1, 2);
  }

  // Of the kernels that read vectors: each strip adds to dy, and to dx where it does not fit a warp's registers.
  static std::pair<bool, bool> adds_up(const Call& call, const Plan& plan) {
    const bool adds = order(call, plan, Pass::kBackward) == Order::kVectors && !plan.is(Specialization::kBanded);
    return {adds && call.dim > kFewDims, adds};
  }

  template <typename T>
  static int64_t saved_bytes(const Problem<T>& problem, const Plan& plan) {
    return face_of<T>(plan).saved_bytes(problem, plan);
  }

  template <typename T>
  static void forward(const Problem<T>& problem, const Plan& plan, T* value, void* saved, const Tensor& like) {
    const torch::stable::accelerator::DeviceGuard guard(like.get_device());
    ScratchTensor scratch(like);
    const cudaStream_t stream = current_stream(like);
    check(face_of<T>(plan).forward(problem, plan, value, saved, scratch, stream), plan, "forward");
  }

  template <typename T>
  static void backward(
      const Problem<T>& problem, const Plan& plan, const Gradient<T>& gradient, const void* saved, const Tensor& like) {
    const torch::stable::accelerator::DeviceGuard guard(like.get_device());
    ScratchTensor scratch(like);
    const cudaStream_t stream = current_stream(like);
    check(face_of<T>(plan).backward(problem, plan, gradient, saved, scratch, stream), plan, "backward");
  }
};

// (capability, multiprocessors, shared memory of a block, float64's share of float32's speed)
std::tuple<int64_t, int64_t, int64_t, int64_t> device_properties(int64_t device) {
  const torch::stable::accelerator::DeviceGuard guard(static_cast<int>(device));
  const DeviceProperties& properties = current_device();
  return {properties.capability, properties.processors, properties.block_bytes, properties.float64_ratio};
}

Tensor pair_statuses(Tensor saved, int64_t batch) {
  const std::optional<Plan> plan = Plan::from_code(recorded_code(saved.numel()));
  STD_TORCH_CHECK(
      plan.has_value() && plan->gives_up_pairs(),
      "saved: expected what a number format saved that may give pairs up: stencil/linear_domain, integer_log2, banded or "
      "vector_log2");
  return torch::stable::clone(torch::stable::narrow(saved, 0, 0, batch * static_cast<int64_t>(sizeof(PairStatus))));
}

}  // namespace
}  // namespace softdtw

SOFTDTW_REGISTER(CUDA, softdtw::CudaBackend, "cuda_saved_size")

STABLE_TORCH_LIBRARY_IMPL(torchsoftdtw, CompositeExplicitAutograd, m) {
  m.impl("device_properties", TORCH_BOX(&softdtw::device_properties));
  m.impl("pair_statuses", TORCH_BOX(&softdtw::pair_statuses));
}
