// One warp computes two pairs' gradients with integer log2 (integer_log2.cuh) in windows (window.cuh).
#pragma once

#include "cuda/kernels/linear_domain/window.cuh"
#include "integer_log2_backward.cuh"

namespace softdtw {

// Of the pairs whose end_chunk is not below 0. Returns whether the lane's has been done. Not where a window stands below the table's
// first row still when lanes enter the table: then references change between chunks.
template <int kRows>
__device__ __forceinline__ bool log2_window_back(
    PairWindow<kRows, false>& window, const ShortPairLayout& layout, Log2Table<kRows>& table, const int* kept, float scale,
    float* dx, float* dy) {
  using Window = PairWindow<kRows, false>;
  using State = Log2State<kRows>;
  constexpr int kSteps = ShortPairLayout::kSteps, kWords = State::kWords;
  Log2Flow<kRows> flow;
  float lost = 0;
  int written = window.extent.m;  // columns of dy from which on they are
  int words[kWords], reference_word = 0;
  float2 edge_entry = {0, 1};
  const auto has_chunk = [&](int chunk) { return chunk > 0 && chunk <= window.end_chunk; };
  const auto fetch = [&](int chunk) {
    if (!has_chunk(chunk)) return;
    const int* const from = kept + int64_t{chunk - 1} * kWords * kWarp;
#pragma unroll
    for (int k = 0; k < kWords; ++k) words[k] = __ldcs(from + k * kWarp + window.lane);
    if (window.first == 0) return;
    reference_word = __ldcs(from + (kWords - 1) * kWarp + window.first - 1);
    // The step of the chunk that is the lane's number in the window, of the row above the window.
    const int* const edge = kept + layout.edge<float>(window.first - 1, ShortPairLayout::kEdgeWords);
    edge_entry = __ldcs(reinterpret_cast<const float2*>(edge) + chunk * kSteps + threadIdx.x % kSteps);
  };
  const auto leave_rows = [&] {
    if (dx == nullptr) return;
#pragma unroll
    for (int k = 0; k < kRows; ++k)
      if (window.lane * kRows + k < window.extent.n) dx[window.lane * kRows + k] = flow.rows[k] * scale;
  };
  fetch(window.chunks - 1);
  for (int chunk = window.chunks - 1; chunk >= 0; --chunk) {
    // Before its last chunk a shorter pair has had no numbers.
    if (chunk == window.end_chunk) {
      flow = Log2Flow<kRows>();
      lost = 0;
    }
    const bool enters = may_enter(kWarp, chunk);
    if (enters && window.first > 0) lost = INFINITY;
    State state;
    window.edge_reference = Log2Words::of_word(reference_word).reference_of(reference_word);
    state.start(window.is_top_lane() && chunk == 0);
    if (has_chunk(chunk)) state.take_words(words);
    state.look_above(window);
    const float2 edges = edge_entry;
    if (chunk > 0) fetch(chunk - 1);
    Weights<float> weights[kRows];
    const auto rebuild = [&](int t, float y, auto is_careful) {
      const int column = chunk * kSteps + t - window.lane, from = window.of_window(t);
      window.edge_entry = {__shfl_sync(kAllLanes, edges.x, from), __shfl_sync(kAllLanes, edges.y, from)};
      state.template step<is_careful()>(
          window, y, column, [&](int k, const Log2Cell& cell, const auto& diag, const auto& up, const auto& left) {
            return cell.entry(diag, up, left, weights[k]);
          });
      log2_edges_of_table<is_careful()>(window, column, weights);
      if (t < kSteps - 1) table.store(t, weights);
    };
    const bool ends_here = chunk == window.end_chunk && window.lane == window.end_lane;
    const int end_row = (window.extent.n - 1) % kRows;
    const auto step_back = [&](int t, float y, auto is_careful) {
      const int step = chunk * kSteps + t, column = step - window.lane;
      flow.template step<is_careful()>(
          window, y, weights, column >= 0, ends_here && step == window.end_step ? end_row : -1);
      if (t > 0) table.load(t - 1, weights);
      if (!window.is_first_lane()) return;
      lost += window.first > 0 ? flow.handed : 0;
      if (dy != nullptr && column >= 0 && column < written) dy[column] = flow.column * -scale;
    };
    ColumnsAhead<float, 1> columns(window.window() + chunk * kSteps);
    ColumnsAhead<float, -1> columns_back(window.window() + chunk * kSteps + kSteps - 1);
    if (enters) {
#pragma unroll 1
      for (int t = 0; t < kSteps; ++t, columns.move()) rebuild(t, columns.now, std::true_type());
    } else {
#pragma unroll(kColumnsAtOnce<kRows>)
      for (int t = 0; t < kSteps; ++t, columns.move()) rebuild(t, columns.now, std::false_type());
    }
    if (enters || __any_sync(kAllLanes, ends_here)) {
#pragma unroll 1
      for (int t = kSteps - 1; t >= 0; --t, columns_back.move()) step_back(t, columns_back.now, std::true_type());
    } else {
#pragma unroll(kColumnsAtOnce<kRows>)
      for (int t = kSteps - 1; t >= 0; --t, columns_back.move()) step_back(t, columns_back.now, std::false_type());
    }
    // All that is still to flow on from the lane.
    float left_behind = flow.handed;
#pragma unroll
    for (int k = 0; k < kRows; ++k) left_behind += flow.left[k] + flow.diag[k];
    const int lanes = window.lanes_to_move(left_behind);
    if (lanes > 0 && chunk <= window.end_chunk) {
      written = min(written, chunk * kSteps - window.first);
      if (window.move(lanes)) {
        leave_rows();
        flow = Log2Flow<kRows>();
        window.be_next_lane();
      }
      if (chunk > 0) fetch(chunk - 1);
    }
    const bool has_failed = window.any_of_pair(!(lost <= kMostLost)) && chunk <= window.end_chunk;
    if (__all_sync(kAllLanes, has_failed || window.end_chunk < 0)) break;
  }
  leave_rows();
  const bool failed = !(lost <= kMostLost) || window.first > 0;
  return !window.any_of_pair(failed);
}

// Returns the lanes of pairs that a window did not do.
template <int kRows>
__device__ unsigned log2_window_backward(
    const Problem<float>& problem, const Gradient<float>& gradient, const ShortPairLayout& layout, int64_t first_pair,
    char* memory, const char* saved, int64_t stride, const PairStatus* statuses) {
  using Window = PairWindow<kRows, false>;
  using Table = Log2Table<kRows>;
  const int64_t own = first_pair + threadIdx.x / Window::kLanes, pair = min(own, problem.batch - 1);
  const bool accepted = own < problem.batch && statuses[pair] == PairStatus::kIntegerLog2;
  if (!__any_sync(kAllLanes, accepted)) return 0;
  bool done;
  {
    Table& table = *reinterpret_cast<Table*>(memory);
    Window window(problem, layout, pair, accepted, reinterpret_cast<float*>(memory + sizeof(Table)));
    float* const dx = gradient.x.data == nullptr || !accepted ? nullptr : gradient.x.pair(pair).data;
    float* const dy = gradient.y.data == nullptr || !accepted ? nullptr : gradient.y.pair(pair).data;
    const int* const kept = reinterpret_cast<const int*>(saved + pair * stride);
    done = log2_window_back(window, layout, table, kept, gradient_scale(problem, gradient, pair), dx, dy);
  }
  const unsigned failed = __ballot_sync(kAllLanes, accepted && !done);
  for (int i = 0; i < Window::kPairs; ++i) {
    if ((failed >> i * Window::kLanes & 1) == 0) continue;
    __syncwarp();
    log2_backward<kRows>(problem, gradient, layout, first_pair + i, memory, saved, stride, statuses);
  }
  return failed;
}

}  // namespace softdtw
