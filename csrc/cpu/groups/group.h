// A group of pairs whose tables have one shape: a lane of a register each, so that no cell waits for a neighbour on its own diagonal.
// lanes_sweep.h sweeps it.
#pragma once

#include <cstdint>

#include "core/problem.h"

namespace softdtw {
namespace cpu {

constexpr int64_t kGroup = 16;  // pairs

// A series of each pair: [kGroup / lanes][number][lanes] with the lanes of a register. Where all pairs have one series, only that of the
// first register is there.
template <typename T>
struct GroupSeries {
  T* numbers = nullptr;  // null: there are none
  int64_t stride = 0;    // numbers of a series, with the zeros before and behind it
  bool is_one = false;

  // Of the pairs that a register has from this one on.
  const T* of(int64_t pair) const { return numbers ? numbers + (is_one ? 0 : pair) * stride : nullptr; }
};

template <typename T>
struct Group {
  using Number = T;
  Cost cost;
  Extent extent;
  int64_t dim;
  GroupSeries<T> x, y;
  double* row;  // [m + 1][lanes]: a row of the tables, the first column of which is the border
  double value[kGroup];
};

}  // namespace cpu
}  // namespace softdtw
