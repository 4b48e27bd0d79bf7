// One call of hard DTW: threads over the pairs, a pair by hard_sweep.h.
#pragma once

#include <cmath>
#include <limits>

#include "cpu/kernels.h"
#include "cpu/threads/schedule.h"
#include "hard_pack.h"

namespace softdtw {
namespace cpu {

// Cells are (row, column). Calls visit(row, span) for every row from the last to the first; `step(row, column)` is what a
// sweep noted. Whatever it noted, the walk stays in the table and ends.
template <class StepAt, class Visit>
void walk_back(int rows, int end_column, const StepAt& step, const Visit& visit) {
  int row = rows - 1, column = end_column, last = end_column;
  while (true) {
    int taken = step(row, column);
    if (column == 0 && taken != kDiagonal) taken = kUp;
    if (taken == kLeft) {
      --column;
      continue;
    }
    visit(row, Span{column, last});
    if (row == 0) return;
    --row;
    if (taken == kDiagonal && column > 0) --column;
    last = column;
  }
}

template <typename T>
struct HardPass {
  const Problem<T>& problem;
  const bool open_ends;
  T* const value;
  Span* const spans;               // null: no path
  Boxes<T> boxes = {};             // of the series of y, and with them
  const double* limits = nullptr;  // for every pair: one above it needs no value
  int64_t most_steps = 0;

  HardPass(const Problem<T>& problem_, bool open_ends_, T* value_, Span* spans_)
      : problem(problem_), open_ends(open_ends_), value(value_), spans(spans_) {
    if (!spans) return;
    for (int64_t b = 0; b < problem.batch; ++b) {
      const Extent extent = problem.extent(b);
      const bool as_before = b > 0 && !problem.x_lengths && !problem.y_lengths && !problem.bandwidths;
      if (extent.valid() && !as_before) most_steps = std::max(most_steps, bytes_of_steps(extent));
    }
  }

  // Everything that a pair needs, one after the other; returns the bytes. With base null only counts them.
  int64_t carve(char* base, HardPair<T>& pair, HardSeries<T>& series) const {
    Parts parts{base};
    series.carve(parts, problem);
    pair.entries = parts.take<double>(3 * entries_stride(problem.n));
    pair.starts = parts.take<int64_t>(spans ? ceil_div(problem.n + problem.m, kDiagonalsPerByte) : 0);
    pair.steps = spans ? parts.take<uint8_t>(most_steps + kHardSlack) : nullptr;
    pair.box_costs = parts.take<T>(limits ? problem.n : 0);
    return parts.used;
  }

  // Of memory for a pair.
  int64_t bytes() const {
    HardPair<T> pair;
    HardSeries<T> series;
    return carve(nullptr, pair, series);
  }

  void run(const Tensor& like) const { run_pairs(problem.batch, bytes(), work_of(problem), like, *this); }

  // The sweep asks for itself whether to stop.
  void operator()(int64_t b, char* memory) const {
    HardPair<T> pair;
    pair.extent = problem.extent(b);
    if (!pair.extent.valid()) return end_without_path(b, std::numeric_limits<double>::quiet_NaN());
    HardSeries<T> series;
    carve(memory, pair, series);
    pack_pair(problem, b, series, pair);
    pair.open_ends = open_ends;
    if (limits) {
      pair.limit = limits[b];
      pair.boxes = boxes.of_series(problem.y.of(b));
    }
    const HardEnd end = kernels(T{}).hard(pair);
    const T result = static_cast<T>(end.value);
    if (!spans || !std::isfinite(result)) return end_without_path(b, end.value);
    value[b] = result;
    const auto step = [&](int row, int column) {
      const int64_t d = int64_t(row) + column, group = d / kDiagonalsPerByte;
      const uint8_t byte = pair.steps[pair.starts[group] + row - rows_of_group(pair.extent, group).first];
      return byte >> 2 * (d % kDiagonalsPerByte) & 3;
    };
    walk_back(
        pair.extent.n, static_cast<int>(end.column), step, [&](int row, Span span) { spans[b * problem.n + row] = span; });
    leave_empty(b, pair.extent.n);
  }

  void end_without_path(int64_t b, double result) const {
    value[b] = static_cast<T>(result);
    if (spans) leave_empty(b, 0);
  }

  void leave_empty(int64_t b, int64_t from) const {
    const int32_t m = static_cast<int32_t>(problem.m);
    for (int64_t row = from; row < problem.n; ++row) spans[b * problem.n + row] = {m, m - 1};
  }
};

}  // namespace cpu
}  // namespace softdtw
