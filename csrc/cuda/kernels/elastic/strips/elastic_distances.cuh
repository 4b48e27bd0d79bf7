// Distances between the vectors of a lane's tile (tile.cuh), for the tiles of elastic measures (elastic_tile.cuh).
//
// Distances have fetch() and use() as in tile.cuh, skip() as in hard_tile.cuh, and of(k, t), kAbove rows above the tile among them: k is at
// least -kAbove.
// Rows and columns beyond a pair's ends, and that of a border, repeat the nearest ones.
#pragma once

#include "cuda/costs/tile.cuh"
#include "cuda/kernels/elastic/elastic_table.cuh"

namespace softdtw {

// What there is one number of for each column: of a chunk, and of the next one, on their way.
template <class S>
struct ElasticColumns {
  using T = typename S::Scalar;
  const T* const line;
  const int64_t stride;
  const ElasticPlace at;
  T now[S::kSteps], next[S::kSteps];

  __device__ ElasticColumns(const T* line_, int64_t stride_, const ElasticPlace& at_)
      : line(line_), stride(stride_), at(at_) {}
  __device__ __forceinline__ void fetch(const Place<S>& place) {
    if (place.in_columns && stride == 1 && place.column >= at.shift) {
#pragma unroll
      for (int t = 0; t < S::kSteps; ++t) next[t] = line[place.column - at.shift + t];
    } else {
#pragma unroll
      for (int t = 0; t < S::kSteps; ++t) next[t] = line[at.column(place.column + t) * stride];
    }
  }
  __device__ __forceinline__ void use() {
#pragma unroll
    for (int t = 0; t < S::kSteps; ++t) now[t] = next[t];
  }
  template <int kBy>
  __device__ __forceinline__ void skip() {
    softdtw::skip<kBy>(now);
  }
};

// The cost of a difference of numbers, beside SquaredCost.
template <typename T>
struct AbsoluteCost {
  __device__ __forceinline__ static T cost(T u) { return DeviceMath<T>::abs(u); }
};

// Of one dimension, from registers.
template <class S, class OfDifference, int kAbove>
struct UnivariateDistances {
  using T = typename S::Scalar;
  T x[S::kRows + kAbove];
  ElasticColumns<S> y;

  __device__ UnivariateDistances(const ElasticTable<T>& problem, const ElasticPlace& at, int64_t pair, int row)
      : y(problem.y.pair(pair).data, problem.y.row_stride, at) {
    load_rows<S, kAbove>(problem.x.pair(pair).data, problem.x.row_stride, at, row, x);
  }
  __device__ __forceinline__ void fetch(const Place<S>& place) { y.fetch(place); }
  __device__ __forceinline__ void use(const Place<S>&) { y.use(); }
  template <int kBy>
  __device__ __forceinline__ void skip() {
    y.template skip<kBy>();
  }
  __device__ __forceinline__ T of(int k, int t) const { return OfDifference::cost(x[k + kAbove] - y.now[t]); }
};

// Of any cost and number of dimensions, all of a tile at once.
template <class S, int kAbove>
struct DenseDistances {
  using T = typename S::Scalar;
  static constexpr int kRows = S::kRows + kAbove;
  const ElasticTable<T>& problem;
  const View<const T> x, y;
  const ElasticPlace at;
  T distances[kRows][S::kSteps];

  __device__ DenseDistances(const ElasticTable<T>& problem_, const ElasticPlace& at_, int64_t pair, int)
      : problem(problem_), x(problem.x.pair(pair)), y(problem.y.pair(pair)), at(at_) {}
  __device__ __forceinline__ void fetch(const Place<S>&) {}
  __device__ __forceinline__ void use(const Place<S>& place) {
    const auto for_each = [&](auto&& f) {
#pragma unroll
      for (int k = 0; k < kRows; ++k)
#pragma unroll
        for (int t = 0; t < S::kSteps; ++t) f(k, t);
    };
    for_each([&](int k, int t) { distances[k][t] = 0; });
    const int first_row = place.row - kAbove, first_column = place.column - at.shift;
    const bool direct =
        place.in_table && first_row >= 0 && first_column >= 0 && problem.x.row_stride == 1 && problem.y.row_stride == 1;
    using Types = Costs<DeviceMath<T>>;
    with_sum<Types>(problem.cost, [&](auto type) {
      const T *x_line = x.data, *y_line = y.data;
#pragma unroll 1
      for (int64_t d = 0; d < problem.dim; ++d, x_line += x.column_stride, y_line += y.column_stride) {
        T rows[kRows], columns[S::kSteps];
        if (direct) {
#pragma unroll
          for (int k = 0; k < kRows; ++k) rows[k] = x_line[first_row + k];
#pragma unroll
          for (int t = 0; t < S::kSteps; ++t) columns[t] = y_line[first_column + t];
        } else {
#pragma unroll
          for (int k = 0; k < kRows; ++k) rows[k] = x_line[at.row(place.row - kAbove + k) * x.row_stride];
#pragma unroll
          for (int t = 0; t < S::kSteps; ++t) columns[t] = y_line[at.column(place.column + t) * y.row_stride];
        }
        for_each([&](int k, int t) { distances[k][t] = type.share(rows[k] - columns[t], distances[k][t]); });
      }
    });
    with_cost<Types>(
        problem.cost, [&](auto type) { for_each([&](int k, int t) { distances[k][t] = type.finish(distances[k][t]); }); });
  }
  template <int kBy>
  __device__ __forceinline__ void skip() {
#pragma unroll
    for (int k = 0; k < kRows; ++k) softdtw::skip<kBy>(distances[k]);
  }
  __device__ __forceinline__ T of(int k, int t) const { return distances[k + kAbove][t]; }
};

}  // namespace softdtw
