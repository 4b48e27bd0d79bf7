// Weighted DTW by soft strips.
#include "cuda/kernels/elastic/soft/soft_launch.cuh"

namespace softdtw {

// Weighted: one cost for all steps, and a weight for each diagonal that a tile meets.
template <class S_>
struct SoftWeighted {
  using S = S_;
  using T = typename S::Scalar;
  using Type = Weighted<T>;
  using Series = SoftSeries<S, NumberSource<S>, 0>;
  using Column = typename Series::Column;
  using Memory = typename Series::Shared;
  static constexpr int kForwardBlocks = 4, kBackwardBlocks = 3;
  static constexpr bool kLooksUp = false, kLooksBack = false, kCountsOnward = false, kHasGaps = false;
  static constexpr int kDiagonals = S::kRows + S::kSteps - 1;
  Series series;
  const double parameter;
  const T scale;
  const int64_t longest;
  int first = 0;  // row less column of the lowest diagonal
  T weights[kDiagonals];

  __device__ SoftWeighted(
      Memory& memory, const ElasticTable<T>& problem, const ElasticPlace& at, int64_t pair, const Strip<S>& strip, int row,
      T scale_)
      : series(memory, NumberSource<S>(problem, at, pair), problem, at, pair, row),
        parameter(problem.parameter_of(pair)),
        scale(scale_),
        longest(max(at.last_row, at.last_column) + 1) {
    series.of_strip = reach_of(series.ranges_of(strip));
  }
  __device__ __forceinline__ void use(const Place<S>& place) {
    series.use(place);
    first = place.row - place.column - (S::kSteps - 1);
#pragma unroll
    for (int i = 0; i < kDiagonals; ++i) weights[i] = weight(first + i);
  }
  // Weights are less than 1.
  __device__ __forceinline__ T reach_of(const typename Series::Ranges& ranges) const {
    const T widest = series.widest(ranges);
    return widest * widest;
  }
  __device__ __forceinline__ T reach() const {
    return series.reach(scale, [&](const auto& ranges) { return reach_of(ranges); }) + (weights[0] - weights[0]);
  }
  __device__ __forceinline__ T weight_of(int k, int t) const { return pick(weights, k - t + S::kSteps - 1); }

  template <class R>
  struct Cells {
    using V = decltype(R::scale);
    const SoftWeighted& tile;
    const V scale;
    Column now;

    __device__ __forceinline__ void enter(int t) { now = tile.series.column(t); }
    __device__ __forceinline__ Steps<typename R::Cell> steps(int k, int t) {
      const V apart = tile.series.template difference<V>(k, now);
      const typename R::Cell cost = R::split(static_cast<V>(tile.weight_of(k, t)) * (apart * apart), scale);
      return {cost, cost, cost};
    }
  };
  template <class R>
  __device__ __forceinline__ Cells<R> cells(const Place<S>&, decltype(R::scale) scale) const {
    return {*this, scale, {}};
  }

  template <class Sums>
  __device__ __forceinline__ void add_slopes(int k, int t, const Steps<T>& masses, T, Sums& sums) const {
    sums.add_difference(k, all(masses) * (2 * weight_of(k, t) * series.template difference<T>(k, sums.now)));
  }
  template <class Sums>
  __device__ __forceinline__ void add_costs(int k, int t, const Steps<T>& masses, T, Sums& sums) const {
    const double apart = series.template difference<double>(k, sums.now), own = apart * apart;
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
