// One pair of a soft elastic measure as the sweep of soft-DTW sees it (pair.h): the same strips, edges and snapshots, with a
// cost for each of the three steps into a cell.
//
// A summed border is a row and a column more, in front, into which no diagonal step leads but that to their corner.
#pragma once

#include "core/elastic.h"
#include "cpu/threads/progress.h"

namespace softdtw {
namespace cpu {

template <typename T>
struct Pair;
template <typename T>
struct Table;
template <typename T>
struct Scratch;

// Which costs a measure has: one of the cell, gaps of rows and columns, or three of the cell.
enum class StepKind { kCell, kGaps, kEach };
inline StepKind kind_of(Measure measure) {
  if (measure == Measure::kWeighted) return StepKind::kCell;
  return measure == Measure::kMsm || measure == Measure::kMatrix ? StepKind::kEach : StepKind::kGaps;
}

// Ready-made costs of the diagonal step, of that up and of that left; in the caller's dtype, so one of the two has data.
struct StepTables {
  View<const float> narrow[3];
  View<const double> wide[3];

  double at(int step, int64_t row, int64_t column) const {
    return narrow[step].data ? double(narrow[step].at(row, column)) : wide[step].at(row, column);
  }
};

// D, U and L of (12) of ready-made costs, as those have them.
struct MassTables {
  View<float> narrow[3];
  View<double> wide[3];

  // Of pair b.
  void set(int64_t b, const ElasticGradient<float>& from) {
    narrow[0] = from.diagonal.pair(b), narrow[1] = from.up.pair(b), narrow[2] = from.left.pair(b);
  }
  void set(int64_t b, const ElasticGradient<double>& from) {
    wide[0] = from.diagonal.pair(b), wide[1] = from.up.pair(b), wide[2] = from.left.pair(b);
  }
  void add(int step, int64_t row, int64_t column, double mass) const {
    if (narrow[step].data)
      narrow[step].at(row, column) += float(mass);
    else
      wide[step].at(row, column) += mass;
  }
};

// w(2 k) and w(2 k + 1) at k, which may be negative.
template <typename T>
struct ParityWeights {
  const T *even, *odd;
};

template <typename T>
struct SoftElastic {
  const Pair<T>* table;  // with the border; x has a number more before it
  Measure measure;
  bool sum_border;
  double parameter;
  const T *x_times, *y_times;          // as x and y lie; null: `parameter` times the place
  const T *up_m, *up_s;                // exp(-u / gamma) of a row is s 2^-m, as x lies
  const T *left_m, *left_s;            // and of a column, as y lies
  ParityWeights<T> weights;            // kWeighted
  ParityWeights<double> wide_weights;  // of pairs whose costs are wide
  StepTables tables;                   // kMatrix
};

// Of a strip's cells: <D, d> + <U, u> + <L, l> in units of gamma ln 2, without gaps that are a row's or a column's own; and what
// `parameter` is charged with, of kWeighted in the same unit.
struct ElasticTotals {
  double cost, parameter;
};

// What backward needs: dx and dy are of distances. All that is by row lies as x, and by column as y; null where it is not wanted.
template <typename T>
struct ElasticScratch : Scratch<T> {
  T *x_gaps, *y_gaps;      // kEdit to kTwed: sums of U in each row, of L in each column
  T *x_times, *y_times;    // and of the mass of |t - s| times its slope; that of y with the opposite sign, as dy
  T *x_before, *y_before;  // kMsm: what goes to the row or the column before
  ElasticTotals* totals;   // of each strip
  MassTables tables;       // kMatrix
};

}  // namespace cpu
}  // namespace softdtw
