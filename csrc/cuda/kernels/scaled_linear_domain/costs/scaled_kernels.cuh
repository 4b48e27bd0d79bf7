// The kernels by cost and dimensions: a file beside this one compiles those of a cost.
#pragma once

#include "cuda/hardware/launch.cuh"
#include "cuda/kernels/scaled_linear_domain/scaled_backward.cuh"
#include "cuda/kernels/scaled_linear_domain/scaled_forward.cuh"
#include "cuda/kernels/scaled_linear_domain/scaled_linear_domain.h"

namespace softdtw {

// Calls f with the numbers of a vector that kernels are compiled for, as the type of a number.
template <class F>
cudaError_t with_scaled_dims(int64_t dim, F&& f) {
  if (dim == 2) return f(std::integral_constant<int, 2>());
  if (dim == 3) return f(std::integral_constant<int, 3>());
  if (dim == 4) return f(std::integral_constant<int, 4>());
  return f(std::integral_constant<int, kFewDims>());
}

template <class CostType>
cudaError_t scaled_forward_of(
    const Problem<float>& problem, bool keeps, float* value, char* memory, int64_t stride, PairStatus* statuses,
    cudaStream_t stream) {
  const ScaledLayout layout(problem, keeps);
  return with_scaled_dims(problem.dim, [&](auto dims) {
    return launch_kernel(
        scaled_forward_kernel<CostType, dims(), scaled_rows(dims())>, ceil_div(problem.batch, layout.groups()), kWarp, 0,
        stream, problem, layout, value, memory, stride, statuses);
  });
}

template <class CostType>
cudaError_t scaled_backward_of(
    const Problem<float>& problem, const Gradient<float>& gradient, char* saved, int64_t stride, char* flows,
    const PairStatus* statuses, cudaStream_t stream) {
  const ScaledLayout layout(problem, true);
  return with_scaled_dims(problem.dim, [&](auto dims) {
    return launch_kernel(
        scaled_backward_kernel<CostType, dims(), scaled_rows(dims())>, ceil_div(problem.batch, layout.groups()), kWarp, 0,
        stream, problem, layout, gradient, saved, stride, flows, statuses);
  });
}

#define SOFTDTW_SCALED(prefix, ...)                                                    \
  prefix template cudaError_t scaled_forward_of<__VA_ARGS__>(                          \
      const Problem<float>&, bool, float*, char*, int64_t, PairStatus*, cudaStream_t); \
  prefix template cudaError_t scaled_backward_of<__VA_ARGS__>(                         \
      const Problem<float>&, const Gradient<float>&, char*, int64_t, char*, const PairStatus*, cudaStream_t);

}  // namespace softdtw
