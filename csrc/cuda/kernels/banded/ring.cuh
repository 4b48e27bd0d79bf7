// Where the lanes of a pair are in its band, and what a lane knows of its pair (banded.cuh has the equations).
#pragma once

#include "cuda/costs/tile.cuh"
#include "cuda/kernels/linear_domain/linear_domain_sweep.cuh"
#include "cuda/select/blocks.h"

namespace softdtw {

// How the pairs of a problem are laid out in memory.
struct RingLayout {
  static constexpr int kAhead = 3;  // columns that ColumnsAhead reads at most beyond those of a sweep
  int lanes, rows;                  // of a pair, of a lane
  int x_floats;                     // of a pair's x: whole blocks
  int y_floats;                     // of y, with what lanes read before and behind the table
  int chunks;                       // of a pair of the problem's full lengths

  __host__ RingLayout(int n, int m, const Ring& ring) : lanes(ring.lanes), rows(ring.rows) {
    const int groups = (m - 1 + (n - 1) / rows) / (rows + 1) + 2;
    chunks = (groups + groups_of_chunk() - 1) / groups_of_chunk();
    x_floats = ((n + rows - 1) / rows * rows + 3) / 4 * 4;
    y_floats = (before() + chunks * groups_of_chunk() * rows + lanes + kAhead + 3) / 4 * 4;
  }
  __host__ explicit RingLayout(const Problem<float>& problem)
      : RingLayout(static_cast<int>(problem.n), static_cast<int>(problem.m), ring_of(call_of(problem, false))) {}
  __host__ __device__ int pairs() const { return kWarp / lanes; }  // of a warp
  // Groups of rows + 1 steps that backward rebuilds at once.
  __host__ __device__ int groups_of_chunk() const { return groups_of_chunk(rows); }
  __host__ __device__ static constexpr int groups_of_chunk(int rows) { return rows <= 4 ? 2 : 1; }
  // Of y: where column 0 is.
  __host__ __device__ int before() const { return rows + lanes + kAhead; }
  // Of shared memory. So the pairs of a warp are in banks of their own.
  __host__ __device__ int floats_of_pair() const { return (x_floats + y_floats + kWarp - 1) / kWarp * kWarp + lanes; }
  // What forward keeps of a pair: x and y as the sweep reads them, and the largest exponent of a cost; then what the lanes hold
  // before every chunk but the first, whose start is known.
  __host__ __device__ int words_of_series() const { return x_floats + y_floats + 4; }
  __host__ __device__ int words_of_chunk() const { return (rows + 1) * lanes; }
  __host__ __device__ int64_t bytes_of_pair() const {
    return (words_of_series() + int64_t{chunks - 1} * words_of_chunk()) * sizeof(int);
  }
};

// Several words of a lane at a time, of entries and of numbers: four where four divide its rows, else two.
template <int kRows, bool kInFours = kRows % 4 == 0>
struct RingWords {
  using Numbers = LinearNumbers<float>;
  static constexpr int kCount = 4;
  using Type = int4;

  __device__ __forceinline__ static int4 pack(const double* a) { return Numbers::pack(a); }
  __device__ __forceinline__ static int4 pack_rounded(const double* a) {
    return make_int4(Numbers::word(a[0]), Numbers::word(a[1]), Numbers::word(a[2]), Numbers::word(a[3]));
  }
  __device__ __forceinline__ static void unpack(const int4& words, double* a) { Numbers::unpack(words, a); }
  __device__ __forceinline__ static void read(const float* from, float* x) {
    const float4 four = *reinterpret_cast<const float4*>(from);
    x[0] = four.x, x[1] = four.y, x[2] = four.z, x[3] = four.w;
  }
};

template <int kRows>
struct RingWords<kRows, false> {
  using Numbers = LinearNumbers<float>;
  static constexpr int kCount = 2;
  using Type = int2;

  __device__ __forceinline__ static int2 pack(const double* a) {
    return make_int2(__double2hiint(a[0]), __double2hiint(a[1]));
  }
  __device__ __forceinline__ static int2 pack_rounded(const double* a) {
    return make_int2(Numbers::word(a[0]), Numbers::word(a[1]));
  }
  __device__ __forceinline__ static void unpack(const int2& words, double* a) {
    a[0] = __hiloint2double(words.x, words.x);
    a[1] = __hiloint2double(words.y, words.x);
  }
  __device__ __forceinline__ static void read(const float* from, float* x) {
    const float2 two = *reinterpret_cast<const float2*>(from);
    x[0] = two.x, x[1] = two.y;
  }
};

template <class Weight, int kRows>
using RingWeights = LinearWeights<Weight, kRows % 4 == 0 ? 4 : 3>;
// Steps of a loop over a group that are in flight.
template <int kRows>
constexpr int kStepsAtOnce = kRows == 8 ? 3 : kRows + 1;

template <int kRows_>
struct RingPair {
  using Numbers = LinearNumbers<float>;
  using Words = RingWords<kRows_>;
  // As short pairs have them (warp_pair.cuh): all that knows the cost or the penalty.
  using Options = PlainOptions;
  using Cost = typename Options::template Cost<float>;
  using Penalty = ShortPairPenalty<float, true, Options>;
  static constexpr int kRows = kRows_, kGroup = kRows + 1, kAhead = RingLayout::kAhead;
  const int lanes, lane;
  const int64_t pair;
  Extent extent;
  const float factor;
  const Cost cost;
  const Penalty penalty;
  int width;                       // of the band: columns of a row
  int first_group, entry;          // entry: the step of the first group in which a path comes to the table's first cell
  int groups, last_step;           // of the pair; of the last group
  int most_groups, fewest_groups;  // of the warp's pairs
  const float *rows, *line;        // x, and y from its column 0 on
  float x[kRows], deepest;
  bool fits;     // whether the pair is wanted and valid, its ring wide enough, and its costs within what weights can hold
  int foreseen;  // groups of the pair, if costs go on along any path as they begin

  // Pairs that are not `wanted` go along with the others.
  __device__ RingPair(const Problem<float>& problem, const RingLayout& layout, int64_t first_pair, bool wanted)
      : lanes(layout.lanes),
        lane(threadIdx.x & (layout.lanes - 1)),
        pair(min(number(layout, first_pair), problem.batch - 1)),
        extent(problem.extent(pair)),
        factor(factor_of_cost<Cost>(problem, pair)),
        cost(factor),
        penalty(problem.penalty_of(pair) * problem.scale_of(pair)) {
    fits = wanted && extent.valid() && extent.high - extent.low + 1 + kRows + 1 <= layout.lanes * kGroup;
    if (!fits) extent = {1, 1, 0, 0};
    width = extent.high - extent.low + 1;
    const int first_step = 1 - extent.low, end_step = extent.m - extent.low + last_block();
    first_group = first_step / kGroup;
    entry = first_step % kGroup;
    groups = end_step / kGroup - first_group + 1;
    last_step = end_step % kGroup;
    most_groups = wanted ? groups : 0;
    fewest_groups = groups;
#pragma unroll
    for (int distance = kWarp / 2; distance > 0; distance /= 2) {
      most_groups = max(most_groups, __shfl_xor_sync(kAllLanes, most_groups, distance));
      fewest_groups = min(fewest_groups, __shfl_xor_sync(kAllLanes, fewest_groups, distance));
    }
  }
  // Forward: the series from where they are, to shared memory for the warp's pairs, and to what is kept, if it is.
  __device__ __forceinline__ void read_series(
      const Problem<float>& problem, const RingLayout& layout, float* memory, float* kept) {
    float* const own = memory + threadIdx.x / lanes * layout.floats_of_pair();
    const View<const float> x_view = problem.x.pair(pair), y_view = problem.y.pair(pair);
    const float origin = y_view.data[0];
    float lowest = 0, highest = 0, y_lowest = 0, y_highest = 0;
    // Rows and columns past the pair's end, or before its start, repeat its last ones, or its first: such cells hold finite
    // numbers that no result depends on. Many at once, since most of the time goes into waiting for them.
    constexpr int kAtOnce = 16;
    for (int first = lane; first < max(layout.x_floats, layout.y_floats); first += kAtOnce * lanes) {
      float of_x[kAtOnce], of_y[kAtOnce];
#pragma unroll
      for (int i = 0; i < kAtOnce; ++i) {
        const int place = first + i * lanes;
        of_x[i] = x_view.data[min(place, extent.n - 1) * x_view.row_stride];
        of_y[i] = y_view.data[min(max(place - layout.before(), 0), extent.m - 1) * y_view.row_stride];
      }
#pragma unroll
      for (int i = 0; i < kAtOnce; ++i) {
        const int place = first + i * lanes;
        put(place, layout.x_floats, (of_x[i] - origin) * factor, own, kept, lowest, highest);
        put(place, layout.y_floats, (of_y[i] - origin) * factor, own + layout.x_floats,
            kept == nullptr ? nullptr : kept + layout.x_floats, y_lowest, y_highest);
      }
    }
    __syncwarp();
    for (int distance = lanes / 2; distance > 0; distance /= 2) {
      lowest = lesser(lowest, __shfl_xor_sync(kAllLanes, lowest, distance));
      highest = greater(highest, __shfl_xor_sync(kAllLanes, highest, distance));
      y_lowest = lesser(y_lowest, __shfl_xor_sync(kAllLanes, y_lowest, distance));
      y_highest = greater(y_highest, __shfl_xor_sync(kAllLanes, y_highest, distance));
    }
    // As short pairs have it (kernels/linear_domain/warp_pair.cuh).
    const float middle = 0.5f * lesser(lowest, y_lowest) + 0.5f * greater(highest, y_highest);
    float apart = 0, off_middle = 0;
#pragma unroll 8
    for (int i = lane; i < extent.n - 1; i += lanes) {
      apart += cost.cost(own[i + 1] - own[i]);
      off_middle += cost.cost(own[i] - middle);
    }
    for (int distance = lanes / 2; distance > 0; distance /= 2) {
      apart += __shfl_xor_sync(kAllLanes, apart, distance);
      off_middle += __shfl_xor_sync(kAllLanes, off_middle, distance);
    }
    foreseen = apart > off_middle ? groups : 0;
    const float farthest = greater(greater(-lowest, highest), greater(-y_lowest, y_highest));
    const float widest = greater(highest - y_lowest, y_highest - lowest);
    deepest = cost.cost(widest);
    fits = fits && farthest <= kFarthestFromOrigin && penalty.fits(deepest, Numbers::Deep::kDeepest);
    if (kept != nullptr && lane == 0) kept[layout.x_floats + layout.y_floats] = deepest;
    find_series(layout, own);
  }
  // Backward: as they have been kept, to shared memory.
  __device__ __forceinline__ void read_kept_series(const RingLayout& layout, float* memory, const float* kept) {
    float* const own = memory + threadIdx.x / lanes * layout.floats_of_pair();
    deepest = kept[layout.x_floats + layout.y_floats];
#pragma unroll 8
    for (int i = lane; i < (layout.x_floats + layout.y_floats) / 4; i += lanes)
      reinterpret_cast<int4*>(own)[i] = __ldcs(reinterpret_cast<const int4*>(kept) + i);
    __syncwarp();
    find_series(layout, own);
  }
  // Which pair a lane has, or would have.
  __device__ static int64_t number(const RingLayout& layout, int64_t first_pair) {
    return first_pair + threadIdx.x / layout.lanes;
  }
  __device__ __forceinline__ int last_block() const { return (extent.n - 1) / kRows; }
  __device__ __forceinline__ bool all_shallow() const {
    return __all_sync(kAllLanes, !fits || deepest <= Numbers::Shallow::kDeepest);
  }
  // How many blocks a lane's is older than the one that enters with the pair's group i; and which block it is.
  __device__ __forceinline__ int age(int i) const { return (first_group + i - lane) & (lanes - 1); }
  __device__ __forceinline__ int block(int i) const { return first_group + i - age(i); }
  // y at the lane's column in step r of group i: at r of this.
  __device__ __forceinline__ const float* columns(int i) const {
    return line + (first_group + i) * kGroup + extent.low - 1 - block(i);
  }
  __device__ __forceinline__ void take_rows(int block) {
    const float* const from = rows + min(max(block, 0), last_block()) * kRows;
#pragma unroll
    for (int k = 0; k < kRows; k += Words::kCount) Words::read(from + k, x + k);
  }
  // Which of a lane's cells are in the band: in step r of its group, bit kRows - 1 - k of the mask shifted by r for row k.
  __device__ __forceinline__ unsigned mask(int age) const {
    const int end = width + kRows - 1 - kGroup * age;  // the last bit
    const unsigned up_to = end < 0 ? 0 : end >= 31 ? ~0u : (2u << end) - 1;
    return age == 0 ? up_to & (~0u << kRows) : up_to;
  }
  // Not 0 if it is.
  __device__ __forceinline__ static unsigned is_inside(unsigned mask, int k) { return mask & 1u << (kRows - 1 - k); }
  // The weight of row k, 0 outside the band: two selections, of which the sums from row to row do not wait. Or the entry that comes
  // of it, by one selection: without its upper word it is less than 2^-1042. That pays where there are more warps.
  static constexpr bool kSelectsWeights = kRows <= 4;
  __device__ __forceinline__ static double weight_of_band(unsigned mask, int k, double weight) {
    return !kSelectsWeights || is_inside(mask, k) ? weight : 0;
  }
  __device__ __forceinline__ static double entry_of_band(unsigned mask, int k, double entry) {
    return kSelectsWeights ? entry : ptx::with_upper_word_where(is_inside(mask, k), entry);
  }
  __device__ __forceinline__ int neighbour(int by) const {
    return (threadIdx.x & ~(lanes - 1)) | ((lane + by) & (lanes - 1));
  }
  __device__ __forceinline__ bool is_block_of_last_row(int i) const { return block(i) == last_block(); }
  // Of all lanes of the pair.
  __device__ __forceinline__ bool any_of_pair(bool vote) const {
    const unsigned votes = __ballot_sync(kAllLanes, vote) >> (threadIdx.x & ~(lanes - 1));
    return (votes & (0xffffffffu >> (kWarp - lanes))) != 0;
  }

 private:
  __device__ __forceinline__ void find_series(const RingLayout& layout, const float* own) {
    rows = own;
    line = own + layout.x_floats + layout.before();
  }
  // One of so many numbers of a series.
  __device__ __forceinline__ static void put(
      int place, int floats, float number, float* to, float* kept, float& lowest, float& highest) {
    if (place < floats) to[place] = number;
    if (place < floats && kept != nullptr) kept[place] = number;
    lowest = lesser(lowest, number);
    highest = greater(highest, number);
  }
};

// A lane between two columns.
template <int kRows>
struct RingState {
  using Numbers = LinearNumbers<float>;
  double left[kRows];  // its rows at the column it has just left; 0 outside the band
  double diag;         // the row above them, one column before

  __device__ __forceinline__ void start() {
#pragma unroll
    for (int k = 0; k < kRows; ++k) left[k] = 0;
    diag = 0;
  }
  // No later entry exceeds the largest of these.
  __device__ __forceinline__ int highest_exponent() const {
    int highest = __double2hiint(diag);
#pragma unroll
    for (int k = 0; k < kRows; ++k) highest = max(highest, __double2hiint(left[k]));
    return (highest >> 20) - kBias;
  }
  // `from`: the lane of the block above. `mask`: of RingPair, shifted.
  template <class Weight, class Pair>
  __device__ __forceinline__ void step(
      const Pair& pair, int from, unsigned mask, RingWeights<Weight, kRows>& weights,
      const ColumnsAhead<float, 1>& columns) {
    double up = __shfl_sync(kAllLanes, left[kRows - 1], from);
    double upper_left = diag;
    diag = up;
#pragma unroll
    for (int k = 0; k < kRows; ++k) {
      const double weight = Pair::weight_of_band(mask, k, weights.of_row(k).get(pair));
      weights.start(pair, k, columns);
      const double others = weight * fma(upper_left, pair.penalty.diagonal(), left[k]);
      upper_left = left[k];
      left[k] = up = Pair::entry_of_band(mask, k, fma(weight, up, others));
    }
  }
  // Several words of a lane at a time, and the last one.
  __device__ __forceinline__ void keep(int* words, int lanes, int lane) const {
    using Words = RingWords<kRows>;
#pragma unroll
    for (int k = 0; k < kRows; k += Words::kCount)
      reinterpret_cast<typename Words::Type*>(words)[k / Words::kCount * lanes + lane] = Words::pack_rounded(left + k);
    words[kRows * lanes + lane] = Numbers::word(diag);
  }
};

}  // namespace softdtw
