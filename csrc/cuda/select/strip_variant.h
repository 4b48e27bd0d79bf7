// The table of a variant built on strips: which rows per lane exist in which dtype, and the dispatch to them, or to Products,
// which has a number of its own.
#pragma once

#include <type_traits>

#include "cuda/kernels/multivariate/multivariate.h"
#include "cuda/strips/strip.cuh"
#include "variant.h"

namespace softdtw {

// Calls f(Shape<T, K>{}) for the K asked for. float64 has one shape: its weights take twice the registers.
template <typename T, class F>
auto with_shape(int rows_per_thread, F&& f) {
  if constexpr (std::is_same_v<T, double>) {
    return f(Shape<T, 2>{});
  } else {
    return rows_per_thread == 2 ? f(Shape<T, 2>{}) : f(Shape<T, 4>{});
  }
}

// Kernels<S> has saved_bytes, forward_scratch_bytes, backward_scratch_bytes, forward and backward for one shape.
template <typename T, template <class> class Kernels, int64_t kProductDims>
Variant<T> strip_variant(const char* name) {
  Variant<T> variant;
  variant.name = name;
  if (std::is_same_v<T, float>) variant.product_dims = kProductDims;
  variant.supports_rows = [](int rows) { return rows == 2 || (rows == 4 && std::is_same_v<T, float>); };
  variant.saved_bytes = [](const Problem<T>& problem, int rows) {
    if constexpr (std::is_same_v<T, float>)
      if (by_products(problem.cost, problem.dim, kProductDims)) return Products::saved_bytes(problem);
    return with_shape<T>(rows, [&](auto shape) { return Kernels<decltype(shape)>::saved_bytes(problem); });
  };
  variant.forward_scratch_bytes = [](const Problem<T>& problem, int rows, bool save) {
    if constexpr (std::is_same_v<T, float>)
      if (by_products(problem.cost, problem.dim, kProductDims)) return Products::forward_scratch_bytes(problem, save);
    return with_shape<T>(rows, [&](auto shape) { return Kernels<decltype(shape)>::forward_scratch_bytes(problem, save); });
  };
  variant.backward_scratch_bytes = [](const Problem<T>& problem, int rows) {
    if constexpr (std::is_same_v<T, float>)
      if (by_products(problem.cost, problem.dim, kProductDims)) return Products::backward_scratch_bytes(problem);
    return with_shape<T>(rows, [&](auto shape) { return Kernels<decltype(shape)>::backward_scratch_bytes(problem); });
  };
  variant.forward = [](const Problem<T>& problem, int rows, T* value, void* saved, void* scratch, cudaStream_t stream) {
    if constexpr (std::is_same_v<T, float>)
      if (by_products(problem.cost, problem.dim, kProductDims))
        return Products::forward(problem, value, saved, scratch, stream);
    return with_shape<T>(
        rows, [&](auto shape) { return Kernels<decltype(shape)>::forward(problem, value, saved, scratch, stream); });
  };
  variant.backward = [](const Problem<T>& problem, int rows, const Gradient<T>& gradient, const void* saved, void* scratch,
                        cudaStream_t stream) {
    if constexpr (std::is_same_v<T, float>)
      if (by_products(problem.cost, problem.dim, kProductDims))
        return Products::backward(problem, gradient, saved, scratch, stream);
    return with_shape<T>(
        rows, [&](auto shape) { return Kernels<decltype(shape)>::backward(problem, gradient, saved, scratch, stream); });
  };
  return variant;
}

}  // namespace softdtw
