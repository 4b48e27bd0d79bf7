// The ops of what twed charges rows and columns, (14) of core/twed_terms.h, for one device.
//
// A Backend is a struct of static functions:
//   void twed_terms<T>(terms, out, like)
//   void twed_terms_gradient<T>(terms, gradient, like)      writes all that is not null
#pragma once

#include <tuple>

#include "binding/checks.h"
#include "core/twed_terms.h"

namespace softdtw {

template <typename T>
NumbersView<const T> numbers_view(const OptionalTensor& tensor, const Tensor& series, const char* name) {
  if (!tensor) return {};
  STD_TORCH_CHECK(
      tensor->dim() == 2 && tensor->size(0) == series.size(0) && tensor->size(1) == series.size(1) &&
          tensor->scalar_type() == series.scalar_type() && tensor->device() == series.device(),
      name, ": expected shape (", series.size(0), ", ", series.size(1), "), and the dtype and the device of the series");
  return {tensor->const_data_ptr<T>(), tensor->stride(0), tensor->stride(1)};
}

inline GivenTimes given_times(const OptionalTensor& tensor, const Tensor& series, const char* name) {
  if (!tensor) return {};
  const ScalarType type = tensor->scalar_type();
  STD_TORCH_CHECK(
      tensor->dim() == 2 && tensor->size(0) == series.size(0) && tensor->size(1) == series.size(1) &&
          (type == ScalarType::Float || type == ScalarType::Double || type == ScalarType::Long) &&
          tensor->device() == series.device(),
      name, ": expected float32, float64 or int64 of shape (", series.size(0), ", ", series.size(1),
      "), on the device of the series");
  using Kind = GivenTimes::Kind;
  const Kind kind = type == ScalarType::Float ? Kind::kFloat32 : type == ScalarType::Double ? Kind::kFloat64 : Kind::kInt64;
  return {tensor->const_data_ptr(), kind, tensor->stride(0), tensor->stride(1)};
}

template <class Backend>
struct TwedEntryPoints {
  struct Given {
    const OptionalTensor &x_times, &y_times, &x_lengths, &y_lengths, &nus, &lmbdas;
    double nu, lmbda;
    const std::string& cost;
  };

  template <typename T>
  static TwedSide<T> side_of(
      const Tensor& series, const OptionalTensor& times, const OptionalTensor& lengths, const char* name_of_times,
      const char* name_of_lengths) {
    TwedSide<T> side;
    side.series = view<T>(series);
    side.given = given_times(times, series, name_of_times);
    side.count = series.size(0);
    side.length = series.size(1);
    side.lengths = per_pair<int64_t>(&lengths, side.count, series, name_of_lengths);
    return side;
  }

  template <typename T>
  static TwedTerms<T> terms_of(const Tensor& x, const Tensor& y, const Given& own) {
    STD_TORCH_CHECK(
        x.dim() == 3 && y.dim() == 3 && x.size(2) == y.size(2) && x.scalar_type() == y.scalar_type() &&
            x.device() == y.device(),
        "x and y: expected 3 dimensions, the same last one, one dtype and one device");
    TwedTerms<T> terms;
    terms.x = side_of<T>(x, own.x_times, own.x_lengths, "x_times", "x_lengths");
    terms.y = side_of<T>(y, own.y_times, own.y_lengths, "y_times", "y_lengths");
    terms.cost = cost_from_name(own.cost);
    terms.dim = x.size(2);
    terms.nu = own.nu;
    terms.lmbda = own.lmbda;
    terms.nus = per_pair<double>(&own.nus, x.size(0), x, "nus");
    terms.lmbdas = per_pair<double>(&own.lmbdas, x.size(0), x, "lmbdas");
    STD_TORCH_CHECK(
        !own.x_times == !own.y_times && terms.x.given.kind == terms.y.given.kind,
        "x_times and y_times: expected both or neither, and one dtype");
    const bool has_pairs = own.x_times || own.nus || own.lmbdas;
    STD_TORCH_CHECK(!has_pairs || x.size(0) == y.size(0), "x and y: expected the same batch");
    return terms;
  }

  static std::tuple<Tensor, Tensor, Tensor, Tensor> twed_terms(
      Tensor x, Tensor y, OptionalTensor x_times, OptionalTensor y_times, OptionalTensor x_lengths,
      OptionalTensor y_lengths, OptionalTensor nus, OptionalTensor lmbdas, double nu, double lmbda, std::string cost,
      bool x_has_slopes, bool y_has_slopes) {
    return dispatch(x, [&](auto zero) -> std::tuple<Tensor, Tensor, Tensor, Tensor> {
      using T = decltype(zero);
      auto terms = terms_of<T>(x, y, {x_times, y_times, x_lengths, y_lengths, nus, lmbdas, nu, lmbda, cost});
      terms.x.has_slopes = x_has_slopes;
      terms.y.has_slopes = y_has_slopes;
      const bool are_shared =
          x_times && x_times->stride(0) == 0 && y_times->stride(0) == 0 && !nus && !x_lengths && !y_lengths;
      const auto made = [&](int64_t count, int64_t length, NumbersView<T>& numbers) {
        const Tensor own = new_strided(x, {count, length}, {length, 1}, type_of(x));
        numbers = {own.mutable_data_ptr<T>(), count == 1 ? 0 : length, 1};
        return own;
      };
      const auto made_times = [&](const TwedSide<T>& side, NumbersView<T>& numbers) {
        if (!x_times && !nus) return new_vector(x, 0);
        return made(are_shared && side.count > 1 ? 1 : side.count, side.length, numbers);
      };
      TwedTermsOut<T> out;
      const Tensor own_x_times = made_times(terms.x, out.x_times), own_y_times = made_times(terms.y, out.y_times);
      const Tensor x_gaps = made(terms.x.count, terms.x.length, out.x_gaps);
      const Tensor y_gaps = made(terms.y.count, terms.y.length, out.y_gaps);
      if (terms.rows() > 0) Backend::template twed_terms<T>(terms, out, x);
      return {own_x_times, own_y_times, x_gaps, y_gaps};
    });
  }

  static std::tuple<Tensor, Tensor, Tensor, Tensor, Tensor, Tensor> twed_terms_backward(
      OptionalTensor grad_x_times, OptionalTensor grad_y_times, OptionalTensor grad_x_gaps, OptionalTensor grad_y_gaps,
      Tensor x, Tensor y, OptionalTensor x_times, OptionalTensor y_times, OptionalTensor x_lengths,
      OptionalTensor y_lengths, OptionalTensor nus, OptionalTensor lmbdas, double nu, double lmbda, std::string cost,
      bool need_x, bool need_y, bool need_times, bool need_numbers) {
    using Tensors = std::tuple<Tensor, Tensor, Tensor, Tensor, Tensor, Tensor>;
    return dispatch(x, [&](auto zero) -> Tensors {
      using T = decltype(zero);
      auto terms = terms_of<T>(x, y, {x_times, y_times, x_lengths, y_lengths, nus, lmbdas, nu, lmbda, cost});
      terms.x.has_slopes = terms.y.has_slopes = true;
      TwedTermsGradient<T> gradient;
      gradient.from_x_times = numbers_view<T>(grad_x_times, x, "grad_x_times");
      gradient.from_y_times = numbers_view<T>(grad_y_times, y, "grad_y_times");
      gradient.from_x_gaps = numbers_view<T>(grad_x_gaps, x, "grad_x_gaps");
      gradient.from_y_gaps = numbers_view<T>(grad_y_gaps, y, "grad_y_gaps");
      const Tensor grad_x = new_series_gradient(need_x, x, terms.x.count, Order::kVectors, false, gradient.x);
      const Tensor grad_y = new_series_gradient(need_y, y, terms.y.count, Order::kVectors, false, gradient.y);
      const auto of_times = [&](const TwedSide<T>& side, NumbersView<T>& numbers) {
        if (!need_times || !x_times) return new_vector(x, 0);
        const Tensor own = new_strided(x, {side.count, side.length}, {side.length, 1}, type_of(x));
        numbers = {own.mutable_data_ptr<T>(), side.length, 1};
        return own;
      };
      const auto of_series = [&](const OptionalTensor& given, double*& data) {
        const bool is_needed = need_numbers && given;
        const Tensor own = new_strided(x, {is_needed ? terms.rows() : 0}, {1}, aoti_torch_dtype_float64());
        if (is_needed) data = own.mutable_data_ptr<double>();
        return own;
      };
      const Tensor own_x_times = of_times(terms.x, gradient.x_times), own_y_times = of_times(terms.y, gradient.y_times);
      const Tensor of_nus = of_series(nus, gradient.nus), of_lmbdas = of_series(lmbdas, gradient.lmbdas);
      if (terms.rows() > 0) Backend::template twed_terms_gradient<T>(terms, gradient, x);
      return {grad_x, grad_y, own_x_times, own_y_times, of_nus, of_lmbdas};
    });
  }
};

}  // namespace softdtw
