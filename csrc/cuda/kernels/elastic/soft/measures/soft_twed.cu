// Time warp edit distance by soft strips.
#include "cuda/kernels/elastic/soft/soft_launch.cuh"

namespace softdtw {

// Twed. a = |x - y| + unit |t - s|; without times the places are those, and exact.
template <class S_>
struct SoftTwed {
  using S = S_;
  using T = typename S::Scalar;
  static constexpr int kForwardBlocks = 3;
  static constexpr bool kLooksUp = true, kCountsOnward = true, kHasGaps = true;
  SoftSeries<S, 1> series;
  SoftGaps<S> gaps;
  T x_times[S::kRows + 1], y_times[S::kSteps + 1];  // the row above, the column before
  const T unit;
  Range<T> of_rows;
  T reach = 0;

  __device__ SoftTwed(const ElasticTable<T>& problem, const ElasticPlace& at, int64_t pair, int row, T scale)
      : series(problem, at, pair, row),
        gaps(problem, at, pair, row, scale),
        unit(problem.x_times.data != nullptr ? T(1) : static_cast<T>(problem.parameter_of(pair))) {
    if (problem.x_times.data != nullptr)
      load_rows<S, 1>(problem.x_times.of(problem.x.of(pair)).data, problem.x_times.stride, at, row, x_times);
    else
#pragma unroll
      for (int k = 0; k <= S::kRows; ++k) x_times[k] = static_cast<T>(row + k - 1);
    of_rows.start(x_times[0]);
#pragma unroll
    for (int k = 1; k <= S::kRows; ++k) of_rows.add(x_times[k]);
  }
  __device__ __forceinline__ void fetch(const Place<S>& place) { series.fetch(place); }
  __device__ __forceinline__ void use(const Place<S>& place) {
    series.use();
    gaps.use(place);
    const ElasticTable<T>& problem = gaps.problem;
    Range<T> of_columns;
    if (problem.x_times.data != nullptr) {
      load_columns<S, 1>(problem.y_times.of(problem.y.of(gaps.pair)), gaps.at, place, y_times);
      of_columns.start(y_times[0]);
#pragma unroll
      for (int t = 1; t <= S::kSteps; ++t) of_columns.add(y_times[t]);
    } else {
      const T before = static_cast<T>(place.column - 1);
#pragma unroll
      for (int t = 0; t <= S::kSteps; ++t) y_times[t] = before + static_cast<T>(t);
      of_columns = {before, y_times[S::kSteps]};
    }
    const T widest = DeviceMath<T>::fma(of_rows.apart(of_columns), DeviceMath<T>::abs(unit), series.widest());
    reach = greater(widest + widest, gaps.reach);
  }
  template <typename V>
  __device__ __forceinline__ V between_times(int k, int t) const {
    return static_cast<V>(x_times[k + 1]) - static_cast<V>(pick(y_times, t + 1));
  }
  template <typename V>
  __device__ __forceinline__ V match(int k, int t) const {
    const V distance = DeviceMath<V>::abs(series.template difference<V>(k, t));
    return DeviceMath<V>::fma(DeviceMath<V>::abs(between_times<V>(k, t)), static_cast<V>(unit), distance);
  }

  // a[i-1,j-1] is what was computed a column ago, for the row above among others.
  template <class R>
  struct Cells {
    using V = decltype(R::scale);
    const SoftTwed& tile;
    const V scale;
    V before[S::kRows], above = 0;
    typename R::Cell left;

    __device__ __forceinline__ Cells(const SoftTwed& tile_, const Place<S>& place, V scale_) : tile(tile_), scale(scale_) {
#pragma unroll
      for (int k = 0; k < S::kRows; ++k) before[k] = tile.template match<V>(k - 1, -1);
      if (place.row == 0 && place.column == 0) before[0] = 0;
    }
    __device__ __forceinline__ void enter(int t) {
      above = tile.template match<V>(-1, t);
      left = tile.gaps.template split_column<R>(t, scale);
    }
    __device__ __forceinline__ Steps<typename R::Cell> steps(int k, int t) {
      const V own = tile.template match<V>(k, t), both = own + before[k];
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
  __device__ __forceinline__ void add_slopes(int k, int t, const Steps<T>& masses, T onward, Sums& sums) const {
    const T mass = masses.diagonal + onward;
    sums.add_difference(k, with_sign_of(series.template difference<T>(k, t), mass));
    if constexpr (Sums::kHasTimes) sums.add_times(k, with_sign_of(between_times<T>(k, t), mass));
  }
  template <class Sums>
  __device__ __forceinline__ void add_costs(int k, int t, const Steps<T>& masses, T onward, Sums& sums) const {
    sums.add_cost(masses.diagonal + onward, match<double>(k, t));
    if (k >= 0) gaps.add_costs(k, t, masses, sums);
  }
};

SOFTDTW_INSTANTIATE_SOFT_FORWARD(SoftTwed, float)
SOFTDTW_INSTANTIATE_SOFT_BACKWARD(SoftTwed, false, float)
SOFTDTW_INSTANTIATE_SOFT_BACKWARD(SoftTwed, true, float)
SOFTDTW_INSTANTIATE_SOFT_FORWARD(SoftTwed, double)
SOFTDTW_INSTANTIATE_SOFT_BACKWARD(SoftTwed, false, double)
SOFTDTW_INSTANTIATE_SOFT_BACKWARD(SoftTwed, true, double)

}  // namespace softdtw
