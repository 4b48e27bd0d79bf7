// One pair of a hard elastic measure as the CPU kernels see it, (11).
//
// The table is cut into strips of rows, and a strip is swept by anti-diagonals, three of which are kept, by row; only the last
// row of a strip goes on to the next. Entries are float64 whatever the dtype of the costs. What a sweep may read beyond a
// diagonal's rows is there, and 0.
#pragma once

#include <cstdint>

#include "core/elastic.h"

namespace softdtw {
namespace cpu {

constexpr int64_t kElasticRows = 256;  // of a strip where values alone are wanted
constexpr int64_t kRebuiltRows = 64;   // where a strip is built again, for a path
constexpr int64_t kElasticSlack = 16;  // numbers before and behind what is packed, and behind a diagonal

template <typename T>
struct ElasticPair {
  Measure measure;
  Cost cost;
  Extent extent;
  int64_t dim;
  double parameter;
  View<const T> diagonal, up, left;  // kMatrix
  // By row, and by column from the last to the first, so that a diagonal meets neighbours in memory. x may be the part of
  // a strip, from the row before it on; row i is x[i] in any case. Column j is y[m - 1 - j].
  const T *x, *y;  // [dim][stride]
  int64_t x_stride, y_stride;
  const T *x_times, *y_times, *x_gaps, *y_gaps;  // null where there are none
  const T* weights;                              // kWeighted: w(k) at |k|, zeros behind

  bool in_band(int64_t row, int64_t column) const { return column - row >= extent.low && column - row <= extent.high; }
};

// Rows [first, last] of a strip that lie on a diagonal, in the table and in the band: row + column = diagonal, rows counted in
// the strip. Both only grow with the diagonal.
struct StripRows {
  int64_t first, last;

  StripRows(const Extent& extent, int64_t row, int64_t rows, int64_t diagonal) {
    const auto half = [](int64_t a) { return a >= 0 ? a / 2 : -((1 - a) / 2); };  // rounded down
    const int64_t right = diagonal - extent.m + 1, above = half(diagonal - row - extent.high + 1);
    const int64_t below = half(diagonal - row - extent.low);
    first = right > above ? right : above;
    if (first < 0) first = 0;
    last = diagonal < rows - 1 ? diagonal : rows - 1;
    if (below < last) last = below;
  }
};

// A strip, and memory to sweep it with. Entries of a row or of a column begin at place -1, the border.
struct ElasticStrip {
  int64_t row, rows;
  const double* border;  // R of column -1 in each row of the strip
  const double* above;   // of the row above
  double* last;          // of the strip's own last row; may be the same
  uint8_t* steps;        // [diagonals][stride]: the step into each cell; null: not wanted
  double* entries;       // [3][rows + slack]
  char* costs;           // [6][rows + slack] of T

  int64_t first_diagonal(const Extent& extent) const { return row + extent.low > 0 ? row + extent.low : 0; }
  int64_t last_diagonal(const Extent& extent) const {
    const int64_t column = row + rows - 1 + extent.high;
    return (column < extent.m - 1 ? column : extent.m - 1) + rows - 1;
  }
  static int64_t stride(int64_t rows) { return rows + 2 * kElasticSlack; }
};

}  // namespace cpu
}  // namespace softdtw
