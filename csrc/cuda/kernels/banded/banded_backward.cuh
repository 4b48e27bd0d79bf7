// One warp computes its pairs' gradients (banded.cuh): chunk by chunk from the last one, the entries again from their snapshot into
// shared memory, then (3), (4) and (5) in one reversed sweep.
#pragma once

#include "cuda/gradients/strip_gradient.cuh"
#include "cuda/numbers/pair_status.cuh"
#include "ring.cuh"

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

// What backward leaves of a pair; null where nothing is asked for.
struct RingGradient {
  float *dx, *dy, scale;

  template <class Pair, int kRows>
  __device__ __forceinline__ void leave_rows(const Pair& pair, int block, const float (&sums)[kRows]) const {
    if (dx == nullptr || block < 0) return;
#pragma unroll
    for (int k = 0; k < kRows; ++k)
      if (block * kRows + k < pair.extent.n) dx[block * kRows + k] = sums[k] * scale;
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

    __device__ __forceinline__ Back(const Pair& pair, const float* last_column)
        : columns(last_column), weights(pair, columns) {}
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

template <class Format>
__device__ __forceinline__ void ring_backward(
    typename Format::Pair& pair, const RingLayout& layout, typename Format::Table& table, const int* kept,
    const RingGradient& gradient) {
  constexpr int kRows = Format::kRows, kGroup = kRows + 1, kGroups = RingLayout::groups_of_chunk(kRows);
  const int chunks = (pair.most_groups + kGroups - 1) / kGroups;
  typename Format::Flow flow;
  typename Format::Kept words;
  const auto fetch = [&](int chunk) {
    const bool is_there = chunk > 0 && chunk * kGroups < pair.groups && kept != nullptr;
    words.fetch(kept + (chunk - 1) * layout.words_of_chunk(Format::kHasReference), is_there, pair);
  };
  fetch(chunks - 1);
  for (int chunk = chunks - 1; chunk >= 0; --chunk) {
    {
      const int first = chunk * kGroups;
      pair.take_rows(pair.block(first));
      RingSweep<typename Format::Pair, typename Format::Cells> sweep(pair, first);
      words.restore(sweep.cells, pair);
      if (chunk > 0) fetch(chunk - 1);
#pragma unroll 1
      for (int i = 0; i < kGroups; ++i) {
        if (i > 0) sweep.turn(first + i);
        sweep.cells.begin_group(pair, first + i);
        const auto leave = [&](int r) { table.store(i * kGroup + r, sweep.cells.of_backward()); };
        if (first + i < pair.groups_with_start())
          sweep.template group<true>(first + i, leave);
        else
          sweep.template group<false>(first + i, leave);
      }
    }
#pragma unroll 1
    for (int i = kGroups - 1; i >= 0; --i) {
      const int group = chunk * kGroups + i, age = pair.age(group), block = pair.block(group), from = pair.neighbour(1);
      if (i < kGroups - 1) pair.take_rows(block);
      typename Format::Back back(pair, pair.columns(group) + kGroup - 1);
      const unsigned mask = pair.mask_of_group(group);
      const bool ends = group == pair.groups - 1;
      // The sum of a column is complete where the row above is outside the band, or the table: in the steps from `first_left` to
      // `last_left`. s = r - 1 + kGroup age.
      const int first_column = pair.first_column(group);
      const int first_left = max(block > 0 ? pair.width - kGroup * age : 0, -first_column);
      const int last_left = block < 0 || gradient.dy == nullptr
                                ? -1
                                : min(pair.width + kRows - 1 - kGroup * age, pair.extent.m - 1 - first_column);
      const unsigned steps_left = max(last_left - first_left + 1, 0);
      float* const dy = gradient.dy + first_column;
      const auto step_back = [&](int r, auto may_end) {
        const int end_row =
            may_end() && ends && r == pair.last_step && block == pair.last_block() ? (pair.extent.n - 1) % kRows : -1;
        const bool has_entered = !may_end() || first_column + r >= 0;
        back.template step<may_end()>(
            pair, table, i * kGroup + r, from, mask >> r, mask >> (r + 1), has_entered, flow, end_row);
        if (static_cast<unsigned>(r - first_left) < steps_left) dy[r] = flow.column * -gradient.scale;
      };
      const bool starts = Format::kStartsWithCare && group < pair.groups_with_start();
      if (starts || (group >= pair.fewest_groups - 1 && __any_sync(kAllLanes, ends))) {
#pragma unroll 1
        for (int r = kGroup - 1; r >= 0; --r) step_back(r, std::true_type());
      } else {
#pragma unroll(kStepsAtOnce<kRows>)
        for (int r = kGroup - 1; r >= 0; --r) step_back(r, std::false_type());
      }
      if (age == 0 || group == 0) {
        gradient.leave_rows(pair, block, flow.rows);
#pragma unroll
        for (int k = 0; k < kRows; ++k) flow.rows[k] = 0;
      }
    }
  }
}

// `accepted`: of a pair that the format has taken; others go along.
template <class Pair, class Backward>
__device__ __forceinline__ void ring_gradients(
    const Problem<float>& problem, const Gradient<float>& gradient, const RingLayout& layout, int64_t own, bool accepted,
    float* memory, const char* saved, int64_t stride, Backward&& backward) {
  if (!__any_sync(kAllLanes, accepted)) return;
  Pair pair(problem, layout, min(own, problem.batch - 1), accepted);
  // A lane without a pair reads what another one's has.
  const unsigned lanes_of_pairs = __ballot_sync(kAllLanes, accepted);
  const int64_t readable = __shfl_sync(kAllLanes, pair.pair, __ffs(lanes_of_pairs) - 1);
  const char* const of_pair = saved + (accepted ? pair.pair : readable) * stride;
  pair.read_kept_series(layout, memory, reinterpret_cast<const float*>(of_pair));
  const RingGradient out = {
      gradient.x.data == nullptr || !accepted ? nullptr : gradient.x.pair(pair.pair).data,
      gradient.y.data == nullptr || !accepted ? nullptr : gradient.y.pair(pair.pair).data,
      gradient_scale(problem, gradient, pair.pair) / pair.stretch()};
  backward(pair, accepted ? reinterpret_cast<const int*>(of_pair) + layout.words_of_series() : nullptr, out);
}

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
      [&](Pair& pair, const int* kept, const RingGradient& out) {
        if (pair.all_shallow())
          ring_backward<LinearRing<ShallowWeight, kRows>>(pair, layout, table, kept, out);
        else
          ring_backward<LinearRing<DeepWeight, kRows>>(pair, layout, table, kept, out);
      });
}

}  // namespace softdtw
