// One warp computes its pairs' gradients with integer log2 (integer_log2.cuh): chunk by chunk from the last one, the entries again
// from their snapshot, the shares that E flows back in into shared memory, then (3), (4) and (5) in one reversed sweep.
#pragma once

#include "cuda/kernels/warp_pair/short_pair_backward.cuh"
#include "cuda/strips/columns_ahead.cuh"
#include "integer_log2_flow.cuh"

namespace softdtw {

// Of a window, whose end_chunk is below 0 where there is no pair, returns whether the lane's pair has been done: not where a window
// stands below the table's first row still when lanes enter the table, since references change between chunks then.
template <class Pair, int kRows = Pair::kRows>
__device__ __forceinline__ bool log2_sweep_back(
    Pair& pair, const ShortPairLayout& layout, Log2Table<kRows>& table, const int* kept,
    const ShortGradient<float>& gradient) {
  using State = Log2State<kRows>;
  constexpr int kSteps = ShortPairLayout::kSteps, kWords = State::kWords;
  Log2Flow<kRows> flow;
  int words[kWords], reference_word = 0;
  float2 edge_entry = {0, 1};
  const auto fetch = [&](int chunk) {
    if (!pair.has_chunk(chunk)) return;
    const int* const from = kept + int64_t{chunk - 1} * kWords * pair.lanes;
#pragma unroll
    for (int k = 0; k < kWords; ++k) words[k] = __ldcs(from + k * pair.lanes + pair.lane);
    if constexpr (Pair::kIsWindow) {
      if (pair.first == 0) return;
      reference_word = __ldcs(from + (kWords - 1) * kWarp + pair.first - 1);
      // The step of the chunk that is the lane's number in the window, of the row above the window.
      const int* const edge = kept + layout.edge<float>(pair.first - 1, ShortPairLayout::kEdgeWords);
      edge_entry = __ldcs(reinterpret_cast<const float2*>(edge) + chunk * kSteps + threadIdx.x % kSteps);
    }
  };
  fetch(pair.chunks - 1);
  for (int chunk = pair.chunks - 1; chunk >= 0; --chunk) {
    State state;
    if constexpr (Pair::kIsWindow) {
      // Before its last chunk a shorter pair has had no numbers.
      if (chunk == pair.end_chunk) {
        flow = Log2Flow<kRows>();
        pair.lost = 0;
      }
      if (may_enter(pair.lanes, chunk) && pair.first > 0) pair.lost = INFINITY;
      pair.edge_reference = Log2Words::of_word(reference_word).reference_of(reference_word);
    }
    if (pair.has_chunk(chunk))
      state.take_words(words);
    else
      state.start(pair.is_top_lane() && chunk == 0);
    state.look_above(pair);
    const float2 edges = edge_entry;
    if (chunk > 0) fetch(chunk - 1);
    Weights<float> weights[kRows];
    const auto rebuild = [&](int t, float y, auto is_careful) {
      const int column = chunk * kSteps + t - pair.lane;
      if constexpr (Pair::kIsWindow) {
        const int from = pair.of_window(t);
        pair.edge_entry = {__shfl_sync(kAllLanes, edges.x, from), __shfl_sync(kAllLanes, edges.y, from)};
      }
      state.template step<is_careful()>(
          pair, y, column, [&](int k, const Log2Cell& cell, const auto& diag, const auto& up, const auto& left) {
            return cell.entry(diag, up, left, weights[k]);
          });
      log2_edges_of_table<is_careful()>(pair, column, weights);
      if (t < kSteps - 1) table.store(t, weights);
    };
    const auto step_back = [&](int t, float y, auto is_careful) {
      const int step = chunk * kSteps + t, column = step - pair.lane;
      flow.template step<is_careful()>(pair, y, weights, column >= 0, step == pair.end_step ? pair.last_row() : -1);
      if (t > 0) table.load(t - 1, weights);
      if constexpr (Pair::kIsWindow)
        if (pair.is_first_lane()) pair.lose(flow.handed);
      gradient.leave_column(pair, column, flow.column);
    };
    ColumnsAhead<float, 1> columns(pair.columns() + chunk * kSteps);
    ColumnsAhead<float, -1> columns_back(pair.columns() + chunk * kSteps + kSteps - 1);
    if (may_enter(pair.lanes, chunk)) {
#pragma unroll 1
      for (int t = 0; t < kSteps; ++t, columns.move()) rebuild(t, columns.now, std::true_type());
    } else {
#pragma unroll(kColumnsAtOnce<kRows>)
      for (int t = 0; t < kSteps; ++t, columns.move()) rebuild(t, columns.now, std::false_type());
    }
    if (may_enter(pair.lanes, chunk) || __any_sync(kAllLanes, pair.last_row() >= 0 && chunk == pair.end_chunk)) {
#pragma unroll 1
      for (int t = kSteps - 1; t >= 0; --t, columns_back.move()) step_back(t, columns_back.now, std::true_type());
    } else {
#pragma unroll(kColumnsAtOnce<kRows>)
      for (int t = kSteps - 1; t >= 0; --t, columns_back.move()) step_back(t, columns_back.now, std::false_type());
    }
    if constexpr (Pair::kIsWindow) {
      if (!pair.follow(chunk, flow.left_behind(), flow, gradient, fetch)) break;
    }
  }
  gradient.leave_rows(pair, flow.rows);
  if constexpr (Pair::kIsWindow) return pair.is_done();
  return true;
}

// As short_pair_backward.cuh asks for it.
template <int kRows, class Options = PlainOptions>
struct Log2Backward {
  static constexpr int kMostWarps = 7, kBlocks = 1;  // what shared memory holds
  static constexpr PairStatus kStatus = PairStatus::kIntegerLog2, kInWindow = PairStatus::kIntegerLog2InWindow;
  using Table = Log2Table<kRows>;
  using Pair = ShortPair<float, kRows, false, Options>;
  using Window = PairWindow<kRows, false, Options>;

  template <class Either>
  __device__ __forceinline__ static bool sweep_back(
      Either& pair, const ShortPairLayout& layout, Table& table, const char* saved, const ShortGradient<float>& gradient) {
    return log2_sweep_back(pair, layout, table, reinterpret_cast<const int*>(saved), gradient);
  }
};

}  // namespace softdtw
