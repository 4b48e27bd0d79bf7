// The level engine (level.cuh) as stencil calls it.
#pragma once

#include <cuda_runtime_api.h>

#include "level_pair.cuh"
#include "verdict.cuh"

namespace softdtw {

// Of longer series the sums of many pairs of unit noise leave the range.
constexpr int64_t kLongestLevel = 1500, kMostLevelRows = kWarp * LevelLayout::kMostRows;  // n + m, n

// Whether the level engine may take a problem, and memory is laid out for it. Mirrored in torchsoftdtw/saved_state.py.
template <typename T>
bool level_applies(const Problem<T>& problem) {
  if (sizeof(T) != 4 || !is_univariate(problem)) return false;
  if (problem.bandwidth >= 0 || problem.bandwidths || problem.warp_penalty != 0 || problem.warp_penalties) return false;
  return problem.n <= kMostLevelRows && problem.n + problem.m <= kLongestLevel;
}

// `saved`: null where nothing is kept; `stride` bytes a pair. A verdict is left for every pair.
cudaError_t launch_level_forward(
    const Problem<float>& problem, float* value, char* saved, int64_t stride, Verdict* verdicts, cudaStream_t stream);
cudaError_t launch_level_backward(
    const Problem<float>& problem, const Gradient<float>& gradient, const char* saved, int64_t stride,
    const Verdict* verdicts, cudaStream_t stream);

}  // namespace softdtw
