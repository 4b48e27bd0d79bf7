// One warp computes its pairs' values with the linear domain (linear_domain.cuh).
#pragma once

#include "cuda/kernels/foresight/pair_foresight.cuh"
#include "cuda/numbers/pair_status.cuh"
#include "linear_domain_sweep.cuh"

namespace softdtw {

constexpr int kChunksBetweenLooks = 4;
// Binary orders that a pair may be behind: the engine that takes over is nearly as fast in float32, but not in float64.
template <typename T>
constexpr int kSlack = sizeof(T) == 4 ? 40 : 100;

// Whether a pair may come to its end within the range, by what it has used up of it on the way to the lane's place. That can only
// grow. In noise it grows evenly, so the end is foreseen; other series often pay the most where they begin.
template <class Pair, typename T, int kRows>
__device__ __forceinline__ bool is_promising(const Pair& pair, const LinearState<T, kRows>& state, int steps) {
  const int top = pair.penalty.top(), used = top - state.highest_exponent();
  const int done = (pair.lane + 1) * kRows + steps - pair.lane;
  const int foreseen = pair.is_noise ? pair.extent.n + pair.extent.m : 0;
  return used <= top - kLeast && (used - kSlack<T>)*foreseen <= done * (top - kLeast);
}

// Returns the last entry of the pair to the lane that holds it; 0 where the pair is given up. `edge`: where the lane's last row is
// kept, step by step, if it is.
template <class Weight, bool kKeepsEdges, typename T, int kRows, class Options>
__device__ __forceinline__ double linear_sweep(
    const ShortPair<T, kRows, true, Options>& pair, typename LinearNumbers<T>::Word* kept, int words_a_chunk,
    typename LinearNumbers<T>::Word* edge) {
  LinearState<T, kRows> state;
  state.start(pair.is_first_lane(), pair.penalty.top());
  double last = 0;
  ColumnsAhead<T, 1> columns(pair.columns());
  LinearWeights<Weight> weights(pair, columns);
  for (int chunk = 0; chunk < pair.chunks; ++chunk) {
    if (kept != nullptr && chunk > 0) state.keep(kept + int64_t{chunk - 1} * words_a_chunk, pair.lanes);
    if (chunk % kChunksBetweenLooks == kChunksBetweenLooks - 1) {
      const bool goes_on =
          pair.fits && chunk <= pair.end_chunk && is_promising(pair, state, chunk * ShortPairLayout::kSteps);
      if (!__any_sync(kAllLanes, goes_on)) break;
    }
    const auto step = [&](int t) {
      if (kKeepsEdges && edge != nullptr) *edge++ = LinearNumbers<T>::word(state.left[kRows - 1]);
      state.template step<(kRows > 8)>(pair, chunk * ShortPairLayout::kSteps + t - pair.lane, weights, columns);
      columns.move();
    };
    if (__any_sync(kAllLanes, pair.end_row >= 0 && chunk == pair.end_chunk)) {
      const int end = pair.end_row >= 0 ? pair.end_step - chunk * ShortPairLayout::kSteps : -1;
#pragma unroll 1
      for (int t = 0; t < ShortPairLayout::kSteps; ++t) {
        step(t);
        if (t == end) last = pick(state.left, pair.end_row);
      }
    } else {
#pragma unroll(kColumnsAtOnce<kRows>)
      for (int t = 0; t < ShortPairLayout::kSteps; ++t) step(t);
    }
  }
  return last;
}

// Returns what has become of the lane's pair. foresees: pairs are given up at once, and is_tried stays false, if not all of the warp's
// are likely to end within the range.
template <typename T, int kRows, class Options = PlainOptions>
__device__ PairStatus linear_forward(
    const Problem<T>& problem, const ShortPairLayout& layout, int64_t own, T* memory, T* value, char* saved, int64_t stride,
    bool foresees, bool& is_tried) {
  using Numbers = LinearNumbers<T>;
  using Word = typename Numbers::Word;
  using Pair = ShortPair<T, kRows, true, Options>;
  const Pair pair(problem, layout, own, own >= 0, memory);
  if (!__any_sync(kAllLanes, pair.fits)) return PairStatus::kGivenUp;
  if (foresees && !are_likely<Pair, Options>(pair)) return PairStatus::kGivenUp;
  is_tried = true;
  const bool in_window = layout.has_windows && pair.is_noise;
  Word* const kept =
      saved == nullptr || !pair.fits ? nullptr : reinterpret_cast<Word*>(saved + pair.pair * stride) + pair.lane;
  const int words = (kRows + 1) * pair.lanes;
  Word* const edge = kept != nullptr && in_window && layout.keeps_edge(pair.lane)
                         ? kept - pair.lane + layout.edge<T>(pair.lane, 1)
                         : nullptr;
  const auto sweep = [&](auto keeps_edges) {
    constexpr bool kKeepsEdges = decltype(keeps_edges)::value;
    return pair.all_shallow() ? linear_sweep<typename Numbers::Shallow, kKeepsEdges>(pair, kept, words, edge)
                              : linear_sweep<typename Numbers::Deep, kKeepsEdges>(pair, kept, words, edge);
  };
  double last;
  if constexpr (sizeof(T) == 4 && kRows == ShortPairLayout::kMostRows)
    last = saved != nullptr && in_window ? sweep(std::true_type()) : sweep(std::false_type());
  else
    last = sweep(std::false_type());
  const bool accepted = pair.fits && pair.end_row >= 0 && last >= power_of_two(kLeast);
  if (accepted) {
    const double exponent = pair.penalty.top() - log2(last) - pair.penalty.of_step() * (pair.extent.n + pair.extent.m);
    value[pair.pair] = static_cast<T>(exponent * problem.gamma_of(pair.pair) * kLn2);
  }
  if (!pair.any_of_pair(accepted)) return PairStatus::kGivenUp;
  return in_window ? PairStatus::kLinearDomainInWindow : PairStatus::kLinearDomain;
}

}  // namespace softdtw
