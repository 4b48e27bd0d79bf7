// One pair as the CPU kernel of hard DTW sees it.
//
// The table is swept by whole anti-diagonals, three of which are kept, by row; neighbours on a diagonal are neighbours in
// memory. Entries are float64 whatever the dtype of the costs: sums are then exact to the rounding of the value itself, and
// cost one comparison more than in float32. Of one dimension series are float64, too, and a cost is added to an entry as it is
// computed. Where a path is wanted, the predecessor of every cell is kept in two bits, those of four diagonals in the byte of their
// row.
#pragma once

#include <algorithm>
#include <cstdint>

#include "core/hard_path.h"
#include "cpu/threads/interrupt.h"

namespace softdtw {
namespace cpu {

constexpr int64_t kHardSlack = 16;   // rows that a register may reach beyond a diagonal's last
constexpr int64_t kHardBlock = 512;  // cells of a diagonal whose costs are computed at once
constexpr int64_t kDiagonalsPerByte = 4;

// Rows [first, last] of diagonal row + column = d that lie in the table and in the band. Both only grow with d.
struct DiagonalRows {
  int64_t first, last;

  DiagonalRows(const Extent& extent, int64_t d) {
    const auto half = [](int64_t a) { return a >= 0 ? a / 2 : -((1 - a) / 2); };  // rounded down
    first = std::max(std::max<int64_t>(0, d - extent.m + 1), half(d - extent.high + 1));
    last = std::min(std::min<int64_t>(extent.n - 1, d), half(d - extent.low));
  }
};

inline int64_t diagonals_of(const Extent& extent) { return int64_t(extent.n) + extent.m - 1; }
inline int64_t groups_of(const Extent& extent) {
  return (diagonals_of(extent) + kDiagonalsPerByte - 1) / kDiagonalsPerByte;
}

// The rows that any of a group's diagonals has.
inline DiagonalRows rows_of_group(const Extent& extent, int64_t group) {
  DiagonalRows rows(extent, group * kDiagonalsPerByte);
  const int64_t last = std::min((group + 1) * kDiagonalsPerByte, diagonals_of(extent)) - 1;
  rows.last = std::max(DiagonalRows(extent, last).last, rows.first - 1);
  return rows;
}

inline int64_t bytes_of_steps(const Extent& extent) {
  int64_t bytes = 0;
  for (int64_t group = 0; group < groups_of(extent); ++group) {
    const DiagonalRows rows = rows_of_group(extent, group);
    bytes += rows.last - rows.first + 1;
  }
  return bytes;
}

// Boxes [low, high] of vectors, one behind the other as a series is.
template <typename T>
struct Boxes {
  Cost cost;
  int64_t dim, stride;
  const T *low, *high;  // [dim][stride]

  Boxes from(int64_t first) const { return {cost, dim, stride, low + first, high + first}; }
  Boxes of_series(int64_t number) const { return from(number * dim * stride); }
};

template <typename T>
struct HardPair {
  Cost cost;
  Extent extent;
  int64_t dim;
  double penalty;
  bool open_ends;
  View<const T> matrix;
  const T *x, *y;  // [dim][stride]: x by row, y by column from the last to the first
  int64_t x_stride, y_stride;
  const double *wide_x, *wide_y;  // the same of one dimension and finite, and kHardSlack numbers; else null
  double* entries;                // [3][entries_stride(n)]
  uint8_t* steps;                 // group by group, each from its first row on; null: no path
  int64_t* starts;                // of the groups
  // A value above the limit may be infinity instead. Then every vector of x lies in its box where it is matched with y's.
  double limit = __builtin_inf();
  Boxes<T> boxes = {};
  T* box_costs;  // [n] memory for what x costs at least, by row
};

inline int64_t entries_stride(int64_t n) { return n + 2 + kHardSlack; }

struct HardEnd {
  double value;
  int64_t column;
};

// A pair whose best ranges are wanted (10): where the range of an entry starts stands beside the entry.
template <typename T>
struct RangesPair : HardPair<T> {
  int64_t* origins;  // as entries
  double* value;     // [m], by the ranges' last column
  int32_t* start;    // [m]
};

}  // namespace cpu
}  // namespace softdtw
