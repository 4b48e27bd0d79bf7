// Where the two sides of a table meet (bidirectional.cuh): the steps across the cut, what they add up to, and what flows through them.
#pragma once

#include "bidirectional.cuh"

namespace softdtw {

// Of a pair: how many strips of the table there are from the first one on, seen from either end, outside which next to nothing of E
// flows through the cut; none where there is no gradient. Zeroed before.
struct CutOfPair {
  int strips_from_first, strips_to_last;
};

// The steps across the cut from a lane into itself and between it and the lane above, s 2^-m each: exp(-(a + b) / gamma).
// The lane's rows are r and r + 1 and the first column behind the cut is c; that of the lane above is c + 1.
enum CutStep { kRight, kRightBelow, kDiagonal, kDown, kDiagonalAbove, kDiagonalBehind, kCutSteps };
struct CutSteps {
  double m[kCutSteps];
  float s[kCutSteps];
};
// And what flows of E through them.
struct alignas(16) CutShares {
  float of[kCutSteps + 2];
};

// What steps across the cut pay, where cells do not, and what a pair's sum has too much where they do.
template <bool kHasOptions>
struct PenaltyAtCut {
  using S = BidirectionalShape;
  Entry<float, double> of_step = {0, 1};
  double reference = 0;  // of the value

  __device__ PenaltyAtCut(const Problem<float>& problem, const Extent& extent, int64_t pair) {
    if (!kHasOptions || problem.penalty_of(pair) == 0) return;
    const PenalisedRecurrences<S> recurrences(problem, pair);
    of_step = recurrences.general.penalty;
    reference = recurrences.uncharged(0, extent.n - 1, extent.m - 1);
  }
};

constexpr int kCutThreads = 1024, kCutLanes = kCutThreads / 2 - 1;  // of a block; lanes of the table at a time

// The states at the cut, of lanes of the table, counted through all strips.
template <bool kHasOptions>
class StatesAtCut {
  using S = BidirectionalShape;
  static constexpr int kEntries = Snapshot<S>::kEntries;
  struct State {
    double m[kEntries];  // absolute
    float s[kEntries];
  };
  // From the front and from the back; first the lane before.
  struct Tile {
    State states[2][kCutLanes + 1];
  };
  const Extent& extent;
  const BidirectionalMemory& memory;
  const int64_t pair;
  const BidirectionalSizes<kHasOptions> sizes;
  const PenaltyAtCut<kHasOptions> penalty;

  // Nothing, where there is no such lane, or the side has no part of its strip.
  __device__ __forceinline__ void load(State& state, bool from_back, int lane) const {
    const Side<kHasOptions> side(extent, from_back);
    Snapshot<S> snapshot;
#pragma unroll
    for (int i = 0; i < kEntries; ++i) {
      snapshot.m[i] = Unreachable<double>::value;
      snapshot.s[i] = 1;
    }
    if (lane >= 0 && lane < lanes()) {
      const int index = side.strip_of(lane / kWarp), of_strip = lane % kWarp;
      if (side.chunks(index) > 0 && side.meets_cut(index))
        snapshot.load(
            SideMemory<kHasOptions>{side, memory}.cut(pair, index), from_back ? kWarp - 1 - of_strip : of_strip,
            floor_of_m<S>());
    }
#pragma unroll
    for (int i = 0; i < kEntries; ++i) {
      state.m[i] = snapshot.m[i] + snapshot.reference;
      state.s[i] = snapshot.s[i];
    }
  }

 public:
  __device__ StatesAtCut(
      const Extent& extent_, const BidirectionalMemory& memory_, int64_t pair_, const PenaltyAtCut<kHasOptions>& penalty_)
      : extent(extent_), memory(memory_), pair(pair_), sizes(extent_), penalty(penalty_) {}

  __device__ int strips() const { return sizes.strips; }
  __device__ int lanes() const { return sizes.strips * kWarp; }
  SOFTDTW_HD static int tiles_of(const BidirectionalSizes<kHasOptions>& sizes) {
    return (sizes.strips * kWarp + kCutLanes - 1) / kCutLanes;
  }
  __device__ int tiles() const { return tiles_of(sizes); }

  // Calls visit(lane, steps), by a whole block.
  template <class Visit>
  __device__ __forceinline__ void for_each_lane(int first_tile, int end_tile, Visit&& visit) const {
    __shared__ Tile tile;
    const int thread = threadIdx.x;
#pragma unroll 1
    for (int first = first_tile * kCutLanes; first < end_tile * kCutLanes; first += kCutLanes) {
      const int slot = thread % (kCutLanes + 1), side = thread / (kCutLanes + 1), lane = first + thread;
      load(tile.states[side][slot], side, first + slot - 1);
      __syncthreads();
      if (thread < kCutLanes && lane < lanes()) {
        const auto &a_above = tile.states[0][thread], &a = tile.states[0][thread + 1];
        const auto &b_above = tile.states[1][thread], &b = tile.states[1][thread + 1];
        CutSteps steps;
        const auto set = [&](CutStep i, const State& from, int own, const State& to, int other, bool pays = false) {
          double m = from.m[own] + to.m[other];
          if (kHasOptions && pays) m += penalty.of_step.m;
          steps.m[i] = m > Unreachable<double>::value ? Unreachable<double>::value : m;
          steps.s[i] = from.s[own] * to.s[other] * (kHasOptions && pays ? penalty.of_step.s : 1);
        };
        constexpr int kDiag = S::kRows;  // seen from the back a lane's rows are the other way round
        set(kRight, a, 0, b, 1, true);
        set(kRightBelow, a, 1, b, 0, true);
        set(kDiagonal, a, 0, b, 0);
        set(kDown, a_above, 1, b, 1, true);
        set(kDiagonalAbove, a, kDiag, b, 1);
        set(kDiagonalBehind, a_above, 1, b_above, kDiag);
        visit(lane, steps);
      }
      __syncthreads();
    }
  }
};

// The sum of a number of every thread of a block, in a fixed order, for all of them.
__device__ inline Number sum_in_block(Number own) {
  static_assert(kCutThreads == kWarp * kWarp);
  __shared__ Number of_warps[kWarp];
  const auto sum_in_warp = [&] {
    const double m = own.m;
    double lowest = m;
#pragma unroll
    for (int distance = kWarp / 2; distance > 0; distance /= 2)
      lowest = fmin(lowest, __shfl_xor_sync(kAllLanes, lowest, distance));
    own = {lowest, own.s * DeviceMath<float>::exp2(static_cast<float>(lowest - m))};
#pragma unroll
    for (int distance = kWarp / 2; distance > 0; distance /= 2) own.s += __shfl_xor_sync(kAllLanes, own.s, distance);
  };
  sum_in_warp();
  if (threadIdx.x % kWarp == 0) of_warps[threadIdx.x / kWarp] = own;
  __syncthreads();
  own = of_warps[threadIdx.x % kWarp];
  sum_in_warp();
  return own;
}

// The sum of all steps across the cut, exp(-R[N,M] / gamma), by a whole block.
template <bool kHasOptions>
__device__ Number sum_over_cut(const StatesAtCut<kHasOptions>& states) {
  Number sum = {Unreachable<double>::value, 0};
  states.for_each_lane(0, states.tiles(), [&](int, const CutSteps& steps) {
    double lowest = sum.m;
#pragma unroll
    for (int i = 0; i < kCutSteps; ++i) lowest = steps.m[i] < lowest ? steps.m[i] : lowest;
    sum.s *= DeviceMath<float>::exp2(static_cast<float>(lowest - sum.m));
#pragma unroll
    for (int i = 0; i < kCutSteps; ++i)
      sum.s += steps.s[i] * DeviceMath<float>::exp2(static_cast<float>(lowest - steps.m[i]));
    sum.m = lowest;
  });
  return sum_in_block(sum);
}

// A block a pair: its value.
template <bool kHasOptions>
__global__ void __launch_bounds__(kCutThreads) bidirectional_value(
    const __grid_constant__ Problem<float> problem, const __grid_constant__ BidirectionalMemory memory, float* value) {
  const int64_t pair = blockIdx.x;
  const Extent extent = problem.extent(pair);
  if (!extent.valid()) {
    if (threadIdx.x == 0) value[pair] = NAN;
    return;
  }
  const PenaltyAtCut<kHasOptions> penalty(problem, extent, pair);
  const Number sum = sum_over_cut(StatesAtCut<kHasOptions>(extent, memory, pair, penalty));
  if (threadIdx.x > 0) return;
  store_value(problem, pair, penalty.reference, sum.m, sum.s, value);
  if (memory.is_kept) memory.sum(pair) = sum;
}

}  // namespace softdtw
