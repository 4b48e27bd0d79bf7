// The ops of hard DTW for one device: tensors in, a Backend at work, tensors out.
//
// A Backend is a struct of static functions, each a template over float and double:
//   void forward<T>(problem, open_ends, T* value, Span* spans, like)      spans is null where no path is wanted
//   void backward<T>(problem, gradient, like)
//   Tensor arrange(series, cost)                                         the series in the strides that the kernels read best
#pragma once

#include <tuple>

#include "checks.h"
#include "core/hard_path.h"

namespace softdtw {

template <class Backend>
struct HardEntryPoints {
  template <typename T>
  static std::tuple<Tensor, Tensor> run_forward(const Problem<T>& problem, bool open_ends, bool save, const Tensor& like) {
    static_assert(sizeof(Span) == 2 * sizeof(int32_t), "a row of the tensor `spans`");
    STD_TORCH_CHECK(
        !open_ends || (problem.bandwidth < 0 && !problem.bandwidths), "open_ends: a band and open ends exclude each other");
    Tensor value = new_vector(like, problem.batch);
    const int64_t rows = save ? problem.n : 0;
    Tensor spans = new_strided(like, {problem.batch, rows, 2}, {2 * rows, 2, 1}, aoti_torch_dtype_int32());
    if (problem.batch > 0)
      Backend::template forward<T>(
          problem, open_ends, value.mutable_data_ptr<T>(),
          save ? reinterpret_cast<Span*>(spans.mutable_data_ptr<int32_t>()) : nullptr, like);
    return {value, spans};
  }

  template <typename T>
  static void run_backward(
      const Problem<T>& problem, HardGradient<T> gradient, const Tensor& grad_value, const Tensor& value,
      const Tensor& spans, const Tensor& like) {
    STD_TORCH_CHECK(
        spans.dim() == 3 && spans.size(0) == problem.batch && spans.size(1) == problem.n && spans.size(2) == 2 &&
            spans.scalar_type() == ScalarType::Int && spans.is_contiguous() && spans.device() == like.device(),
        "spans: expected a contiguous int32 tensor of shape (", problem.batch, ", ", problem.n,
        ", 2) on the device of the input, as a forward pass with save returns it");
    check_of_pairs(grad_value, value, problem.batch, like);
    if (problem.batch == 0) return;
    const Tensor result = packed(value);
    take_grad_value(gradient, grad_value, result);
    gradient.spans = reinterpret_cast<const Span*>(spans.const_data_ptr<int32_t>());
    Backend::template backward<T>(problem, gradient, like);
  }

  // gamma: the costs stay in their own unit.
  static constexpr double kNoGamma = 1.0 / kLn2;

  static std::tuple<Tensor, Tensor> dtw_of_pairs(
      OptionalTensor x_index, OptionalTensor y_index, Tensor x, Tensor y, OptionalTensor x_lengths,
      OptionalTensor y_lengths, OptionalTensor bandwidths, OptionalTensor warp_penalties, int64_t bandwidth,
      double warp_penalty, bool open_ends, std::string cost, bool save) {
    return dispatch(x, [&](auto zero) {
      using T = decltype(zero);
      const Options options = {x_lengths,    y_lengths, bandwidths,      bandwidth, kNoGamma,
                               warp_penalty, nullptr,   &warp_penalties, &x_index,  &y_index};
      check_series(x, y, options);
      const Cost kind = cost_from_name(cost);
      const Tensor x_view = Backend::arrange(x, kind), y_view = Backend::arrange(y, kind);
      auto problem = problem_from_series<T>(x_view, y_view, kind, options);
      problem.scale = 1;
      return run_forward(problem, open_ends, save, x);
    });
  }

  static std::tuple<Tensor, Tensor> dtw_backward_of_pairs(
      OptionalTensor x_index, OptionalTensor y_index, Tensor grad_value, Tensor x, Tensor y, Tensor value, Tensor spans,
      OptionalTensor x_lengths, OptionalTensor y_lengths, std::string cost, bool need_x, bool need_y) {
    return dispatch(x, [&](auto zero) -> std::tuple<Tensor, Tensor> {
      using T = decltype(zero);
      const OptionalTensor none;
      const Options options = {x_lengths, y_lengths, none, -1, kNoGamma, 0.0, nullptr, nullptr, &x_index, &y_index};
      check_series(x, y, options);
      const auto problem = problem_from_series<T>(x, y, cost_from_name(cost), options);
      HardGradient<T> gradient;
      const Tensor grad_x =
          need_x ? new_series_gradient(x, problem.batch, Order::kDimensionMajor, false) : new_vector(x, 0);
      const Tensor grad_y =
          need_y ? new_series_gradient(y, problem.batch, Order::kDimensionMajor, false) : new_vector(y, 0);
      if (need_x) gradient.x = mutable_view<T>(grad_x);
      if (need_y) gradient.y = mutable_view<T>(grad_y);
      run_backward(problem, gradient, grad_value, value, spans, x);
      return {grad_x, grad_y};
    });
  }

  static std::tuple<Tensor, Tensor> dtw_from_cost(
      Tensor cost_matrix, OptionalTensor x_lengths, OptionalTensor y_lengths, OptionalTensor bandwidths,
      OptionalTensor warp_penalties, int64_t bandwidth, double warp_penalty, bool open_ends, bool save) {
    return dispatch(cost_matrix, [&](auto zero) {
      using T = decltype(zero);
      auto problem = problem_from_cost<T>(
          cost_matrix, {x_lengths, y_lengths, bandwidths, bandwidth, kNoGamma, warp_penalty, nullptr, &warp_penalties});
      problem.scale = 1;
      return run_forward(problem, open_ends, save, cost_matrix);
    });
  }

  static Tensor dtw_from_cost_backward(
      Tensor grad_value, Tensor cost_matrix, Tensor value, Tensor spans, OptionalTensor x_lengths,
      OptionalTensor y_lengths) {
    return dispatch(cost_matrix, [&](auto zero) {
      using T = decltype(zero);
      const OptionalTensor none;
      const auto problem = problem_from_cost<T>(cost_matrix, {x_lengths, y_lengths, none, -1, kNoGamma, 0.0});
      const Tensor grad_cost = new_table(cost_matrix, problem.batch, problem.n, problem.m);
      HardGradient<T> gradient;
      gradient.cost = mutable_view<T>(grad_cost);
      run_backward(problem, gradient, grad_value, value, spans, cost_matrix);
      return grad_cost;
    });
  }
};

}  // namespace softdtw

// In a library's own source file: the ops of a Backend under a dispatch key, CPU or CUDA.
#define SOFTDTW_REGISTER_HARD(key, Backend)                                        \
  STABLE_TORCH_LIBRARY_IMPL(torchsoftdtw, key, m) {                                \
    using Entries = softdtw::HardEntryPoints<Backend>;                             \
    SOFTDTW_IMPL_OF_PAIRS(m, Entries, dtw)                                         \
    SOFTDTW_IMPL_OF_PAIRS(m, Entries, dtw_backward)                                \
    m.impl("dtw_from_cost", TORCH_BOX(&Entries::dtw_from_cost));                   \
    m.impl("dtw_from_cost_backward", TORCH_BOX(&Entries::dtw_from_cost_backward)); \
  }
