// Which number format a warp tries first on the pairs that it has, where these are not in lists (foresight.cuh): by hard DTW of every
// eighth sample, or so, in the lanes and with the numbers of the sweep to come.
#pragma once

#include "coarse_sweep.cuh"

namespace softdtw {

struct PairForesight {
  // Binary orders that a pair may be foreseen to use. Less than in lists, since all pairs of a warp wait for one that is given up.
  static constexpr float kMost = 0.9f * (kTop - kLeast);
  // Of n + m: a table of fewer samples says too little, and a sweep in vain takes less.
  static constexpr int kShortest = 320;
  template <int kRows>
  static constexpr int kStride = kRows % 8 == 0 ? 8 : kRows;
};

// In binary orders, of every lane's pair, by its coarse table.
template <class Pair, class Options>
__device__ __forceinline__ float foreseen_use(const Pair& pair, bool wanted) {
  constexpr int kStride = PairForesight::kStride<Pair::kRows>, kRows = Pair::kRows / kStride;
  const float step_penalty = kStride * static_cast<float>(pair.penalty.of_cell() - pair.penalty.of_step());
  const int columns = (pair.extent.m + kStride - 1) / kStride;
  const int end = (pair.extent.n - 1) / kStride, end_lane = end / kRows;
  const float last = coarse_sweep<kRows>(
      pair.lane, pair.lanes, most_steps(wanted ? columns + end_lane : 0), columns, end,
      [&](int k, float y) { return pair.cost.cost(pair.x[k * kStride + kStride / 2] - y); },
      [&](int column) { return pair.columns()[min(column * kStride + kStride / 2, pair.extent.m - 1) + pair.lane]; },
      [&](float a) { return Options::kHasPenalty ? a + step_penalty : a; });
  return Foresight::kTiltUsed * pair.tilt() + kStride * __shfl_sync(kAllLanes, last, end_lane, pair.lanes);
}

// Whether all of the warp's pairs that the linear domain may take are likely to end within its range.
template <class Pair, class Options>
__device__ __forceinline__ bool are_likely(const Pair& pair) {
  if constexpr (std::is_same_v<typename Pair::Number, float>) {
    const int length = pair.extent.n + pair.extent.m;
    const float as_noise = Foresight::kTiltUsedByNoise * pair.tilt() + Foresight::kCostOfNoise * pair.spread * length;
    bool is_likely = !pair.fits || pair.deepest <= Pair::Numbers::Shallow::kDeepest || length < PairForesight::kShortest ||
                     as_noise <= PairForesight::kMost;
    const bool has_table = !is_likely && !pair.is_noise;
    if (__any_sync(kAllLanes, has_table)) {
      const float used = foreseen_use<Pair, Options>(pair, has_table);  // all lanes meet in it
      is_likely |= has_table && used <= PairForesight::kMost;
    }
    return __all_sync(kAllLanes, is_likely);
  }
  return true;
}

}  // namespace softdtw
