// One warp computes its pairs' gradients in the linear domain (ring_backward.cuh).
#pragma once

#include "ring.cuh"
#include "ring_backward.cuh"

namespace softdtw {

// A chunk's entries, a lane's own. Dynamic shared memory, with the series behind it.
template <int kRows>
struct RingTable {
  using Words = RingWords<kRows>;
  static constexpr int kSteps = RingLayout::groups_of_chunk(kRows) * (kRows + 1);
  typename Words::Type words[kSteps][kRows / Words::kCount][kWarp];

  __device__ __forceinline__ void store(int t, const double (&entries)[kRows]) {
#pragma unroll
    for (int k = 0; k < kRows; k += Words::kCount) words[t][k / Words::kCount][threadIdx.x] = Words::pack(entries + k);
  }
  __device__ __forceinline__ void load(int t, double (&entries)[kRows]) const {
#pragma unroll
    for (int k = 0; k < kRows; k += Words::kCount) Words::unpack(words[t][k / Words::kCount][threadIdx.x], entries + k);
  }
};

// A lane between two columns of the reversed sweep. V is 0 outside the band.
template <int kRows>
struct RingFlow {
  double right[kRows] = {};  // V of its rows, divided by the last entry, at the column it has just left
  double diag = 0;           // that of the row below them, one column to the right
  float rows[kRows] = {};    // sums of E (x - y)
  float column = 0;          // of the column it has just left and all rows below

  // A column of `entries`. `from`: the lane of the block below; `mask`: of RingPair, shifted, `mask_before`: for the column before.
  // `end_row`: of the pair's last cell, whose B is 1, if it is there; else -1.
  template <bool kMayEnd, class Weight, class Pair>
  __device__ __forceinline__ void step(
      const Pair& pair, int from, unsigned mask, unsigned mask_before, RingWeights<Weight, kRows>& weights,
      const ColumnsAhead<float, -1>& columns, const double (&entries)[kRows], int end_row) {
    const double end = kMayEnd && end_row >= 0 ? 1 / pick(entries, end_row) : 0;
    double down = __shfl_sync(kAllLanes, right[0], from);
    // Of a column that the first row has in the band, and else of one that the lane above has nothing of.
    float sum = __shfl_sync(kAllLanes, Pair::is_inside(mask_before, 0) ? column : 0.0f, from);
    double lower_right = diag;
    diag = down;
#pragma unroll
    for (int k = kRows - 1; k >= 0; --k) {
      const double weight = Pair::weight_of_band(mask, k, weights.of_row(k).get(pair));
      const float slope = pair.cost.slope(weights.of_row(k).difference);
      weights.start(pair, k, columns);
      double b = fma(lower_right, pair.penalty.diagonal(), right[k]) + down;
      if (kMayEnd && k == end_row) b = end;
      lower_right = right[k];
      right[k] = down = Pair::entry_of_band(mask, k, weight * b);
      const float alignment = LinearNumbers<float>::product(entries[k], b);
      rows[k] = DeviceMath<float>::fma(alignment, slope, rows[k]);
      sum = DeviceMath<float>::fma(alignment, slope, sum);
    }
    column = sum;
  }
};

// The linear domain as ring_backward() asks for it: a lane's cells, what is kept of them, and how E flows back.
template <class Weight, int kRows_>
struct LinearRing {
  static constexpr int kRows = kRows_;
  static constexpr bool kHasReference = false, kStartsWithCare = false;  // V is 0 left of the table
  using Numbers = LinearNumbers<float>;
  using Words = RingWords<kRows>;
  using Pair = RingPair<kRows>;
  using Cells = RingCells<Weight, kRows>;
  using Table = RingTable<kRows>;
  using Flow = RingFlow<kRows>;

  // A lane's state as it has been kept.
  struct Kept {
    typename Words::Type several[kRows / Words::kCount];
    int word = 0;

    __device__ __forceinline__ void fetch(const int* from, bool is_there, const Pair& pair) {
      using Several = typename Words::Type;
#pragma unroll
      for (int k = 0; k < kRows / Words::kCount; ++k)
        several[k] = is_there ? __ldcs(reinterpret_cast<const Several*>(from) + k * pair.lanes + pair.lane) : Several();
      word = is_there ? __ldcs(from + kRows * pair.lanes + pair.lane) : 0;
    }
    __device__ __forceinline__ void restore(Cells& cells, const Pair&) const {
#pragma unroll
      for (int k = 0; k < kRows; k += Words::kCount) Words::unpack(several[k / Words::kCount], cells.state.left + k);
      cells.state.diag = Numbers::of_word(word);
    }
  };
  // A lane's columns of a group from the right, after one another.
  struct Back {
    ColumnsAhead<float, -1> columns;
    RingWeights<Weight, kRows> weights;

    __device__ __forceinline__ Back(const Pair& pair, int group)
        : columns(pair.columns_back(group)), weights(pair, columns) {}
    template <bool kMayEnd>
    __device__ __forceinline__ void step(
        const Pair& pair, const Table& table, int t, int from, unsigned mask, unsigned mask_before, bool, Flow& flow,
        int end_row) {
      double entries[kRows];
      table.load(t, entries);
      flow.template step<kMayEnd>(pair, from, mask, mask_before, weights, columns, entries, end_row);
      columns.move();
    }
  };
};

template <int kRows>
__device__ __forceinline__ void banded_backward(
    const Problem<float>& problem, const Gradient<float>& gradient, const RingLayout& layout, int64_t first_pair,
    char* memory, const char* saved, int64_t stride, const PairStatus* statuses) {
  using Table = RingTable<kRows>;
  using Pair = RingPair<kRows>;
  const int64_t own = Pair::number(layout, first_pair);
  const bool accepted = own < problem.batch && statuses[own] == PairStatus::kLinearDomain;
  Table& table = *reinterpret_cast<Table*>(memory);
  ring_gradients<Pair>(
      problem, gradient, layout, own, accepted, reinterpret_cast<float*>(memory + sizeof(Table)), saved, stride,
      [&](Pair& pair, const int* kept, const auto& out) {
        if (pair.all_shallow())
          ring_backward<LinearRing<ShallowWeight, kRows>>(pair, layout, table, kept, out);
        else
          ring_backward<LinearRing<DeepWeight, kRows>>(pair, layout, table, kept, out);
      });
}

}  // namespace softdtw
