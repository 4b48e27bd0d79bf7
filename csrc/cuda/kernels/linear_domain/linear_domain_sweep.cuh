// The linear domain's sweep of a column (linear_domain.cuh), forward.
#pragma once

#include "cuda/kernels/warp_pair/warp_pair.cuh"
#include "cuda/strips/columns_ahead.cuh"

namespace softdtw {

// The weights of the rows that come next, on their way: of as many as it takes to hide the exponential unit's latency.
template <class Weight, int kAhead_ = 4>
struct LinearWeights {
  static constexpr int kAhead = kAhead_;
  Weight coming[kAhead];

  // In the order of a sweep down the rows (kOrder = 1) or up.
  template <class Pair, typename T, int kOrder>
  __device__ __forceinline__ LinearWeights(const Pair& pair, const ColumnsAhead<T, kOrder>& columns) {
#pragma unroll
    for (int i = 0; i < kAhead; ++i) {
      const int k = kOrder > 0 ? i : Pair::kRows - 1 - i;
      coming[k % kAhead] = Weight::of(pair, pair.x[k] - columns.now);
    }
  }
  __device__ __forceinline__ const Weight& of_row(int k) const { return coming[k % kAhead]; }
  // Once row k's has been taken: the one that takes its place, which may be of the next column.
  template <class Pair, typename T, int kOrder>
  __device__ __forceinline__ void start(const Pair& pair, int k, const ColumnsAhead<T, kOrder>& columns) {
    constexpr int kRows = Pair::kRows;
    static_assert(kRows % kAhead == 0);
    const int next = k + kOrder * kAhead;
    const T y = next >= 0 && next < kRows ? columns.now : columns.next;
    coming[k % kAhead] = Weight::of(pair, pair.x[(next + kRows) % kRows] - y);
  }
};

// A lane between two columns.
template <typename T, int kRows>
struct LinearState {
  using Numbers = LinearNumbers<T>;
  using Word = typename Numbers::Word;
  double left[kRows];  // its rows at the column it has just left
  double diag;         // the row above them, one column before

  // `top`: the exponent of the table's first entry.
  __device__ __forceinline__ void start(bool is_first_lane, int top) {
#pragma unroll
    for (int k = 0; k < kRows; ++k) left[k] = 0;
    diag = is_first_lane ? power_of_two(top) : 0;
  }
  // No later entry exceeds the largest of these.
  __device__ __forceinline__ int highest_exponent() const {
    int highest = __double2hiint(diag);
#pragma unroll
    for (int k = 0; k < kRows; ++k) highest = max(highest, __double2hiint(left[k]));
    return (highest >> 20) - kBias;
  }
  // kSavesOperands: the chain that runs down the rows is two operations a row instead of one, and they read less. That pays where
  // there are many warps to hide their latency.
  // At `column`, as the pair's band counts it.
  template <bool kSavesOperands, class Weight, class Pair>
  __device__ __forceinline__ void step(
      const Pair& pair, int column, LinearWeights<Weight>& weights, const ColumnsAhead<T, 1>& columns) {
    const auto rows = pair.rows_at(column);
    double up = pair.from_above(left[kRows - 1]);
    double upper_left = diag;
    diag = up;
#pragma unroll
    for (int k = 0; k < kRows; ++k) {
      const double weight = weights.of_row(k).get(pair);
      weights.start(pair, k, columns);
      const double others = fma(upper_left, pair.penalty.diagonal(), left[k]);
      upper_left = left[k];
      left[k] = up = rows.entry(k, kSavesOperands ? weight * (others + up) : fma(weight, up, weight * others));
    }
  }
  // In the layout of ShortPairLayout::bytes_of_pair.
  __device__ __forceinline__ void keep(Word* words, int lanes) const {
#pragma unroll
    for (int k = 0; k < kRows; ++k) words[k * lanes] = Numbers::word(left[k]);
    words[kRows * lanes] = Numbers::word(diag);
  }
  __device__ __forceinline__ void take(const Word (&words)[kRows + 1]) {
#pragma unroll
    for (int k = 0; k < kRows; ++k) left[k] = Numbers::of_word(words[k]);
    diag = Numbers::of_word(words[kRows]);
  }
};

}  // namespace softdtw
