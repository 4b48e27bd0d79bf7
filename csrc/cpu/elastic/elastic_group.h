// A group of pairs of a hard elastic measure. elastic_lanes.h sweeps it.
#pragma once

#include "core/elastic.h"
#include "cpu/groups/group.h"

namespace softdtw {
namespace cpu {

constexpr int64_t kLanePadding = 4;  // rows or columns before and behind a series that are read, and matter to no result

template <typename T>
struct ElasticGroup : Group<T> {  // no number is so large that a cost would be NaN
  Measure measure;
  T parameter;
  bool sum_border;
  GroupSeries<T> x_times, y_times, x_gaps, y_gaps;
  T* weights;       // kWeighted: w(k) at k
  double* borders;  // [n][lanes]: column -1
};

}  // namespace cpu
}  // namespace softdtw
