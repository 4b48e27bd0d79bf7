// Which number format a pair of a large batch goes to first: a kernel before the sweeps, which decides by hard DTW of every eighth
// sample. Its value, times eight, is near that of the whole pair, and takes a sixty-fourth of the work. Which weights the linear
// domain will need is foreseen too, so that pairs with the same ones run side by side; what is needed indeed is found out later.
#pragma once

#include "coarse_sweep.cuh"
#include "pair_lists.cuh"

namespace softdtw {

template <class Options>
__global__ void __launch_bounds__(Foresight::kWarps* kWarp)
    foresee_kernel(const __grid_constant__ Problem<float> problem, PairStatus* statuses) {
  using Cost = typename Options::template Cost<float>;
  using Penalty = ShortPairPenalty<float, true, Options>;
  constexpr int kRows = Foresight::kRows, kStride = Foresight::kStride, kLanes = Foresight::kLanes;
  ptx::let_next_kernel_start();
  __shared__ float memory[Foresight::kPairs][Foresight::kMostColumns];
  const int64_t place = int64_t{blockIdx.x} * Foresight::kPairs + threadIdx.x / kLanes;
  const bool exists = place < problem.batch;
  const int64_t pair = exists ? place : problem.batch - 1;
  const int lane = threadIdx.x % kLanes;
  Extent extent = problem.extent(pair);
  const bool is_valid = extent.valid();
  if (!is_valid) extent.n = extent.m = 1;
  const float factor = factor_of_cost<Cost>(problem, pair), stretch = Cost::kIsRooted ? factor : 1.0f;
  const Cost cost(factor);
  const Penalty penalty(problem.penalty_of(pair) * problem.scale_of(pair));

  const auto sum = [](float a) {
#pragma unroll
    for (int distance = kLanes / 2; distance > 0; distance /= 2) a += __shfl_xor_sync(kAllLanes, a, distance);
    return a;
  };
  const View<const float> rows = problem.x.pair(pair), columns = problem.y.pair(pair);
  float x[kRows], next[kRows], lowest = INFINITY, highest = -INFINITY, total = 0;
  // Samples whose next one is in the series, too.
  const int samples = max((extent.n - 2 - kStride / 2) / kStride + 1, 0);
#pragma unroll
  for (int k = 0; k < kRows; ++k) {
    const int row = (lane * kRows + k) * kStride + kStride / 2;
    x[k] = rows.data[min(row, extent.n - 1) * rows.row_stride] * stretch;
    next[k] = rows.data[min(row + 1, extent.n - 1) * rows.row_stride] * stretch;
    lowest = lesser(lowest, x[k]);
    highest = greater(highest, x[k]);
    if (lane * kRows + k < samples) total += x[k];
  }
  const float mean = sum(total) / max(samples, 1);
  float apart = 0, off_mean = 0;
#pragma unroll
  for (int k = 0; k < kRows; ++k)
    if (lane * kRows + k < samples) {
      apart += cost.cost(x[k] - next[k]);
      off_mean += cost.cost(x[k] - mean);
    }
  off_mean = sum(off_mean);
  const bool is_noise = sum(apart) > off_mean;  // as ShortPair has it

  float* const y = memory[threadIdx.x / kLanes];
  const int coarse_columns = (extent.m + kStride - 1) / kStride;
  float y_lowest = INFINITY, y_highest = -INFINITY;
#pragma unroll 8
  for (int i = lane; i < coarse_columns; i += kLanes) {
    y[i] = columns.data[min(i * kStride + kStride / 2, extent.m - 1) * columns.row_stride] * stretch;
    y_lowest = lesser(y_lowest, y[i]);
    y_highest = greater(y_highest, y[i]);
  }
#pragma unroll
  for (int distance = kLanes / 2; distance > 0; distance /= 2) {
    const auto other = [&](float a) { return __shfl_xor_sync(kAllLanes, a, distance); };
    const float low = other(lowest), high = other(highest), y_low = other(y_lowest), y_high = other(y_highest);
    lowest = lesser(lowest, low);
    highest = greater(highest, high);
    y_lowest = lesser(y_lowest, y_low);
    y_highest = greater(y_highest, y_high);
  }
  const float widest = greater(highest - y_lowest, y_highest - lowest);
  __syncwarp();

  const float step_penalty = kStride * static_cast<float>(penalty.of_cell() - penalty.of_step());
  const int end = (extent.n - 1) / kStride, end_lane = end / kRows;
  const int steps = __all_sync(kAllLanes, is_noise) ? 0 : most_steps(coarse_columns + end_lane);
  const float last = coarse_sweep<kRows>(
      lane, kLanes, steps, coarse_columns, end, [&](int k, float at_y) { return cost.cost(x[k] - at_y); },
      [&](int column) { return y[column]; }, [&](float a) { return Options::kHasPenalty ? a + step_penalty : a; });
  if (!exists || lane != end_lane) return;
  const float length = extent.n + extent.m, tilt = static_cast<float>(penalty.of_step()) * length;
  const float used = is_noise ? Foresight::kTiltUsedByNoise * tilt + Foresight::kCostOfNoise * off_mean / samples * length
                              : Foresight::kTiltUsed * tilt + kStride * last;
  const bool is_likely = is_valid && used <= Foresight::kMost;
  const bool is_shallow = penalty.fits(cost.cost(widest), ShallowWeight::kDeepest);
  PairLists(statuses, problem.batch)
      .append(
          !is_likely   ? Waiting::kForeseen
          : is_shallow ? Waiting::kShallow
                       : Waiting::kDeep,
          pair);
}

}  // namespace softdtw
