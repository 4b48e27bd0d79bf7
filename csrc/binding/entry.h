// The ops of soft-DTW for one device: tensors in, a Backend at work, tensors out.
//
// A Backend is a struct of static functions; those that compute are templates over float and double:
//   Plan plan(call, kernel, rows, device)                          what runs, or an error; `device` is an index
//   Plan plan_from_code(code)                                      what ran, from plan.code(): 1 to 255, or 0 where there is one plan
//   int64_t saved_bytes<T>(problem, plan)                          what forward saves for backward
//   void forward<T>(problem, plan, T* value, void* saved, like)    saved is null where nothing is to be kept
//   void backward<T>(problem, plan, gradient, const void* saved, like)
//   Order order(call, plan, pass)                                  the order in which the kernel reads the series
//   Order gradient_order(call, plan)                               the order in which gradients are returned
//   Tensor arrange(series, order)                                  the series in the strides that the kernels read best
//   std::pair<bool, bool> adds_up(call, plan)                      whether backward adds to the gradients of x and of y, from 0
// `like` is an input tensor: its device is the one to run on and to take scratch memory from.
//
// A plan is made once, in forward, and written into the size of what is saved (recorded()); backward reads it there.
#pragma once

#include <tuple>
#include <utility>

#include "checks.h"
#include "core/call.h"
#include "core/recorded.h"

namespace softdtw {

// What the size of the bytes says that a forward pass has saved: the code of its plan.
inline int code_of_saved(const Tensor& saved, const Tensor& like) {
  STD_TORCH_CHECK(
      saved.dim() == 1 && saved.scalar_type() == ScalarType::Byte && saved.is_contiguous() &&
          saved.device() == like.device(),
      "saved: expected a contiguous uint8 tensor on the device of the input, as forward returns it");
  return recorded_code(saved.numel());
}
inline void check_bytes(const Tensor& saved, int64_t expected) {
  STD_TORCH_CHECK(
      saved.numel() == expected, "saved: expected ", expected, " bytes for these arguments, got ", saved.numel(),
      ": forward had others, or saved nothing");
}

template <class Backend>
struct EntryPoints {
  using Plan = typename Backend::Plan;

  template <typename T>
  static std::tuple<Tensor, Tensor> run_forward(
      const Problem<T>& problem, const Plan& plan, bool save, const Tensor& like) {
    Tensor value = new_vector(like, problem.batch);
    const int64_t bytes = save ? recorded(Backend::template saved_bytes<T>(problem, plan), plan.code()) : 0;
    // Skipped tiles of ragged problems stay zero, so that the result is the same from run to run.
    Tensor saved = new_bytes(like, bytes, problem.ragged() && plan.needs_zeros());
    if (problem.batch > 0)
      Backend::template forward<T>(
          problem, plan, value.mutable_data_ptr<T>(), save ? saved.mutable_data_ptr() : nullptr, like);
    return {value, saved};
  }

  // The plan of the forward pass that has saved `saved`.
  static Plan plan_of(const Tensor& saved, const Tensor& like) {
    return Backend::plan_from_code(code_of_saved(saved, like));
  }

  template <typename T>
  static void run_backward(
      const Problem<T>& problem, const Plan& plan, Gradient<T> gradient, const Tensor& grad_value, const Tensor& value,
      const Tensor& saved, const Tensor& like) {
    check_bytes(saved, recorded(Backend::template saved_bytes<T>(problem, plan), plan.code()));
    check_of_pairs(grad_value, value, problem.batch, like);
    if (problem.batch == 0) return;
    const Tensor result = packed(value);
    take_grad_value(gradient, grad_value, result);
    Backend::template backward<T>(problem, plan, gradient, saved.const_data_ptr(), like);
  }

  static std::tuple<Tensor, Tensor> forward_of_pairs(
      OptionalTensor x_index, OptionalTensor y_index, Tensor x, Tensor y, OptionalTensor x_lengths,
      OptionalTensor y_lengths, OptionalTensor bandwidths, OptionalTensor gammas, OptionalTensor warp_penalties,
      int64_t bandwidth, double gamma, double warp_penalty, std::string cost, std::string kernel, int64_t rows_per_thread,
      bool save) {
    return dispatch(x, [&](auto zero) {
      using T = decltype(zero);
      const Options options = {x_lengths,    y_lengths, bandwidths,      bandwidth, gamma,
                               warp_penalty, &gammas,   &warp_penalties, &x_index,  &y_index};
      auto problem = problem_from_series<T>(x, y, cost_from_name(cost), options);
      const Call call = call_of(problem, save);
      const Plan plan = Backend::plan(call, kernel, rows_per_thread, x.get_device_index());
      const Order order = Backend::order(call, plan, Pass::kForward);
      const Tensor x_view = Backend::arrange(x, order), y_view = Backend::arrange(y, order);
      set_series(problem, x_view, y_view);
      return run_forward(problem, plan, save, x);
    });
  }

  static std::tuple<Tensor, Tensor> backward_of_pairs(
      OptionalTensor x_index, OptionalTensor y_index, Tensor grad_value, Tensor x, Tensor y, Tensor value, Tensor saved,
      OptionalTensor x_lengths, OptionalTensor y_lengths, OptionalTensor bandwidths, OptionalTensor gammas,
      OptionalTensor warp_penalties, int64_t bandwidth, double gamma, double warp_penalty, std::string cost, std::string,
      int64_t, bool need_x, bool need_y) {
    return dispatch(x, [&](auto zero) -> std::tuple<Tensor, Tensor> {
      using T = decltype(zero);
      const Options options = {x_lengths,    y_lengths, bandwidths,      bandwidth, gamma,
                               warp_penalty, &gammas,   &warp_penalties, &x_index,  &y_index};
      auto problem = problem_from_series<T>(x, y, cost_from_name(cost), options);
      const Call call = call_of(problem, true);
      const Plan plan = plan_of(saved, x);
      const Order order = Backend::order(call, plan, Pass::kBackward);
      const Tensor x_view = Backend::arrange(x, order), y_view = Backend::arrange(y, order);
      set_series(problem, x_view, y_view);
      Gradient<T> gradient;
      const auto [x_adds_up, y_adds_up] = Backend::adds_up(call, plan);
      const auto new_gradient = [&](bool is_needed, const Tensor& series, bool adds_up, View<T>& view) {
        const bool is_ragged = plan.needs_zeros() ? problem.ragged() : call.is_ragged;
        return new_series_gradient(is_needed, series, problem.batch, order, is_ragged || adds_up, view);
      };
      Tensor grad_x = new_gradient(need_x, x, x_adds_up, gradient.x),
             grad_y = new_gradient(need_y, y, y_adds_up, gradient.y);
      run_backward(problem, plan, gradient, grad_value, value, saved, x);
      if (order == Order::kDimensionMajor && Backend::gradient_order(call, plan) == Order::kVectors) {
        if (need_x) grad_x = torch::stable::contiguous(grad_x);
        if (need_y) grad_y = torch::stable::contiguous(grad_y);
      }
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
      const Plan plan = Backend::plan(call_of(problem, save), kernel, rows_per_thread, cost_matrix.get_device_index());
      return run_forward(problem, plan, save, cost_matrix);
    });
  }

  static Tensor backward_from_cost(
      Tensor grad_value, Tensor cost_matrix, Tensor value, Tensor saved, OptionalTensor x_lengths, OptionalTensor y_lengths,
      OptionalTensor bandwidths, OptionalTensor gammas, OptionalTensor warp_penalties, int64_t bandwidth, double gamma,
      double warp_penalty, std::string, int64_t) {
    return dispatch(cost_matrix, [&](auto zero) {
      using T = decltype(zero);
      const auto problem = problem_from_cost<T>(
          cost_matrix, {x_lengths, y_lengths, bandwidths, bandwidth, gamma, warp_penalty, &gammas, &warp_penalties});
      const Plan plan = plan_of(saved, cost_matrix);
      const Tensor grad_cost = new_table(cost_matrix, problem.batch, problem.n, problem.m, problem.ragged());
      Gradient<T> gradient;
      gradient.cost = mutable_view<T>(grad_cost);
      run_backward(problem, plan, gradient, grad_value, value, saved, cost_matrix);
      return grad_cost;
    });
  }

  // What forward would return in `saved`, in bytes, of a call whose tensors do not exist yet. has_lengths: of pairs of their own.
  static int64_t saved_size(
      int64_t batch, int64_t n, int64_t m, int64_t dim, bool is_float64, std::string cost, bool has_lengths,
      bool has_bandwidths, int64_t bandwidth, bool has_penalty, std::string kernel, int64_t rows_per_thread,
      int64_t device) {
    const auto size = [&](auto zero) {
      Problem<decltype(zero)> problem;
      const int64_t of_pairs = 0;  // whose place is all that counts
      problem.cost = cost == "matrix" ? Cost::kMatrix : cost_of_dim(cost_from_name(cost), dim);
      problem.batch = batch;
      problem.n = n;
      problem.m = m;
      problem.dim = dim;
      if (has_lengths) problem.x_lengths = &of_pairs;
      if (has_bandwidths) problem.bandwidths = &of_pairs;
      problem.bandwidth = radius_that_counts(bandwidth, n, m);
      problem.warp_penalty = has_penalty ? 1 : 0;
      const Plan plan = Backend::plan(call_of(problem, true), kernel, rows_per_thread, static_cast<int>(device));
      return recorded(Backend::template saved_bytes<decltype(zero)>(problem, plan), plan.code());
    };
    return is_float64 ? size(double{}) : size(float{});
  }
};

}  // namespace softdtw

// In a library's one source file: the ops of a Backend under a dispatch key, CPU or CUDA; saved_size is the one that has no tensors.
#define SOFTDTW_REGISTER(key, Backend, saved_size_name)                    \
  STABLE_TORCH_LIBRARY_IMPL(torchsoftdtw, key, m) {                        \
    using Entries = softdtw::EntryPoints<Backend>;                         \
    SOFTDTW_IMPL_OF_PAIRS(m, Entries, forward)                             \
    SOFTDTW_IMPL_OF_PAIRS(m, Entries, backward)                            \
    m.impl("forward_from_cost", TORCH_BOX(&Entries::forward_from_cost));   \
    m.impl("backward_from_cost", TORCH_BOX(&Entries::backward_from_cost)); \
  }                                                                        \
  STABLE_TORCH_LIBRARY_IMPL(torchsoftdtw, CompositeExplicitAutograd, m) {  \
    using Entries = softdtw::EntryPoints<Backend>;                         \
    m.impl(saved_size_name, TORCH_BOX(&Entries::saved_size));              \
  }
