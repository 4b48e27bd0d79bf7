// One warp computes two pairs' gradients with the linear domain (linear_domain.cuh) in windows (window.cuh).
#pragma once

#include "linear_domain_backward.cuh"
#include "window.cuh"

namespace softdtw {

// Of the pairs whose end_chunk is not below 0. Returns whether the lane's has been done.
template <class Weight, int kRows>
__device__ __forceinline__ bool linear_window_back(
    PairWindow<kRows>& window, const ShortPairLayout& layout, LinearTable<float, kRows>& table, const int* kept,
    float scale, float* dx, float* dy) {
  using Window = PairWindow<kRows>;
  using Numbers = LinearNumbers<float>;
  constexpr int kSteps = ShortPairLayout::kSteps, kWords = kRows + 1;
  LinearFlow<float, kRows> flow;
  float lost = 0;
  int written = window.extent.m;  // columns of dy from which on they are
  int words[kWords], edge_word;
  // Of chunks that the pair does not have, entries of 0.
  const auto fetch = [&](int chunk) {
    const bool has_chunk = chunk <= window.end_chunk;
    const int* const from = kept + int64_t{chunk - 1} * kWords * kWarp + window.lane;
#pragma unroll
    for (int k = 0; k < kWords; ++k) words[k] = has_chunk && chunk > 0 ? __ldcs(from + k * kWarp) : 0;
    // The step of the chunk that is the lane's number in the window, of the row above the window.
    const int* const edge = kept + layout.edge<float>(window.first - 1, 1) + chunk * kSteps;
    edge_word = has_chunk && window.first > 0 ? __ldcs(edge + threadIdx.x % kSteps) : 0;
  };
  const auto leave_rows = [&] {
    if (dx == nullptr) return;
#pragma unroll
    for (int k = 0; k < kRows; ++k)
      if (window.lane * kRows + k < window.extent.n) dx[window.lane * kRows + k] = flow.rows[k] * scale;
  };
  fetch(window.chunks - 1);
  for (int chunk = window.chunks - 1; chunk >= 0; --chunk) {
    LinearState<float, kRows> state;
    state.take(words);
    if (chunk == 0) state.start(window.lane == 0);
    const int edges = edge_word;
    const auto edge_at = [&](int t) { return Numbers::of_word(__shfl_sync(kAllLanes, edges, window.of_window(t))); };
    if (chunk > 0) fetch(chunk - 1);
    {
      ColumnsAhead<float, 1> columns(window.window() + chunk * kSteps);
      LinearWeights<Weight> weights(window, columns);
#pragma unroll(kColumnsAtOnce<kRows>)
      for (int t = 0; t < kSteps; ++t) {
        window.edge = edge_at(t);
        state.template step<false>(window, weights, columns);
        columns.move();
        table.store(t, state.left);
      }
    }
    ColumnsAhead<float, -1> columns(window.window() + chunk * kSteps + kSteps - 1);
    LinearWeights<Weight> weights(window, columns);
    const bool ends_here = chunk == window.end_chunk && window.lane == window.end_lane;
    const int end = ends_here ? window.end_step - chunk * kSteps : -1, first_column = chunk * kSteps - window.lane;
    const int end_row = (window.extent.n - 1) % kRows;
    const auto step_back = [&](int t, auto may_end) {
      double entries[kRows];
      table.load(t, entries);
      const double before = flow.right[0];
      const float mass = flow.template step<may_end()>(window, weights, columns, entries, t == end ? end_row : -1);
      columns.move();
      // What flows up from the window, into the row above it: E of one step up, and of one to the upper left.
      const float out = Numbers::product(edge_at(t), fma(before, kDiagonal, flow.right[0]));
      const int column = first_column + t;
      if (window.is_first_lane()) {
        lost += window.first > 0 ? out : 0;
        if (dy != nullptr && column >= 0 && column < written) dy[column] = flow.column * -scale;
      }
      return mass;
    };
    float left_behind = 0;
    if (__any_sync(kAllLanes, ends_here)) {
#pragma unroll 1
      for (int t = kSteps - 1; t >= 0; --t) {
        const float mass = step_back(t, std::true_type());
        if (t < 2) left_behind += mass;
      }
    } else {
#pragma unroll(kColumnsAtOnce<kRows>)
      for (int t = kSteps - 1; t >= 2; --t) step_back(t, std::false_type());
      left_behind = step_back(1, std::false_type());
      left_behind += step_back(0, std::false_type());
    }
    // All E that is still to flow on passes the last column, or the one before it, of a lane.
    const int lanes = window.lanes_to_move(left_behind);
    if (lanes > 0 && chunk <= window.end_chunk) {
      written = min(written, chunk * kSteps - window.first);
      if (window.move(lanes)) {
        leave_rows();
        flow = LinearFlow<float, kRows>();
        window.be_next_lane();
      }
      if (chunk > 0) fetch(chunk - 1);
    }
    const bool has_failed = window.any_of_pair(!(lost <= kMostLost));
    if (__all_sync(kAllLanes, has_failed || window.end_chunk < 0)) break;
  }
  leave_rows();
  const bool failed = !(lost <= kMostLost) || window.first > 0;
  return !window.any_of_pair(failed);
}

// Returns the lanes of pairs that a window did not do.
template <int kRows>
__device__ unsigned linear_window_backward(
    const Problem<float>& problem, const Gradient<float>& gradient, const ShortPairLayout& layout, int64_t first_pair,
    char* memory, const char* saved, int64_t stride, const PairStatus* statuses) {
  using Window = PairWindow<kRows>;
  using Numbers = LinearNumbers<float>;
  using Table = LinearTable<float, kRows>;
  const int64_t own = first_pair + threadIdx.x / Window::kLanes, pair = min(own, problem.batch - 1);
  const bool accepted = own < problem.batch && statuses[pair] == PairStatus::kLinearDomain;
  if (!__any_sync(kAllLanes, accepted)) return 0;
  bool done;
  {
    Table& table = *reinterpret_cast<Table*>(memory);
    Window window(problem, layout, pair, accepted, reinterpret_cast<float*>(memory + sizeof(Table)));
    float* const dx = gradient.x.data == nullptr || !accepted ? nullptr : gradient.x.pair(pair).data;
    float* const dy = gradient.y.data == nullptr || !accepted ? nullptr : gradient.y.pair(pair).data;
    const int* const kept = reinterpret_cast<const int*>(saved + pair * stride);
    const float scale = gradient_scale(problem, gradient, pair) / window.factor;
    const bool is_shallow = __all_sync(kAllLanes, window.deepest <= Numbers::Shallow::kDeepest);
    done = is_shallow ? linear_window_back<typename Numbers::Shallow>(window, layout, table, kept, scale, dx, dy)
                      : linear_window_back<typename Numbers::Deep>(window, layout, table, kept, scale, dx, dy);
  }
  const unsigned failed = __ballot_sync(kAllLanes, accepted && !done);
  for (int i = 0; i < Window::kPairs; ++i) {
    if ((failed >> i * Window::kLanes & 1) == 0) continue;
    __syncwarp();
    linear_backward<float, kRows>(problem, gradient, layout, first_pair + i, memory, saved, stride, statuses);
  }
  return failed;
}

}  // namespace softdtw
