// What steps of hard elastic measures cost, one dimension, for strips and for rings.
#pragma once

#include "core/elastic.h"
#include "cuda/numbers/device_math.cuh"

namespace softdtw {

// What the diagonal step costs: of Edit; and of Edr and Lcss, to whose kernels their difference is a number.
template <typename T>
struct EditMatch {
  static constexpr bool kHasGaps = true;

  __device__ EditMatch(const ElasticProblem<T>&, int64_t) {}
  __device__ __forceinline__ T operator()(T distance) const { return Edit<T>::match(distance, 0); }
};
template <typename T>
struct ThresholdMatch {
  static constexpr bool kHasGaps = false;
  const T epsilon, apart;
  const bool may_be_equal;

  __device__ ThresholdMatch(const ElasticProblem<T>& problem, int64_t pair)
      : epsilon(static_cast<T>(problem.parameter_of(pair))),
        apart(problem.measure == Measure::kLcss ? T(2) : T(1)),
        may_be_equal(problem.measure == Measure::kLcss) {}
  __device__ __forceinline__ T operator()(T distance) const {
    const bool is_match = (distance < epsilon) | ((distance == epsilon) & may_be_equal);  // without a jump
    return is_match ? T(0) : apart + (distance - distance);
  }
};

// Msm::gap() by the GPU's own minima, which pass NaN on; there are none of float64.
template <typename T>
__device__ __forceinline__ T gap_of_msm(T v, T a, T b) {
  if constexpr (sizeof(T) == 8) return Msm<T>::gap(v, a, b);
  const T p = a - v, q = b - v;
  return greater(greater(lesser(p, q), -greater(p, q)), T(0));
}

}  // namespace softdtw
