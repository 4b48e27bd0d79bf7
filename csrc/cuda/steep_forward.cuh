// One warp computes its pairs' values with the steep engine (steep.cuh).
#pragma once

#include "robust_strip.cuh"
#include "steep.cuh"

namespace softdtw {

constexpr int kSteepChunksBetweenLooks = 8;
constexpr double kLeastOfAStep = 1.0 / 32;  // of a value, in exponents of 2

// Of the pairs that are `wanted`. Returns whether the lane's is taken.
template <int kRows>
__device__ bool steep_forward(
    const Problem<float>& problem, const LevelLayout& layout, int64_t first_pair, bool wanted, float* memory, float* value,
    char* saved, int64_t stride) {
  using State = SteepState<kRows>;
  constexpr int kSteps = LevelLayout::kSteps;
  const typename State::Pair pair(problem, layout, first_pair, wanted, memory);
  if (!__any_sync(kAllLanes, pair.fits)) return false;
  int* const kept =
      saved == nullptr || !pair.fits ? nullptr : reinterpret_cast<int*>(saved + pair.pair * stride) + pair.lane;
  State state;
  state.start(pair.is_first_lane());
  bool is_exact = true, has_value = false;
  Entry<float> last = {NAN, NAN};
  int last_reference = 0;
  ColumnsAhead<float, 1> columns(pair.window);
  const auto entry = [](int, const SteepCell& cell, const auto& diag, const auto& up, const auto& left) {
    return cell.entry(diag, up, left);
  };
  for (int chunk = 0; chunk < pair.chunks; ++chunk) {
    if (kept != nullptr && chunk > 0) state.keep(kept + int64_t{chunk - 1} * State::kWords * pair.lanes, pair.lanes);
    if (may_enter(pair, chunk) || __any_sync(kAllLanes, pair.end_row >= 0 && chunk == pair.end_chunk)) {
#pragma unroll 1
      for (int t = 0; t < kSteps; ++t) {
        const int step = chunk * kSteps + t;
        state.template step<true>(pair, columns.now, step - pair.lane, entry);
        columns.move();
        if (pair.end_row >= 0 && step == pair.end_step) {
          last = pick(state.left, pair.end_row);
          last_reference = state.reference;
          has_value = true;
        }
      }
    } else {
#pragma unroll(kColumnsAtOnce<kRows>)
      for (int t = 0; t < kSteps; ++t) {
        state.template step<false>(pair, columns.now, 0, entry);
        columns.move();
      }
    }
    state.renew(pair);
    if (chunk <= pair.end_chunk) is_exact = state.is_exact;
    if (chunk % kSteepChunksBetweenLooks == kSteepChunksBetweenLooks - 1) {
      const bool is_lost = pair.any_of_pair(!is_exact);
      if (!__any_sync(kAllLanes, pair.fits && chunk < pair.end_chunk && !is_lost)) break;
    }
  }
  const double exponent = last_reference + last.m - log2(static_cast<double>(last.s));
  const bool accepted = pair.fits && has_value && last.m < kSteepMost && exponent < INFINITY &&
                        exponent >= kLeastOfAStep * (pair.extent.n + pair.extent.m);
  if (accepted) store_value(problem, pair.pair, last_reference, last.m, last.s, value);
  const bool is_lost = pair.any_of_pair(!is_exact), is_found = pair.any_of_pair(accepted);
  return is_found && !is_lost;
}

}  // namespace softdtw
