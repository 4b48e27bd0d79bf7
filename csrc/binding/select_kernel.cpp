// The op that says which kernel takes a call. In the library that is always built: it asks no GPU.
#include <torch/csrc/stable/library.h>

#include <algorithm>
#include <tuple>

#include "checks.h"
#include "cuda/select/plan.h"

namespace softdtw {
namespace {

std::tuple<std::string, int64_t> select_kernel(
    std::string kernel, int64_t batch, int64_t n, int64_t m, int64_t dim, bool is_float64, std::string cost, bool has_band,
    bool has_penalty, bool is_ragged, bool gradient, int64_t capability, int64_t processors, int64_t shared_memory,
    int64_t float64_ratio, int64_t bandwidth) {
  const int64_t radius = radius_that_counts(bandwidth, n, m);
  const Call call = {
      batch,
      n,
      m,
      dim,
      is_float64,
      cost == "matrix" ? Cost::kMatrix : cost_of_dim(cost_from_name(cost), dim),
      has_band && radius == bandwidth,
      has_penalty,
      is_ragged,
      gradient,
      static_cast<int32_t>(std::min<int64_t>(radius, INT32_MAX))};
  const Device device = {
      static_cast<int>(capability), static_cast<int>(processors), shared_memory, static_cast<int>(float64_ratio)};
  const std::optional<Plan> plan = plan_of(kernel, call, 0, device);
  if (!plan) return {"", 0};
  return {plan->name(), plan->rows};
}

}  // namespace
}  // namespace softdtw

STABLE_TORCH_LIBRARY_IMPL(torchsoftdtw, CompositeExplicitAutograd, m) {
  m.impl("select_kernel", TORCH_BOX(&softdtw::select_kernel));
}
