// Gradients of elastic measures: of soft ones strip by strip from the last one up, of hard ones along the path.
#pragma once

#include "elastic_pass.h"
#include "soft_elastic_pack.h"

namespace softdtw {
namespace cpu {

// (13) of one pair on its way into the tensors, whatever the masses are.
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

  // The masses of the border, which the tables of the matrix measure have in their first column and row.
  void add_border() const {
    const View<T> diagonal = gradient.diagonal.pair(b), up = gradient.up.pair(b), left = gradient.left.pair(b);
    const int64_t n = extent.n, m = extent.m;
    const T corner_up = up.at(0, 0);
    double mass = 0;
    for (int64_t i = n - 1; i >= 0; --i) {
      mass += double(left.at(i, 0)) + (i + 1 < n ? double(diagonal.at(i + 1, 0)) : 0.0);
      up.at(i, 0) += T(mass);
    }
    mass = 0;
    for (int64_t j = m - 1; j >= 0; --j) {
      mass += double(j > 0 ? up.at(0, j) : corner_up) + (j + 1 < m ? double(diagonal.at(0, j + 1)) : 0.0);
      left.at(0, j) += T(mass);
    }
  }
};

template <typename T>
class ElasticBackwardPass {
 public:
  ElasticBackwardPass(const ElasticProblem<T>& problem, const ElasticGradient<T>& gradient, const char* saved)
      : problem_(problem),
        gradient_(gradient),
        edges_(problem.n, problem.m),
        border_(problem.sum_border ? 1 : 0),
        rows_(std::min(problem.n, kRebuiltRows)),
        saved_(saved) {}

  void run(const Tensor& like) const {
    ElasticWork<T> work(problem_, rows_, true);
    Memory memory;
    run_pairs(problem_.batch, carve(nullptr, work, memory), work_of(problem_), like, *this);
  }

  void operator()(int64_t b, char* base) const {
    const ElasticOut<T> out{problem_, gradient_, b, problem_.extent(b)};
    if (!out.extent.valid() || !std::isfinite(gradient_.value[b])) return out.spoil();
    ElasticWork<T> work(problem_, rows_, true);
    Memory memory;
    const int64_t size = carve(base, work, memory);
    std::fill(reinterpret_cast<double*>(memory.sums_begin), reinterpret_cast<double*>(base + size), 0.0);
    work.enter(b);
    const ElasticPair<T>& pair = work.pair;
    ElasticSums<T>& sums = memory.sums;
    sums.parameter = sums.cost = 0;
    sums.factor = gradient_.arriving(b);
    if (problem_.measure == Measure::kMatrix) {
      sums.diagonal = gradient_.diagonal.pair(b), sums.up = gradient_.up.pair(b), sums.left = gradient_.left.pair(b);
    }
    // The strips of forward, whose first one had the border, too.
    double *const above_m = memory.above + 1, *const above_s = above_m + stride();
    for (int64_t number = ceil_div(out.extent.n + border_, kRows) - 1; number >= 0; --number) {
      const int64_t row = number > 0 ? number * kRows - border_ : 0;
      const int64_t rows = std::min<int64_t>((number + 1) * kRows - border_, out.extent.n) - row;
      if (rows == 0) continue;
      if (number > 0) {
        above_m[-1] = Unreachable<double>::value, above_s[-1] = 1;
        edges_.row(saved_ + b * edges_.bytes(), border_, number, above_m - border_, above_s - border_);
      } else {
        work.enter_border(above_m, above_s);
      }
      const double border = problem_.sum_border ? border_before(work, row) : 0;
      ElasticStrip strip = work.strip(row, rows, ElasticWanted::kShares, border);
      strip.above_m = above_m, strip.above_s = above_s;
      strip.last_m = memory.last + 1, strip.last_s = memory.last + 1 + stride();
      strip.shares = memory.shares;
      if (!kernels(T{}).elastic(pair, strip) || !kernels(T{}).elastic_backward(pair, strip, sums)) return;
    }
    hand_out(work, sums, out);
  }

 private:
  struct Memory {
    ElasticSums<T> sums;
    double *shares, *above, *last;
    char* sums_begin;
  };

  int64_t stride() const { return round_up(problem_.m + 1, 8); }  // of a row, from column -1 on

  int64_t carve(char* base, ElasticWork<T>& work, Memory& memory) const {
    const int64_t own = work.carve(base);
    Parts parts{base ? base + own : nullptr};
    const int64_t stride = ElasticStrip::stride(rows_);
    memory.shares = parts.take<double>((problem_.m + rows_) * 3 * stride);
    memory.above = parts.take<double>(2 * this->stride());
    memory.last = parts.take<double>(2 * this->stride());
    ElasticSums<T>& sums = memory.sums;
    sums = {};
    sums.masses = parts.take<double>(10 * stride);
    memory.sums_begin = base ? base + own + parts.used : nullptr;
    sums.flow_diagonal = parts.take<double>(problem_.m);
    sums.flow_up = parts.take<double>(problem_.m);
    if (problem_.measure == Measure::kMatrix) return own + parts.used;
    const int64_t of_x = problem_.n + 2 * kElasticSlack, of_y = problem_.m + 2 * kElasticSlack;
    const auto both = [&](bool is_needed, int64_t dim, double*& x, double*& y) {
      if (!is_needed) return;
      x = parts.take<double>(dim * of_x) + kElasticSlack;
      y = parts.take<double>(dim * of_y) + kElasticSlack;
    };
    both(true, problem_.dim, sums.x, sums.y);
    both(problem_.measure == Measure::kMsm, 1, sums.x_before, sums.y_before);
    both(problem_.x_times.data != nullptr, 1, sums.x_times, sums.y_times);
    both(problem_.x_gaps.data != nullptr, 1, sums.x_diagonal, sums.y_diagonal);
    return own + parts.used;
  }

  bool has_unit_gaps() const { return problem_.measure == Measure::kEdr || problem_.measure == Measure::kLcss; }

  double border_before(const ElasticWork<T>& work, int64_t row) const {
    double sum = 0;
    for (int64_t i = 0; i < row; ++i) sum += work.gap_of_row(i);
    return sum;
  }

  void hand_out(const ElasticWork<T>& work, const ElasticSums<T>& sums, const ElasticOut<T>& out) const {
    const int64_t b = out.b, n = out.extent.n, m = out.extent.m;
    const double factor = double(gradient_.arriving(b));
    if (problem_.measure == Measure::kMatrix) {
      if (problem_.sum_border) out.add_border();
      if (gradient_.gamma)
        gradient_.gamma[b] = T((double(gradient_.value[b]) * factor - cost_of_tables(out)) / problem_.gamma_of(b));
      return;
    }
    const int64_t x_stride = work.pair.x_stride, y_stride = work.pair.y_stride;
    if (gradient_.x.data) {
      const View<T> to = gradient_.x.pair(b);
      for (int64_t d = 0; d < problem_.dim; ++d)
        for (int64_t i = 0; i < n; ++i) {
          const double after = sums.x_before && i + 1 < n ? sums.x_before[i + 1] : 0.0;
          to.at(i, d) = T(factor * (sums.x[d * x_stride + i] + after));
        }
    }
    if (gradient_.y.data) {
      const View<T> to = gradient_.y.pair(b);
      for (int64_t d = 0; d < problem_.dim; ++d)
        for (int64_t j = 0; j < m; ++j) {
          const double after = sums.y_before && j + 1 < m ? sums.y_before[m - 2 - j] : 0.0;
          to.at(j, d) = T(factor * (sums.y[d * y_stride + m - 1 - j] + after));
        }
    }
    double cost = sums.cost;
    if (has_unit_gaps()) cost += double(n) + double(m);  // each diagonal step saves two of them
    if (gradient_.x_times && sums.x_times) {
      for (int64_t i = 0; i < n; ++i) gradient_.x_times[b * problem_.n + i] = T(factor * sums.x_times[i]);
      for (int64_t j = 0; j < m; ++j) gradient_.y_times[b * problem_.m + j] = T(factor * sums.y_times[m - 1 - j]);
    }
    if (sums.x_diagonal) {
      for (int64_t i = 0; i < n; ++i) {
        const double mass = 1 - sums.x_diagonal[i];
        if (gradient_.x_gaps) gradient_.x_gaps[b * problem_.n + i] = T(factor * mass);
        cost += mass * work.gap_of_row(i);
      }
      for (int64_t j = 0; j < m; ++j) {
        const double mass = 1 - sums.y_diagonal[m - 1 - j];
        if (gradient_.y_gaps) gradient_.y_gaps[b * problem_.m + j] = T(factor * mass);
        cost += mass * work.gap_of_column(j);
      }
    }
    if (gradient_.parameter) gradient_.parameter[b] = T(factor * sums.parameter);
    if (gradient_.gamma) gradient_.gamma[b] = T(factor * (double(gradient_.value[b]) - cost) / problem_.gamma_of(b));
  }

  double cost_of_tables(const ElasticOut<T>& out) const {
    const View<const T> costs[] = {problem_.diagonal.pair(out.b), problem_.up.pair(out.b), problem_.left.pair(out.b)};
    const View<T> masses[] = {gradient_.diagonal.pair(out.b), gradient_.up.pair(out.b), gradient_.left.pair(out.b)};
    double sum = 0;
    for (int k = 0; k < 3; ++k)
      for (int64_t i = 0; i < out.extent.n; ++i)
        for (int64_t j = 0; j < out.extent.m; ++j)
          if (masses[k].at(i, j) != T(0)) sum += double(masses[k].at(i, j)) * double(costs[k].at(i, j));
    return sum;
  }

  const ElasticProblem<T>& problem_;
  const ElasticGradient<T>& gradient_;
  const SoftElasticEdges edges_;
  const int64_t border_, rows_;
  const char* const saved_;
};

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
