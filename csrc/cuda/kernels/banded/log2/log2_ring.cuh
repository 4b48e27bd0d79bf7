// A ring's pair and cells in integer log2 (integer_log2.cuh): for pairs that the linear domain gives up, and for other costs of numbers,
// penalties and longer series. Of several dimensions: vector_ring.cuh.
//
// A lane that takes its next block takes over the reference of the lane above. What it holds then is outside the band, and so is all
// that the lane below sees of it until that has a new block, too. A chunk is one group of steps, or two of four rows each: nine or ten
// steps, in which s stays in the bounds that integer_log2.cuh has for sixteen rows and eight.
#pragma once

#include "cuda/kernels/banded/ring_backward.cuh"
#include "cuda/kernels/integer_log2/integer_log2_flow.cuh"
#include "cuda/numbers/extended_range_state.cuh"

namespace softdtw {

// Every cost of numbers, with a penalty or without.
using AnyOptions = ShortPairOptions<UnivariateCost, true>;

// Band: RingBand with series.
template <class Band, class Penalty_>
struct Log2RingBand : Band {
  using Penalty = Penalty_;
  const int64_t pair;
  const float factor;
  const Penalty penalty;
  int starting_groups;  // of the warp's pairs

  template <class... OfBand>
  __device__ Log2RingBand(const Problem<float>& problem, int64_t pair_, const OfBand&... of_band)
      : Band(of_band...),
        pair(pair_),
        factor(static_cast<float>(problem.scale_of(pair))),
        penalty(problem.penalty_of(pair) * problem.scale_of(pair)) {
    starting_groups = this->groups_before_table();
#pragma unroll
    for (int distance = kWarp / 2; distance > 0; distance /= 2)
      starting_groups = max(starting_groups, __shfl_xor_sync(kAllLanes, starting_groups, distance));
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
struct Log2RingPlace {
  static constexpr bool kHasBand = true;
  static constexpr int kRows = Pair::kRows;
  const typename Pair::Penalty& penalty;
  const float factor;
  const int from;
  const unsigned mask;

  __device__ __forceinline__ Log2RingPlace(const Pair& pair, int from_, unsigned mask_ = 0)
      : penalty(pair.penalty), factor(pair.factor), from(from_), mask(mask_) {}
  __device__ __forceinline__ explicit Log2RingPlace(const Pair& pair) : Log2RingPlace(pair, pair.neighbour(-1)) {}
  __device__ __forceinline__ static bool is_top_lane() { return false; }  // above it is a lane without entries
  __device__ __forceinline__ bool is_in_band(int, int k) const { return Pair::is_inside(mask, k) != 0; }
  __device__ __forceinline__ Entry<float> from_above(const Entry<float>& entry) const {
    return {__shfl_sync(kAllLanes, entry.m, from), __shfl_sync(kAllLanes, entry.s, from)};
  }
  __device__ __forceinline__ int from_above(int reference) const { return __shfl_sync(kAllLanes, reference, from); }
};

// Of numbers.
template <class Pair>
struct Log2RingStep : Log2RingPlace<Pair> {
  const float (&x)[Pair::kRows];
  const typename Pair::Cost& cost;

  __device__ __forceinline__ Log2RingStep(const Pair& pair, int from, unsigned mask)
      : Log2RingPlace<Pair>(pair, from, mask), x(pair.x), cost(pair.cost) {}
};

template <int kRows_, class Options_>
struct Log2RingPair : Log2RingBand<RingNumbers<kRows_>, ShortPairPenalty<float, false, Options_>> {
  using Base = Log2RingBand<RingNumbers<kRows_>, ShortPairPenalty<float, false, Options_>>;
  using Options = Options_;
  using Cost = typename Options::template Cost<float>;
  using Step = Log2RingStep<Log2RingPair>;
  using Gradient = RingGradient;
  using Base::extent, Base::factor, Base::fits, Base::pair, Base::penalty;
  static constexpr int kRows = kRows_;
  const Cost cost;

  // Pairs that are not `wanted` go along with the others.
  __device__ Log2RingPair(const Problem<float>& problem, const RingLayout& layout, int64_t pair_, bool wanted)
      : Base(problem, pair_, layout, problem.extent(pair_), wanted), cost(cost_of_problem<Cost>(problem.cost, 1.0f)) {}
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
  // What a column costs the lane's rows, or what that follows from, and whether it is in range.
  __device__ __forceinline__ static float look_at(const ColumnsAhead<float, 1>& columns) { return columns.now; }
  __device__ __forceinline__ static bool is_in_range(float) { return true; }  // as the series have told
};

// kGoesBack: with the shares of E.
template <class Pair, bool kGoesBack>
struct Log2RingCells {
  static constexpr int kRows = Pair::kRows;
  Log2State<kRows> state;
  Weights<float> weights[kGoesBack ? kRows : 1];

  template <class Columns>
  __device__ __forceinline__ Log2RingCells(const Pair&, const Columns&) {}
  __device__ __forceinline__ void enter(const Pair&) { state.diag = {kLog2Floor, 1}; }
  __device__ __forceinline__ void begin_group(const Pair& pair, int i) {
    const int above = Log2RingPlace<Pair>(pair).from_above(state.reference);
    if (pair.age(i) != 0) return;
    state.look_at_rows();
    state.reference = above;
    state.above = 0;
  }
  template <class Columns>
  __device__ __forceinline__ void step(const Pair& pair, int from, unsigned mask, const Columns& columns) {
    const auto column = pair.look_at(columns);
    state.is_exact = state.is_exact && pair.is_in_range(column);
    state.template step<false>(
        typename Pair::Step(pair, from, mask), column, 0,
        [&](int k, const Log2Cell& cell, const auto& diag, const auto& up, const auto& left) {
          if constexpr (kGoesBack)
            return cell.entry(diag, up, left, weights[k]);
          else
            return cell.entry(diag, up, left);
        });
  }
  __device__ __forceinline__ const Weights<float> (&of_backward() const)[kRows] { return weights; }
};

// The sum of a column, from another lane, or nothing where that is not to hand it on.
__device__ __forceinline__ float handed_on(int from, bool counts, float sum) {
  return __shfl_sync(kAllLanes, counts ? sum : 0.0f, from);
}
template <class Sum>
__device__ __forceinline__ Sum handed_on(int from, bool counts, Sum sum) {
  constexpr int kDims = sizeof(sum.at) / sizeof(float);
#pragma unroll
  for (int d = 0; d < kDims; ++d) sum.at[d] = handed_on(from, counts, sum.at[d]);
  return sum;
}

// E on its way from cell to cell. It does not leave the band, since shares of what is outside are 0; but it leaves the table's corner.
template <int kRows, class Sum = float>
struct Log2RingFlow : Log2Flow<kRows, Sum> {
  using Log2Flow<kRows, Sum>::left, Log2Flow<kRows, Sum>::handed, Log2Flow<kRows, Sum>::column;

  // As that of RingFlow.
  template <bool kMayEnd, class Pair>
  __device__ __forceinline__ void step(
      const Pair& pair, int from, unsigned mask, unsigned mask_before, bool has_entered, const Sum& y,
      const Weights<float> (&weights)[kRows], int end_row) {
    float from_below = __shfl_sync(kAllLanes, handed, from);
    Sum sum = handed_on(from, Pair::is_inside(mask_before, 0), column);
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
template <class Pair_, class Sum = float>
struct Log2Ring {
  using Pair = Pair_;
  static constexpr int kRows = Pair::kRows;
  static constexpr bool kHasReference = true, kStartsWithCare = true;
  using Cells = Log2RingCells<Pair, true>;
  using Table = Log2Table<kRows, RingLayout::groups_of_chunk(kRows) * (kRows + 1)>;
  using Flow = Log2RingFlow<kRows, Sum>;
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
      cells.state.look_above(Log2RingPlace<Pair>(pair));
    }
  };
  struct Back {
    typename Pair::ColumnsBack columns;

    __device__ __forceinline__ Back(const Pair& pair, int group) : columns(pair.columns_back(group)) {}
    template <bool kMayEnd>
    __device__ __forceinline__ void step(
        const Pair& pair, const Table& table, int t, int from, unsigned mask, unsigned mask_before, bool has_entered,
        Flow& flow, int end_row) {
      Weights<float> weights[kRows];
      table.load(t, weights);
      flow.template step<kMayEnd>(pair, from, mask, mask_before, has_entered, columns.now, weights, end_row);
      pair.move(columns);
    }
  };
};

constexpr int kLog2GroupsBetweenLooks = 8;

// Forward of the pairs of a warp. Returns whether the lane's own is taken.
template <class Pair, int kRows = Pair::kRows>
__device__ __forceinline__ bool log2_ring_forward(
    const Problem<float>& problem, const RingLayout& layout, int64_t own, bool wanted, float* memory, float* value,
    char* saved, int64_t stride) {
  constexpr int kGroups = RingLayout::groups_of_chunk(kRows);
  Pair pair(problem, layout, min(own, problem.batch - 1), wanted);
  char* const kept_of_pair = saved == nullptr || !pair.fits ? nullptr : saved + pair.pair * stride;
  pair.read_series(problem, layout, memory, reinterpret_cast<float*>(kept_of_pair));
  if (!__any_sync(kAllLanes, pair.fits)) return false;
  int* const kept =
      kept_of_pair == nullptr ? nullptr : reinterpret_cast<int*>(kept_of_pair) + layout.words_of_series() + pair.lane;
  pair.take_rows(pair.block(0));
  RingSweep<Pair, Log2RingCells<Pair, false>> sweep(pair, 0);
  auto& state = sweep.cells.state;
  state.start(false);
  bool is_exact = true;
  Entry<float> last = {NAN, NAN};
  int last_reference = 0;
  for (int i = 0; i < pair.most_groups; ++i) {
    if (i > 0) sweep.turn(i);
    sweep.cells.begin_group(pair, i);
    const bool ends = i == pair.groups - 1;
    if (i < pair.groups_with_start() || (i >= pair.fewest_groups - 1 && __any_sync(kAllLanes, ends))) {
      const int end = ends && pair.is_block_of_last_row(i) ? pair.last_step : -1;
      sweep.template group<true>(i, [&](int r) {
        if (r != end) return;
        last = pick(state.left, (pair.extent.n - 1) % kRows);
        last_reference = state.reference;
      });
    } else {
      sweep.template group<false>(i, [](int) {});
    }
    if (i % kGroups == kGroups - 1 || i == pair.most_groups - 1) {
      state.renew(Log2RingPlace<Pair>(pair));
      if (i / kGroups <= (pair.groups - 1) / kGroups) is_exact = state.is_exact;
      if (kept != nullptr && i < pair.groups - 1) state.keep(kept + i / kGroups * layout.words_of_chunk(true), pair.lanes);
    }
    if (i % kLog2GroupsBetweenLooks == kLog2GroupsBetweenLooks - 1) {
      const bool is_lost = pair.any_of_pair(!is_exact);
      if (!__any_sync(kAllLanes, pair.fits && i < pair.groups - 1 && !is_lost)) break;
    }
  }
  const int steps = pair.extent.n + pair.extent.m;
  const auto reference = pair.penalty.without_tilt(last_reference, steps);
  const double exponent = reference + last.m - log2(static_cast<double>(last.s));
  // Of the lane with the last cell.
  const bool accepted = pair.fits && !pair.any_of_pair(!is_exact) && last.m < kLog2Most && exponent < INFINITY &&
                        fabs(exponent) >= kLeastOfAStep * steps;
  if (accepted) store_value(problem, pair.pair, reference, last.m, last.s, value);
  return pair.any_of_pair(accepted);
}

}  // namespace softdtw
