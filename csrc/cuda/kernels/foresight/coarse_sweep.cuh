// Hard DTW of every eighth sample, or so: a small table, which lanes sweep as those of strips do theirs.
#pragma once

#include "cuda/kernels/warp_pair/warp_pair.cuh"

namespace softdtw {

struct Foresight {
  static constexpr int kStride = 8, kRows = 8, kLanes = 8, kWarps = 4, kPairs = kWarps * kWarp / kLanes;
  static_assert(kLanes * kRows * kStride >= kMostShortRows);
  static constexpr int kMostColumns = kLongestShort / kStride + 1;
  // Binary orders that a pair may be foreseen to use. Too few, and pairs are swept in vain; too many, and they go where they are slower.
  static constexpr float kMost = 1.1f * (kTop - kLeast);
  // Of what a step uses by its tilt, the part that is not made up for by there being many paths.
  static constexpr float kTiltUsed = 0.25f;
  // White noise: a step of n + m uses half its tilt, and so much of the cost between x and its mean.
  static constexpr float kTiltUsedByNoise = 0.5f, kCostOfNoise = 0.35f;
};

// Returns the value to the lane end_lane, which has the last of the rows, `end` by number; infinity to others. Lanes have kRows
// rows each; steps: of the warp. cost_of(k, y): of row k of the lane; y_at(column), for columns below `columns`; of_step(a): a
// with a step's penalty.
template <int kRows, class CostOf, class YAt, class OfStep>
__device__ __forceinline__ float coarse_sweep(
    int lane, int lanes, int steps, int columns, int end, const CostOf& cost_of, const YAt& y_at, const OfStep& of_step) {
  float left[kRows], diag = lane == 0 ? 0.0f : INFINITY, last = INFINITY;
#pragma unroll
  for (int k = 0; k < kRows; ++k) left[k] = INFINITY;
  for (int t = 0; t < steps; ++t) {
    const int column = t - lane;
    const auto y = y_at(min(max(column, 0), columns - 1));
    float up = __shfl_up_sync(kAllLanes, left[kRows - 1], 1, lanes);
    if (lane == 0) up = INFINITY;
    float upper_left = diag;
    diag = up;
#pragma unroll
    for (int k = 0; k < kRows; ++k) {
      // The chain down the rows is as short as can be.
      const float best = fminf(upper_left, of_step(left[k]));
      upper_left = left[k];
      left[k] = up = fminf(best, of_step(up)) + cost_of(k, y);
    }
    if (lane == end / kRows && column == columns - 1) last = pick(left, end % kRows);
  }
  return last;
}

// The most steps of a warp's pairs.
__device__ __forceinline__ int most_steps(int steps) {
#pragma unroll
  for (int distance = kWarp / 2; distance > 0; distance /= 2)
    steps = max(steps, __shfl_xor_sync(kAllLanes, steps, distance));
  return steps;
}

}  // namespace softdtw
