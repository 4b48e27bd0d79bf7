// Move-split-merge by soft strips.
#include "cuda/kernels/elastic/soft/soft_launch.cuh"

namespace softdtw {

// Msm.
template <class S_>
struct SoftMsm {
  using S = S_;
  using T = typename S::Scalar;
  using Type = Msm<T>;
  using Series = SoftSeries<S, NumberSource<S>, 1>;
  using Column = typename Series::Column;
  using Memory = typename Series::Shared;
  static constexpr int kForwardBlocks = 4, kBackwardBlocks = 3;
  static constexpr bool kLooksUp = true, kLooksBack = true, kCountsOnward = false, kHasGaps = false;
  Series series;
  const T parameter, scale;

  __device__ SoftMsm(
      Memory& memory, const ElasticTable<T>& problem, const ElasticPlace& at, int64_t pair, const Strip<S>& strip, int row,
      T scale_)
      : series(memory, NumberSource<S>(problem, at, pair), problem, at, pair, row),
        parameter(static_cast<T>(problem.parameter_of(pair))),
        scale(scale_) {
    series.of_strip = reach_of(series.ranges_of(strip));
  }
  __device__ __forceinline__ void use(const Place<S>& place) { series.use(place); }
  __device__ __forceinline__ T reach_of(const typename Series::Ranges& ranges) const {
    return series.widest(ranges) + DeviceMath<T>::abs(parameter);  // gap(v; a, b) is at most |v - b|
  }
  __device__ __forceinline__ T reach() const {
    return series.reach(scale, [&](const auto& ranges) { return reach_of(ranges); });
  }
  template <typename V>
  __device__ __forceinline__ Steps<V> costs(int k, const Column& column, const Column& column_before) const {
    const V apart = series.template difference<V>(k, column), c = static_cast<V>(parameter);
    const V above = static_cast<V>(series.row(k - 1)) - static_cast<V>(series.row(k));
    const V before = static_cast<V>(column_before.y) - static_cast<V>(column.y);
    return {DeviceMath<V>::abs(apart), c + gap(above, -apart), c + gap(before, apart)};
  }

  template <class R>
  struct Cells {
    using V = decltype(R::scale);
    const SoftMsm& tile;
    const V scale;
    Column now, before;

    __device__ __forceinline__ void enter(int t) {
      before = now;
      now = tile.series.column(t);
    }
    __device__ __forceinline__ Steps<typename R::Cell> steps(int k, int) {
      const Steps<V> costs = tile.template costs<V>(k, now, before);
      return {R::split(costs.diagonal, scale), R::split(costs.up, scale), R::split(costs.left, scale)};
    }
  };
  template <class R>
  __device__ __forceinline__ Cells<R> cells(const Place<S>&, decltype(R::scale) scale) const {
    return {*this, scale, series.column(-1), {}};
  }

  template <class Sums>
  __device__ __forceinline__ void add_slopes(int k, int, const Steps<T>& masses, T, Sums& sums) const {
    const T x = series.row(k), y = sums.now.y;
    sums.add_difference(k, with_sign_of(x - y, masses.diagonal));
    const auto of_up = Type::slopes(x, series.row(k - 1), y);
    sums.rows[k + 1] = DeviceMath<T>::fma(masses.up, of_up.v, sums.rows[k + 1]);
    sums.rows[k] = DeviceMath<T>::fma(masses.up, of_up.a, sums.rows[k]);
    sums.column = DeviceMath<T>::fma(masses.up, of_up.b, sums.column);
    const auto of_left = Type::slopes(y, sums.before.y, x);
    sums.rows[k + 1] = DeviceMath<T>::fma(masses.left, of_left.b, sums.rows[k + 1]);
    sums.column = DeviceMath<T>::fma(masses.left, of_left.v, sums.column);
    sums.column_before = DeviceMath<T>::fma(masses.left, of_left.a, sums.column_before);
  }
  template <class Sums>
  __device__ __forceinline__ void add_costs(int k, int, const Steps<T>& masses, T, Sums& sums) const {
    const Steps<double> own = costs<double>(k, sums.now, sums.before);
    sums.add_cost(masses.diagonal, own.diagonal);
    sums.add_cost(masses.up, own.up);
    sums.add_cost(masses.left, own.left);
    sums.parameter += static_cast<double>(masses.up) + static_cast<double>(masses.left);
  }

 private:
  // Msm::gap() of the ends less v.
  template <typename V>
  __device__ __forceinline__ static V gap(V p, V q) {
    using Math = DeviceMath<V>;
    return Math::max(Math::max(Math::min(p, q), -Math::max(p, q)), V(0));
  }
};

SOFTDTW_INSTANTIATE_SOFT_FORWARD(SoftMsm, float)
SOFTDTW_INSTANTIATE_SOFT_BACKWARD(SoftMsm, false, float)
SOFTDTW_INSTANTIATE_SOFT_BACKWARD(SoftMsm, true, float)
SOFTDTW_INSTANTIATE_SOFT_FORWARD(SoftMsm, double)
SOFTDTW_INSTANTIATE_SOFT_BACKWARD(SoftMsm, false, double)
SOFTDTW_INSTANTIATE_SOFT_BACKWARD(SoftMsm, true, double)

}  // namespace softdtw
