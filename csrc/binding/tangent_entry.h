// The ops of second and third order for one device: tensors in, a Backend at work, tensors out.
//
// A Backend is a struct with one static function, a template over float and double and over the number of directions:
//   void tangents<T, kDirections>(problem, const Tangents<T>&, like)
#pragma once

#include <tuple>

#include "checks.h"
#include "core/tangent.h"

namespace softdtw {

template <class Backend>
struct TangentEntryPoints {
  template <typename T>
  static View<const T> direction(const Problem<T>& problem, const Tensor& tensor, const Tensor& like, const char* name) {
    STD_TORCH_CHECK(
        tensor.dim() == 3 && tensor.size(0) == problem.batch && tensor.size(1) == problem.n &&
            tensor.size(2) == problem.m && tensor.scalar_type() == like.scalar_type() && tensor.device() == like.device(),
        name, ": expected the shape (", problem.batch, ", ", problem.n, ", ", problem.m,
        "), the dtype and the device of cost_matrix");
    return view<T>(tensor);
  }

  // What a ragged pair does not reach stays zero.
  template <typename T>
  static Tensor new_matrix(const Problem<T>& problem, const Tensor& like) {
    return new_table(like, problem.batch, problem.n, problem.m, problem.ragged());
  }

  static std::tuple<Tensor, Tensor, Tensor> hessian_product(
      Tensor cost_matrix, Tensor tangent, OptionalTensor x_lengths, OptionalTensor y_lengths, OptionalTensor bandwidths,
      OptionalTensor gammas, OptionalTensor warp_penalties, int64_t bandwidth, double gamma, double warp_penalty,
      bool need_alignment) {
    return dispatch(cost_matrix, [&](auto zero) -> std::tuple<Tensor, Tensor, Tensor> {
      using T = decltype(zero);
      const auto problem = problem_from_cost<T>(
          cost_matrix, {x_lengths, y_lengths, bandwidths, bandwidth, gamma, warp_penalty, &gammas, &warp_penalties});
      const Tensor value_tangent = new_vector(cost_matrix, problem.batch);
      const Tensor alignment =
          need_alignment ? new_matrix(problem, cost_matrix) : new_table(cost_matrix, problem.batch, 0, 0);
      const Tensor alignment_tangent = new_matrix(problem, cost_matrix);
      Tangents<T> tangents;
      tangents.first = direction(problem, tangent, cost_matrix, "tangent");
      tangents.value_tangent = value_tangent.mutable_data_ptr<T>();
      if (need_alignment) tangents.alignment = mutable_view<T>(alignment);
      tangents.alignment_tangent = mutable_view<T>(alignment_tangent);
      if (problem.batch > 0) Backend::template tangents<T, 1>(problem, tangents, cost_matrix);
      return {value_tangent, alignment, alignment_tangent};
    });
  }

  static std::tuple<Tensor, Tensor> third_order_product(
      Tensor cost_matrix, Tensor first, Tensor second, OptionalTensor x_lengths, OptionalTensor y_lengths,
      OptionalTensor bandwidths, OptionalTensor gammas, OptionalTensor warp_penalties, int64_t bandwidth, double gamma,
      double warp_penalty) {
    return dispatch(cost_matrix, [&](auto zero) -> std::tuple<Tensor, Tensor> {
      using T = decltype(zero);
      const auto problem = problem_from_cost<T>(
          cost_matrix, {x_lengths, y_lengths, bandwidths, bandwidth, gamma, warp_penalty, &gammas, &warp_penalties});
      const Tensor value_tangent = new_vector(cost_matrix, problem.batch);
      const Tensor alignment_tangent = new_matrix(problem, cost_matrix);
      const Tensor alignment_curvature = new_matrix(problem, cost_matrix);
      Tangents<T> tangents;
      tangents.first = direction(problem, first, cost_matrix, "first");
      tangents.second = direction(problem, second, cost_matrix, "second");
      tangents.value_tangent = value_tangent.mutable_data_ptr<T>();
      tangents.alignment_tangent = mutable_view<T>(alignment_tangent);
      tangents.alignment_curvature = mutable_view<T>(alignment_curvature);
      if (problem.batch > 0) Backend::template tangents<T, 2>(problem, tangents, cost_matrix);
      return {alignment_tangent, alignment_curvature};
    });
  }
};

}  // namespace softdtw

// In one source file of a library: the ops of a Backend under a dispatch key, CPU or CUDA.
#define SOFTDTW_REGISTER_TANGENTS(key, Backend)                              \
  STABLE_TORCH_LIBRARY_IMPL(torchsoftdtw, key, m) {                          \
    using Entries = softdtw::TangentEntryPoints<Backend>;                    \
    m.impl("hessian_product", TORCH_BOX(&Entries::hessian_product));         \
    m.impl("third_order_product", TORCH_BOX(&Entries::third_order_product)); \
  }
