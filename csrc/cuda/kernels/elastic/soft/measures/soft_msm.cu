// Move-split-merge by soft strips.
#include "cuda/kernels/elastic/soft/soft_launch.cuh"

namespace softdtw {

// Msm.
template <class S_>
struct SoftMsm {
  using S = S_;
  using T = typename S::Scalar;
  using Type = Msm<T>;
  static constexpr int kForwardBlocks = 4;
  static constexpr bool kLooksUp = true, kCountsOnward = false, kHasGaps = false;
  SoftSeries<S, 1> series;
  const T parameter;
  T reach = 0;

  __device__ SoftMsm(const ElasticTable<T>& problem, const ElasticPlace& at, int64_t pair, int row, T)
      : series(problem, at, pair, row), parameter(static_cast<T>(problem.parameter_of(pair))) {}
  __device__ __forceinline__ void fetch(const Place<S>& place) { series.fetch(place); }
  __device__ __forceinline__ void use(const Place<S>&) {
    series.use();
    reach = series.widest() + DeviceMath<T>::abs(parameter);  // gap(v; a, b) is at most |v - b|
  }
  template <typename V>
  __device__ __forceinline__ Steps<V> costs(int k, int t) const {
    const V apart = series.template difference<V>(k, t), c = static_cast<V>(parameter);
    const V above = static_cast<V>(series.row(k - 1)) - static_cast<V>(series.row(k));
    const V before = static_cast<V>(series.column(t - 1)) - static_cast<V>(series.column(t));
    return {DeviceMath<V>::abs(apart), c + gap(above, -apart), c + gap(before, apart)};
  }

  template <class R>
  struct Cells {
    using V = decltype(R::scale);
    const SoftMsm& tile;
    const V scale;

    __device__ __forceinline__ void enter(int) {}
    __device__ __forceinline__ Steps<typename R::Cell> steps(int k, int t) {
      const Steps<V> costs = tile.template costs<V>(k, t);
      return {R::split(costs.diagonal, scale), R::split(costs.up, scale), R::split(costs.left, scale)};
    }
  };
  template <class R>
  __device__ __forceinline__ Cells<R> cells(const Place<S>&, decltype(R::scale) scale) const {
    return {*this, scale};
  }

  template <class Sums>
  __device__ __forceinline__ void add_slopes(int k, int t, const Steps<T>& masses, T, Sums& sums) const {
    const T x = series.row(k), y = series.column(t);
    sums.add_difference(k, with_sign_of(x - y, masses.diagonal));
    const auto of_up = Type::slopes(x, series.row(k - 1), y);
    sums.rows[k + 1] = DeviceMath<T>::fma(masses.up, of_up.v, sums.rows[k + 1]);
    sums.rows[k] = DeviceMath<T>::fma(masses.up, of_up.a, sums.rows[k]);
    sums.column = DeviceMath<T>::fma(masses.up, of_up.b, sums.column);
    const auto of_left = Type::slopes(y, series.column(t - 1), x);
    sums.rows[k + 1] = DeviceMath<T>::fma(masses.left, of_left.b, sums.rows[k + 1]);
    sums.column = DeviceMath<T>::fma(masses.left, of_left.v, sums.column);
    sums.column_before = DeviceMath<T>::fma(masses.left, of_left.a, sums.column_before);
  }
  template <class Sums>
  __device__ __forceinline__ void add_costs(int k, int t, const Steps<T>& masses, T, Sums& sums) const {
    const Steps<double> own = costs<double>(k, t);
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
