// Edr and Lcss, whose gradients to series are 0, by soft strips.
#include "cuda/kernels/elastic/soft/soft_launch.cuh"

namespace softdtw {

// All gaps cost 1.
template <class S>
struct SoftUnitGaps {
  using T = typename S::Scalar;
  const Entry<T> all;
  static constexpr T reach = 1;

  __device__ SoftUnitGaps(const ElasticTable<T>&, const ElasticPlace&, int64_t, int, T scale)
      : all(Recurrences<S>::Plain::split(T(1), scale)) {}
  __device__ __forceinline__ void use(const Place<S>&) {}
  __device__ __forceinline__ T of_column(int) const { return 1; }
  template <class R>
  __device__ __forceinline__ typename R::Cell split_row(int, decltype(R::scale)) const {
    return {all.m, all.s};
  }
  template <class R>
  __device__ __forceinline__ typename R::Cell split_column(int, decltype(R::scale)) const {
    return {all.m, all.s};
  }
  __device__ __forceinline__ T at_column(int) const { return 1; }
  template <class Sums>
  __device__ __forceinline__ void add_costs(int, int, const Steps<T>& masses, Sums& sums) const {
    sums.add_cost(masses.up, T(1));
    sums.add_cost(masses.left, T(1));
  }
};

// Edr and Lcss: a match is free, all else costs the same.
template <class S_>
struct SoftThreshold {
  using S = S_;
  using T = typename S::Scalar;
  static constexpr int kForwardBlocks = 4;
  static constexpr bool kLooksUp = false, kCountsOnward = false, kHasGaps = false;
  SoftSeries<S, 0> series;
  SoftUnitGaps<S> gaps;
  const T epsilon;
  const bool is_lcss;
  const Entry<T> apart;
  T reach = 0;

  __device__ SoftThreshold(const ElasticTable<T>& problem, const ElasticPlace& at, int64_t pair, int row, T scale)
      : series(problem, at, pair, row),
        gaps(problem, at, pair, row, scale),
        epsilon(static_cast<T>(problem.parameter_of(pair))),
        is_lcss(problem.measure == Measure::kLcss),
        apart(Recurrences<S>::Plain::split(is_lcss ? T(2) : T(1), scale)) {}
  __device__ __forceinline__ void fetch(const Place<S>& place) { series.fetch(place); }
  __device__ __forceinline__ void use(const Place<S>&) {
    series.use();
    const T widest = series.widest();
    reach = T(2) + (widest - widest);  // NaN where a distance may be infinite
  }
  __device__ __forceinline__ bool is_match(int k, int t) const {
    const T distance = DeviceMath<T>::abs(series.template difference<T>(k, t));
    return is_lcss ? distance <= epsilon : distance < epsilon;
  }

  template <class R>
  struct Cells {
    const SoftThreshold& tile;

    __device__ __forceinline__ void enter(int) {}
    __device__ __forceinline__ Steps<typename R::Cell> steps(int k, int t) {
      const bool match = tile.is_match(k, t);
      const T distance = tile.series.template difference<T>(k, t);
      typename R::Cell diagonal = {match ? T(0) : tile.apart.m, match ? T(1) : tile.apart.s};
      if constexpr (R::kIsGeneral) diagonal.s += distance - distance;
      return {diagonal, tile.gaps.template split_row<R>(k, 0), tile.gaps.template split_column<R>(t, 0)};
    }
  };
  template <class R>
  __device__ __forceinline__ Cells<R> cells(const Place<S>&, decltype(R::scale)) const {
    return {*this};
  }

  template <class Sums>
  __device__ __forceinline__ void add_slopes(int, int, const Steps<T>&, T, Sums&) const {}
  template <class Sums>
  __device__ __forceinline__ void add_costs(int k, int t, const Steps<T>& masses, T, Sums& sums) const {
    sums.add_cost(masses.diagonal, is_match(k, t) ? T(0) : is_lcss ? T(2) : T(1));
    gaps.add_costs(k, t, masses, sums);
  }
};

SOFTDTW_INSTANTIATE_SOFT_FORWARD(SoftThreshold, float)
SOFTDTW_INSTANTIATE_SOFT_BACKWARD(SoftThreshold, true, float)
SOFTDTW_INSTANTIATE_SOFT_FORWARD(SoftThreshold, double)
SOFTDTW_INSTANTIATE_SOFT_BACKWARD(SoftThreshold, true, double)

}  // namespace softdtw
