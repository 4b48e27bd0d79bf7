// The kernels by cost and dimensions: a file beside this one compiles those of a cost.
#pragma once

#include <type_traits>

#include "cuda/hardware/launch.cuh"
#include "cuda/kernels/vector_log2/vector_log2.h"
#include "cuda/kernels/vector_log2/vector_log2_backward.cuh"
#include "cuda/kernels/vector_log2/vector_log2_forward.cuh"
#include "cuda/kernels/vector_log2/vector_log2_group.cuh"

namespace softdtw {

// In the place of a cost of vectors: ready-made ones (../matrix), with a with_group of their own.
struct MatrixCost {};

// Calls f with null of the type of the groups that kernels are compiled for.
template <class CostType, class F>
cudaError_t with_group(CostType, const Problem<float>& problem, int rows, F&& f) {
  // Of one dimension euclidean costs are cityblock ones, and only squared ones have kernels without a penalty.
  constexpr bool kIsSquared = std::is_same_v<CostType, VectorCost<SquaredVectors>>,
                 kHasNumbers = !std::is_same_v<CostType, VectorCost<EuclideanVectors>>;
  const auto with_rows = [&](auto dims, auto rows) {
    if constexpr (dims() > 1 || kIsSquared)
      if (!call_of(problem, false).has_penalty)
        return f(static_cast<VectorGroup<CostType, dims(), rows(), NoLog2Penalty>*>(nullptr));
    return f(static_cast<VectorGroup<CostType, dims(), rows(), Log2Penalty>*>(nullptr));
  };
  const auto with_dims = [&](auto dims) {
    constexpr int kRows = rows_of_group(dims()), kRowsInBand = rows_of_group(dims(), true);
    if constexpr (dims() > 1)
      if (call_of(problem, false).has_band)
        return f(static_cast<VectorGroup<CostType, dims(), kRowsInBand, Log2Penalty, true>*>(nullptr));
    if constexpr (has_tall_rows(dims()))
      if (rows == kTallVectorRows) return with_rows(dims, std::integral_constant<int, kTallVectorRows>());
    return with_rows(dims, std::integral_constant<int, kRows>());
  };
  if constexpr (kHasNumbers)
    if (problem.dim == 1) return with_dims(std::integral_constant<int, 1>());
  if (problem.dim == 2) return with_dims(std::integral_constant<int, 2>());
  if (problem.dim == 3) return with_dims(std::integral_constant<int, 3>());
  if (problem.dim == 4) return with_dims(std::integral_constant<int, 4>());
  return with_dims(std::integral_constant<int, kFewDims>());
}

template <class CostType>
cudaError_t vector_forward_of(
    const Problem<float>& problem, bool keeps, float* value, char* memory, int64_t stride, PairStatus* statuses,
    cudaStream_t stream) {
  const VectorLayout layout(problem, keeps);
  return with_group(CostType(), problem, layout.rows, [&](auto group) {
    return launch_kernel(
        vector_forward_kernel<typename std::remove_pointer_t<decltype(group)>::Forward>,
        ceil_div(problem.batch, kWarp / layout.forward_lanes), kWarp, 0, stream, problem, layout, value, memory, stride,
        statuses);
  });
}

template <class CostType>
cudaError_t vector_backward_of(
    const Problem<float>& problem, const Gradient<float>& gradient, char* saved, int64_t stride, char* flows,
    const PairStatus* statuses, cudaStream_t stream) {
  const VectorLayout layout(problem, true);
  return with_group(CostType(), problem, layout.rows, [&](auto group) {
    return launch_kernel(
        vector_backward_kernel<typename std::remove_pointer_t<decltype(group)>::Backward>,
        ceil_div(problem.batch, kWarp / layout.lanes), kWarp, 0, stream, problem, layout, gradient, saved, stride, flows,
        statuses);
  });
}

#define SOFTDTW_VECTOR_LOG2(prefix, ...)                                               \
  prefix template cudaError_t vector_forward_of<__VA_ARGS__>(                          \
      const Problem<float>&, bool, float*, char*, int64_t, PairStatus*, cudaStream_t); \
  prefix template cudaError_t vector_backward_of<__VA_ARGS__>(                         \
      const Problem<float>&, const Gradient<float>&, char*, int64_t, char*, const PairStatus*, cudaStream_t);

}  // namespace softdtw
