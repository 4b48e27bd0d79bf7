// The ranges of a series that are nearest to another one, by hard DTW, apart from any wavefront, for host and device.
//
// (10)  R[0,j] = 0 with start j,   R[i,0] = inf
//       R[i,j] = C[i,j] + min(R[i,j-1] + p, R[i-1,j-1], R[i-1,j] + p), with the start of the one that is taken
//       R[N,j] is the least DTW of x with any range of y that ends with column j; columns [start, j], from 0.
//
// Of equal predecessors the left one is taken before the diagonal one, and that before the upper one. That is the earliest
// start: each cell has one way back, so two ways that meet go on as one and never cross, and starts grow to the right and
// upwards. For the same reason the start of R[N,j] never falls from one j to the next.
#pragma once

#include <cmath>
#include <cstdint>

#include "problem.h"

namespace softdtw {

// Sums are float64 whatever the dtype of the costs.
struct Reached {
  double value;
  int32_t start;  // below 0: none
};

// The better of two, of equal ones the first.
SOFTDTW_HD Reached better(const Reached& a, const Reached& b) {
  const bool is_second = b.value < a.value;
  return {is_second ? b.value : a.value, is_second ? b.start : a.start};
}

SOFTDTW_HD Reached after(const Reached& from, double cost) { return {from.value + cost, from.start}; }

// A cost that is no number forbids its cell as an infinite one does: what other ranges are worth does not depend on it.
template <typename T>
SOFTDTW_HD double or_infinite(T cost) {
  return cost < T(INFINITY) ? static_cast<double>(cost) : double(INFINITY);
}

}  // namespace softdtw
