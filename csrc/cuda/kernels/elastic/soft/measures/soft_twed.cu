// Time warp edit distance by soft strips.
#include "cuda/kernels/elastic/soft/soft_launch.cuh"

namespace softdtw {

// Twed. a = |x - y| + unit |t - s|; without times the places are those, and exact.
template <class S_>
struct SoftTwed {
  using S = S_;
  using T = typename S::Scalar;
  using Series = SoftSeries<S, GapSource<S>, 1>;
  using Column = typename Series::Column;
  using Memory = typename Series::Shared;
  static constexpr int kForwardBlocks = 3, kBackwardBlocks = 2;
  static constexpr bool kLooksUp = true, kLooksBack = false, kCountsOnward = true, kHasGaps = true;
  Series series;
  SoftGaps<S> gaps;
  T x_times[S::kRows + 1];  // the row above
  const T unit, scale;

  __device__ SoftTwed(
      Memory& memory, const ElasticTable<T>& problem, const ElasticPlace& at, int64_t pair, const Strip<S>& strip, int row,
      T scale_)
      : series(memory, GapSource<S>(problem, at, pair, scale_), problem, at, pair, row),
        gaps(problem, series.source, pair, row, scale_),
        unit(problem.x_times.data != nullptr ? T(1) : static_cast<T>(problem.parameter_of(pair))),
        scale(scale_) {
    if (problem.x_times.data != nullptr)
      load_rows<S, 1>(problem.x_times.of(problem.x.of(pair)).data, problem.x_times.stride, at, row, x_times);
    else
#pragma unroll
      for (int k = 0; k <= S::kRows; ++k) x_times[k] = static_cast<T>(row + k - 1);
    series.of_strip = reach_of(series.ranges_of(strip));
  }
  __device__ __forceinline__ void use(const Place<S>& place) { series.use(place); }
  __device__ __forceinline__ T reach_of(const typename Series::Ranges& ranges) const {
    Range<T> of_rows;
#pragma unroll
    for (int k = 0; k <= S::kRows; ++k) of_rows.add(x_times[k]);
    const T widest = DeviceMath<T>::fma(of_rows.apart(ranges.times), DeviceMath<T>::abs(unit), series.widest(ranges));
    return greater(widest + widest, gaps.reach(ranges));
  }
  __device__ __forceinline__ T reach() const {
    return series.reach(scale, [&](const auto& ranges) { return reach_of(ranges); });
  }
  template <typename V>
  __device__ __forceinline__ V between_times(int k, const Column& column) const {
    return static_cast<V>(x_times[k + 1]) - static_cast<V>(column.time);
  }
  template <typename V>
  __device__ __forceinline__ V match(int k, const Column& column) const {
    const V distance = DeviceMath<V>::abs(series.template difference<V>(k, column));
    return DeviceMath<V>::fma(DeviceMath<V>::abs(between_times<V>(k, column)), static_cast<V>(unit), distance);
  }

  // a[i-1,j-1] is what was computed a column ago, for the row above among others.
  template <class R>
  struct Cells {
    using V = decltype(R::scale);
    const SoftTwed& tile;
    const V scale;
    V before[S::kRows], above = 0;
    Column now;
    typename R::Cell left;

    __device__ __forceinline__ Cells(const SoftTwed& tile_, const Place<S>& place, V scale_)
        : tile(tile_), scale(scale_), now(tile_.series.column(-1)) {
#pragma unroll
      for (int k = 0; k < S::kRows; ++k) before[k] = tile.template match<V>(k - 1, now);
      if (place.row == 0 && place.column == 0) before[0] = 0;
    }
    __device__ __forceinline__ void enter(int t) {
      now = tile.series.column(t);
      above = tile.template match<V>(-1, now);
      left = tile.gaps.template split_column<R>(now, tile.series.first + t, scale);
    }
    __device__ __forceinline__ Steps<typename R::Cell> steps(int k, int) {
      const V own = tile.template match<V>(k, now), both = own + before[k];
      before[k] = above;
      above = own;
      return {R::split(both, scale), tile.gaps.template split_row<R>(k, scale), left};
    }
  };
  template <class R>
  __device__ __forceinline__ Cells<R> cells(const Place<S>& place, decltype(R::scale) scale) const {
    return Cells<R>(*this, place, scale);
  }

  // a of a cell counts for the diagonal step into it, and for the one out of it, `onward`.
  template <class Sums>
  __device__ __forceinline__ void add_slopes(int k, int, const Steps<T>& masses, T onward, Sums& sums) const {
    const T mass = masses.diagonal + onward;
    sums.add_difference(k, with_sign_of(series.template difference<T>(k, sums.now), mass));
    if constexpr (Sums::kHasTimes) sums.add_times(k, with_sign_of(between_times<T>(k, sums.now), mass));
  }
  template <class Sums>
  __device__ __forceinline__ void add_costs(int k, int t, const Steps<T>& masses, T onward, Sums& sums) const {
    sums.add_cost(masses.diagonal + onward, match<double>(k, sums.now));
    if (k >= 0) gaps.add_costs(k, series.first + t, masses, sums);
  }
};

SOFTDTW_INSTANTIATE_SOFT_FORWARD(SoftTwed, float)
SOFTDTW_INSTANTIATE_SOFT_BACKWARD(SoftTwed, false, float)
SOFTDTW_INSTANTIATE_SOFT_BACKWARD(SoftTwed, true, float)
SOFTDTW_INSTANTIATE_SOFT_FORWARD(SoftTwed, double)
SOFTDTW_INSTANTIATE_SOFT_BACKWARD(SoftTwed, false, double)
SOFTDTW_INSTANTIATE_SOFT_BACKWARD(SoftTwed, true, double)

}  // namespace softdtw
