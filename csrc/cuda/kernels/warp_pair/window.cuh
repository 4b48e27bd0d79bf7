// A window of 16 of a pair's 32 lanes, in which a warp computes the gradients of two pairs: where E counts, and nowhere else, from the
// last cell to the first.
//
// A window stands at lane 16, 12, 8, 4 or 0 of the pair, its `first` lane, and moves up between two chunks by four or eight lanes
// once next to no E is left in its last ones. What it does not see is E that it leaves behind there, and E that flows up from its
// first row; both are measured, and a pair where they may come to more than 2^-18 in all is done again without a window. Entries of
// the row above the window, which the rebuilt ones come from, have been kept.
//
// A lane of the pair has the lane of the window that is its number modulo 16, so a move concerns only lanes that it takes from the
// lower end to the upper one.
#pragma once

#include "warp_pair.cuh"

namespace softdtw {

constexpr float kMostLeftBehind = 1.0f / (1 << 23);  // in a lane, of which there are 16
constexpr float kMostLost = 1.0f / (1 << 21);        // out of a first row, of which there are four

// kIsScaled: as of ShortPair.
template <int kRows_, bool kIsScaled_ = true, class Options = PlainOptions>
struct PairWindow {
  using Cost = typename Options::template Cost<float>;
  using Penalty = ShortPairPenalty<float, kIsScaled_, Options>;
  static constexpr bool kIsWindow = true, kIsScaled = kIsScaled_, kIsStretched = kIsScaled && Cost::kIsRooted;
  static constexpr bool kHasBand = Options::kHasBand;
  static constexpr int kRows = kRows_, kSteps = ShortPairLayout::kSteps, kAhead = ShortPairLayout::kAhead;
  static constexpr int kLanes = ShortPairLayout::kWindow, kStep = ShortPairLayout::kWindowStep, kPairs = kWarp / kLanes;
  static constexpr int lanes = kWarp;  // of the pair
  const Problem<float>& problem;
  const int64_t pair;
  Extent extent;
  float factor;
  Cost cost;
  const Penalty penalty;
  float x[kRows], origin = 0, deepest;
  float* line;      // of y, with what is read ahead at either end
  int first, lane;  // of the pair
  int end_lane, end_step, end_chunk, chunks;
  // What the row above the window has: of the linear domain, or of integer log2 with their reference.
  double edge = 0;
  Entry<float> edge_entry = {0, 1};
  int edge_reference = 0;
  float lost = 0;  // E that has flown up from the window
  int written;     // columns of dy from which on they are

  __device__ PairWindow(
      const Problem<float>& problem_, const ShortPairLayout& layout, int64_t own_pair, bool wanted, float* memory)
      : problem(problem_),
        pair(max(own_pair, int64_t{0})),
        extent(problem.extent(pair)),
        cost(cost_of_problem<Cost>(problem.cost, 1.0f)),
        penalty(problem.penalty_of(pair) * problem.scale_of(pair)) {
    if (!extent.valid()) extent = {1, 1, 0, 0};
    written = extent.m;
    end_lane = (extent.n - 1) / kRows;
    end_step = extent.m - 1 + end_lane;
    end_chunk = wanted ? end_step / kSteps : -1;
    chunks = max(end_chunk, __shfl_xor_sync(kAllLanes, end_chunk, kLanes)) + 1;
    first = end_lane < kLanes ? 0 : (end_lane - kLanes) / kStep * kStep + kStep;
    lane = first + ((static_cast<int>(threadIdx.x) - first) & (kLanes - 1));

    const View<const float> rows = problem.x.pair(pair), columns = problem.y.pair(pair);
    factor = kIsScaled ? factor_of_cost<Cost>(problem, pair) : static_cast<float>(problem.scale_of(pair));
    if (kIsScaled) cost = cost_of_problem<Cost>(problem.cost, factor);
    float total = 0, lowest = INFINITY, highest = -INFINITY, y_lowest = INFINITY, y_highest = -INFINITY;
    for (int i = threadIdx.x % kLanes; i < extent.n; i += kLanes) {
      const float own = rows.data[i * rows.row_stride];
      lowest = fminf(lowest, own);
      highest = fmaxf(highest, own);
      total += own;
    }
    float* const own = memory + threadIdx.x / kLanes * layout.window();
    const int numbers = kWarp - 1 + kSteps * chunks + 2 * kAhead;
    for (int i = threadIdx.x % kLanes; i < numbers; i += kLanes) {
      const float y = columns.data[min(max(i - (kWarp - 1 + kAhead), 0), extent.m - 1) * columns.row_stride];
      own[i] = y;
      y_lowest = fminf(y_lowest, y);
      y_highest = fmaxf(y_highest, y);
    }
    line = own + kWarp - 1 + kAhead;
#pragma unroll
    for (int distance = kLanes / 2; distance > 0; distance /= 2) {
      total += __shfl_xor_sync(kAllLanes, total, distance);
      lowest = fminf(lowest, __shfl_xor_sync(kAllLanes, lowest, distance));
      highest = fmaxf(highest, __shfl_xor_sync(kAllLanes, highest, distance));
      y_lowest = fminf(y_lowest, __shfl_xor_sync(kAllLanes, y_lowest, distance));
      y_highest = fmaxf(y_highest, __shfl_xor_sync(kAllLanes, y_highest, distance));
    }
    const float widest = fmaxf(highest - y_lowest, y_highest - lowest);
    deepest = wanted ? cost.cost(kIsStretched ? widest * factor : widest) : 0;
    if constexpr (kIsStretched) {
      origin = total / static_cast<float>(extent.n);
      for (int i = threadIdx.x % kLanes; i < numbers; i += kLanes) own[i] = scaled(own[i]);
    }
    read_rows();
    __syncwarp();
  }
  __device__ __forceinline__ void read_rows() {
    const View<const float> rows = problem.x.pair(pair);
#pragma unroll
    for (int k = 0; k < kRows; ++k) x[k] = scaled(rows.data[min(lane * kRows + k, extent.n - 1) * rows.row_stride]);
  }
  __device__ static int number(const ShortPairLayout&) { return threadIdx.x / kLanes; }
  __device__ __forceinline__ bool all_shallow() const {
    return __all_sync(kAllLanes, deepest <= LinearNumbers<float>::Shallow::kDeepest);
  }
  // y at the lane's columns: of step t at t.
  __device__ __forceinline__ const float* columns() const { return line - lane; }
  __device__ __forceinline__ int end_column() const { return written; }
  __device__ __forceinline__ bool has_chunk(int chunk) const { return chunk > 0 && chunk <= end_chunk; }
  __device__ __forceinline__ int last_row() const { return lane == end_lane ? (extent.n - 1) % kRows : -1; }
  __device__ __forceinline__ auto rows_at(int column) const {
    return rows_that_count<kHasBand, kRows>(extent, lane, column);
  }
  __device__ __forceinline__ bool is_in_band(int column, int k) const { return rows_at(column).has(k); }
  __device__ __forceinline__ bool is_first_lane() const { return lane == first; }
  __device__ __forceinline__ bool is_last_lane() const { return lane == first + kLanes - 1; }
  // What flows up from the first lane.
  __device__ __forceinline__ void lose(float e) { lost += first > 0 ? e : 0; }
  // Behind a chunk: moves up where all lanes that it leaves have left little enough behind, each a part of it. Returns whether
  // the warp is to go on.
  template <class Flow, class Fetch>
  __device__ __forceinline__ bool follow(
      int chunk, float left_behind, Flow& flow, const ShortGradient<float>& gradient, Fetch&& fetch) {
    const bool holds = !(left_behind <= kMostLeftBehind);
    const bool last = any_of_pair(holds && lane >= first + kLanes - kStep);
    const bool last_two = any_of_pair(holds && lane >= first + kLanes - 2 * kStep);
    const int by = last ? 0 : min(last_two ? kStep : 2 * kStep, first);
    if (by > 0 && chunk <= end_chunk) {
      written = min(written, chunk * kSteps - first);
      first -= by;
      if (lane >= first + kLanes) {  // another one of the pair from now on
        gradient.leave_rows(*this, flow.rows);
        flow = Flow();
        lane -= kLanes;
        read_rows();
      }
      if (chunk > 0) fetch(chunk - 1);
    }
    const bool has_failed = any_of_pair(!(lost <= kMostLost)) && chunk <= end_chunk;
    return !__all_sync(kAllLanes, has_failed || end_chunk < 0);
  }
  // Whether the pair has been done, at the end.
  __device__ __forceinline__ bool is_done() const { return !any_of_pair(!(lost <= kMostLost) || first > 0); }
  __device__ __forceinline__ int of_window(int i) const { return (threadIdx.x & ~(kLanes - 1)) | (i & (kLanes - 1)); }
  // As ShortPair has them.
  __device__ __forceinline__ bool is_top_lane() const { return lane == 0; }
  __device__ __forceinline__ double from_above(double a) const {
    const double above = __shfl_sync(kAllLanes, a, of_window(threadIdx.x - 1));
    return is_first_lane() ? edge : above;
  }
  __device__ __forceinline__ Entry<float> from_above(const Entry<float>& entry) const {
    const int from = of_window(threadIdx.x - 1);
    const Entry<float> above = {__shfl_sync(kAllLanes, entry.m, from), __shfl_sync(kAllLanes, entry.s, from)};
    return is_first_lane() ? edge_entry : above;
  }
  __device__ __forceinline__ int from_above(int reference) const {
    const int above = __shfl_sync(kAllLanes, reference, of_window(threadIdx.x - 1));
    return is_first_lane() ? edge_reference : above;
  }
  template <typename Number>
  __device__ __forceinline__ Number from_below(Number a) const {
    const Number below = __shfl_sync(kAllLanes, a, of_window(threadIdx.x + 1));
    return is_last_lane() ? 0 : below;
  }
  __device__ __forceinline__ static bool any_of_pair(bool vote) {
    return (__ballot_sync(kAllLanes, vote) >> (threadIdx.x & ~(kLanes - 1)) & 0xffffu) != 0;
  }

 private:
  __device__ __forceinline__ float scaled(float number) const { return kIsStretched ? (number - origin) * factor : number; }
};

}  // namespace softdtw
