// A call in numbers: all that the choice of a kernel may depend on, besides the device.
#pragma once

#include "problem.h"

namespace softdtw {

struct Call {
  int64_t batch = 1, n = 1, m = 1, dim = 1;
  bool is_float64 = false;
  Cost cost = Cost::kSqEuclidean;
  bool has_band = false, has_penalty = false;
  bool is_ragged = false;  // lengths, or bands, of each pair's own
  bool keeps = false;      // what backward needs
  int32_t bandwidth = -1;  // of all pairs; below 0: none, or each has its own

  bool is_plain() const { return !has_band && !has_penalty; }
  bool is_univariate() const { return cost == Cost::kSqEuclidean && dim == 1; }
  // Whether the cost follows from |x - y|^2.
  bool is_of_squares() const { return cost == Cost::kSqEuclidean || cost == Cost::kEuclidean; }
  // float32 series of several dimensions, whose costs and gradients may come from warps of their own.
  bool is_multivariate() const { return !is_float64 && cost != Cost::kMatrix && dim > 1 && dim < int64_t{1} << 30; }
};

template <typename T>
Call call_of(const Problem<T>& problem, bool keeps) {
  Call call;
  call.batch = problem.batch;
  call.n = problem.n;
  call.m = problem.m;
  call.dim = problem.cost == Cost::kMatrix ? 1 : problem.dim;
  call.is_float64 = sizeof(T) == 8;
  call.cost = problem.cost;
  call.has_band = problem.bandwidths != nullptr || problem.bandwidth >= 0;
  call.has_penalty = problem.warp_penalties != nullptr || problem.warp_penalty != 0;
  call.is_ragged = problem.x_lengths != nullptr || problem.y_lengths != nullptr || problem.bandwidths != nullptr;
  call.keeps = keeps;
  if (problem.bandwidths == nullptr && problem.bandwidth >= 0)
    call.bandwidth = static_cast<int32_t>(problem.bandwidth < INT32_MAX ? problem.bandwidth : INT32_MAX);
  return call;
}

}  // namespace softdtw
