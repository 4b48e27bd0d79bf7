// One warp computes its pairs' gradients with the linear domain (linear_domain.cuh): chunk by chunk from the last one, the entries again
// from their snapshot into shared memory, then (3), (4) and (5) in one reversed sweep.
#pragma once

#include "cuda/gradients/strip_gradient.cuh"
#include "cuda/numbers/pair_status.cuh"
#include "linear_domain_sweep.cuh"

namespace softdtw {

// A chunk's entries, a lane's own. Dynamic shared memory, with the windows behind it.
template <typename T, int kRows>
struct LinearTable {
  using Numbers = LinearNumbers<T>;
  static constexpr int kPacked = Numbers::kPacked;
  typename Numbers::Packed words[ShortPairLayout::kSteps][kRows / kPacked][kWarp];

  __device__ __forceinline__ void store(int t, const double (&entries)[kRows]) {
#pragma unroll
    for (int k = 0; k < kRows; k += kPacked) words[t][k / kPacked][threadIdx.x] = Numbers::pack(entries + k);
  }
  __device__ __forceinline__ void load(int t, double (&entries)[kRows]) const {
#pragma unroll
    for (int k = 0; k < kRows; k += kPacked) Numbers::unpack(words[t][k / kPacked][threadIdx.x], entries + k);
  }
};

// A lane between two columns of the reversed sweep. A Pair (ShortPair or PairWindow) has its rows' numbers x, and what the lanes
// above and below have.
template <typename T, int kRows>
struct LinearFlow {
  double right[kRows] = {};  // V of its rows, divided by the last entry, at the column it has just left
  double diag = 0;           // that of the row below them, one column to the right
  T rows[kRows] = {};        // sums of E (x - y)
  T column = 0;              // of the column it has just left and all rows below

  // A column of `entries`. `end_row`: where it is the pair's last column, the lane's row of its last cell, whose B is 1.
  // Otherwise -1. Returns the sum of its E.
  template <bool kMayEnd, class Weight, class Pair>
  __device__ __forceinline__ T step(
      const Pair& pair, LinearWeights<Weight>& weights, const ColumnsAhead<T, -1>& columns, const double (&entries)[kRows],
      int end_row) {
    const double end = kMayEnd && end_row >= 0 ? 1 / pick(entries, end_row) : 0;
    double down = pair.from_below(right[0]);
    T sum = pair.from_below(column), mass = 0;
    double lower_right = diag;
    diag = down;
#pragma unroll
    for (int k = kRows - 1; k >= 0; --k) {
      const double weight = weights.of_row(k).get();
      const T difference = weights.of_row(k).difference;
      weights.start(pair, k, columns);
      double b = fma(lower_right, kDiagonal, right[k]) + down;
      if (kMayEnd && k == end_row) b = end;
      lower_right = right[k];
      right[k] = down = weight * b;
      const T alignment = LinearNumbers<T>::product(entries[k], b);
      mass += alignment;
      rows[k] = DeviceMath<T>::fma(alignment, difference, rows[k]);
      sum = DeviceMath<T>::fma(alignment, difference, sum);
    }
    column = sum;
    return mass;
  }
};

template <class Weight, typename T, int kRows>
__device__ __forceinline__ void linear_sweep_back(
    const ShortPair<T, kRows>& pair, LinearTable<T, kRows>& table, const typename LinearNumbers<T>::Word* kept,
    int words_a_chunk, T scale, T* dx, T* dy) {
  constexpr int kSteps = ShortPairLayout::kSteps;
  LinearFlow<T, kRows> flow;
  typename LinearNumbers<T>::Word words[kRows + 1];
  const auto fetch = [&](int chunk) {
#pragma unroll
    for (int k = 0; k <= kRows; ++k) words[k] = __ldcs(kept + int64_t{chunk - 1} * words_a_chunk + k * pair.lanes);
  };
  if (pair.chunks > 1) fetch(pair.chunks - 1);
  for (int chunk = pair.chunks - 1; chunk >= 0; --chunk) {
    LinearState<T, kRows> state;
    if (chunk > 0)
      state.take(words);
    else
      state.start(pair.is_first_lane());
    if (chunk > 1) fetch(chunk - 1);
    {
      ColumnsAhead<T, 1> columns(pair.window + chunk * kSteps);
      LinearWeights<Weight> weights(pair, columns);
#pragma unroll(kColumnsAtOnce<kRows>)
      for (int t = 0; t < kSteps; ++t) {
        state.template step<false>(pair, weights, columns);
        columns.move();
        table.store(t, state.left);
      }
    }
    ColumnsAhead<T, -1> columns(pair.window + chunk * kSteps + kSteps - 1);
    LinearWeights<Weight> weights(pair, columns);
    const int end = pair.end_row >= 0 ? pair.end_step - chunk * kSteps : -1, first_column = chunk * kSteps - pair.lane;
    const auto step_back = [&](int t, auto may_end) {
      double entries[kRows];
      table.load(t, entries);
      flow.template step<may_end()>(pair, weights, columns, entries, t == end ? pair.end_row : -1);
      columns.move();
      const int column = first_column + t;
      if (pair.is_first_lane() && dy != nullptr && column >= 0 && column < pair.extent.m) dy[column] = flow.column * -scale;
    };
    if (__any_sync(kAllLanes, pair.end_row >= 0 && chunk == pair.end_chunk)) {
#pragma unroll 1
      for (int t = kSteps - 1; t >= 0; --t) step_back(t, std::true_type());
    } else {
#pragma unroll(kColumnsAtOnce<kRows>)
      for (int t = kSteps - 1; t >= 0; --t) step_back(t, std::false_type());
    }
  }
  if (dx == nullptr) return;
#pragma unroll
  for (int k = 0; k < kRows; ++k)
    if (pair.lane * kRows + k < pair.extent.n) dx[pair.lane * kRows + k] = flow.rows[k] * scale;
}

template <typename T, int kRows>
__device__ void linear_backward(
    const Problem<T>& problem, const Gradient<T>& gradient, const ShortPairLayout& layout, int64_t first_pair, char* memory,
    const char* saved, int64_t stride, const PairStatus* statuses) {
  using Numbers = LinearNumbers<T>;
  using Table = LinearTable<T, kRows>;
  const bool exists = ShortPair<T, kRows>::exists(problem, layout, first_pair);
  const bool accepted = exists && statuses[first_pair + threadIdx.x / layout.lanes] == PairStatus::kLinearDomain;
  if (!__any_sync(kAllLanes, accepted)) return;
  Table& table = *reinterpret_cast<Table*>(memory);
  const ShortPair<T, kRows> pair(problem, layout, first_pair, accepted, reinterpret_cast<T*>(memory + sizeof(Table)));
  T* const dx = gradient.x.data == nullptr || !accepted ? nullptr : gradient.x.pair(pair.pair).data;
  T* const dy = gradient.y.data == nullptr || !accepted ? nullptr : gradient.y.pair(pair.pair).data;
  const T scale = gradient_scale(problem, gradient, pair.pair) / pair.factor;
  const auto* const kept = reinterpret_cast<const typename Numbers::Word*>(saved + pair.pair * stride) + pair.lane;
  const int words = (kRows + 1) * pair.lanes;
  if (pair.all_shallow())
    linear_sweep_back<typename Numbers::Shallow>(pair, table, kept, words, scale, dx, dy);
  else
    linear_sweep_back<typename Numbers::Deep>(pair, table, kept, words, scale, dx, dy);
}

}  // namespace softdtw
