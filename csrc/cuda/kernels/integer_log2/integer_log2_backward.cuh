// One warp computes its pairs' gradients with integer log2 (integer_log2.cuh): chunk by chunk from the last one, the entries again
// from their snapshot, the shares that E flows back in into shared memory, then (3), (4) and (5) in one reversed sweep.
#pragma once

#include "cuda/gradients/strip_gradient.cuh"
#include "cuda/numbers/pair_status.cuh"
#include "integer_log2.cuh"

namespace softdtw {

// A chunk's shares but for those of its last column, a lane's own. Dynamic shared memory, with the windows behind it.
template <int kRows>
struct Log2Table {
  float4 shares[ShortPairLayout::kSteps - 1][kRows / 2][kWarp];  // of two rows: up, left

  __device__ __forceinline__ void store(int t, const Weights<float> (&weights)[kRows]) {
#pragma unroll
    for (int k = 0; k < kRows; k += 2)
      shares[t][k / 2][threadIdx.x] = make_float4(weights[k].up, weights[k].left, weights[k + 1].up, weights[k + 1].left);
  }
  __device__ __forceinline__ void load(int t, Weights<float> (&weights)[kRows]) const {
#pragma unroll
    for (int k = 0; k < kRows; k += 2) {
      const float4 two = shares[t][k / 2][threadIdx.x];
      weights[k] = {two.x, two.y};
      weights[k + 1] = {two.z, two.w};
    }
  }
};

// A lane between two columns of the reversed sweep: shares of E on their way.
template <int kRows>
struct Log2Flow {
  float left[kRows] = {};  // to the rows at the coming column
  float diag[kRows] = {};  // to the rows above them, there
  float handed = 0;        // from the lane's first row to the lane above, at the column it has just left
  float rows[kRows] = {};  // sums of E (x - y)
  float column = 0;        // of the column it has just left and all rows below

  // A column, with y there. `end_row`: where it is the pair's last column, the lane's row of its last cell, whose E is 1;
  // otherwise -1. kMayEnter: the lane may have left the table, and no cell may have an E.
  template <bool kMayEnter, class Pair>
  __device__ __forceinline__ void step(
      const Pair& pair, float y, const Weights<float> (&weights)[kRows], bool has_entered, int end_row) {
    float from_below = pair.from_below(handed), sum = pair.from_below(column);
#pragma unroll
    for (int k = kRows - 1; k >= 0; --k) {
      float e = left[k] + from_below;
      if (kMayEnter && k == end_row) e = 1;
      if (kMayEnter && !has_entered) e = 0;
      const Weights<float> share = weights[k];
      left[k] = share.left * e;
      from_below = DeviceMath<float>::fma(share.up, e, diag[k]);
      diag[k] = (1.0f - share.up - share.left) * e;
      const float difference = pair.x[k] - y;
      rows[k] = DeviceMath<float>::fma(e, difference, rows[k]);
      sum = DeviceMath<float>::fma(e, difference, sum);
    }
    handed = from_below;
    column = sum;
  }
};

// At the table's edges no share, however small, may go where there is no cell.
template <bool kMayEnter, int kRows, class Pair>
__device__ __forceinline__ void log2_edges_of_table(const Pair& pair, int column, Weights<float> (&weights)[kRows]) {
  if (kMayEnter && column == 0)
#pragma unroll
    for (int k = 0; k < kRows; ++k) weights[k] = {1, 0};
  if (pair.is_top_lane()) weights[0] = {0, 1};
}

template <int kRows>
__device__ __forceinline__ void log2_sweep_back(
    const ShortPair<float, kRows, false>& pair, Log2Table<kRows>& table, const int* kept, float scale, float* dx,
    float* dy) {
  using State = Log2State<kRows>;
  constexpr int kSteps = ShortPairLayout::kSteps;
  Log2Flow<kRows> flow;
  int words[State::kWords];
  const auto fetch = [&](int chunk) {
#pragma unroll
    for (int k = 0; k < State::kWords; ++k) words[k] = __ldcs(kept + (int64_t{chunk - 1} * State::kWords + k) * pair.lanes);
  };
  if (pair.chunks > 1) fetch(pair.chunks - 1);
  for (int chunk = pair.chunks - 1; chunk >= 0; --chunk) {
    State state;
    if (chunk > 0)
      state.take_words(words);
    else
      state.start(pair.is_first_lane());
    state.look_above(pair);
    if (chunk > 1) fetch(chunk - 1);
    Weights<float> weights[kRows];
    const auto rebuild = [&](int t, float y, auto is_careful) {
      const int column = chunk * kSteps + t - pair.lane;
      state.template step<is_careful()>(
          pair, y, column, [&](int k, const Log2Cell& cell, const auto& diag, const auto& up, const auto& left) {
            return cell.entry(diag, up, left, weights[k]);
          });
      log2_edges_of_table<is_careful()>(pair, column, weights);
      if (t < kSteps - 1) table.store(t, weights);
    };
    const auto step_back = [&](int t, float y, auto is_careful) {
      const int step = chunk * kSteps + t, column = step - pair.lane;
      flow.template step<is_careful()>(pair, y, weights, column >= 0, step == pair.end_step ? pair.end_row : -1);
      if (t > 0) table.load(t - 1, weights);
      if (pair.is_first_lane() && dy != nullptr && column >= 0 && column < pair.extent.m) dy[column] = flow.column * -scale;
    };
    ColumnsAhead<float, 1> columns(pair.window + chunk * kSteps);
    ColumnsAhead<float, -1> columns_back(pair.window + chunk * kSteps + kSteps - 1);
    if (may_enter(pair.lanes, chunk)) {
#pragma unroll 1
      for (int t = 0; t < kSteps; ++t, columns.move()) rebuild(t, columns.now, std::true_type());
    } else {
#pragma unroll(kColumnsAtOnce<kRows>)
      for (int t = 0; t < kSteps; ++t, columns.move()) rebuild(t, columns.now, std::false_type());
    }
    if (may_enter(pair.lanes, chunk) || __any_sync(kAllLanes, pair.end_row >= 0 && chunk == pair.end_chunk)) {
#pragma unroll 1
      for (int t = kSteps - 1; t >= 0; --t, columns_back.move()) step_back(t, columns_back.now, std::true_type());
    } else {
#pragma unroll(kColumnsAtOnce<kRows>)
      for (int t = kSteps - 1; t >= 0; --t, columns_back.move()) step_back(t, columns_back.now, std::false_type());
    }
  }
  if (dx == nullptr) return;
#pragma unroll
  for (int k = 0; k < kRows; ++k)
    if (pair.lane * kRows + k < pair.extent.n) dx[pair.lane * kRows + k] = flow.rows[k] * scale;
}

template <int kRows>
__device__ void log2_backward(
    const Problem<float>& problem, const Gradient<float>& gradient, const ShortPairLayout& layout, int64_t first_pair,
    char* memory, const char* saved, int64_t stride, const PairStatus* statuses) {
  using Pair = ShortPair<float, kRows, false>;
  using Table = Log2Table<kRows>;
  const bool exists = Pair::exists(problem, layout, first_pair);
  const bool accepted = exists && statuses[first_pair + threadIdx.x / layout.lanes] == PairStatus::kIntegerLog2;
  if (!__any_sync(kAllLanes, accepted)) return;
  Table& table = *reinterpret_cast<Table*>(memory);
  const Pair pair(problem, layout, first_pair, accepted, reinterpret_cast<float*>(memory + sizeof(Table)));
  float* const dx = gradient.x.data == nullptr || !accepted ? nullptr : gradient.x.pair(pair.pair).data;
  float* const dy = gradient.y.data == nullptr || !accepted ? nullptr : gradient.y.pair(pair.pair).data;
  const int* const kept = reinterpret_cast<const int*>(saved + pair.pair * stride) + pair.lane;
  log2_sweep_back(pair, table, kept, gradient_scale(problem, gradient, pair.pair), dx, dy);
}

}  // namespace softdtw
