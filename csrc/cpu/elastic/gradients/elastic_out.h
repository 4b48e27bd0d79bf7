// The gradients of one pair of an elastic measure in the tensors of a call.
#pragma once

#include <algorithm>

#include "core/elastic.h"

namespace softdtw {
namespace cpu {

// Where the gradients of one pair go.
template <typename T>
struct ElasticOut {
  const ElasticProblem<T>& problem;
  const ElasticGradient<T>& gradient;
  const int64_t b;
  const Extent extent;

  // What there is of a pair without a value, in its own part; everywhere where its lengths are out of range.
  void spoil() const {
    spoil_gradient<T>(problem, gradient, extent, b, 0, 1);
    const T with = gradient.without_value(b);
    const int64_t n = extent.valid() ? extent.n : problem.n, m = extent.valid() ? extent.m : problem.m;
    const auto fill = [&](T* of_batch, int64_t length, int64_t own) {
      if (of_batch) std::fill(of_batch + b * length, of_batch + b * length + own, with);
    };
    fill(gradient.x_times, problem.n, n), fill(gradient.y_times, problem.m, m);
    fill(gradient.x_gaps, problem.n, n), fill(gradient.y_gaps, problem.m, m);
    fill(gradient.parameter, 1, 1), fill(gradient.gamma, 1, 1);
    for (const View<T>* table : {&gradient.diagonal, &gradient.up, &gradient.left})
      if (table->data)
        for (int64_t i = 0; i < n; ++i)
          for (int64_t j = 0; j < m; ++j)
            if (!extent.valid() || extent.in_band(int(i), int(j))) table->pair(b).at(i, j) = with;
  }
};

}  // namespace cpu
}  // namespace softdtw
