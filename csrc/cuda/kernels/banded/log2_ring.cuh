// A ring's pair and cells in integer log2 (integer_log2.cuh): for pairs that the linear domain gives up, and for other costs of numbers,
// penalties and longer series.
//
// A lane that takes its next block takes over the reference of the lane above. What it holds then is outside the band, and so is all
// that the lane below sees of it until that has a new block, too. A chunk is one group of steps, or two of four rows each: nine or ten
// steps, in which s stays in the bounds that integer_log2.cuh has for sixteen rows and eight.
#pragma once

#include "banded_backward.cuh"
#include "cuda/kernels/integer_log2/integer_log2_flow.cuh"

namespace softdtw {

// Every cost of numbers, with a penalty or without.
using AnyOptions = ShortPairOptions<UnivariateCost, true>;

template <int kRows_, class Options_>
struct Log2RingPair : RingNumbers<kRows_> {
  using Band = RingNumbers<kRows_>;
  using Options = Options_;
  using Cost = typename Options::template Cost<float>;
  using Penalty = ShortPairPenalty<float, false, Options>;
  using Band::extent, Band::fits;
  static constexpr int kRows = kRows_;
  const int64_t pair;
  const float factor;
  const Cost cost;
  const Penalty penalty;
  int starting_groups;  // of the warp's pairs

  // Pairs that are not `wanted` go along with the others.
  __device__ Log2RingPair(const Problem<float>& problem, const RingLayout& layout, int64_t pair_, bool wanted)
      : Band(layout, problem.extent(pair_), wanted),
        pair(pair_),
        factor(static_cast<float>(problem.scale_of(pair))),
        cost(cost_of_problem<Cost>(problem.cost, 1.0f)),
        penalty(problem.penalty_of(pair) * problem.scale_of(pair)) {
    starting_groups = this->groups_before_table();
#pragma unroll
    for (int distance = kWarp / 2; distance > 0; distance /= 2)
      starting_groups = max(starting_groups, __shfl_xor_sync(kAllLanes, starting_groups, distance));
  }
  // As RingPair has it.
  __device__ __forceinline__ void read_series(
      const Problem<float>& problem, const RingLayout& layout, float* memory, float* kept) {
    const RangeOfSeries range = this->copy_series(
        problem.x.pair(pair), problem.y.pair(pair), layout, this->find_own(layout, memory), kept,
        [](float number) { return number; });
    fits = fits && penalty.fits(cost.cost(range.widest()) * factor, kDeepestUnscaled);
  }
  __device__ __forceinline__ void read_kept_series(const RingLayout& layout, float* memory, const float* kept) {
    this->copy_kept_series(layout, this->find_own(layout, memory), kept);
  }
  __device__ __forceinline__ int groups_with_start() const { return starting_groups; }
  __device__ __forceinline__ static float stretch() { return 1; }
  // Blocks above the table and below are outside the band, and so is all that comes behind the pair's end, where longer pairs of the
  // warp go on. Inside, cells that no path reaches would have shares that are no numbers.
  __device__ __forceinline__ unsigned mask_of_group(int i) const {
    const bool counts =
        i < this->groups && static_cast<unsigned>(this->block(i)) <= static_cast<unsigned>(this->last_block());
    return counts ? Band::mask_of_group(i) : 0;
  }
};

// What Log2State asks of a pair, in a step: from where its lane sees the row above, and which of its cells are in the band.
template <class Pair>
struct Log2RingStep {
  static constexpr bool kHasBand = true;
  static constexpr int kRows = Pair::kRows;
  const float (&x)[kRows];
  const typename Pair::Cost& cost;
  const typename Pair::Penalty& penalty;
  const float factor;
  const int from;
  const unsigned mask;

  __device__ __forceinline__ Log2RingStep(const Pair& pair, int from_, unsigned mask_ = 0)
      : x(pair.x), cost(pair.cost), penalty(pair.penalty), factor(pair.factor), from(from_), mask(mask_) {}
  __device__ __forceinline__ explicit Log2RingStep(const Pair& pair) : Log2RingStep(pair, pair.neighbour(-1)) {}
  __device__ __forceinline__ static bool is_top_lane() { return false; }  // above it is a lane without entries
  __device__ __forceinline__ bool is_in_band(int, int k) const { return Pair::is_inside(mask, k) != 0; }
  __device__ __forceinline__ Entry<float> from_above(const Entry<float>& entry) const {
    return {__shfl_sync(kAllLanes, entry.m, from), __shfl_sync(kAllLanes, entry.s, from)};
  }
  __device__ __forceinline__ int from_above(int reference) const { return __shfl_sync(kAllLanes, reference, from); }
};

// kGoesBack: with the shares of E.
template <class Pair, bool kGoesBack>
struct Log2RingCells {
  static constexpr int kRows = Pair::kRows;
  Log2State<kRows> state;
  Weights<float> weights[kGoesBack ? kRows : 1];

  __device__ __forceinline__ Log2RingCells(const Pair&, const ColumnsAhead<float, 1>&) {}
  __device__ __forceinline__ void enter(const Pair&) { state.diag = {kLog2Floor, 1}; }
  __device__ __forceinline__ void begin_group(const Pair& pair, int i) {
    const int above = Log2RingStep<Pair>(pair).from_above(state.reference);
    if (pair.age(i) != 0) return;
    state.look_at_rows();
    state.reference = above;
    state.above = 0;
  }
  __device__ __forceinline__ void step(const Pair& pair, int from, unsigned mask, const ColumnsAhead<float, 1>& columns) {
    state.template step<false>(
        Log2RingStep<Pair>(pair, from, mask), columns.now, 0,
        [&](int k, const Log2Cell& cell, const auto& diag, const auto& up, const auto& left) {
          if constexpr (kGoesBack)
            return cell.entry(diag, up, left, weights[k]);
          else
            return cell.entry(diag, up, left);
        });
  }
  __device__ __forceinline__ const Weights<float> (&of_backward() const)[kRows] { return weights; }
};

// E on its way from cell to cell. It does not leave the band, since shares of what is outside are 0; but it leaves the table's corner.
template <int kRows>
struct Log2RingFlow : Log2Flow<kRows> {
  using Log2Flow<kRows>::left, Log2Flow<kRows>::handed, Log2Flow<kRows>::column;

  // As that of RingFlow.
  template <bool kMayEnd, class Pair>
  __device__ __forceinline__ void step(
      const Pair& pair, int from, unsigned mask, unsigned mask_before, bool has_entered, float y,
      const Weights<float> (&weights)[kRows], int end_row) {
    float from_below = __shfl_sync(kAllLanes, handed, from);
    float sum = __shfl_sync(kAllLanes, Pair::is_inside(mask_before, 0) ? column : 0.0f, from);
#pragma unroll
    for (int k = kRows - 1; k >= 0; --k) {
      float e = left[k] + from_below;
      if (kMayEnd && k == end_row) e = 1;
      if (kMayEnd && !(has_entered && Pair::is_inside(mask, k))) e = 0;
      from_below = this->pass_on(pair, k, y, weights[k], e, sum);
    }
    handed = from_below;
    column = sum;
  }
};

// Integer log2 as ring_backward() asks for it.
template <int kRows_, class Options>
struct Log2Ring {
  static constexpr int kRows = kRows_;
  static constexpr bool kHasReference = true, kStartsWithCare = true;
  using Pair = Log2RingPair<kRows, Options>;
  using Cells = Log2RingCells<Pair, true>;
  using Table = Log2Table<kRows, RingLayout::groups_of_chunk(kRows) * (kRows + 1)>;
  using Flow = Log2RingFlow<kRows>;
  using State = Log2State<kRows>;

  struct Kept {
    int words[State::kWords];
    bool is_there = false;

    __device__ __forceinline__ void fetch(const int* from, bool is_there_, const Pair& pair) {
      is_there = is_there_;
      if (!is_there) return;
#pragma unroll
      for (int k = 0; k < State::kWords; ++k) words[k] = __ldcs(from + k * pair.lanes + pair.lane);
    }
    __device__ __forceinline__ void restore(Cells& cells, const Pair& pair) const {
      if (is_there)
        cells.state.take_words(words);
      else
        cells.state.start(false);
      cells.state.look_above(Log2RingStep<Pair>(pair));
    }
  };
  struct Back {
    ColumnsAhead<float, -1> columns;

    __device__ __forceinline__ Back(const Pair&, const float* last_column) : columns(last_column) {}
    template <bool kMayEnd>
    __device__ __forceinline__ void step(
        const Pair& pair, const Table& table, int t, int from, unsigned mask, unsigned mask_before, bool has_entered,
        Flow& flow, int end_row) {
      Weights<float> weights[kRows];
      table.load(t, weights);
      flow.template step<kMayEnd>(pair, from, mask, mask_before, has_entered, columns.now, weights, end_row);
      columns.move();
    }
  };
};

}  // namespace softdtw
