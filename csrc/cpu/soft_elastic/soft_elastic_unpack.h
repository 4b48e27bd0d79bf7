// From the sums of a soft elastic pair to its gradients, (13).
#pragma once

#include "cpu/elastic/gradients/elastic_out.h"
#include "cpu/soft/pair.h"

namespace softdtw {
namespace cpu {

template <typename T, typename Input>
struct SoftElasticUnpack {
  const ElasticProblem<Input>& problem;
  const ElasticGradient<Input>& gradient;
  const int64_t b;
  const Pair<T>& table;
  const ElasticScratch<T>& scratch;

  void operator()() const {
    series();
    if (scratch.x_times) {
      each_row([&](int64_t i, int64_t at) { gradient.x_times[b * problem.n + i] = arriving(scratch.x_times[at]); });
      each_column([&](int64_t j, int64_t at) { gradient.y_times[b * problem.m + j] = arriving(-scratch.y_times[at]); });
    }
    if (problem.x_gaps.data) {
      if (gradient.x_gaps)
        each_row([&](int64_t i, int64_t at) { gradient.x_gaps[b * problem.n + i] = arriving(scratch.x_gaps[at]); });
      if (gradient.y_gaps)
        each_column([&](int64_t j, int64_t at) { gradient.y_gaps[b * problem.m + j] = arriving(scratch.y_gaps[at]); });
    }
    if (!scratch.totals) return;
    double cost = 0, parameter = 0;
    for (int64_t strip = 0; strip < table.strips(); ++strip)
      cost += scratch.totals[strip].cost, parameter += scratch.totals[strip].parameter;
    if (problem.measure == Measure::kWeighted) parameter /= table.scale;
    if (gradient.parameter) gradient.parameter[b] = arriving(parameter);
    if (gradient.gamma)
      gradient.gamma[b] = arriving((double(gradient.value[b]) - cost / table.scale - cost_of_gaps()) / problem.gamma_of(b));
  }

 private:
  Input arriving(double own) const { return Input(double(gradient.arriving(b)) * own); }
  int64_t border() const { return problem.sum_border ? 1 : 0; }

  // f(row of the series, its place in what is by row).
  template <class F>
  void each_row(const F& f) const {
    for (int64_t i = border(); i < table.n; ++i) f(i - border(), i);
  }
  template <class F>
  void each_column(const F& f) const {
    for (int64_t j = border(); j < table.m; ++j) f(j - border(), kRows + table.m - 1 - j);
  }

  // kMsm: what goes to the row or column before lies at the one behind it.
  void series() const {
    if (problem.measure == Measure::kMatrix) return;
    const double factor = problem.measure == Measure::kMsm ? 1 : factor_of(problem.cost);
    const View<Input> x = gradient.x.pair(b), y = gradient.y.pair(b);
    for (int64_t d = 0; d < problem.dim; ++d) {
      const T *const dx = scratch.dx + d * table.x_stride, *const dy = scratch.dy + d * table.y_stride;
      if (gradient.x.data)
        each_row([&](int64_t i, int64_t at) {
          const bool has_next = scratch.x_before && at + 1 < table.n;
          x.at(i, d) = arriving(factor * double(dx[at]) + (has_next ? double(scratch.x_before[at + 1]) : 0.0));
        });
      if (gradient.y.data)
        each_column([&](int64_t j, int64_t at) {
          const bool has_next = scratch.y_before && j + 1 < table.m;
          y.at(j, d) = arriving((has_next ? double(scratch.y_before[at - 1]) : 0.0) - factor * double(dy[at]));
        });
    }
  }

  double cost_of_gaps() const {
    if (!scratch.x_gaps) return 0;
    const bool has_own = problem.x_gaps.data != nullptr;
    const NumbersView<const Input> x = problem.x_gaps.of(problem.x.of(b)), y = problem.y_gaps.of(problem.y.of(b));
    double sum = 0;
    each_row([&](int64_t i, int64_t at) {
      if (scratch.x_gaps[at] != 0) sum += double(scratch.x_gaps[at]) * (has_own ? double(x.at(i)) : 1.0);
    });
    each_column([&](int64_t j, int64_t at) {
      if (scratch.y_gaps[at] != 0) sum += double(scratch.y_gaps[at]) * (has_own ? double(y.at(j)) : 1.0);
    });
    return sum;
  }
};

}  // namespace cpu
}  // namespace softdtw
