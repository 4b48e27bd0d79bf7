// One pair of a soft elastic measure as the sweep of soft-DTW sees it (pair.h): the same strips, edges and snapshots, with a
// cost for each of the three steps into a cell.
//
// A summed border is a row and a column more, in front, into which no diagonal step leads but that to their corner.
#pragma once

#include "core/elastic.h"
#include "progress.h"

namespace softdtw {
namespace cpu {

template <typename T>
struct Pair;
template <typename T>
struct Table;

// Ready-made costs of the diagonal step, of that up and of that left; in the caller's dtype, so one of the two has data.
struct StepTables {
  View<const float> narrow[3];
  View<const double> wide[3];

  double at(int step, int64_t row, int64_t column) const {
    return narrow[step].data ? double(narrow[step].at(row, column)) : wide[step].at(row, column);
  }
};

template <typename T>
struct SoftElastic {
  const Pair<T>* table;  // with the border; x has a number more before it
  Measure measure;
  bool sum_border;
  double parameter;
  const T *x_times, *y_times;  // as x and y lie; null: `parameter` times the place
  const T *up_m, *up_s;        // exp(-u / gamma) of a row is s 2^-m, as x lies
  const T *left_m, *left_s;    // and of a column, as y lies
  const T *even, *odd;         // kWeighted: w(2 k) and w(2 k + 1) at k, which may be negative
  StepTables tables;           // kMatrix
};

}  // namespace cpu
}  // namespace softdtw
