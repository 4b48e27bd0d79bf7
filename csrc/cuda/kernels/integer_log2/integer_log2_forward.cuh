// One warp computes its pairs' values with integer log2 (integer_log2.cuh).
#pragma once

#include "cuda/kernels/extended_range/extended_range_strip.cuh"
#include "cuda/numbers/pair_status.cuh"
#include "cuda/strips/columns_ahead.cuh"
#include "integer_log2.cuh"

namespace softdtw {

constexpr int kLog2ChunksBetweenLooks = 8;

// Returns what has become of the lane's pair.
template <int kRows, class Options = PlainOptions>
__device__ PairStatus log2_forward(
    const Problem<float>& problem, const ShortPairLayout& layout, int64_t own, float* memory, float* value, char* saved,
    int64_t stride) {
  using State = Log2State<kRows>;
  constexpr int kSteps = ShortPairLayout::kSteps;
  const ShortPair<float, kRows, false, Options> pair(problem, layout, own, own >= 0, memory);
  if (!__any_sync(kAllLanes, pair.fits)) return PairStatus::kGivenUp;
  const bool in_window = layout.has_windows && pair.is_noise;
  int* const kept =
      saved == nullptr || !pair.fits ? nullptr : reinterpret_cast<int*>(saved + pair.pair * stride) + pair.lane;
  // The lane's last row, step by step, where a window (window.cuh) may stand below it.
  float2* edge = nullptr;
  if constexpr (kRows == ShortPairLayout::kMostRows)
    if (kept != nullptr && in_window && layout.keeps_edge(pair.lane))
      edge = reinterpret_cast<float2*>(kept - pair.lane + layout.edge<float>(pair.lane, ShortPairLayout::kEdgeWords));
  State state;
  state.start(pair.is_first_lane());
  bool is_exact = true, has_value = false;
  Entry<float> last = {NAN, NAN};
  int last_reference = 0;
  ColumnsAhead<float, 1> columns(pair.columns());
  const auto entry = [](int, const Log2Cell& cell, const auto& diag, const auto& up, const auto& left) {
    return cell.entry(diag, up, left);
  };
  for (int chunk = 0; chunk < pair.chunks; ++chunk) {
    if (kept != nullptr && chunk > 0) state.keep(kept + int64_t{chunk - 1} * State::kWords * pair.lanes, pair.lanes);
    const auto step = [&](int t, auto may_enter) {
      if (kRows == ShortPairLayout::kMostRows && edge != nullptr)
        *edge++ = make_float2(state.left[kRows - 1].m, state.left[kRows - 1].s);
      state.template step<may_enter()>(pair, columns.now, chunk * kSteps + t - pair.lane, entry);
      columns.move();
    };
    const bool ends_here = __any_sync(kAllLanes, pair.end_row >= 0 && chunk == pair.end_chunk);
    const auto look_for_end = [&](int t) {
      if (pair.end_row < 0 || chunk * kSteps + t != pair.end_step) return;
      last = pick(state.left, pair.end_row);
      last_reference = state.reference;
      has_value = true;
    };
    const auto look_at_each = [&](auto may_enter) {
#pragma unroll 1
      for (int t = 0; t < kSteps; ++t) {
        step(t, may_enter);
        look_for_end(t);
      }
    };
    if (may_enter(pair.lanes, chunk)) {
      look_at_each(std::true_type());
    } else if (ends_here) {
      look_at_each(std::false_type());
    } else {
#pragma unroll(kColumnsAtOnce<kRows>)
      for (int t = 0; t < kSteps; ++t) step(t, std::false_type());
    }
    state.renew(pair);
    if (chunk <= pair.end_chunk) is_exact = state.is_exact;
    if (chunk % kLog2ChunksBetweenLooks == kLog2ChunksBetweenLooks - 1) {
      const bool is_lost = pair.any_of_pair(!is_exact);
      if (!__any_sync(kAllLanes, pair.fits && chunk < pair.end_chunk && !is_lost)) break;
    }
  }
  const auto reference = pair.penalty.without_tilt(last_reference, pair.extent.n + pair.extent.m);
  const double exponent = reference + last.m - log2(static_cast<double>(last.s));
  const bool accepted = pair.fits && has_value && last.m < kLog2Most && exponent < INFINITY &&
                        fabs(exponent) >= kLeastOfAStep * (pair.extent.n + pair.extent.m);
  if (accepted) store_value(problem, pair.pair, reference, last.m, last.s, value);
  const bool is_lost = pair.any_of_pair(!is_exact), is_found = pair.any_of_pair(accepted);
  if (!is_found || is_lost) return PairStatus::kGivenUp;
  return in_window ? PairStatus::kIntegerLog2InWindow : PairStatus::kIntegerLog2;
}

}  // namespace softdtw
