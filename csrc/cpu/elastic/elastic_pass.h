// One call of a hard elastic measure: threads over the pairs, a pair strip by strip with elastic_sweep.h.
#pragma once

#include <algorithm>
#include <cmath>
#include <limits>

#include "core/hard_path.h"
#include "cpu/kernels.h"
#include "cpu/threads/schedule.h"
#include "elastic_pair.h"

namespace softdtw {
namespace cpu {

// What is kept of a pair from strip to strip: the rows above each of them and the last row, entries from column -1 on.
struct ElasticEdges {
  int64_t m;

  int64_t stride() const { return round_up(m + 1, 8); }
  double* row(double* edges, int64_t number) const { return edges + number * stride() + 1; }
  static int64_t rows(int64_t n) { return ceil_div(n, kRebuiltRows) + 1; }
  int64_t size(int64_t n) const { return rows(n) * stride(); }
};

// Memory for a pair, and the pair packed into it.
template <typename T>
class ElasticWork {
 public:
  ElasticWork(const ElasticProblem<T>& problem, int64_t rows_at_once) : problem_(problem), rows_at_once_(rows_at_once) {
    const bool has_times = problem.x_times.data != nullptr, has_gaps = problem.x_gaps.data != nullptr;
    const bool has_series = problem.measure != Measure::kMatrix;
    x_stride_ = std::min(problem.n, rows_at_once) + 2 * kElasticSlack;
    y_stride_ = problem.m + 2 * kElasticSlack;
    x_count_ = has_series ? problem.dim * x_stride_ : 0;
    y_count_ = has_series ? problem.dim * y_stride_ : 0;
    times_ = has_times;
    gaps_ = has_gaps;
  }

  int64_t carve(char* base) {
    Parts parts{base};
    x_ = parts.take<T>(x_count_);
    y_ = parts.take<T>(y_count_);
    x_times_ = parts.take<T>(times_ ? x_stride_ : 0);
    y_times_ = parts.take<T>(times_ ? y_stride_ : 0);
    x_gaps_ = parts.take<T>(gaps_ ? x_stride_ : 0);
    y_gaps_ = parts.take<T>(gaps_ ? y_stride_ : 0);
    weights_ =
        parts.take<T>(problem_.measure == Measure::kWeighted ? std::max(problem_.n, problem_.m) + 2 * kElasticSlack : 0);
    borders_ = parts.take<double>(rows_at_once_);
    entries_ = parts.take<double>(3 * ElasticStrip::stride(rows_at_once_));
    costs_ = reinterpret_cast<char*>(parts.take<T>(6 * ElasticStrip::stride(rows_at_once_)));
    return parts.used;
  }

  // The pair in `pair`, all but x. False if a cost of its gaps is no number.
  bool enter(int64_t b) {
    b_ = b;
    const Extent extent = problem_.extent(b);
    pair = {};
    pair.measure = problem_.measure;
    pair.cost = problem_.cost;
    pair.extent = extent;
    pair.dim = problem_.dim;
    pair.parameter = problem_.parameter_of(b);
    if (problem_.measure == Measure::kMatrix) {
      pair.diagonal = problem_.diagonal.pair(b), pair.up = problem_.up.pair(b), pair.left = problem_.left.pair(b);
    } else {
      pair.x_stride = x_stride_, pair.y_stride = y_stride_;
      pair.y = y_ + kElasticSlack;
      const View<const T> from = problem_.y.pair(b);
      for (int64_t d = 0; d < problem_.dim; ++d)
        pack(y_ + d * y_stride_, y_stride_, 0, extent.m, [&](int64_t j) { return from.at(extent.m - 1 - j, d); });
    }
    const int64_t of_y = problem_.y.of(b);
    const auto pack_y = [&](const NumbersView<const T>& view, T* to) {
      const NumbersView<const T> from = view.of(of_y);
      pack(to, y_stride_, 0, extent.m, [&](int64_t j) { return from.at(extent.m - 1 - j); });
      return to + kElasticSlack;
    };
    if (times_) pair.y_times = pack_y(problem_.y_times, y_times_);
    if (gaps_) pair.y_gaps = pack_y(problem_.y_gaps, y_gaps_);
    if (problem_.measure == Measure::kWeighted) {
      const int64_t longest = std::max(extent.n, extent.m);
      for (int64_t k = 0; k < longest; ++k) weights_[k] = T(Weighted<T>::weight(k, pair.parameter, longest));
      std::fill(weights_ + longest, weights_ + longest + 2 * kElasticSlack, T(0));
      pair.weights = weights_;
    }
    if (!gaps_) return true;
    const NumbersView<const T> x_gaps = problem_.x_gaps.of(problem_.x.of(b));
    bool is_number = true;
    for (int64_t i = 0; i < extent.n; ++i) is_number &= !std::isnan(x_gaps.at(i));
    for (int64_t j = 0; j < extent.m; ++j) is_number &= !std::isnan(pair.y_gaps[j]);
    return is_number;
  }

  // x of these rows, and of the one before.
  void enter_rows(int64_t row, int64_t rows) {
    if (problem_.measure == Measure::kMatrix) return;
    const View<const T> from = problem_.x.pair(b_);
    const int64_t own = problem_.x.of(b_), first = row > 0 ? -1 : 0;
    for (int64_t d = 0; d < problem_.dim; ++d)
      pack(x_ + d * x_stride_, x_stride_, first, rows, [&](int64_t i) { return from.at(row + i, d); });
    pair.x = x_ + kElasticSlack - row;
    const auto pack_x = [&](const NumbersView<const T>& view, T* to) {
      const NumbersView<const T> numbers = view.of(own);
      pack(to, x_stride_, first, rows, [&](int64_t i) { return numbers.at(row + i); });
      return to + kElasticSlack - row;
    };
    if (times_) pair.x_times = pack_x(problem_.x_times, x_times_);
    if (gaps_) pair.x_gaps = pack_x(problem_.x_gaps, x_gaps_);
  }

  double gap_of_row(int64_t i) const {
    if (problem_.measure == Measure::kMatrix) return pair.up.at(i, 0);
    return gaps_ ? double(problem_.x_gaps.of(problem_.x.of(b_)).at(i)) : 1.0;
  }
  double gap_of_column(int64_t j) const {
    if (problem_.measure == Measure::kMatrix) return pair.left.at(0, j);
    return gaps_ ? double(pair.y_gaps[pair.extent.m - 1 - j]) : 1.0;
  }

  // The row above the table, from column -1 on.
  void enter_border(double* above) {
    border_ = above[-1] = 0;
    double sum = 0;
    for (int64_t j = 0; j < pair.extent.m; ++j)
      above[j] = problem_.sum_border ? sum += gap_of_column(j) : std::numeric_limits<double>::infinity();
  }

  // A strip whose rows are known to the pair. `border`: R of column -1 in the row above it.
  ElasticStrip strip(int64_t row, int64_t rows, double border) {
    border_ = border;
    for (int64_t k = 0; k < rows; ++k)
      borders_[k] = problem_.sum_border ? border_ += gap_of_row(row + k) : std::numeric_limits<double>::infinity();
    ElasticStrip strip = {};
    strip.row = row, strip.rows = rows;
    strip.border = borders_;
    strip.entries = entries_, strip.costs = costs_;
    return strip;
  }
  // R of column -1 in the last row of the last strip.
  double border() const { return border_; }

  ElasticPair<T> pair;

 private:
  // Number i, of `first` to `end`, at kElasticSlack + i, and zeros beside them.
  template <class From>
  static void pack(T* to, int64_t size, int64_t first, int64_t end, const From& from) {
    std::fill(to, to + kElasticSlack + first, T(0));
    for (int64_t i = first; i < end; ++i) to[kElasticSlack + i] = from(i);
    std::fill(to + kElasticSlack + end, to + size, T(0));
  }

  const ElasticProblem<T>& problem_;
  const int64_t rows_at_once_;
  bool times_, gaps_;
  int64_t x_stride_, y_stride_, x_count_, y_count_, b_ = 0;
  T *x_, *y_, *x_times_, *y_times_, *x_gaps_, *y_gaps_, *weights_;
  double *borders_, *entries_;
  char* costs_;
  double border_ = 0;
};

// Hard values, and paths.
template <typename T>
class ElasticForward {
 public:
  ElasticForward(const ElasticProblem<T>& problem, T* value, Span* spans)
      : problem_(problem),
        value_(value),
        edges_{problem.m},
        rows_(std::min(problem.n, spans ? kRebuiltRows : kElasticRows)),
        spans_(spans) {}

  void run(const Tensor& like) const { run_pairs(problem_.batch, bytes(), work_of(problem_), like, *this); }

  // Of memory for a pair.
  int64_t bytes() const {
    ElasticWork<T> work(problem_, rows_);
    double* edges;
    uint8_t* steps;
    return carve(nullptr, work, edges, steps);
  }

  void operator()(int64_t b, char* memory) const {
    const Extent extent = problem_.extent(b);
    if (!extent.valid()) return end_without_path(b, std::numeric_limits<double>::quiet_NaN());
    ElasticWork<T> work(problem_, rows_);
    double* edges;
    uint8_t* steps;
    carve(memory, work, edges, steps);
    const double r = work.enter(b) ? sweep(work, edges) : std::numeric_limits<double>::quiet_NaN();
    value_[b] = static_cast<T>(r);
    if (!spans_) return;
    if (!std::isfinite(value_[b])) return end_without_path(b, r);
    if (!walk(work, edges, steps, spans_ + b * (problem_.n + 1))) end_without_path(b, r);
  }

 private:
  int64_t carve(char* base, ElasticWork<T>& work, double*& edges, uint8_t*& steps) const {
    const int64_t own = work.carve(base);
    Parts parts{base ? base + own : nullptr};
    edges = parts.take<double>(spans_ ? edges_.size(problem_.n) : edges_.stride());
    steps = parts.take<uint8_t>(spans_ ? (problem_.m + rows_) * ElasticStrip::stride(rows_) + kElasticSlack : 0);
    return own + parts.used;
  }

  // The value, and all edges where more than one is kept.
  double sweep(ElasticWork<T>& work, double* edges) const {
    const ElasticPair<T>& pair = work.pair;
    double* above = edges_.row(edges, 0);
    work.enter_border(above);
    bool is_sound = true;
    double border = 0;
    for (int64_t row = 0, number = 0; row < pair.extent.n && is_sound; row += rows_, ++number) {
      const int64_t rows = std::min(rows_, pair.extent.n - row);
      work.enter_rows(row, rows);
      ElasticStrip strip = work.strip(row, rows, border);
      border = work.border();
      double* const last = spans_ ? edges_.row(edges, number + 1) : above;
      strip.above = above;
      strip.last = last;
      is_sound = kernels(T{}).elastic(pair, strip);
      last[-1] = strip.border[rows - 1];
      above = last;
    }
    if (!is_sound) return std::numeric_limits<double>::quiet_NaN();
    return above[pair.extent.m - 1];
  }

  // From the last cell back to the first, strip by strip; rows and columns from 0, the border, to n and m.
  // False where it was told to stop.
  bool walk(ElasticWork<T>& work, double* edges, uint8_t* steps, Span* spans) const {
    const ElasticPair<T>& pair = work.pair;
    leave_empty(spans, pair.extent.n + 1);
    int64_t i = pair.extent.n, j = pair.extent.m;
    const auto enter_row = [&] { spans[i].last = int32_t(j); };
    const auto leave_row = [&] { spans[i].first = int32_t(j); };
    enter_row();
    for (int64_t number = ceil_div(pair.extent.n, rows_) - 1; number >= 0 && i > number * rows_; --number) {
      const int64_t row = number * rows_, rows = std::min(rows_, pair.extent.n - row);
      double* const above = edges_.row(edges, number);
      work.enter_rows(row, rows);
      ElasticStrip strip = work.strip(row, rows, row > 0 ? above[-1] : 0);
      strip.above = above;
      strip.last = edges_.row(edges, number + 1);  // the same again
      strip.steps = steps;
      if (!kernels(T{}).elastic(pair, strip)) return false;
      const int64_t first = strip.first_diagonal(pair.extent), stride = ElasticStrip::stride(rows);
      while (i > row) {
        const int64_t k = i - 1 - row, d = k + j - 1;
        const int step = j == 0 ? int(kUp) : int(steps[(d - first) * stride + k]);
        if (step == kLeft) {
          --j;
          continue;
        }
        leave_row();
        --i;
        if (step == kDiagonal) --j;
        enter_row();
      }
    }
    j = 0;
    leave_row();
    return true;
  }

  void end_without_path(int64_t b, double result) const {
    value_[b] = static_cast<T>(result);
    if (spans_) leave_empty(spans_ + b * (problem_.n + 1), 0);
  }
  void leave_empty(Span* spans, int64_t from) const {
    const int32_t m = static_cast<int32_t>(problem_.m);
    for (int64_t i = from; i <= problem_.n; ++i) spans[i] = {m + 1, m};
  }

  const ElasticProblem<T>& problem_;
  T* const value_;
  const ElasticEdges edges_;
  const int64_t rows_;
  Span* const spans_;
};

}  // namespace cpu
}  // namespace softdtw
