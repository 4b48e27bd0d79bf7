// Hard DTW as the search for nearest series needs it: a lower bound of all pairs, and the values of some up to a limit.
#include <torch/csrc/stable/library.h>

#include "binding/checks.h"
#include "cpu/hard/hard_pass.h"
#include "cpu/threads/schedule.h"

namespace softdtw {
namespace cpu {
namespace {

constexpr int64_t kTogether = 8;  // series that meet a box while it is in the cache

template <typename T>
Boxes<T> boxes_of(const Tensor& low, const Tensor& high, Cost cost, int64_t length, const Tensor& like) {
  STD_TORCH_CHECK(
      low.dim() == 3 && high.dim() == 3 && low.size(0) == high.size(0) && low.size(1) == high.size(1) &&
          low.size(2) == high.size(2) && low.size(2) >= length && low.is_contiguous() && high.is_contiguous(),
      "low and high: expected contiguous tensors of one shape (series, dim, at least ", length, ")");
  STD_TORCH_CHECK(
      low.scalar_type() == like.scalar_type() && high.scalar_type() == like.scalar_type() &&
          low.device() == like.device() && high.device() == like.device(),
      "low and high: expected the dtype and the device of x");
  return {cost, low.size(1), low.size(2), low.const_data_ptr<T>(), high.const_data_ptr<T>()};
}

// (P, Q): the sums of costs of series x (P, D, L) against boxes low, high (Q, D, L).
Tensor dtw_bounds(Tensor x, Tensor low, Tensor high, std::string cost) {
  return dispatch(x, [&](auto zero) {
    using T = decltype(zero);
    STD_TORCH_CHECK(x.dim() == 3 && x.is_contiguous(), "x: expected a contiguous tensor (series, dim, length)");
    const int64_t rows = x.size(0), length = x.size(2), columns = low.size(0);
    const Boxes<T> boxes = boxes_of<T>(low, high, cost_from_name(cost), length, x);
    STD_TORCH_CHECK(
        x.size(1) == boxes.dim, "x: expected ", boxes.dim, " dimensions, as low and high have, got ", x.size(1));
    const Tensor bounds = new_strided(x, {rows, columns}, {columns, 1}, type_of(x));
    T* const out = bounds.mutable_data_ptr<T>();
    const T* const series = x.const_data_ptr<T>();
    const double work = double(rows) * double(columns) * double(length * boxes.dim) / 4;
    run_pairs((rows + kTogether - 1) / kTogether, 0, work, x, [&](int64_t group, char*) {
      const int64_t first = group * kTogether, last = std::min(first + kTogether, rows);
      for (int64_t q = 0; q < columns; ++q)
        for (int64_t p = first; p < last; ++p)
          out[p * columns + q] = kernels(T{}).box_sum(boxes.of_series(q), series + p * boxes.dim * length, length, length);
    });
    return bounds;
  });
}

// (count,): the values of pairs as dtw_of_pairs gives them, or infinity where one is above its limit (float64), and where
// that shows on the way. low, high (Q, D, at least N): boxes for the vectors of x, one series of them for every one of y.
Tensor dtw_within_of_pairs(
    Tensor x_index, Tensor y_index, Tensor x, Tensor y, Tensor low, Tensor high, Tensor limits, OptionalTensor x_lengths,
    OptionalTensor y_lengths, int64_t bandwidth, double warp_penalty, std::string cost) {
  return dispatch(x, [&](auto zero) {
    using T = decltype(zero);
    const OptionalTensor none, own_limits = limits, own_x_index = x_index, own_y_index = y_index;
    const Options options = {x_lengths,    y_lengths, none,  bandwidth,    1.0 / kLn2,
                             warp_penalty, nullptr,   &none, &own_x_index, &own_y_index};
    auto problem = problem_from_series<T>(x, y, cost_from_name(cost), options);
    problem.scale = 1;
    const Boxes<T> boxes = boxes_of<T>(low, high, problem.cost, problem.n, x);
    STD_TORCH_CHECK(low.size(0) == y.size(0) && boxes.dim == problem.dim, "low and high: expected those of y's series");
    const Tensor value = new_vector(x, problem.batch);
    HardPass<T> pass(problem, false, value.mutable_data_ptr<T>(), nullptr);
    pass.boxes = boxes;
    pass.limits = per_pair<double>(&own_limits, problem.batch, x, "limits");
    pass.run(x);
    return value;
  });
}

}  // namespace
}  // namespace cpu
}  // namespace softdtw

STABLE_TORCH_LIBRARY_IMPL(torchsoftdtw, CPU, m) {
  m.impl("dtw_bounds", TORCH_BOX(&softdtw::cpu::dtw_bounds));
  m.impl("dtw_within_of_pairs", TORCH_BOX(&softdtw::cpu::dtw_within_of_pairs));
}
