// A group of pairs as the CPU kernel of hard DTW sees it where many pairs have tables of one shape: a lane of a register each, so
// that no cell waits for a neighbour on its own diagonal. hard_lanes.h sweeps it.
#pragma once

#include <cstdint>

#include "core/problem.h"

namespace softdtw {
namespace cpu {

constexpr int64_t kGroup = 16;  // pairs

template <typename T>
struct HardGroup {
  Cost cost;
  Extent extent;
  int64_t dim;
  double penalty;
  T *x, *y;                 // [kGroup / lanes][row][dim][lanes] with the lanes of a register, all finite
  bool is_one_x, is_one_y;  // the series of all pairs: then only that of the first register is there
  double* row;              // [m + 1][lanes]: a row of the tables, the first column of which is the border
  double value[kGroup];
};

}  // namespace cpu
}  // namespace softdtw
