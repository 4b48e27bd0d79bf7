// The op best_ranges for one device: tensors in, a Backend at work, tensors out.
//
// A Backend is a struct of static functions:
//   void best_ranges<T>(problem, double* value, int32_t* start, like)      both (B, M), of float or double series
//   Tensor arrange(series)                                                 the series in the strides that the kernel reads best
#pragma once

#include <tuple>

#include "checks.h"
#include "core/ranges.h"

namespace softdtw {

template <class Backend>
struct RangesEntryPoints {
  static std::tuple<Tensor, Tensor> best_ranges(Tensor x, Tensor y, double warp_penalty, std::string cost) {
    return dispatch(x, [&](auto zero) -> std::tuple<Tensor, Tensor> {
      using T = decltype(zero);
      constexpr double kNoGamma = 1.0 / kLn2;  // the costs stay in their own unit
      const OptionalTensor none;
      auto problem = problem_from_series<T>(x, y, cost_from_name(cost), {none, none, none, -1, kNoGamma, warp_penalty});
      const Tensor x_view = Backend::arrange(x), y_view = Backend::arrange(y);
      set_series(problem, x_view, y_view);
      const Tensor value = new_strided(x, {problem.batch, problem.m}, {problem.m, 1}, aoti_torch_dtype_float64());
      const Tensor start = new_strided(x, {problem.batch, problem.m}, {problem.m, 1}, aoti_torch_dtype_int32());
      if (problem.batch > 0)
        Backend::best_ranges(problem, value.mutable_data_ptr<double>(), start.mutable_data_ptr<int32_t>(), x);
      return {value, start};
    });
  }
};

}  // namespace softdtw

// In a library's own source file: the op of a Backend under a dispatch key, CPU or CUDA.
#define SOFTDTW_REGISTER_RANGES(key, Backend)                                            \
  STABLE_TORCH_LIBRARY_IMPL(torchsoftdtw, key, m) {                                      \
    m.impl("best_ranges", TORCH_BOX(&softdtw::RangesEntryPoints<Backend>::best_ranges)); \
  }
