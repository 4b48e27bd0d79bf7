// A warp's pairs in the linear domain (linear_domain.cuh), and a lane's part of its pair.
//
// A pair has `lanes` lanes of a warp, 8, 16 or 32; a lane owns K = kRows rows, all its columns, and is at column t - l in step
// t, l being its number among the pair's lanes. So there are no strips, and several short pairs in a warp. Steps come in chunks
// of kSteps: what backward computes again at once.
#pragma once

#include <type_traits>

#include "cuda/costs/tile.cuh"
#include "cuda/kernels/integer_log2/integer_log2_penalty.cuh"
#include "cuda/kernels/linear_domain/options/univariate_cost.cuh"
#include "cuda/numbers/linear_domain.cuh"
#include "cuda/select/blocks.h"

namespace softdtw {

// How pairs of a problem are laid out.
struct ShortPairLayout {
  static constexpr int kSteps = 8, kMostRows = kMostLaneRows;  // kMostRows: of a lane
  static constexpr int kAhead = 3;  // columns that ColumnsAhead reads at most beyond those of a sweep
  int lanes, rows;                  // of a pair, of a lane
  int chunks;                       // of a pair of the problem's full length
  bool has_lists;                   // of pairs (numbers/pair_status.cuh)
  bool has_windows;                 // in backward, of pairs that are noise

  __host__ ShortPairLayout(int64_t n, int64_t m, int lanes_, bool has_band)
      : lanes(lanes_),
        rows(lane_rows(n, lanes, has_band)),
        chunks(static_cast<int>(m + lanes - 1 + kSteps - 1) / kSteps),
        has_lists(false),
        has_windows(false) {}
  template <typename T>
  __host__ explicit ShortPairLayout(const Problem<T>& problem)
      : ShortPairLayout(problem.n, problem.m, lanes_of_pair(problem.batch, problem.n), call_of(problem, false).has_band) {
    has_lists = has_lists_of_pairs(problem.batch, problem.n, problem.m, sizeof(T) == 8, lanes, rows);
    has_windows = has_lists && goes_back_in_windows(problem.batch, lanes, rows);
  }
  __host__ int pairs() const { return kWarp / lanes; }  // of a warp
  // What forward keeps of a pair: its entries before every chunk but the first, whose start is known. Of float32 problems the
  // integer log2 may have to keep something beside them. And the rows above the places of a window (window.cuh).
  template <typename T>
  __host__ int64_t bytes_of_pair() const {
    const int64_t words = first_edge<T>() + (has_windows ? kEdges * kSteps * chunks * kEdgeWords : 0);
    return words * sizeof(typename LinearNumbers<T>::Word);
  }
  static constexpr int kWindow = 16, kWindowStep = 4;                             // lanes
  static constexpr int kEdges = (kWarp - kWindow) / kWindowStep, kEdgeWords = 2;  // words a step: integer log2's
  // The last rows of lanes 3, 7, 11 and 15, each by the sweep's steps, of so many words: where they begin, in words.
  static __device__ bool keeps_edge(int lane) {
    return lane % kWindowStep == kWindowStep - 1 && lane < kEdges * kWindowStep;
  }
  template <typename T>
  __host__ __device__ int64_t edge(int lane, int words) const {
    return first_edge<T>() + int64_t{lane / kWindowStep} * kSteps * chunks * words;
  }
  template <typename T>
  __host__ __device__ int64_t first_edge() const {
    return int64_t{chunks - 1} * (rows + (sizeof(T) == 4 ? 2 : 1)) * lanes;
  }
  // Of y, for a pair's lanes, with what is read ahead at either end; so that the pairs of a warp are in banks of their own.
  __host__ __device__ int window() const {
    return (lanes - 1 + kSteps * chunks + 2 * kAhead + kWarp - 1) / kWarp * kWarp + lanes;
  }
};

// Columns of a sweep in flight: more is more instructions than the caches hold.
template <int kRows>
constexpr int kColumnsAtOnce = kRows > 8 ? 2 : 4;

// Which rows of a lane count at a column: all, or those that are in the band, a bit for each. What is left of an entry outside
// is less than 2^-1042, as in a ring (kernels/banded/banded.cu).
struct AllRows {
  __device__ __forceinline__ static double entry(int, double entry) { return entry; }
};
struct RowsInBand {
  unsigned rows;

  __device__ __forceinline__ RowsInBand(const Extent& extent, int column, int first_row) {
    const int last = column - first_row - extent.low, first = column - first_row - extent.high;
    rows = (~0u << min(max(first, 0), 31)) & ((1u << min(max(last + 1, 0), 31)) - 1);
  }
  __device__ __forceinline__ bool has(int k) const { return (rows & 1u << k) != 0; }
  __device__ __forceinline__ double entry(int k, double entry) const {
    return ptx::with_upper_word_where(rows & 1u << k, entry);
  }
};
template <bool kHasBand, int kRows>
__device__ __forceinline__ auto rows_that_count(
    [[maybe_unused]] const Extent& extent, [[maybe_unused]] int lane, [[maybe_unused]] int column) {
  if constexpr (kHasBand)
    return RowsInBand(extent, column, lane * kRows);
  else
    return AllRows();
}

// What backward leaves of a pair; null where nothing is asked for.
template <typename T>
struct ShortGradient {
  T *dx, *dy, scale;

  // The first lane's sum of E (x - y) over a column and all rows.
  template <class Pair>
  __device__ __forceinline__ void leave_column(const Pair& pair, int column, T sum) const {
    if (pair.is_first_lane() && dy != nullptr && column >= 0 && column < pair.end_column()) dy[column] = sum * -scale;
  }
  // A lane's sums over its rows.
  template <class Pair>
  __device__ __forceinline__ void leave_rows(const Pair& pair, const T (&sums)[Pair::kRows]) const {
    if (dx == nullptr) return;
#pragma unroll
    for (int k = 0; k < Pair::kRows; ++k)
      if (pair.lane * Pair::kRows + k < pair.extent.n) dx[pair.lane * Pair::kRows + k] = sums[k] * scale;
  }
};

constexpr float kDeepestUnscaled = kMostRounded;  // exponent of a cost in integer log2

// A pair's penalty, in the form of the linear domain (kIsScaled) or of integer log2.
template <typename T, bool kIsScaled, class Options>
using ShortPairPenalty = std::conditional_t<
    kIsScaled, std::conditional_t<Options::kHasPenalty, LinearPenalty<T>, NoLinearPenalty<T>>,
    std::conditional_t<Options::kHasPenalty, Log2Penalty, NoLog2Penalty>>;

// What a cost is made of: the root of 1 / (gamma ln 2), which stretches numbers, or the factor itself.
template <class Cost, typename T>
__device__ __forceinline__ T factor_of_cost(const Problem<T>& problem, int64_t pair) {
  return static_cast<T>(Cost::kIsRooted ? sqrt(problem.scale_of(pair)) : problem.scale_of(pair));
}
// Of stretched numbers, from the mean of x, which most of them are near: the rounding of a number adds up along a path that stays
// near it. So far may one be, and so far those of x in the mean, in float32.
constexpr float kFarthestFromOrigin = 32, kMeanFromOrigin = 6;

// kIsScaled: costs of differences are exponents of 2. Otherwise they have to be multiplied with the factor.
template <typename T, int kRows_, bool kIsScaled_ = true, class Options = PlainOptions>
struct ShortPair {
  using Number = T;
  using Numbers = LinearNumbers<T>;
  using Cost = typename Options::template Cost<T>;
  using Penalty = ShortPairPenalty<T, kIsScaled_, Options>;
  static constexpr bool kIsWindow = false, kIsScaled = kIsScaled_, kIsStretched = kIsScaled && Cost::kIsRooted;
  static constexpr bool kHasBand = Options::kHasBand;
  static constexpr int kRows = kRows_, kSteps = ShortPairLayout::kSteps, kAhead = ShortPairLayout::kAhead;
  const int lanes, lane;
  const int64_t pair;
  Extent extent;
  T factor;
  Cost cost;
  const Penalty penalty;
  T x[kRows];
  T* line;                // y at the lane's columns: of step t at t
  int end_row, end_step;  // of the pair's last cell; a row of -1 in other lanes
  int end_chunk, chunks;  // of the pair, and the most of the warp's pairs
  T deepest;              // exponent of the pair, in size
  bool fits;              // whether the pair is wanted and valid, and its costs are within what weights can hold
  T spread;               // the mean cost between x and its mean
  bool is_noise;          // whether neighbours in x have little to do with each other

  // `memory`: for the windows of all of the warp's pairs. Pairs that are not `wanted` go along with the others. own: the lane's pair,
  // or -1.
  __device__ ShortPair(const Problem<T>& problem, const ShortPairLayout& layout, int64_t own, bool wanted, T* memory)
      : lanes(layout.lanes),
        lane(threadIdx.x & (layout.lanes - 1)),
        pair(max(own, int64_t{0})),
        extent(problem.extent(pair)),
        cost(cost_of_problem<Cost>(problem.cost, T(1))),
        penalty(problem.penalty_of(pair) * problem.scale_of(pair)) {
    const bool is_valid = extent.valid();
    if (!is_valid) extent = {1, 1, 0, 0};
    const int last = extent.n - 1, end_lane = last / kRows;
    end_row = lane == end_lane ? last % kRows : -1;
    end_step = extent.m - 1 + end_lane;
    end_chunk = end_step / kSteps;
    chunks = wanted ? end_chunk + 1 : 0;
#pragma unroll
    for (int distance = kWarp / 2; distance > 0; distance /= 2)
      chunks = max(chunks, __shfl_xor_sync(kAllLanes, chunks, distance));

    // Rows and columns past the pair's end repeat its last ones: such cells hold finite numbers that no result depends on.
    const View<const T> rows = problem.x.pair(pair), columns = problem.y.pair(pair);
    factor = kIsScaled ? factor_of_cost<Cost>(problem, pair) : static_cast<T>(problem.scale_of(pair));
    if (kIsScaled) cost = cost_of_problem<Cost>(problem.cost, factor);
    T total = 0, lowest = 0, highest = 0, y_lowest = columns.data[0], y_highest = y_lowest;
#pragma unroll
    for (int k = 0; k < kRows; ++k) {
      x[k] = rows.data[min(lane * kRows + k, last) * rows.row_stride];
      lowest = k == 0 ? x[k] : lesser(lowest, x[k]);
      highest = k == 0 ? x[k] : greater(highest, x[k]);
      total += x[k];
    }
    T* const window = memory + threadIdx.x / lanes * layout.window();
    const int numbers = lanes - 1 + kSteps * chunks + 2 * kAhead;
#pragma unroll 8
    for (int i = lane; i < numbers; i += lanes) {
      const T y = columns.data[min(max(i - (lanes - 1 + kAhead), 0), extent.m - 1) * columns.row_stride];
      window[i] = y;
      y_lowest = lesser(y_lowest, y);
      y_highest = greater(y_highest, y);
    }
    line = window + lanes - 1 + kAhead - lane;
    for (int distance = lanes / 2; distance > 0; distance /= 2) {
      total += __shfl_xor_sync(kAllLanes, total, distance);
      lowest = lesser(lowest, __shfl_xor_sync(kAllLanes, lowest, distance));
      highest = greater(highest, __shfl_xor_sync(kAllLanes, highest, distance));
      y_lowest = lesser(y_lowest, __shfl_xor_sync(kAllLanes, y_lowest, distance));
      y_highest = greater(y_highest, __shfl_xor_sync(kAllLanes, y_highest, distance));
    }
    const T mean = total / static_cast<T>(kRows * lanes), origin = kIsStretched ? mean : T(0);
    const T stretch = kIsStretched ? factor : T(1);
    // In white noise the first sum is about twice the second one.
    T apart = 0, off_mean = 0, distances = 0;
#pragma unroll
    for (int k = 0; k < kRows; ++k) {
      x[k] = (x[k] - origin) * stretch;
      if (k > 0) apart += cost.cost(x[k] - x[k - 1]);
      off_mean += cost.cost(kIsStretched ? x[k] : x[k] - mean);
      distances += DeviceMath<T>::abs(x[k]);
    }
    if constexpr (kIsStretched)
#pragma unroll 4
      for (int i = lane; i < numbers; i += lanes) window[i] = (window[i] - origin) * stretch;
    for (int distance = lanes / 2; distance > 0; distance /= 2) {
      apart += __shfl_xor_sync(kAllLanes, apart, distance);
      off_mean += __shfl_xor_sync(kAllLanes, off_mean, distance);
      distances += __shfl_xor_sync(kAllLanes, distances, distance);
    }
    is_noise = apart > off_mean;
    spread = off_mean * (kIsScaled ? T(1) : factor) / static_cast<T>(kRows * lanes);
    const T widest = greater(highest - y_lowest, y_highest - lowest);
    deepest = cost.cost(widest * stretch) * (kIsScaled ? T(1) : factor);
    const T farthest = greater(greater(highest, y_highest) - origin, origin - lesser(lowest, y_lowest)) * stretch;
    const bool is_near =
        farthest <= kFarthestFromOrigin && (sizeof(T) == 8 || distances <= kMeanFromOrigin * (kRows * lanes));
    fits = wanted && is_valid && (!kIsStretched || is_near) &&
           penalty.fits(deepest, kIsScaled ? T(Numbers::Deep::kDeepest) : T(kDeepestUnscaled));
    __syncwarp();
  }
  // Which of its warp's pairs a lane has.
  __device__ static int number(const ShortPairLayout& layout) { return threadIdx.x / layout.lanes; }
  __device__ __forceinline__ const T* columns() const { return line; }
  __device__ __forceinline__ int end_column() const { return extent.m; }
  // Binary orders that the steps of a path use by being tilted.
  __device__ __forceinline__ float tilt() const { return static_cast<float>(penalty.of_step()) * (extent.n + extent.m); }
  // Whether entries have been kept of what is before a chunk.
  __device__ __forceinline__ bool has_chunk(int chunk) const { return chunk > 0; }
  // Where the lane has its last cell; else -1.
  __device__ __forceinline__ int last_row() const { return end_row; }
  __device__ __forceinline__ auto rows_at(int column) const {
    return rows_that_count<kHasBand, kRows>(extent, lane, column);
  }
  __device__ __forceinline__ bool is_in_band(int column, int k) const { return rows_at(column).has(k); }
  // Whether shallow weights suffice for all of the warp's pairs.
  __device__ __forceinline__ bool all_shallow() const {
    if constexpr (std::is_same_v<typename Numbers::Shallow, typename Numbers::Deep>) return true;
    return __all_sync(kAllLanes, !fits || deepest <= Numbers::Shallow::kDeepest);
  }
  __device__ __forceinline__ bool is_first_lane() const { return lane == 0; }
  __device__ __forceinline__ bool is_top_lane() const { return lane == 0; }  // of the table
  __device__ __forceinline__ bool is_last_lane() const { return lane == lanes - 1; }
  // What the lane above has, and the lane below; 0 where there is none.
  __device__ __forceinline__ double from_above(double a) const {
    const double above = __shfl_up_sync(kAllLanes, a, 1, lanes);
    return is_first_lane() ? 0 : above;
  }
  __device__ __forceinline__ Entry<float> from_above(const Entry<float>& entry) const {
    return {__shfl_up_sync(kAllLanes, entry.m, 1, lanes), __shfl_up_sync(kAllLanes, entry.s, 1, lanes)};
  }
  __device__ __forceinline__ int from_above(int reference) const { return __shfl_up_sync(kAllLanes, reference, 1, lanes); }
  template <typename Number>
  __device__ __forceinline__ Number from_below(Number a) const {
    const Number below = __shfl_down_sync(kAllLanes, a, 1, lanes);
    return is_last_lane() ? 0 : below;
  }
  // Of all lanes of the pair, a bit for each.
  __device__ __forceinline__ bool any_of_pair(bool vote) const {
    const unsigned votes = __ballot_sync(kAllLanes, vote) >> (threadIdx.x & ~(lanes - 1));
    return (votes & (0xffffffffu >> (kWarp - lanes))) != 0;
  }
};

}  // namespace softdtw
