// The edit distance with real penalties by soft strips.
#include "cuda/kernels/elastic/soft/soft_launch.cuh"

namespace softdtw {

// Edit.
template <class S_>
struct SoftEdit {
  using S = S_;
  using T = typename S::Scalar;
  static constexpr int kForwardBlocks = 3;
  static constexpr bool kLooksUp = false, kCountsOnward = false, kHasGaps = true;
  SoftSeries<S, 0> series;
  SoftGaps<S> gaps;
  T reach = 0;

  __device__ SoftEdit(const ElasticTable<T>& problem, const ElasticPlace& at, int64_t pair, int row, T scale)
      : series(problem, at, pair, row), gaps(problem, at, pair, row, scale) {}
  __device__ __forceinline__ void fetch(const Place<S>& place) { series.fetch(place); }
  __device__ __forceinline__ void use(const Place<S>& place) {
    series.use();
    gaps.use(place);
    reach = greater(series.widest(), gaps.reach);
  }
  template <class R>
  struct Cells {
    using V = decltype(R::scale);
    const SoftEdit& tile;
    const V scale;
    typename R::Cell left;

    __device__ __forceinline__ void enter(int t) { left = tile.gaps.template split_column<R>(t, scale); }
    __device__ __forceinline__ Steps<typename R::Cell> steps(int k, int t) {
      const V distance = DeviceMath<V>::abs(tile.series.template difference<V>(k, t));
      return {R::split(distance, scale), tile.gaps.template split_row<R>(k, scale), left};
    }
  };
  template <class R>
  __device__ __forceinline__ Cells<R> cells(const Place<S>&, decltype(R::scale) scale) const {
    return {*this, scale, {}};
  }

  template <class Sums>
  __device__ __forceinline__ void add_slopes(int k, int t, const Steps<T>& masses, T, Sums& sums) const {
    sums.add_difference(k, with_sign_of(series.template difference<T>(k, t), masses.diagonal));
  }
  template <class Sums>
  __device__ __forceinline__ void add_costs(int k, int t, const Steps<T>& masses, T, Sums& sums) const {
    sums.add_cost(masses.diagonal, DeviceMath<double>::abs(series.template difference<double>(k, t)));
    gaps.add_costs(k, t, masses, sums);
  }
};

SOFTDTW_INSTANTIATE_SOFT_FORWARD(SoftEdit, float)
SOFTDTW_INSTANTIATE_SOFT_BACKWARD(SoftEdit, false, float)
SOFTDTW_INSTANTIATE_SOFT_BACKWARD(SoftEdit, true, float)
SOFTDTW_INSTANTIATE_SOFT_FORWARD(SoftEdit, double)
SOFTDTW_INSTANTIATE_SOFT_BACKWARD(SoftEdit, false, double)
SOFTDTW_INSTANTIATE_SOFT_BACKWARD(SoftEdit, true, double)

}  // namespace softdtw
