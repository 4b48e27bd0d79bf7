// The four ops for one device: tensors in, a Backend at work, tensors out.
//
// A Backend is a struct of static functions, each a template over float and double:
//   int64_t saved_bytes<T>(problem, plan)                          what forward saves for backward
//   void forward<T>(problem, plan, T* value, void* saved, like)    saved is null where nothing is to be kept
//   void backward<T>(problem, plan, gradient, const void* saved, like)
//   Order order(series, cost, plan, pass)                          the order in which the kernel reads the series
//   Tensor arrange(series, order)                                  the series in the strides that the kernels read best
//   std::pair<bool, bool> adds_up(series, order)                   whether backward adds to the gradients of x and of y, from 0
// `like` is an input tensor: its device is the one to run on and to take scratch memory from.
#pragma once

#include <tuple>
#include <utility>

#include "checks.h"

namespace softdtw {

struct Plan {
  std::string kernel;
  int64_t rows_per_thread;
};

template <class Backend>
struct EntryPoints {
  template <typename T>
  static std::tuple<Tensor, Tensor> run_forward(
      const Problem<T>& problem, const Plan& plan, bool save, const Tensor& like) {
    Tensor value = new_vector(like, problem.batch);
    // Skipped tiles of ragged problems stay zero, so that the result is the same from run to run.
    Tensor saved = new_bytes(like, save ? Backend::template saved_bytes<T>(problem, plan) : 0, problem.ragged());
    if (problem.batch > 0)
      Backend::template forward<T>(
          problem, plan, value.mutable_data_ptr<T>(), save ? saved.mutable_data_ptr() : nullptr, like);
    return {value, saved};
  }

  template <typename T>
  static void run_backward(
      const Problem<T>& problem, const Plan& plan, Gradient<T> gradient, const Tensor& grad_value, const Tensor& value,
      const Tensor& saved, const Tensor& like) {
    STD_TORCH_CHECK(
        saved.numel() == Backend::template saved_bytes<T>(problem, plan),
        "saved: backward was called for a forward pass that saved nothing, or with other arguments");
    STD_TORCH_CHECK(
        saved.scalar_type() == ScalarType::Byte && saved.is_contiguous() && saved.device() == like.device(),
        "saved: expected a contiguous uint8 tensor on the device of the input, as a forward pass with save returns it");
    check_of_pairs(grad_value, value, problem.batch, like);
    if (problem.batch == 0) return;
    const Tensor result = packed(value);
    take_grad_value(gradient, grad_value, result);
    Backend::template backward<T>(problem, plan, gradient, saved.const_data_ptr(), like);
  }

  static std::tuple<Tensor, Tensor> forward(
      Tensor x, Tensor y, OptionalTensor x_lengths, OptionalTensor y_lengths, OptionalTensor bandwidths,
      OptionalTensor gammas, OptionalTensor warp_penalties, int64_t bandwidth, double gamma, double warp_penalty,
      std::string cost, std::string kernel, int64_t rows_per_thread, bool save) {
    return dispatch(x, [&](auto zero) {
      using T = decltype(zero);
      check_series(x, y);
      const Plan plan = {kernel, rows_per_thread};
      const Order order = Backend::order(x, cost_from_name(cost), plan, Pass::kForward);
      const Tensor x_view = Backend::arrange(x, order), y_view = Backend::arrange(y, order);
      const auto problem = problem_from_series<T>(
          x_view, y_view, cost_from_name(cost),
          {x_lengths, y_lengths, bandwidths, bandwidth, gamma, warp_penalty, &gammas, &warp_penalties});
      return run_forward(problem, plan, save, x);
    });
  }

  static std::tuple<Tensor, Tensor> backward(
      Tensor grad_value, Tensor x, Tensor y, Tensor value, Tensor saved, OptionalTensor x_lengths, OptionalTensor y_lengths,
      OptionalTensor bandwidths, OptionalTensor gammas, OptionalTensor warp_penalties, int64_t bandwidth, double gamma,
      double warp_penalty, std::string cost, std::string kernel, int64_t rows_per_thread, bool need_x, bool need_y) {
    return dispatch(x, [&](auto zero) -> std::tuple<Tensor, Tensor> {
      using T = decltype(zero);
      check_series(x, y);
      const Plan plan = {kernel, rows_per_thread};
      const Order order = Backend::order(x, cost_from_name(cost), plan, Pass::kBackward);
      const Tensor x_view = Backend::arrange(x, order), y_view = Backend::arrange(y, order);
      const auto problem = problem_from_series<T>(
          x_view, y_view, cost_from_name(cost),
          {x_lengths, y_lengths, bandwidths, bandwidth, gamma, warp_penalty, &gammas, &warp_penalties});
      Gradient<T> gradient;
      const auto [x_adds_up, y_adds_up] = Backend::adds_up(x, order);
      const Tensor grad_x = need_x ? new_series_gradient(x, order, problem.ragged() || x_adds_up) : new_vector(x, 0);
      const Tensor grad_y = need_y ? new_series_gradient(y, order, problem.ragged() || y_adds_up) : new_vector(y, 0);
      if (need_x) gradient.x = mutable_view<T>(grad_x);
      if (need_y) gradient.y = mutable_view<T>(grad_y);
      run_backward(problem, plan, gradient, grad_value, value, saved, x);
      return {grad_x, grad_y};
    });
  }

  static std::tuple<Tensor, Tensor> forward_from_cost(
      Tensor cost_matrix, OptionalTensor x_lengths, OptionalTensor y_lengths, OptionalTensor bandwidths,
      OptionalTensor gammas, OptionalTensor warp_penalties, int64_t bandwidth, double gamma, double warp_penalty,
      std::string kernel, int64_t rows_per_thread, bool save) {
    return dispatch(cost_matrix, [&](auto zero) {
      using T = decltype(zero);
      const auto problem = problem_from_cost<T>(
          cost_matrix, {x_lengths, y_lengths, bandwidths, bandwidth, gamma, warp_penalty, &gammas, &warp_penalties});
      return run_forward(problem, {kernel, rows_per_thread}, save, cost_matrix);
    });
  }

  static Tensor backward_from_cost(
      Tensor grad_value, Tensor cost_matrix, Tensor value, Tensor saved, OptionalTensor x_lengths, OptionalTensor y_lengths,
      OptionalTensor bandwidths, OptionalTensor gammas, OptionalTensor warp_penalties, int64_t bandwidth, double gamma,
      double warp_penalty, std::string kernel, int64_t rows_per_thread) {
    return dispatch(cost_matrix, [&](auto zero) {
      using T = decltype(zero);
      const auto problem = problem_from_cost<T>(
          cost_matrix, {x_lengths, y_lengths, bandwidths, bandwidth, gamma, warp_penalty, &gammas, &warp_penalties});
      const Tensor grad_cost = new_table(cost_matrix, problem.batch, problem.n, problem.m, problem.ragged());
      Gradient<T> gradient;
      gradient.cost = mutable_view<T>(grad_cost);
      run_backward(problem, {kernel, rows_per_thread}, gradient, grad_value, value, saved, cost_matrix);
      return grad_cost;
    });
  }
};

}  // namespace softdtw

// In a library's one source file: the ops of a Backend under a dispatch key, CPU or CUDA.
#define SOFTDTW_REGISTER(key, Backend)                                     \
  STABLE_TORCH_LIBRARY_IMPL(torchsoftdtw, key, m) {                        \
    using Entries = softdtw::EntryPoints<Backend>;                         \
    m.impl("forward", TORCH_BOX(&Entries::forward));                       \
    m.impl("backward", TORCH_BOX(&Entries::backward));                     \
    m.impl("forward_from_cost", TORCH_BOX(&Entries::forward_from_cost));   \
    m.impl("backward_from_cost", TORCH_BOX(&Entries::backward_from_cost)); \
  }
