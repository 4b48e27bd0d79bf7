// The ops of elastic measures for one device: tensors in, a Backend at work, tensors out.
//
// A Backend is a struct of static functions; those that compute are templates over float and double, with a hard problem where
// problem.is_hard():
//   Plan plan<T>(problem, kernel)                                      which kernel, or an error; as in entry.h
//   Plan plan_from_code(code)
//   int64_t saved_bytes<T>(problem, plan)                              what a soft forward pass saves
//   Tensor arrange(series)                                             the series in the strides that the kernels read best
//   void forward<T>(problem, plan, T* value, void* saved, like)        saved: null, bytes, or Spans [B][N + 1] of a hard problem
//   void backward<T>(problem, plan, gradient, const void* saved, like) what it adds up to is zero before
//   and those of twed_entry.h
#pragma once

#include <tuple>

#include "binding/entry.h"
#include "core/elastic.h"
#include "core/hard_path.h"
#include "twed_entry.h"

namespace softdtw {

inline Measure measure_from_name(const std::string& name) {
  std::string known;
  for (int place = 0; place < int(std::tuple_size_v<Measures<double>>); ++place) {
    const char* const own = with_measure<double>(Measure(place), [](auto type) { return decltype(type)::kName; });
    if (name == own) return Measure(place);
    known.append(place == 0 ? "'" : ", '").append(own).append("'");
  }
  STD_TORCH_CHECK(false, "measure: expected one of ", known, ", got '", name, "'");
  return Measure::kEdit;
}

template <class Backend>
struct ElasticEntryPoints {
  using Plan = typename Backend::Plan;

  struct OfSeries {
    const OptionalTensor &x_index, &y_index, &x_times, &y_times, &x_gaps, &y_gaps;
    const OptionalTensor &x_lengths, &y_lengths, &bandwidths, &gammas, &parameters;
    int64_t bandwidth;
    double gamma, parameter;
    const std::string &measure, &cost;
    bool sum_border;
  };

  // gamma: 0 of a hard problem, whose costs stay in their own unit.
  static double or_one(double gamma, const OptionalTensor& gammas) { return gamma == 0 && !gammas ? 1.0 / kLn2 : gamma; }

  template <typename T>
  static void set_gamma(ElasticProblem<T>& problem, double gamma, const OptionalTensor& gammas) {
    if (gamma != 0 || gammas) return;
    problem.gamma = 0;
    problem.scale = 1;
  }

  template <typename T>
  static ElasticProblem<T> problem_of(const Tensor& x, const Tensor& y, const OfSeries& own) {
    const Options options = {own.x_lengths, own.y_lengths, own.bandwidths, own.bandwidth, or_one(own.gamma, own.gammas),
                             0.0,           &own.gammas,   nullptr,        &own.x_index,  &own.y_index};
    ElasticProblem<T> problem;
    static_cast<Problem<T>&>(problem) = problem_from_series<T>(x, y, cost_from_name(own.cost), options);
    problem.measure = measure_from_name(own.measure);
    problem.sum_border = own.sum_border;
    problem.x_times = numbers_view<T>(own.x_times, x, "x_times");
    problem.y_times = numbers_view<T>(own.y_times, y, "y_times");
    problem.x_gaps = numbers_view<T>(own.x_gaps, x, "x_gaps");
    problem.y_gaps = numbers_view<T>(own.y_gaps, y, "y_gaps");
    problem.parameter = own.parameter;
    problem.parameters = per_pair<double>(&own.parameters, problem.batch, x, "parameters");
    STD_TORCH_CHECK(!own.x_times == !own.y_times, "x_times and y_times: expected both or neither");
    const bool has_gaps = problem.measure == Measure::kEdit || problem.measure == Measure::kTwed;
    STD_TORCH_CHECK(
        bool(own.x_gaps) == has_gaps && bool(own.y_gaps) == has_gaps,
        "x_gaps and y_gaps: expected both of 'edit' and 'twed', neither of other measures");
    STD_TORCH_CHECK(!own.x_times || problem.measure == Measure::kTwed, "x_times: expected None of ", own.measure);
    const bool may_have_sums = problem.measure <= Measure::kLcss;
    STD_TORCH_CHECK(may_have_sums || !own.sum_border, "sum_border: expected False of ", own.measure);
    STD_TORCH_CHECK(problem.measure != Measure::kMsm || problem.dim == 1, "x: expected one dimension of 'msm'");
    STD_TORCH_CHECK(
        problem.measure != Measure::kMsm || problem.cost == Cost::kCityblock, "cost: expected 'cityblock' of 'msm', got '",
        own.cost, "'");
    set_gamma(problem, own.gamma, own.gammas);
    return problem;
  }

  template <typename T>
  static ElasticProblem<T> problem_of_costs(
      const Tensor& diagonal, const Tensor& up, const Tensor& left, const OptionalTensor& x_lengths,
      const OptionalTensor& y_lengths, const OptionalTensor& bandwidths, const OptionalTensor& gammas, int64_t bandwidth,
      double gamma, bool sum_border) {
    const Options options = {x_lengths, y_lengths, bandwidths, bandwidth, or_one(gamma, gammas), 0.0, &gammas};
    for (const Tensor* costs : {&up, &left})
      STD_TORCH_CHECK(
          costs->dim() == 3 && diagonal.dim() == 3 && costs->size(0) == diagonal.size(0) &&
              costs->size(1) == diagonal.size(1) && costs->size(2) == diagonal.size(2) &&
              costs->scalar_type() == diagonal.scalar_type() && costs->device() == diagonal.device(),
          "up and left: expected the shape, the dtype and the device of diagonal");
    ElasticProblem<T> problem;
    static_cast<Problem<T>&>(problem) = problem_from_cost<T>(diagonal, options);
    problem.measure = Measure::kMatrix;
    problem.sum_border = sum_border;
    problem.diagonal = view<T>(diagonal);
    problem.up = view<T>(up);
    problem.left = view<T>(left);
    set_gamma(problem, gamma, gammas);
    return problem;
  }

  template <typename T>
  static std::tuple<Tensor, Tensor> run_forward(
      const ElasticProblem<T>& problem, const std::string& kernel, bool save, const Tensor& like) {
    static_assert(sizeof(Span) == 2 * sizeof(int32_t), "a row of the tensor `saved`");
    const Plan plan = Backend::plan(problem, kernel);
    Tensor value = new_vector(like, problem.batch);
    const int64_t rows = save ? problem.n + 1 : 0;
    Tensor saved = problem.is_hard()
                       ? new_strided(like, {problem.batch, rows, 2}, {2 * rows, 2, 1}, aoti_torch_dtype_int32())
                       : new_bytes(like, save ? recorded(Backend::template saved_bytes<T>(problem, plan), plan.code()) : 0);
    if (problem.batch > 0)
      Backend::template forward<T>(
          problem, plan, value.mutable_data_ptr<T>(), save ? saved.mutable_data_ptr() : nullptr, like);
    return {value, saved};
  }

  template <typename T>
  static void run_backward(
      const ElasticProblem<T>& problem, ElasticGradient<T> gradient, const Tensor& grad_value, const Tensor& value,
      const Tensor& saved, const std::string& kernel, const Tensor& like) {
    Plan plan = Backend::plan(problem, kernel);
    if (problem.is_hard()) {
      STD_TORCH_CHECK(
          saved.dim() == 3 && saved.size(0) == problem.batch && saved.size(1) == problem.n + 1 && saved.size(2) == 2 &&
              saved.scalar_type() == ScalarType::Int && saved.is_contiguous() && saved.device() == like.device(),
          "saved: expected a contiguous int32 tensor of shape (", problem.batch, ", ", problem.n + 1,
          ", 2) on the device of the input, as a forward pass with save returns it");
    } else {
      plan = Backend::plan_from_code(code_of_saved(saved, like));
      check_bytes(saved, recorded(Backend::template saved_bytes<T>(problem, plan), plan.code()));
    }
    check_of_pairs(grad_value, value, problem.batch, like);
    if (problem.batch == 0) return;
    const Tensor result = packed(value);
    take_grad_value(gradient, grad_value, result);
    Backend::template backward<T>(problem, plan, gradient, saved.const_data_ptr(), like);
  }

  static std::tuple<Tensor, Tensor> elastic(
      OptionalTensor x_index, OptionalTensor y_index, Tensor x, Tensor y, OptionalTensor x_times, OptionalTensor y_times,
      OptionalTensor x_gaps, OptionalTensor y_gaps, OptionalTensor x_lengths, OptionalTensor y_lengths,
      OptionalTensor bandwidths, OptionalTensor gammas, OptionalTensor parameters, int64_t bandwidth, double gamma,
      double parameter, std::string measure, std::string cost, bool sum_border, std::string kernel, bool save) {
    return dispatch(x, [&](auto zero) {
      using T = decltype(zero);
      auto problem = problem_of<T>(
          x, y,
          {x_index, y_index, x_times, y_times, x_gaps, y_gaps, x_lengths, y_lengths, bandwidths, gammas, parameters,
           bandwidth, gamma, parameter, measure, cost, sum_border});
      const Tensor x_view = Backend::arrange(x), y_view = Backend::arrange(y);
      set_series(problem, x_view, y_view);
      return run_forward(problem, kernel, save, x);
    });
  }

  static std::tuple<Tensor, Tensor, Tensor, Tensor, Tensor, Tensor, Tensor, Tensor> elastic_backward(
      OptionalTensor x_index, OptionalTensor y_index, Tensor grad_value, Tensor x, Tensor y, OptionalTensor x_times,
      OptionalTensor y_times, OptionalTensor x_gaps, OptionalTensor y_gaps, Tensor value, Tensor saved,
      OptionalTensor x_lengths, OptionalTensor y_lengths, OptionalTensor bandwidths, OptionalTensor gammas,
      OptionalTensor parameters, int64_t bandwidth, double gamma, double parameter, std::string measure, std::string cost,
      bool sum_border, std::string kernel, bool need_x, bool need_y, bool need_times, bool need_gaps, bool need_numbers) {
    using Tensors = std::tuple<Tensor, Tensor, Tensor, Tensor, Tensor, Tensor, Tensor, Tensor>;
    return dispatch(x, [&](auto zero) -> Tensors {
      using T = decltype(zero);
      auto problem = problem_of<T>(
          x, y,
          {x_index, y_index, x_times, y_times, x_gaps, y_gaps, x_lengths, y_lengths, bandwidths, gammas, parameters,
           bandwidth, gamma, parameter, measure, cost, sum_border});
      const Tensor x_view = Backend::arrange(x), y_view = Backend::arrange(y);
      set_series(problem, x_view, y_view);
      ElasticGradient<T> gradient;
      constexpr Order kOrder = Order::kDimensionMajor;
      const Tensor grad_x = new_series_gradient(need_x, x, problem.batch, kOrder, true, gradient.x);
      const Tensor grad_y = new_series_gradient(need_y, y, problem.batch, kOrder, true, gradient.y);
      const auto numbers = [&](bool is_needed, int64_t length, T*& data) {
        if (!is_needed) return new_vector(x, 0);
        const Tensor own = torch::stable::new_zeros(x, {problem.batch, length});
        data = own.mutable_data_ptr<T>();
        return own;
      };
      const auto of_pairs = [&](T*& data) {
        if (!need_numbers) return new_vector(x, 0);
        const Tensor own = torch::stable::new_zeros(x, {problem.batch});
        data = own.mutable_data_ptr<T>();
        return own;
      };
      const Tensor grad_x_times = numbers(need_times, problem.n, gradient.x_times);
      const Tensor grad_y_times = numbers(need_times, problem.m, gradient.y_times);
      const Tensor grad_x_gaps = numbers(need_gaps, problem.n, gradient.x_gaps);
      const Tensor grad_y_gaps = numbers(need_gaps, problem.m, gradient.y_gaps);
      const Tensor grad_parameter = of_pairs(gradient.parameter), grad_gamma = of_pairs(gradient.gamma);
      run_backward(problem, gradient, grad_value, value, saved, kernel, x);
      return {grad_x, grad_y, grad_x_times, grad_y_times, grad_x_gaps, grad_y_gaps, grad_parameter, grad_gamma};
    });
  }

  static std::tuple<Tensor, Tensor> elastic_from_costs(
      Tensor diagonal, Tensor up, Tensor left, OptionalTensor x_lengths, OptionalTensor y_lengths,
      OptionalTensor bandwidths, OptionalTensor gammas, int64_t bandwidth, double gamma, bool sum_border,
      std::string kernel, bool save) {
    return dispatch(diagonal, [&](auto zero) {
      using T = decltype(zero);
      const auto problem =
          problem_of_costs<T>(diagonal, up, left, x_lengths, y_lengths, bandwidths, gammas, bandwidth, gamma, sum_border);
      return run_forward(problem, kernel, save, diagonal);
    });
  }

  static std::tuple<Tensor, Tensor, Tensor, Tensor> elastic_from_costs_backward(
      Tensor grad_value, Tensor diagonal, Tensor up, Tensor left, Tensor value, Tensor saved, OptionalTensor x_lengths,
      OptionalTensor y_lengths, OptionalTensor bandwidths, OptionalTensor gammas, int64_t bandwidth, double gamma,
      bool sum_border, std::string kernel, bool need_numbers) {
    return dispatch(diagonal, [&](auto zero) -> std::tuple<Tensor, Tensor, Tensor, Tensor> {
      using T = decltype(zero);
      const auto problem =
          problem_of_costs<T>(diagonal, up, left, x_lengths, y_lengths, bandwidths, gammas, bandwidth, gamma, sum_border);
      ElasticGradient<T> gradient;
      const auto table = [&](View<T>& view) {
        const Tensor own = new_table(diagonal, problem.batch, problem.n, problem.m, true);
        view = mutable_view<T>(own);
        return own;
      };
      const Tensor grad_diagonal = table(gradient.diagonal), grad_up = table(gradient.up), grad_left = table(gradient.left);
      Tensor grad_gamma = new_vector(diagonal, 0);
      if (need_numbers) {
        grad_gamma = torch::stable::new_zeros(diagonal, {problem.batch});
        gradient.gamma = grad_gamma.mutable_data_ptr<T>();
      }
      run_backward(problem, gradient, grad_value, value, saved, kernel, diagonal);
      return {grad_diagonal, grad_up, grad_left, grad_gamma};
    });
  }

  // What a soft forward pass would return in `saved`, in bytes, of a call whose tensors do not exist yet.
  static int64_t saved_size(
      int64_t batch, int64_t n, int64_t m, int64_t dim, bool is_float64, std::string measure, std::string cost,
      bool sum_border, bool has_lengths, bool has_bandwidths, int64_t bandwidth, std::string kernel) {
    const auto size = [&](auto zero) {
      ElasticProblem<decltype(zero)> problem;
      const int64_t of_pairs = 0;  // whose place is all that counts
      const bool is_matrix = measure == "matrix";
      problem.measure = is_matrix ? Measure::kMatrix : measure_from_name(measure);
      problem.cost = is_matrix ? Cost::kMatrix : cost_of_dim(cost_from_name(cost), dim);
      problem.sum_border = sum_border;
      problem.batch = batch;
      problem.n = n;
      problem.m = m;
      problem.dim = dim;
      if (has_lengths) problem.x_lengths = &of_pairs;
      if (has_bandwidths) problem.bandwidths = &of_pairs;
      problem.bandwidth = radius_that_counts(bandwidth, n, m);
      const Plan plan = Backend::plan(problem, kernel);
      return recorded(Backend::template saved_bytes<decltype(zero)>(problem, plan), plan.code());
    };
    return is_float64 ? size(double{}) : size(float{});
  }
};

}  // namespace softdtw

// In a library's own source file: the ops of a Backend under a dispatch key, CPU or CUDA.
#define SOFTDTW_REGISTER_ELASTIC(key, Backend, saved_size_name)                              \
  STABLE_TORCH_LIBRARY_IMPL(torchsoftdtw, key, m) {                                          \
    using Terms = softdtw::TwedEntryPoints<Backend>;                                         \
    m.impl("twed_terms", TORCH_BOX(&Terms::twed_terms));                                     \
    m.impl("twed_terms_backward", TORCH_BOX(&Terms::twed_terms_backward));                   \
    using Entries = softdtw::ElasticEntryPoints<Backend>;                                    \
    m.impl("elastic", TORCH_BOX(&Entries::elastic));                                         \
    m.impl("elastic_backward", TORCH_BOX(&Entries::elastic_backward));                       \
    m.impl("elastic_from_costs", TORCH_BOX(&Entries::elastic_from_costs));                   \
    m.impl("elastic_from_costs_backward", TORCH_BOX(&Entries::elastic_from_costs_backward)); \
  }                                                                                          \
  STABLE_TORCH_LIBRARY_IMPL(torchsoftdtw, CompositeExplicitAutograd, m) {                    \
    using Entries = softdtw::ElasticEntryPoints<Backend>;                                    \
    m.impl(saved_size_name, TORCH_BOX(&Entries::saved_size));                                \
  }
