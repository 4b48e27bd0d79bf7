// Gradients of hard elastic measures: (13) along the best path.
#pragma once

#include <algorithm>
#include <cmath>

#include "core/hard_path.h"
#include "elastic_out.h"

namespace softdtw {
namespace cpu {

// Along the paths of a hard problem.
template <typename T, class Type>
class ElasticAlong {
 public:
  ElasticAlong(const ElasticOut<T>& out, const Span* spans)
      : out_(out),
        problem_(out.problem),
        gradient_(out.gradient),
        cells_(out.problem, out.b),
        spans_(spans),
        factor_(out.gradient.arriving(out.b)) {}

  void operator()() {
    const int64_t b = out_.b, n = out_.extent.n, m = out_.extent.m;
    const auto ones = [&](T* of_batch, int64_t length, int64_t own) {
      if (of_batch && problem_.x_gaps.data) std::fill(of_batch + b * length, of_batch + b * length + own, factor_);
    };
    ones(gradient_.x_gaps, problem_.n, n);
    ones(gradient_.y_gaps, problem_.m, m);
    visit_steps(spans_, int(n), [&](int i, int j, Step step) {
      if (i < 1 || j < 1) return;
      add(i - 1, j - 1, step, i < n && spans_[i].last == j && spans_[i + 1].first == j + 1);
    });
  }

  // Every cell of a path but its first, (0, 0), with the step into it.
  template <class Visit>
  static void visit_steps(const Span* spans, int rows, const Visit& visit) {
    for (int j = 1; j <= spans[0].last; ++j) visit(0, j, kLeft);
    for (int i = 1; i <= rows; ++i) {
      visit(i, spans[i].first, spans[i].first == spans[i - 1].last ? kUp : kDiagonal);
      for (int j = spans[i].first + 1; j <= spans[i].last; ++j) visit(i, j, kLeft);
    }
  }

 private:
  void add(int i, int j, Step step, bool is_diagonal_next) {
    const int64_t b = out_.b;
    if (step == kDiagonal) {
      if (gradient_.x_gaps && problem_.x_gaps.data) gradient_.x_gaps[b * problem_.n + i] -= factor_;
      if (gradient_.y_gaps && problem_.y_gaps.data) gradient_.y_gaps[b * problem_.m + j] -= factor_;
    }
    const T diagonal = step == kDiagonal ? T(1) : T(0);
    if constexpr (kIs<Type, Edit>) {
      add_distance(i, j, diagonal);
    } else if constexpr (kIs<Type, Twed>) {
      const T both = diagonal + (is_diagonal_next ? T(1) : T(0));
      add_distance(i, j, both);
      if (gradient_.x_times && problem_.x_times.data) {
        const T between = cells_.between_times(i, j), own = both * factor_;
        const T slope = between > T(0) ? own : between < T(0) ? -own : T(0);
        gradient_.x_times[b * problem_.n + i] += slope;
        gradient_.y_times[b * problem_.m + j] -= slope;
      }
    } else if constexpr (kIs<Type, Msm>) {
      const View<const T> x = problem_.x.pair(b), y = problem_.y.pair(b);
      if (step == kDiagonal) add_distance(i, j, T(1));
      if (step == kUp) {
        const auto slopes = Type::slopes(x.at(i, 0), x.at(i - 1, 0), y.at(j, 0));
        add_to(gradient_.x, i, slopes.v), add_to(gradient_.x, i - 1, slopes.a), add_to(gradient_.y, j, slopes.b);
      }
      if (step == kLeft) {
        const auto slopes = Type::slopes(y.at(j, 0), y.at(j - 1, 0), x.at(i, 0));
        add_to(gradient_.y, j, slopes.v), add_to(gradient_.y, j - 1, slopes.a), add_to(gradient_.x, i, slopes.b);
      }
      if (gradient_.parameter && step != kDiagonal) gradient_.parameter[b] += factor_;
    } else if constexpr (kIs<Type, Weighted>) {
      const int64_t longest = std::max(out_.extent.n, out_.extent.m);
      const double g = problem_.parameter_of(b);
      add_distance(i, j, T(Type::weight(i - j, g, longest)));
      if (gradient_.parameter)
        gradient_.parameter[b] += factor_ * T(Type::slope(i - j, g, longest) * double(cells_.distance(i, j)));
    }
  }

  void add_to(const View<T>& gradient, int place, T slope) const {
    if (gradient.data) gradient.pair(out_.b).at(place, 0) += factor_ * slope;
  }

  // The gradient of a distance that counts `mass` times.
  void add_distance(int i, int j, T mass) const {
    if (mass == T(0) || !(gradient_.x.data || gradient_.y.data)) return;
    using Math = PlainMath<T>;
    const View<const T> x = problem_.x.pair(out_.b), y = problem_.y.pair(out_.b);
    T own = factor_ * mass * T(factor_of(problem_.cost));
    if (is_over_cost(problem_.cost)) own = over_cost<Math>(own, cells_.distance(i, j));
    for (int64_t d = 0; d < problem_.dim; ++d) {
      const T slope = own * slope_of<Math>(problem_.cost, x.at(i, d) - y.at(j, d));
      if (gradient_.x.data) gradient_.x.pair(out_.b).at(i, d) += slope;
      if (gradient_.y.data) gradient_.y.pair(out_.b).at(j, d) -= slope;
    }
  }

  const ElasticOut<T>& out_;
  const ElasticProblem<T>& problem_;
  const ElasticGradient<T>& gradient_;
  const ElasticCells<Type, PlainMath<T>, T> cells_;
  const Span* const spans_;
  const T factor_;
};

template <typename T>
void gradient_along(const ElasticOut<T>& out, const Span* spans) {
  if (!out.extent.valid() || !std::isfinite(out.gradient.value[out.b])) return out.spoil();
  if (out.problem.measure != Measure::kMatrix) {
    with_measure<T>(out.problem.measure, [&](auto type) { ElasticAlong<T, decltype(type)>(out, spans)(); });
    return;
  }
  const T factor = out.gradient.arriving(out.b);
  const View<T> tables[] = {out.gradient.diagonal.pair(out.b), out.gradient.up.pair(out.b), out.gradient.left.pair(out.b)};
  ElasticAlong<T, Edit<T>>::visit_steps(spans, out.extent.n, [&](int i, int j, Step step) {
    tables[step].at(std::max(i - 1, 0), std::max(j - 1, 0)) += factor;
  });
}

}  // namespace cpu
}  // namespace softdtw
