// The CUDA backend: chooses the variant that Python named, and gives it memory, a device and the caller's stream.
#include <torch/csrc/stable/library.h>

#include "binding/entry.h"
#include "cuda/kernels/multivariate/multivariate.h"
#include "cuda/select/variant.h"
#include "launch.h"

namespace softdtw {
namespace {

template <typename T>
Variant<T> variant_of(const Plan& plan) {
  for (const Variant<T>& variant : {diagonal_variant<T>(), stencil_variant<T>(), tiled_variant<T>()})
    if (plan.kernel == variant.name) {
      STD_TORCH_CHECK(
          variant.supports_rows(static_cast<int>(plan.rows_per_thread)), "rows_per_thread: the ", variant.name,
          " kernel was not built for ", plan.rows_per_thread, " rows in this dtype");
      return variant;
    }
  STD_TORCH_CHECK(false, "kernel: expected 'diagonal', 'stencil' or 'tiled' for CUDA tensors, got '", plan.kernel, "'");
  return {};
}

struct CudaBackend {
  static Order order(const Tensor& series, Cost cost, const Plan& plan, Pass pass) {
    if (series.scalar_type() != ScalarType::Float) return Order::kDimensionMajor;
    const Variant<float> variant = variant_of<float>(plan);
    const int64_t dim = series.size(2);
    if (pass == Pass::kForward && variant.has_few_dims && is_few(cost, dim, plan.rows_per_thread)) return Order::kFours;
    return by_products(cost, dim, variant.product_dims) ? Order::kVectors : Order::kDimensionMajor;
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
  static std::pair<bool, bool> adds_up(const Tensor& series, Order order) {
    const bool has_products = order == Order::kVectors;
    return {has_products && series.size(2) > kFewDims, has_products};
  }

  template <typename T>
  static int64_t saved_bytes(const Problem<T>& problem, const Plan& plan) {
    return variant_of<T>(plan).saved_bytes(problem, static_cast<int>(plan.rows_per_thread));
  }

  template <typename T>
  static void forward(const Problem<T>& problem, const Plan& plan, T* value, void* saved, const Tensor& like) {
    const torch::stable::accelerator::DeviceGuard guard(like.get_device());
    const Variant<T> variant = variant_of<T>(plan);
    const int rows = static_cast<int>(plan.rows_per_thread);
    const Scratch scratch(like, variant.forward_scratch_bytes(problem, rows, saved != nullptr));
    check(variant.forward(problem, rows, value, saved, scratch.data, current_stream(like)), variant.name, "forward");
  }

  template <typename T>
  static void backward(
      const Problem<T>& problem, const Plan& plan, const Gradient<T>& gradient, const void* saved, const Tensor& like) {
    const torch::stable::accelerator::DeviceGuard guard(like.get_device());
    const Variant<T> variant = variant_of<T>(plan);
    const int rows = static_cast<int>(plan.rows_per_thread);
    const Scratch scratch(like, variant.backward_scratch_bytes(problem, rows));
    check(variant.backward(problem, rows, gradient, saved, scratch.data, current_stream(like)), variant.name, "backward");
  }
};

}  // namespace
}  // namespace softdtw

SOFTDTW_REGISTER(CUDA, softdtw::CudaBackend)
