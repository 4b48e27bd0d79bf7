// One warp computes its pairs' values with the level engine (level.cuh).
#pragma once

#include "level_sweep.cuh"
#include "verdict.cuh"

namespace softdtw {

constexpr int kChunksBetweenLooks = 8;  // at whether a pair is still within the range

// Returns the last entry of the pair to the lane that holds it; 0 where the pair is given up.
template <class Weights, int kRows>
__device__ __forceinline__ double level_sweep(const LevelPair<kRows>& pair, int* kept, int words_a_chunk) {
  LevelState<kRows> state;
  state.start(pair.is_first_lane());
  const double least = power_of_two(kLeast);
  double last = 0;
  for (int chunk = 0; chunk < pair.chunks; ++chunk) {
    if (kept != nullptr && chunk > 0) state.keep(kept + int64_t{chunk - 1} * words_a_chunk, pair.lanes);
    if (chunk % kChunksBetweenLooks == kChunksBetweenLooks - 1) {
      // The last entry cannot exceed the largest of these.
      double largest = state.diag;
#pragma unroll
      for (int k = 0; k < kRows; ++k) largest = fmax(largest, state.left[k]);
      const bool goes_on = pair.fits && chunk <= pair.end_chunk && largest >= least;
      if (!__any_sync(kAllLanes, goes_on)) break;
    }
    const float* const columns = pair.window + chunk * LevelLayout::kSteps;
    const int end = pair.end_step - chunk * LevelLayout::kSteps;
#pragma unroll 2
    for (int t = 0; t < LevelLayout::kSteps; ++t) {
      state.template step<Weights>(pair, columns[t]);
      if (t == end && pair.end_row >= 0) last = pick(state.left, pair.end_row);
    }
  }
  return last;
}

template <int kRows>
__device__ void level_forward(
    const Problem<float>& problem, const LevelLayout& layout, int64_t first_pair, float* memory, float* value, char* saved,
    int64_t stride, Verdict* verdicts) {
  const bool exists = LevelPair<kRows>::exists(problem, layout, first_pair);
  const LevelPair<kRows> pair(problem, layout, first_pair, exists, memory);
  bool accepted = false;
  if (__any_sync(kAllLanes, pair.fits)) {
    int* const kept =
        saved == nullptr || !pair.fits ? nullptr : reinterpret_cast<int*>(saved + pair.pair * stride) + pair.lane;
    const int words = (kRows + 1) * pair.lanes;
    const double last = __all_sync(kAllLanes, pair.is_shallow || !pair.fits)
                            ? level_sweep<ShallowWeights>(pair, kept, words)
                            : level_sweep<DeepWeights>(pair, kept, words);
    accepted = pair.fits && pair.end_row >= 0 && last >= power_of_two(kLeast);
    if (accepted) {
      const double exponent = kTop - log2(last) - static_cast<double>(kTilt) * (pair.extent.n + pair.extent.m);
      value[pair.pair] = static_cast<float>(exponent * problem.gamma_of(pair.pair) * kLn2);
    }
  }
  accepted = pair.any_of_pair(accepted);
  if (pair.is_first_lane() && exists) verdicts[pair.pair] = accepted ? Verdict::kAccepted : Verdict::kRejected;
}

}  // namespace softdtw
