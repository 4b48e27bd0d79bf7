// Tensors -> problem. Python has checked what the user passed (torchsoftdtw/functional.py); these are the op's own invariants.
#pragma once

#include <cmath>
#include <optional>
#include <string>
#include <type_traits>
#include <utility>

#include <torch/headeronly/util/Exception.h>

#include "core/cost.h"
#include "core/recurrence.h"
#include "tensors.h"

namespace softdtw {

using OptionalTensor = std::optional<Tensor>;

// What every op takes besides its tensors of numbers.
struct Options {
  const OptionalTensor &x_lengths, &y_lengths, &bandwidths;
  int64_t bandwidth;
  double gamma, warp_penalty;
  const OptionalTensor *gammas = nullptr, *warp_penalties = nullptr;
  const OptionalTensor *x_index = nullptr, *y_index = nullptr;  // which series a pair has, if not its own ones

  bool has_index() const { return x_index != nullptr && x_index->has_value(); }
  int64_t batch_of(const Tensor& x) const { return has_index() ? (*x_index)->size(0) : x.size(0); }
};

inline Cost cost_from_name(const std::string& name) {
  using Types = Costs<PlainMath<double>>;
  std::string known;
  for (int place = 0; place < int(std::tuple_size_v<Types>); ++place) {
    const char* const own = with_cost<Types>(Cost(place), [](auto type) { return type.kName; });
    if (name == own) return Cost(place);
    known.append(place == 0 ? "'" : ", '").append(own).append("'");
  }
  STD_TORCH_CHECK(false, "cost: expected one of ", known, ", got '", name, "'");
  return Cost::kSqEuclidean;
}

// N: int32 (of an index, whose numbers the caller answers for), int64 or float64.
template <typename N>
const N* per_pair(const OptionalTensor* tensor, int64_t count, const Tensor& like, const char* name) {
  if (!tensor || !*tensor) return nullptr;
  constexpr bool kIsIndex = std::is_same_v<N, int32_t>, kIsWhole = std::is_same_v<N, int64_t>;
  constexpr ScalarType kType = kIsIndex ? ScalarType::Int : kIsWhole ? ScalarType::Long : ScalarType::Double;
  const Tensor& numbers = **tensor;
  STD_TORCH_CHECK(
      numbers.dim() == 1 && numbers.size(0) == count && numbers.scalar_type() == kType && numbers.is_contiguous() &&
          numbers.device() == like.device(),
      name, ": expected a contiguous ",
      kIsIndex   ? "int32"
      : kIsWhole ? "int64"
                 : "float64",
      " tensor of shape (", count, ",) on the device of the series");
  return numbers.const_data_ptr<N>();
}

template <typename T>
View<const T> view(const Tensor& tensor) {
  return {tensor.const_data_ptr<T>(), tensor.stride(0), tensor.stride(1), tensor.stride(2)};
}

template <typename T>
View<T> mutable_view(const Tensor& tensor) {
  return {tensor.mutable_data_ptr<T>(), tensor.stride(0), tensor.stride(1), tensor.stride(2)};
}

template <typename T>
void fill_options(Problem<T>& problem, const Options& options, const Tensor& like, int64_t x_count, int64_t y_count) {
  constexpr int64_t longest = int64_t{1} << 28;
  STD_TORCH_CHECK(
      problem.n >= 1 && problem.m >= 1 && problem.n <= longest && problem.m <= longest,
      "lengths of 1 to 2^28 are supported, got N = ", problem.n, " and M = ", problem.m);
  STD_TORCH_CHECK(
      std::isfinite(options.gamma) && options.gamma > 0, "gamma: expected a positive number, got ", options.gamma);
  STD_TORCH_CHECK(
      std::isfinite(options.warp_penalty) && options.warp_penalty >= 0,
      "warp_penalty: expected a number of at least 0, got ", options.warp_penalty);
  problem.x_lengths = per_pair<int64_t>(&options.x_lengths, x_count, like, "x_lengths");
  problem.y_lengths = per_pair<int64_t>(&options.y_lengths, y_count, like, "y_lengths");
  problem.bandwidths = per_pair<int64_t>(&options.bandwidths, problem.batch, like, "bandwidths");
  problem.bandwidth = radius_that_counts(options.bandwidth, problem.n, problem.m);
  problem.gamma = options.gamma;
  problem.scale = 1.0 / (options.gamma * kLn2);
  problem.warp_penalty = options.warp_penalty;
  problem.gammas = per_pair<double>(options.gammas, problem.batch, like, "gammas");
  problem.warp_penalties = per_pair<double>(options.warp_penalties, problem.batch, like, "warp_penalties");
}

// Series as a kernel wants them arranged: their vectors may have zeros behind them.
template <typename T>
void set_series(Problem<T>& problem, const Tensor& x, const Tensor& y) {
  static_cast<View<const T>&>(problem.x) = view<T>(x);
  static_cast<View<const T>&>(problem.y) = view<T>(y);
  problem.dim = x.size(2);
}

// However a kernel wants the series arranged.
template <typename T>
Problem<T> problem_from_series(const Tensor& x, const Tensor& y, Cost cost, const Options& options) {
  STD_TORCH_CHECK(x.dim() == 3 && y.dim() == 3, "x and y: expected 3 dimensions, got ", x.dim(), " and ", y.dim());
  STD_TORCH_CHECK(
      (x.size(0) == y.size(0) || options.has_index()) && x.size(2) == y.size(2),
      "x and y: expected the same batch and dimension, got (", x.size(0), ", ., ", x.size(2), ") and (", y.size(0), ", ., ",
      y.size(2), ")");
  STD_TORCH_CHECK(
      x.scalar_type() == y.scalar_type() && x.device() == y.device(), "x and y: expected one dtype and one device");
  Problem<T> problem;
  problem.cost = cost_of_dim(cost, x.size(2));
  problem.batch = options.batch_of(x);
  problem.x.index = per_pair<int32_t>(options.x_index, problem.batch, x, "x_index");
  problem.y.index = per_pair<int32_t>(options.y_index, problem.batch, y, "y_index");
  STD_TORCH_CHECK(!problem.x.index == !problem.y.index, "x_index and y_index: expected both or neither");
  problem.n = x.size(1);
  problem.m = y.size(1);
  set_series(problem, x, y);
  fill_options(problem, options, x, x.size(0), y.size(0));
  return problem;
}

template <typename T>
Problem<T> problem_from_cost(const Tensor& cost_matrix, const Options& options) {
  STD_TORCH_CHECK(cost_matrix.dim() == 3, "cost_matrix: expected 3 dimensions, got ", cost_matrix.dim());
  Problem<T> problem;
  problem.cost = Cost::kMatrix;
  problem.cost_matrix = view<T>(cost_matrix);
  problem.batch = cost_matrix.size(0);
  problem.n = cost_matrix.size(1);
  problem.m = cost_matrix.size(2);
  fill_options(problem, options, cost_matrix, problem.batch, problem.batch);
  return problem;
}

// The order in which a kernel reads series and writes their gradients: neighbours in time next to each other in memory, or the
// numbers of a vector; in forward also with zeros behind them, four by four.
enum class Order { kDimensionMajor, kVectors, kFours };
enum class Pass { kForward, kBackward };

// The gradients of (B, L, D) series, a `batch` of them, uninitialised or zero, and `view` of them; none where none is needed.
template <typename T>
Tensor new_series_gradient(
    bool is_needed, const Tensor& series, int64_t batch, Order order, bool zero_filled, View<T>& view) {
  if (!is_needed) return new_vector(series, 0);
  const int64_t length = series.size(1), dim = series.size(2);
  const Tensor gradient = order == Order::kVectors ? new_table(series, batch, length, dim, zero_filled)
                          : zero_filled
                              ? torch::stable::transpose(new_table(series, batch, dim, length, true), 1, 2)
                              : new_strided(series, {batch, length, dim}, {length * dim, 1, length}, type_of(series));
  view = mutable_view<T>(gradient);
  return gradient;
}

// What a backward pass is given for every pair.
inline void check_of_pairs(const Tensor& grad_value, const Tensor& value, int64_t batch, const Tensor& like) {
  const auto fits = [&](const Tensor& numbers) {
    return numbers.dim() == 1 && numbers.size(0) == batch && numbers.scalar_type() == like.scalar_type() &&
           numbers.device() == like.device();
  };
  STD_TORCH_CHECK(
      fits(grad_value) && fits(value), "grad_value and value: expected shape (", batch,
      ",), and the dtype and the device of the input");
}

// What arrives from above, of any stride: that of a sum is one number for all pairs.
template <typename T>
void take_grad_value(Gradient<T>& gradient, const Tensor& grad_value, const Tensor& value) {
  gradient.grad_value = grad_value.const_data_ptr<T>();
  gradient.grad_stride = grad_value.stride(0);
  gradient.value = value.const_data_ptr<T>();
}

// An op of pairs that say which series they have, as the op of pairs of which each has its own.
template <auto kOp>
struct EachItsOwn;
template <class Result, class... Rest, Result (*kOp)(OptionalTensor, OptionalTensor, Rest...)>
struct EachItsOwn<kOp> {
  static Result call(Rest... rest) { return kOp({}, {}, std::move(rest)...); }
};

// The two ops of an entry point `name`_of_pairs.
#define SOFTDTW_IMPL_OF_PAIRS(m, Entries, name)                    \
  m.impl(#name "_of_pairs", TORCH_BOX(&Entries::name##_of_pairs)); \
  m.impl(#name, TORCH_BOX(&softdtw::EachItsOwn<&Entries::name##_of_pairs>::call));

// Calls f(T{}) with the C++ type of a float32 or float64 tensor.
template <typename F>
auto dispatch(const Tensor& tensor, F&& f) {
  const ScalarType type = tensor.scalar_type();
  STD_TORCH_CHECK(
      type == ScalarType::Float || type == ScalarType::Double, "expected float32 or float64 tensors, got scalar type ",
      static_cast<int>(type));
  return type == ScalarType::Double ? f(double{}) : f(float{});
}

}  // namespace softdtw
