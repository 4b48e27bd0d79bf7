// Weighted DTW by soft strips.
#include "cuda/kernels/elastic/soft/soft_launch.cuh"

namespace softdtw {

// Weighted: one cost for all steps, and a weight for each diagonal that a tile meets.
template <class S_>
struct SoftWeighted {
  using S = S_;
  using T = typename S::Scalar;
  using Type = Weighted<T>;
  static constexpr int kForwardBlocks = 4;
  static constexpr bool kLooksUp = false, kCountsOnward = false, kHasGaps = false;
  static constexpr int kDiagonals = S::kRows + S::kSteps - 1;
  SoftSeries<S, 0> series;
  const double parameter;
  const int64_t longest;
  int first = 0;  // row less column of the lowest diagonal
  T weights[kDiagonals], reach = 0;

  __device__ SoftWeighted(const ElasticTable<T>& problem, const ElasticPlace& at, int64_t pair, int row, T)
      : series(problem, at, pair, row),
        parameter(problem.parameter_of(pair)),
        longest(max(at.last_row, at.last_column) + 1) {}
  __device__ __forceinline__ void fetch(const Place<S>& place) { series.fetch(place); }
  __device__ __forceinline__ void use(const Place<S>& place) {
    series.use();
    first = place.row - place.column - (S::kSteps - 1);
#pragma unroll
    for (int i = 0; i < kDiagonals; ++i) weights[i] = weight(first + i);
    const T widest = series.widest();
    reach = widest * widest + (weights[0] - weights[0]);
  }
  __device__ __forceinline__ T weight_of(int k, int t) const { return pick(weights, k - t + S::kSteps - 1); }

  template <class R>
  struct Cells {
    using V = decltype(R::scale);
    const SoftWeighted& tile;
    const V scale;

    __device__ __forceinline__ void enter(int) {}
    __device__ __forceinline__ Steps<typename R::Cell> steps(int k, int t) {
      const V apart = tile.series.template difference<V>(k, t);
      const typename R::Cell cost = R::split(static_cast<V>(tile.weight_of(k, t)) * (apart * apart), scale);
      return {cost, cost, cost};
    }
  };
  template <class R>
  __device__ __forceinline__ Cells<R> cells(const Place<S>&, decltype(R::scale) scale) const {
    return {*this, scale};
  }

  template <class Sums>
  __device__ __forceinline__ void add_slopes(int k, int t, const Steps<T>& masses, T, Sums& sums) const {
    sums.add_difference(k, all(masses) * (2 * weight_of(k, t) * series.template difference<T>(k, t)));
  }
  template <class Sums>
  __device__ __forceinline__ void add_costs(int k, int t, const Steps<T>& masses, T, Sums& sums) const {
    const double apart = series.template difference<double>(k, t), own = apart * apart;
    const T mass = all(masses);
    sums.add_cost(mass, static_cast<double>(weight_of(k, t)) * own);
    sums.parameter += static_cast<double>(mass) * own * Type::slope(first + S::kSteps - 1 + k - t, parameter, longest);
  }

 private:
  __device__ __forceinline__ static T all(const Steps<T>& masses) { return masses.diagonal + masses.up + masses.left; }
  // In float32 the exponential's argument alone is float64, of which a fraction is left.
  __device__ __forceinline__ T weight(int k) const {
    if constexpr (sizeof(T) == 8) {
      return Type::weight(k, parameter, longest);
    } else {
      constexpr double kLog2OfE = 1.44269504088896340736;
      const double exponent =
          -parameter * kLog2OfE * (static_cast<double>(k < 0 ? -k : k) - static_cast<double>(longest) / 2);
      const double whole = DeviceMath<double>::round(exponent);
      const T fraction = DeviceMath<T>::exp2(static_cast<T>(exponent - whole));
      return T(1) / DeviceMath<T>::fma(fraction, DeviceMath<T>::exp2(static_cast<T>(whole)), T(1));
    }
  }
};

SOFTDTW_INSTANTIATE_SOFT_FORWARD(SoftWeighted, float)
SOFTDTW_INSTANTIATE_SOFT_BACKWARD(SoftWeighted, false, float)
SOFTDTW_INSTANTIATE_SOFT_BACKWARD(SoftWeighted, true, float)
SOFTDTW_INSTANTIATE_SOFT_FORWARD(SoftWeighted, double)
SOFTDTW_INSTANTIATE_SOFT_BACKWARD(SoftWeighted, false, double)
SOFTDTW_INSTANTIATE_SOFT_BACKWARD(SoftWeighted, true, double)

}  // namespace softdtw
