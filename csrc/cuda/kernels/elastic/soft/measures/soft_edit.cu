// The edit distance with real penalties by soft strips.
#include "cuda/kernels/elastic/soft/soft_launch.cuh"

namespace softdtw {

// Edit.
template <class S_>
struct SoftEdit {
  using S = S_;
  using T = typename S::Scalar;
  using Series = SoftSeries<S, GapSource<S>, 0>;
  using Column = typename Series::Column;
  using Memory = typename Series::Shared;
  static constexpr int kForwardBlocks = 3, kBackwardBlocks = 2;
  static constexpr bool kLooksUp = false, kLooksBack = false, kCountsOnward = false, kHasGaps = true;
  Series series;
  SoftGaps<S> gaps;
  const T scale;

  __device__ SoftEdit(
      Memory& memory, const ElasticTable<T>& problem, const ElasticPlace& at, int64_t pair, const Strip<S>& strip, int row,
      T scale_)
      : series(memory, GapSource<S>(problem, at, pair, scale_), problem, at, pair, row),
        gaps(problem, series.source, pair, row, scale_),
        scale(scale_) {
    series.of_strip = reach_of(series.ranges_of(strip));
  }
  __device__ __forceinline__ void use(const Place<S>& place) { series.use(place); }
  __device__ __forceinline__ T reach_of(const typename Series::Ranges& ranges) const {
    return greater(series.widest(ranges), gaps.reach(ranges));
  }
  __device__ __forceinline__ T reach() const {
    return series.reach(scale, [&](const auto& ranges) { return reach_of(ranges); });
  }
  template <class R>
  struct Cells {
    using V = decltype(R::scale);
    const SoftEdit& tile;
    const V scale;
    Column now;
    typename R::Cell left;

    __device__ __forceinline__ void enter(int t) {
      now = tile.series.column(t);
      left = tile.gaps.template split_column<R>(now, tile.series.first + t, scale);
    }
    __device__ __forceinline__ Steps<typename R::Cell> steps(int k, int) {
      const V distance = DeviceMath<V>::abs(tile.series.template difference<V>(k, now));
      return {R::split(distance, scale), tile.gaps.template split_row<R>(k, scale), left};
    }
  };
  template <class R>
  __device__ __forceinline__ Cells<R> cells(const Place<S>&, decltype(R::scale) scale) const {
    return {*this, scale, {}, {}};
  }

  template <class Sums>
  __device__ __forceinline__ void add_slopes(int k, int, const Steps<T>& masses, T, Sums& sums) const {
    sums.add_difference(k, with_sign_of(series.template difference<T>(k, sums.now), masses.diagonal));
  }
  template <class Sums>
  __device__ __forceinline__ void add_costs(int k, int t, const Steps<T>& masses, T, Sums& sums) const {
    sums.add_cost(masses.diagonal, DeviceMath<double>::abs(series.template difference<double>(k, sums.now)));
    gaps.add_costs(k, series.first + t, masses, sums);
  }
};

SOFTDTW_INSTANTIATE_SOFT_FORWARD(SoftEdit, float)
SOFTDTW_INSTANTIATE_SOFT_BACKWARD(SoftEdit, false, float)
SOFTDTW_INSTANTIATE_SOFT_BACKWARD(SoftEdit, true, float)
SOFTDTW_INSTANTIATE_SOFT_FORWARD(SoftEdit, double)
SOFTDTW_INSTANTIATE_SOFT_BACKWARD(SoftEdit, false, double)
SOFTDTW_INSTANTIATE_SOFT_BACKWARD(SoftEdit, true, double)

}  // namespace softdtw
