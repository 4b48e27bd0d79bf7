// Edr and Lcss, whose gradients to series are 0, by soft strips.
#include "cuda/kernels/elastic/soft/soft_launch.cuh"

namespace softdtw {

// All gaps cost 1.
template <class S>
struct SoftUnitGaps {
  using T = typename S::Scalar;
  const Entry<T> all;

  __device__ explicit SoftUnitGaps(T scale) : all(Recurrences<S>::Plain::split(T(1), scale)) {}
  template <class R>
  __device__ __forceinline__ typename R::Cell split() const {
    return {all.m, all.s};
  }
  __device__ __forceinline__ T at_column(int) const { return 1; }
  template <class Sums>
  __device__ __forceinline__ void add_costs(const Steps<T>& masses, Sums& sums) const {
    sums.add_cost(masses.up, T(1));
    sums.add_cost(masses.left, T(1));
  }
};

// Edr and Lcss: a match is free, all else costs the same.
template <class S_>
struct SoftThreshold {
  using S = S_;
  using T = typename S::Scalar;
  using Series = SoftSeries<S, NumberSource<S>, 0>;
  using Column = typename Series::Column;
  using Memory = typename Series::Shared;
  static constexpr int kForwardBlocks = 4, kBackwardBlocks = 3;
  static constexpr bool kLooksUp = false, kLooksBack = false, kCountsOnward = false, kHasGaps = false;
  Series series;
  SoftUnitGaps<S> gaps;
  const T epsilon, scale;
  const bool is_lcss;
  const Entry<T> apart;

  __device__ SoftThreshold(
      Memory& memory, const ElasticTable<T>& problem, const ElasticPlace& at, int64_t pair, const Strip<S>& strip, int row,
      T scale_)
      : series(memory, NumberSource<S>(problem, at, pair), problem, at, pair, row),
        gaps(scale_),
        epsilon(static_cast<T>(problem.parameter_of(pair))),
        scale(scale_),
        is_lcss(problem.measure == Measure::kLcss),
        apart(Recurrences<S>::Plain::split(is_lcss ? T(2) : T(1), scale_)) {
    series.of_strip = reach_of(series.ranges_of(strip));
  }
  __device__ __forceinline__ void use(const Place<S>& place) { series.use(place); }
  __device__ __forceinline__ T reach_of(const typename Series::Ranges& ranges) const {
    const T widest = series.widest(ranges);
    return T(2) + (widest - widest);  // NaN where a distance may be infinite
  }
  __device__ __forceinline__ T reach() const {
    return series.reach(scale, [&](const auto& ranges) { return reach_of(ranges); });
  }
  __device__ __forceinline__ bool is_match(T difference) const {
    const T distance = DeviceMath<T>::abs(difference);
    return is_lcss ? distance <= epsilon : distance < epsilon;
  }

  template <class R>
  struct Cells {
    const SoftThreshold& tile;
    Column now;

    __device__ __forceinline__ void enter(int t) { now = tile.series.column(t); }
    __device__ __forceinline__ Steps<typename R::Cell> steps(int k, int) {
      const T difference = tile.series.template difference<T>(k, now);
      const bool match = tile.is_match(difference);
      typename R::Cell diagonal = {match ? T(0) : tile.apart.m, match ? T(1) : tile.apart.s};
      if constexpr (R::kIsGeneral) diagonal.s += difference - difference;
      return {diagonal, tile.gaps.template split<R>(), tile.gaps.template split<R>()};
    }
  };
  template <class R>
  __device__ __forceinline__ Cells<R> cells(const Place<S>&, decltype(R::scale)) const {
    return {*this, {}};
  }

  template <class Sums>
  __device__ __forceinline__ void add_slopes(int, int, const Steps<T>&, T, Sums&) const {}
  template <class Sums>
  __device__ __forceinline__ void add_costs(int k, int, const Steps<T>& masses, T, Sums& sums) const {
    const bool match = is_match(series.template difference<T>(k, sums.now));
    sums.add_cost(masses.diagonal, match ? T(0) : is_lcss ? T(2) : T(1));
    gaps.add_costs(masses, sums);
  }
};

SOFTDTW_INSTANTIATE_SOFT_FORWARD(SoftThreshold, float)
SOFTDTW_INSTANTIATE_SOFT_BACKWARD(SoftThreshold, true, float)
SOFTDTW_INSTANTIATE_SOFT_FORWARD(SoftThreshold, double)
SOFTDTW_INSTANTIATE_SOFT_BACKWARD(SoftThreshold, true, double)

}  // namespace softdtw
