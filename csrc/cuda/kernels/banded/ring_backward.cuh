// One warp computes its pairs' gradients, whatever the number format: chunk by chunk from the last one, the entries again from their
// snapshot into shared memory, then (3), (4) and (5) in one reversed sweep.
#pragma once

#include "cuda/gradients/strip_gradient.cuh"
#include "cuda/numbers/pair_status.cuh"
#include "ring_band.cuh"

namespace softdtw {

// What backward leaves of a pair; null where nothing is asked for.
struct RingGradient {
  float *dx, *dy, scale;

  // is_wanted: or else none of it.
  template <class Pair>
  __device__ RingGradient(const Problem<float>& problem, const Gradient<float>& gradient, const Pair& pair, bool is_wanted)
      : dx(gradient.x.data == nullptr || !is_wanted ? nullptr : gradient.x.pair(pair.pair).data),
        dy(gradient.y.data == nullptr || !is_wanted ? nullptr : gradient.y.pair(pair.pair).data),
        scale(gradient_scale(problem, gradient, pair.pair) / pair.stretch()) {}
  __device__ __forceinline__ bool has_columns() const { return dy != nullptr; }
  __device__ __forceinline__ void leave_column(int column, float sum) const { dy[column] = sum * -scale; }
  template <class Pair, int kRows>
  __device__ __forceinline__ void leave_rows(const Pair& pair, int block, const float (&sums)[kRows]) const {
    if (dx == nullptr || block < 0) return;
#pragma unroll
    for (int k = 0; k < kRows; ++k)
      if (block * kRows + k < pair.extent.n) dx[block * kRows + k] = sums[k] * scale;
  }
};

template <class Format>
__device__ __forceinline__ void ring_backward(
    typename Format::Pair& pair, const RingLayout& layout, typename Format::Table& table, const int* kept,
    const typename Format::Pair::Gradient& gradient) {
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
      typename Format::Back back(pair, group);
      const unsigned mask = pair.mask_of_group(group);
      const bool ends = group == pair.groups - 1;
      // The sum of a column is complete where the row above is outside the band, or the table: in the steps from `first_left` to
      // `last_left`. s = r - 1 + kGroup age.
      const int first_column = pair.first_column(group);
      const int first_left = max(block > 0 ? pair.width - kGroup * age : 0, -first_column);
      const int last_left = block < 0 || !gradient.has_columns()
                                ? -1
                                : min(pair.width + kRows - 1 - kGroup * age, pair.extent.m - 1 - first_column);
      const unsigned steps_left = max(last_left - first_left + 1, 0);
      const auto step_back = [&](int r, auto may_end) {
        const int end_row =
            may_end() && ends && r == pair.last_step && block == pair.last_block() ? (pair.extent.n - 1) % kRows : -1;
        const bool has_entered = !may_end() || first_column + r >= 0;
        back.template step<may_end()>(
            pair, table, i * kGroup + r, from, mask >> r, mask >> (r + 1), has_entered, flow, end_row);
        if (static_cast<unsigned>(r - first_left) < steps_left) gradient.leave_column(first_column + r, flow.column);
      };
      const bool starts = Format::kStartsWithCare && group < pair.groups_with_start();
      if (starts || (group >= pair.fewest_groups - 1 && __any_sync(kAllLanes, ends))) {
#pragma unroll 1
        for (int r = kGroup - 1; r >= 0; --r) step_back(r, std::true_type());
      } else {
#pragma unroll(kStepsAtOnce<typename Format::Pair>)
        for (int r = kGroup - 1; r >= 0; --r) step_back(r, std::false_type());
      }
      if (age == 0 || group == 0) {
        gradient.leave_rows(pair, block, flow.rows);
#pragma unroll
        for (int k = 0; k < kRows; ++k) flow.rows[k] = {};
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
  const typename Pair::Gradient out(problem, gradient, pair, accepted);
  backward(pair, accepted ? reinterpret_cast<const int*>(of_pair) + layout.words_of_series() : nullptr, out);
}

}  // namespace softdtw
