// A soft elastic pair packed for its sweep.
#pragma once

#include <cstring>

#include "core/elastic.h"
#include "cpu/soft/series/pack.h"

namespace softdtw {
namespace cpu {

// Memory of one pair, and the pair in it. Input is the dtype of the caller, T that of the sweep.
template <typename T, typename Input>
class SoftElasticWork {
 public:
  explicit SoftElasticWork(const ElasticProblem<Input>& problem)
      : problem_(problem), border_(problem.sum_border ? 1 : 0), n_(problem.n + border_), m_(problem.m + border_) {}

  // What forward keeps of each pair for backward.
  static int64_t kept_bytes(const ElasticProblem<Input>& problem) { return Table<T>::bytes(shape_of(problem)); }
  Table<T> kept(char* memory) const { return Table<T>::saved(memory, shape()); }
  void clear_rest(const Pair<T>& table, char* memory) const {
    kept(memory).clear_rest(memory, shape(), strip_of(table, (table.n - 1) / kRows * kRows));
  }
  void clear_unsound(char* memory) const { kept(memory).clear_unsound(memory, shape()); }

  // edge: one, where nothing is kept. gradients: null in forward.
  struct Needs {
    bool edge, table;
    const ElasticGradient<Input>* gradients;
  };

  int64_t carve(Needs needs, char* base) {
    Parts parts{base};
    const int64_t dim = problem_.measure == Measure::kMatrix ? 0 : problem_.dim;
    x_stride_ = Workspace<T>::stride_of(round_up(n_, kRows) + kBefore);
    y_stride_ = Workspace<T>::stride_of(m_ + 2 * kRows);
    x_ = parts.take<T>(dim * x_stride_);
    y_ = parts.take<T>(dim * y_stride_);
    const int64_t times = problem_.x_times.data ? 1 : 0, gaps = problem_.measure <= Measure::kTwed && dim ? 1 : 0;
    x_times_ = parts.take<T>(times * x_stride_), y_times_ = parts.take<T>(times * y_stride_);
    up_m_ = parts.take<T>(gaps * x_stride_), up_s_ = parts.take<T>(gaps * x_stride_);
    left_m_ = parts.take<T>(gaps * y_stride_), left_s_ = parts.take<T>(gaps * y_stride_);
    const int64_t weights = problem_.measure == Measure::kWeighted ? 2 * weights_of_parity() : 0;
    weights_ = parts.take<T>(weights);
    wide_weights_ = parts.take<double>(sizeof(T) < sizeof(double) ? weights : 0);
    states = parts.take<StripState>(shape().strips());
    edge = {};
    edge.edge_m = parts.take<double>(needs.edge ? m_ : 0);
    edge.edge_s = parts.take<T>(needs.edge ? m_ : 0);
    table_memory = parts.take<char>(needs.table ? kept_bytes(problem_) : 0);
    scratch = {};
    sums_begin_ = parts.used;
    if (needs.gradients) carve_sums(*needs.gradients, parts);
    sums_end_ = parts.used;
    base_ = base;
    return parts.used;
  }

  // All sums are 0.
  void clear_sums() const { std::memset(base_ + sums_begin_, 0, sums_end_ - sums_begin_); }

  // False if a gap has no number. `sweep`: the pair, of which `table` is the geometry.
  bool enter(int64_t b, const Kernels<T>& kernels, Pair<T>& table, SoftElastic<T>& sweep) const {
    const Extent extent = problem_.extent(b);
    table = {};
    table.cost = problem_.cost;
    table.n = extent.n + border_, table.m = extent.m + border_;
    table.low = extent.low, table.high = extent.high;
    table.dim = problem_.dim;
    table.scale = problem_.scale_of(b);
    table.x_stride = x_stride_, table.y_stride = y_stride_;
    sweep = {};
    sweep.table = &table;
    sweep.measure = problem_.measure;
    sweep.sum_border = problem_.sum_border;
    sweep.parameter = problem_.parameter_of(b);
    if (problem_.measure == Measure::kMatrix) {
      set_tables(b, sweep.tables);
      return true;
    }
    double farthest = pack_series(b, table);
    if (problem_.measure == Measure::kTwed) farthest = 2 * (farthest + pack_times(b, table, sweep));
    if (problem_.measure == Measure::kMsm) farthest += std::abs(sweep.parameter);
    table.wide = sizeof(T) < sizeof(double) && !(farthest * table.scale < kWideFrom);
    table.bounded = std::max(farthest, 2.0) * table.scale < Whole<double>::limit;  // and what kEdr and kLcss count
    if (problem_.measure == Measure::kWeighted) {
      sweep.weights = pack_weights(table, sweep.parameter, weights_);
      if (table.wide) sweep.wide_weights = pack_weights(table, sweep.parameter, wide_weights_);
    }
    return problem_.measure > Measure::kTwed || pack_gaps(b, kernels, table, sweep);
  }

  // The most negative cost of gaps, scaled, or 0.
  double least_gap() const { return least_gap_; }

  StripState* states;
  Table<T> edge;
  char* table_memory;
  ElasticScratch<T> scratch;  // but for the weights, which belong to a thread

 private:
  static constexpr int64_t kBefore = 16;  // numbers before x, which rows above the first one may read

  static TableShape shape_of(const ElasticProblem<Input>& problem) { return table_shape(problem, problem.sum_border); }
  TableShape shape() const { return shape_of(problem_); }
  void carve_sums(const ElasticGradient<Input>& gradients, Parts& parts) {
    const Measure measure = problem_.measure;
    const int64_t dim = measure == Measure::kMatrix ? 0 : problem_.dim;
    const auto both = [&](bool is_needed, T*& x, T*& y) {
      x = parts.take<T>(is_needed ? x_stride_ : 0), y = parts.take<T>(is_needed ? y_stride_ : 0);
      if (!is_needed) x = y = nullptr;
    };
    scratch.incoming = parts.take<T>(m_);
    if (measure == Measure::kTwed) scratch.incoming_diagonal = parts.take<T>(m_);
    scratch.dx = parts.take<T>(dim * x_stride_), scratch.dy = parts.take<T>(dim * y_stride_);
    both(kind_of(measure) == StepKind::kGaps, scratch.x_gaps, scratch.y_gaps);
    both(problem_.x_times.data && gradients.x_times, scratch.x_times, scratch.y_times);
    both(measure == Measure::kMsm, scratch.x_before, scratch.y_before);
    if (gradients.gamma || gradients.parameter) scratch.totals = parts.take<ElasticTotals>(ceil_div(n_, kRows));
  }

  // Element i of a row's numbers, i from 0 to n - 1 of the table, from `from(i)` of the series.
  template <class From>
  void pack_rows(T* to, int64_t n, const From& from) const {
    to += kBefore;
    for (int64_t i = border_; i < n; ++i) to[i] = from(i - border_);
    if (border_) to[0] = to[1];
    std::fill(to - kBefore, to, to[0]);
    std::fill(to + n, to + x_stride_ - kBefore, to[n - 1]);
  }
  template <class From>
  void pack_columns(T* to, int64_t m, const From& from) const {
    T* const last = to + kRows + m - 1;
    for (int64_t j = border_; j < m; ++j) last[-j] = from(j - border_);
    if (border_) *last = last[-1];
    std::fill(to, to + kRows, to[kRows]);
    std::fill(to + kRows + m, to + y_stride_, T(0));
  }

  double pack_series(int64_t b, Pair<T>& table) const {
    const View<const Input> x = problem_.x.pair(b), y = problem_.y.pair(b);
    double farthest = 0;
    for (int64_t d = 0; d < table.dim; ++d) {
      T largest = 0, least = 0;
      const auto see = [&](T value) {
        largest = value > largest ? value : largest;
        least = value < least ? value : least;
        return value;
      };
      pack_rows(x_ + d * x_stride_, table.n, [&](int64_t i) { return see(x.at(i, d)); });
      pack_columns(y_ + d * y_stride_, table.m, [&](int64_t j) { return see(y.at(j, d)); });
      farthest = add_share<PlainMath<double>>(table.cost, double(largest) - double(least), farthest);
    }
    table.x = x_ + kBefore, table.y = y_;
    return finish_cost<PlainMath<double>>(table.cost, farthest);
  }

  double pack_times(int64_t b, const Pair<T>& table, SoftElastic<T>& sweep) const {
    if (!problem_.x_times.data)
      return std::abs(sweep.parameter) * double(std::min(std::max(table.n, table.m), std::max(-table.low, table.high)));
    const NumbersView<const Input> x = problem_.x_times.of(problem_.x.of(b)), y = problem_.y_times.of(problem_.y.of(b));
    double largest = 0;
    const auto see = [&](T value) {
      largest = std::max(largest, std::abs(double(value)));
      return value;
    };
    pack_rows(x_times_, table.n, [&](int64_t i) { return see(x.at(i)); });
    pack_columns(y_times_, table.m, [&](int64_t j) { return see(y.at(j)); });
    sweep.x_times = x_times_ + kBefore, sweep.y_times = y_times_;
    return 2 * largest;
  }

  bool pack_gaps(int64_t b, const Kernels<T>& kernels, const Pair<T>& table, SoftElastic<T>& sweep) const {
    bool is_number = true;
    double least = 0;
    const auto see = [&](T value) {
      is_number &= value > -std::numeric_limits<T>::infinity();
      least = std::min(least, double(value));
      return value;
    };
    if (problem_.x_gaps.data) {
      const NumbersView<const Input> x = problem_.x_gaps.of(problem_.x.of(b)), y = problem_.y_gaps.of(problem_.y.of(b));
      pack_rows(up_m_, table.n, [&](int64_t i) { return see(x.at(i)); });
      pack_columns(left_m_, table.m, [&](int64_t j) { return see(y.at(j)); });
    } else {
      std::fill(up_m_, up_m_ + x_stride_, T(1));
      std::fill(left_m_, left_m_ + y_stride_, T(1));
    }
    least_gap_ = least * table.scale;
    kernels.gap_weights(table.scale, x_stride_, up_m_, up_s_);
    kernels.gap_weights(table.scale, y_stride_, left_m_, left_s_);
    sweep.up_m = up_m_ + kBefore, sweep.up_s = up_s_ + kBefore;
    sweep.left_m = left_m_, sweep.left_s = left_s_;
    return is_number;
  }

  // From -(m + strip) to n + strip, halved.
  int64_t weights_of_parity() const { return round_up((n_ + m_) / 2 + 4 * kRows, 16); }
  template <typename W>
  ParityWeights<W> pack_weights(const Pair<T>& table, double g, W* to) const {
    const int64_t longest = std::max(table.n, table.m), origin = m_ / 2 + kRows + 16;
    W *const even = to + origin, *const odd = even + weights_of_parity();
    for (int64_t k = -origin; k < weights_of_parity() - origin; ++k) {
      const auto weight = [&](int64_t place) {
        return std::abs(place) < longest ? W(Weighted<W>::weight(place, g, longest)) : W(0);
      };
      even[k] = weight(2 * k), odd[k] = weight(2 * k + 1);
    }
    return {even, odd};
  }

  void set_tables(int64_t b, StepTables& tables) const {
    const View<const Input> views[] = {problem_.diagonal.pair(b), problem_.up.pair(b), problem_.left.pair(b)};
    for (int k = 0; k < 3; ++k)
      if constexpr (sizeof(Input) < sizeof(double))
        tables.narrow[k] = views[k];
      else
        tables.wide[k] = views[k];
  }

  const ElasticProblem<Input>& problem_;
  const int64_t border_, n_, m_;
  int64_t x_stride_ = 0, y_stride_ = 0;
  T *x_, *y_, *x_times_, *y_times_, *up_m_, *up_s_, *left_m_, *left_s_, *weights_;
  double* wide_weights_;
  char* base_ = nullptr;
  int64_t sums_begin_ = 0, sums_end_ = 0;
  mutable double least_gap_ = 0;
};

}  // namespace cpu
}  // namespace softdtw
