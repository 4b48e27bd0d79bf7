// One warp computes its pairs' gradients with the linear domain (linear_domain.cuh): chunk by chunk from the last one, the entries again
// from their snapshot into shared memory, then (3), (4) and (5) in one reversed sweep.
#pragma once

#include "cuda/kernels/warp_pair/short_pair_backward.cuh"
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
  T rows[kRows] = {};        // sums of E times the slope of the cost: (x - y), if it is its square
  T column = 0;              // of the column it has just left and all rows below

  // A column of `entries`. `end_row`: where it is the pair's last column, the lane's row of its last cell, whose B is 1.
  // Otherwise -1. Returns the sum of its E.
  template <bool kMayEnd, class Weight, class Pair>
  __device__ __forceinline__ T step(
      const Pair& pair, int column_number, LinearWeights<Weight>& weights, const ColumnsAhead<T, -1>& columns,
      const double (&entries)[kRows], int end_row) {
    const auto rows_here = pair.rows_at(column_number);
    const double end = kMayEnd && end_row >= 0 ? 1 / pick(entries, end_row) : 0;
    double down = pair.from_below(right[0]);
    T sum = pair.from_below(column), mass = 0;
    double lower_right = diag;
    diag = down;
#pragma unroll
    for (int k = kRows - 1; k >= 0; --k) {
      const double weight = weights.of_row(k).get(pair);
      const T slope = pair.cost.slope(weights.of_row(k).difference);
      weights.start(pair, k, columns);
      double b = fma(lower_right, pair.penalty.diagonal(), right[k]) + down;
      if (kMayEnd && k == end_row) b = end;
      lower_right = right[k];
      right[k] = down = rows_here.entry(k, weight * b);
      const T alignment = LinearNumbers<T>::product(entries[k], b);
      mass += alignment;
      rows[k] = DeviceMath<T>::fma(alignment, slope, rows[k]);
      sum = DeviceMath<T>::fma(alignment, slope, sum);
    }
    column = sum;
    return mass;
  }
};

// Of a window, whose end_chunk is below 0 where there is no pair, returns whether the lane's pair has been done.
template <class Weight, class Pair, typename T, int kRows = Pair::kRows>
__device__ __forceinline__ bool linear_sweep_back(
    Pair& pair, const ShortPairLayout& layout, LinearTable<T, kRows>& table, const typename LinearNumbers<T>::Word* kept,
    const ShortGradient<T>& gradient) {
  using Numbers = LinearNumbers<T>;
  using Word = typename Numbers::Word;
  constexpr int kSteps = ShortPairLayout::kSteps, kWords = kRows + 1;
  LinearFlow<T, kRows> flow;
  Word words[kWords], edge_word = 0;
  const auto fetch = [&](int chunk) {
    const Word* const from = kept + int64_t{chunk - 1} * (kWords * pair.lanes) + pair.lane;
    if constexpr (!Pair::kIsWindow) {
      if (chunk == 0) return;
#pragma unroll
      for (int k = 0; k < kWords; ++k) words[k] = __ldcs(from + k * pair.lanes);
    } else {
      // Of chunks that the pair does not have, entries of 0.
#pragma unroll
      for (int k = 0; k < kWords; ++k) words[k] = pair.has_chunk(chunk) ? __ldcs(from + k * pair.lanes) : 0;
      // The step of the chunk that is the lane's number in the window, of the row above the window.
      const Word* const edge = kept + layout.edge<T>(pair.first - 1, 1) + chunk * kSteps;
      edge_word = chunk <= pair.end_chunk && pair.first > 0 ? __ldcs(edge + threadIdx.x % kSteps) : 0;
    }
  };
  fetch(pair.chunks - 1);
  for (int chunk = pair.chunks - 1; chunk >= 0; --chunk) {
    LinearState<T, kRows> state;
    if (chunk > 0)
      state.take(words);
    else
      state.start(pair.is_top_lane(), pair.penalty.top());
    const Word edges = edge_word;
    if (chunk > 0) fetch(chunk - 1);
    {
      ColumnsAhead<T, 1> columns(pair.columns() + chunk * kSteps);
      LinearWeights<Weight> weights(pair, columns);
#pragma unroll(kColumnsAtOnce<kRows>)
      for (int t = 0; t < kSteps; ++t) {
        if constexpr (Pair::kIsWindow) pair.edge = Numbers::of_word(__shfl_sync(kAllLanes, edges, pair.of_window(t)));
        state.template step<false>(pair, chunk * kSteps + t - pair.lane, weights, columns);
        columns.move();
        table.store(t, state.left);
      }
    }
    ColumnsAhead<T, -1> columns(pair.columns() + chunk * kSteps + kSteps - 1);
    LinearWeights<Weight> weights(pair, columns);
    const int end = pair.last_row() >= 0 ? pair.end_step - chunk * kSteps : -1, first_column = chunk * kSteps - pair.lane;
    const auto step_back = [&](int t, auto may_end) {
      double entries[kRows];
      table.load(t, entries);
      [[maybe_unused]] const double before = flow.right[0];
      const T mass =
          flow.template step<may_end()>(pair, first_column + t, weights, columns, entries, t == end ? pair.last_row() : -1);
      columns.move();
      if constexpr (Pair::kIsWindow) {
        // What flows up from the window, into the row above it: E of one step up, and of one to the upper left.
        const double above = Numbers::of_word(__shfl_sync(kAllLanes, edges, pair.of_window(t)));
        const T out = Numbers::product(above, fma(before, pair.penalty.diagonal(), flow.right[0]));
        if (!pair.is_first_lane()) return mass;
        pair.lose(out);
      }
      gradient.leave_column(pair, first_column + t, flow.column);
      return mass;
    };
    T left_behind = 0;  // all E that is still to flow on passes the last column, or the one before it, of a lane
    if (__any_sync(kAllLanes, pair.last_row() >= 0 && chunk == pair.end_chunk)) {
#pragma unroll 1
      for (int t = kSteps - 1; t >= 0; --t) {
        const T mass = step_back(t, std::true_type());
        if (t < 2) left_behind += mass;
      }
    } else {
#pragma unroll(kColumnsAtOnce<kRows>)
      for (int t = kSteps - 1; t >= (Pair::kIsWindow ? 2 : 0); --t) step_back(t, std::false_type());
      if constexpr (Pair::kIsWindow) {
        left_behind = step_back(1, std::false_type());
        left_behind += step_back(0, std::false_type());
      }
    }
    if constexpr (Pair::kIsWindow)
      if (!pair.follow(chunk, left_behind, flow, gradient, fetch)) break;
  }
  gradient.leave_rows(pair, flow.rows);
  if constexpr (Pair::kIsWindow) return pair.is_done();
  return true;
}

// As short_pair_backward.cuh asks for it.
template <typename T, int kRows, class Options = PlainOptions>
struct LinearBackward {
  static constexpr int kMostWarps = 1, kBlocks = 8;
  static constexpr PairStatus kStatus = PairStatus::kLinearDomain, kInWindow = PairStatus::kLinearDomainInWindow;
  using Numbers = LinearNumbers<T>;
  using Table = LinearTable<T, kRows>;
  using Pair = ShortPair<T, kRows, true, Options>;
  using Window = PairWindow<kRows, true, Options>;

  template <class Either>
  __device__ __forceinline__ static bool sweep_back(
      Either& pair, const ShortPairLayout& layout, Table& table, const char* saved, const ShortGradient<T>& gradient) {
    const auto* const kept = reinterpret_cast<const typename Numbers::Word*>(saved);
    return pair.all_shallow() ? linear_sweep_back<typename Numbers::Shallow>(pair, layout, table, kept, gradient)
                              : linear_sweep_back<typename Numbers::Deep>(pair, layout, table, kept, gradient);
  }
};

}  // namespace softdtw
