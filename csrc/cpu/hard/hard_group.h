// A group of pairs as the CPU kernel of hard DTW sees it. hard_lanes.h sweeps it.
#pragma once

#include "cpu/groups/group.h"

namespace softdtw {
namespace cpu {

template <typename T>
struct HardGroup : Group<T> {  // all numbers are finite
  double penalty;
};

}  // namespace cpu
}  // namespace softdtw
