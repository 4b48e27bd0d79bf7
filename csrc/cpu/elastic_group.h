// A group of pairs of a hard elastic measure, where many have tables of one shape: a lane of a register each. elastic_lanes.h
// sweeps it.
#pragma once

#include <cstdint>

#include "core/elastic.h"
#include "hard_group.h"

namespace softdtw {
namespace cpu {

constexpr int64_t kLanePadding = 4;  // of the lanes of a series, before and behind it: numbers that no result depends on

template <typename T>
struct ElasticGroup {
  Measure measure;
  Cost cost;
  Extent extent;
  int64_t dim;
  T parameter;
  bool sum_border;
  // [kGroup / lanes][padded length][dim][lanes] with the lanes of a register, all finite; null where there are none.
  T *x, *y, *x_times, *y_times, *x_gaps, *y_gaps;
  const T* weights;  // kWeighted: w(k) at k
  double* row;       // [m + 1][lanes]: a row of the tables, the first column of which is the border
  double* borders;   // [n][lanes]: column -1
  double value[kGroup];

  static int64_t padded(int64_t length) { return length + 2 * kLanePadding; }
};

}  // namespace cpu
}  // namespace softdtw
