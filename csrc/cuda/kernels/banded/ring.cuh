// What a lane knows of its pair, and its cells, in the linear domain. ring_band.cuh says where they are.
#pragma once

#include "cuda/kernels/linear_domain/linear_domain_sweep.cuh"
#include "ring_band.cuh"

namespace softdtw {

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
};

template <class Weight, int kRows>
using RingWeights = LinearWeights<Weight, kRows % 4 == 0 ? 4 : 3>;

struct RingGradient;  // ring_backward.cuh

template <int kRows_>
struct RingPair : RingNumbers<kRows_> {
  using Gradient = RingGradient;
  using Band = RingNumbers<kRows_>;
  using Numbers = LinearNumbers<float>;
  // As short pairs have them (warp_pair.cuh): all that knows the cost or the penalty.
  using Options = PlainOptions;
  using Cost = typename Options::template Cost<float>;
  using Penalty = ShortPairPenalty<float, true, Options>;
  using Band::extent, Band::fits, Band::groups, Band::lane, Band::lanes, Band::line, Band::rows;
  static constexpr int kRows = kRows_;
  const int64_t pair;
  const float factor;
  const Cost cost;
  const Penalty penalty;
  float deepest;  // exponent of a cost, at most; a pair whose costs weights cannot hold does not fit
  int foreseen;   // groups of the pair, if costs go on along any path as they begin

  // Pairs that are not `wanted` go along with the others.
  __device__ RingPair(const Problem<float>& problem, const RingLayout& layout, int64_t pair_, bool wanted)
      : Band(layout, problem.extent(pair_), wanted),
        pair(pair_),
        factor(factor_of_cost<Cost>(problem, pair)),
        cost(factor),
        penalty(problem.penalty_of(pair) * problem.scale_of(pair)) {}
  // Forward: the series from where they are, to shared memory for the warp's pairs, and to what is kept, if it is.
  __device__ __forceinline__ void read_series(
      const Problem<float>& problem, const RingLayout& layout, float* memory, float* kept) {
    float* const own = this->find_own(layout, memory);
    const View<const float> y_view = problem.y.pair(pair);
    const float origin = y_view.data[0];
    const RangeOfSeries range = this->copy_series(
        problem.x.pair(pair), y_view, layout, own, kept, [&](float number) { return (number - origin) * factor; });
    const auto [lowest, highest, y_lowest, y_highest] = range;
    // As short pairs have it (kernels/warp_pair/warp_pair.cuh).
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
    deepest = cost.cost(range.widest());
    fits = fits && farthest <= kFarthestFromOrigin && penalty.fits(deepest, Numbers::Deep::kDeepest);
    if (kept != nullptr && lane == 0) kept[layout.x_floats + layout.y_floats] = deepest;
  }
  // Backward: as they have been kept, to shared memory.
  __device__ __forceinline__ void read_kept_series(const RingLayout& layout, float* memory, const float* kept) {
    deepest = kept[layout.x_floats + layout.y_floats];
    this->copy_kept_series(layout, this->find_own(layout, memory), kept);
  }
  __device__ __forceinline__ static int groups_with_start() { return 1; }
  __device__ __forceinline__ float stretch() const { return factor; }  // of the series as they are read
  __device__ __forceinline__ bool all_shallow() const {
    return __all_sync(kAllLanes, !fits || deepest <= Numbers::Shallow::kDeepest);
  }
  // The weight of row k, 0 outside the band: two selections, of which the sums from row to row do not wait. Or the entry that comes
  // of it, by one selection: without its upper word it is less than 2^-1042. That pays where there are more warps.
  static constexpr bool kSelectsWeights = kRows <= 4;
  __device__ __forceinline__ static double weight_of_band(unsigned mask, int k, double weight) {
    return !kSelectsWeights || Band::is_inside(mask, k) ? weight : 0;
  }
  __device__ __forceinline__ static double entry_of_band(unsigned mask, int k, double entry) {
    return kSelectsWeights ? entry : ptx::with_upper_word_where(Band::is_inside(mask, k), entry);
  }
};

// A lane's entries between two columns.
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

// A lane's entries and the weights on their way, as RingSweep has them.
template <class Weight, int kRows>
struct RingCells {
  RingState<kRows> state;
  RingWeights<Weight, kRows> weights;

  __device__ __forceinline__ RingCells(const RingPair<kRows>& pair, const ColumnsAhead<float, 1>& columns)
      : weights(pair, columns) {}
  __device__ __forceinline__ static void begin_group(const RingPair<kRows>&, int) {}
  __device__ __forceinline__ const double (&of_backward() const)[kRows] { return state.left; }
  __device__ __forceinline__ void enter(const RingPair<kRows>& pair) { state.diag = power_of_two(pair.penalty.top()); }
  __device__ __forceinline__ void step(
      const RingPair<kRows>& pair, int from, unsigned mask, const ColumnsAhead<float, 1>& columns) {
    state.template step<Weight>(pair, from, mask, weights, columns);
  }
};

}  // namespace softdtw
