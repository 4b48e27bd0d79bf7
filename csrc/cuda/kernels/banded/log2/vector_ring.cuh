// A ring's pair of several dimensions in integer log2 (log2_ring.cuh): the vectors of a lane's rows are in its registers, and columns
// come from memory, two ahead: all lanes of a ring read the same ones, one after another.
#pragma once

#include <climits>

#include "cuda/hardware/vectors.cuh"
#include "cuda/kernels/multivariate/costs/vector_cost.cuh"
#include "cuda/kernels/vector_log2/lane_group.cuh"
#include "log2_ring.cuh"

namespace softdtw {

// Of up to kDims numbers.
template <int kRows_>
struct RingOfVectors : RingBand<kRows_> {
  static constexpr int kRows = kRows_, kDims = kRingDims;
  using Number = Vector<kDims>;

  // The columns of a lane from one on, to the right or to the left.
  template <int kBy>
  struct ColumnsOf {
    int column;
    Number now, next, after_next;
  };
  using Columns = ColumnsOf<1>;
  using ColumnsBack = ColumnsOf<-1>;

  const Vectors of_x, of_y;
  const bool has_fours;
  int own_block = INT_MIN;  // whose rows the lane has
  Number x[kRows];

  __device__ RingOfVectors(const Problem<float>& problem, const RingLayout& layout, int64_t pair, bool wanted)
      : RingBand<kRows>(layout, problem.extent(pair), wanted),
        of_x(problem.x, pair, this->extent.n, problem.dim),
        of_y(problem.y, pair, this->extent.m, problem.dim),
        has_fours(stands_in_fours(of_x) && stands_in_fours(of_y)) {}

  __device__ __forceinline__ void take_rows(int block) {
    if (block == own_block) return;
    own_block = block;
#pragma unroll
    for (int k = 0; k < kRows; ++k) read(of_x, block * kRows + k, x[k]);
  }
  __device__ __forceinline__ Columns columns(int i) const { return from<1>(this->first_column(i)); }
  __device__ __forceinline__ ColumnsBack columns_back(int i) const {
    return from<-1>(this->first_column(i) + RingBand<kRows>::kGroup - 1);
  }
  // The lane whose turn it is takes its next block, and begins with columns further left.
  __device__ __forceinline__ void turn(int i, Columns& columns_) {
    if (this->age(i) != 0) return;
    take_rows(this->block(i));
    columns_ = columns(i);
  }
  template <int kBy>
  __device__ __forceinline__ void move(ColumnsOf<kBy>& columns_) const {
    columns_.now = columns_.next;
    columns_.next = columns_.after_next;
    columns_.column += kBy;
    read(of_y, columns_.column + 2 * kBy, columns_.after_next);
  }

 private:
  __device__ __forceinline__ static bool stands_in_fours(const Vectors& vectors) {
    const auto address = reinterpret_cast<uintptr_t>(vectors.data);
    return ((vectors.dim | static_cast<int>(vectors.stride)) & 3) == 0 && (address & 15) == 0;
  }
  template <int kBy>
  __device__ __forceinline__ ColumnsOf<kBy> from(int column) const {
    ColumnsOf<kBy> columns_;
    columns_.column = column;
    read(of_y, column, columns_.now);
    read(of_y, column + kBy, columns_.next);
    read(of_y, column + 2 * kBy, columns_.after_next);
    return columns_;
  }
  // Past the pair's end, or before its start, the last one, or the first: such cells hold finite numbers that no result depends on.
  __device__ __forceinline__ void read(const Vectors& vectors, int i, Number& number) const {
    const float* const vector = vectors.at(max(i, 0));
    static_assert(kDims == 4);
    const float4 four = has_fours ? load_four<true>(vector, 0, vectors.dim) : load_four<false>(vector, 0, vectors.dim);
    number = {{four.x, four.y, four.z, four.w}};
  }
};

// What a column costs a lane's rows, and the most of it.
template <int kRows>
struct CostsOfColumn {
  float costs[kRows], most;
};

template <class Pair>
struct VectorRingStep : Log2RingPlace<Pair> {
  using Column = CostsOfColumn<Pair::kRows>;
  using Log2RingPlace<Pair>::Log2RingPlace;
  __device__ __forceinline__ static float cost_at(int k, const Column& column) { return column.costs[k]; }
};

// What backward leaves of a pair, as RingGradient.
template <class Number>
struct VectorRingGradient {
  View<float> dx, dy;
  const int dim;
  const float scale;

  template <class Pair>
  __device__ VectorRingGradient(
      const Problem<float>& problem, const Gradient<float>& gradient, const Pair& pair, bool is_wanted)
      : dim(static_cast<int>(problem.dim)), scale(gradient_scale(problem, gradient, pair.pair)) {
    if (gradient.x.data != nullptr && is_wanted) dx = gradient.x.pair(pair.pair);
    if (gradient.y.data != nullptr && is_wanted) dy = gradient.y.pair(pair.pair);
  }
  __device__ __forceinline__ bool has_columns() const { return dy.data != nullptr; }
  __device__ __forceinline__ void leave_column(int column, const Number& sum) const { leave(dy, column, sum, -scale); }
  template <class Pair, int kRows>
  __device__ __forceinline__ void leave_rows(const Pair& pair, int block, const Number (&sums)[kRows]) const {
    if (dx.data == nullptr || block < 0) return;
#pragma unroll
    for (int k = 0; k < kRows; ++k)
      if (block * kRows + k < pair.extent.n) leave(dx, block * kRows + k, sums[k], scale);
  }

 private:
  __device__ __forceinline__ void leave(const View<float>& to, int at, const Number& sum, float times) const {
    constexpr int kDims = sizeof(Number) / sizeof(float);
#pragma unroll
    for (int d = 0; d < kDims; ++d)
      if (d < dim) to.at(at, d) = sum.at[d] * times;
  }
};

// CostType: of vector_cost.cuh, by a jump for every column if it is several.
template <int kRows_, class CostType>
struct VectorRingPair : Log2RingBand<RingOfVectors<kRows_>, Log2Penalty> {
  using Base = Log2RingBand<RingOfVectors<kRows_>, Log2Penalty>;
  using Step = VectorRingStep<VectorRingPair>;
  using Number = typename Base::Number;
  using Column = Number;
  using Gradient = VectorRingGradient<Number>;
  using Base::x;
  static constexpr int kRows = kRows_, kDims = Base::kDims;
  const Cost kind;
  const float deepest;  // a cost, at most, of a pair that fits

  __device__ VectorRingPair(const Problem<float>& problem, const RingLayout& layout, int64_t pair_, bool wanted)
      : Base(problem, pair_, problem, layout, pair_, wanted),
        kind(problem.cost),
        deepest(this->penalty.room(kDeepestUnscaled) / this->factor) {
    this->fits = this->fits && deepest >= 0 && this->factor < INFINITY;
  }
  // Nothing of series is kept.
  __device__ __forceinline__ static void read_series(const Problem<float>&, const RingLayout&, float*, float*) {}
  __device__ __forceinline__ static void read_kept_series(const RingLayout&, float*, const float*) {}

  template <int kBy>
  __device__ __forceinline__ CostsOfColumn<kRows> look_at(const typename Base::template ColumnsOf<kBy>& columns) const {
    CostsOfColumn<kRows> column;
    with_kind<CostType>(kind, [&](auto type) {
      using Type = decltype(type);
#pragma unroll
      for (int k = 0; k < kRows; ++k) {
        float shares = 0;
#pragma unroll
        for (int d = 0; d < kDims; ++d) shares = Type::share(x[k].at[d] - columns.now.at[d], shares);
        column.costs[k] = Type::finish(shares);
      }
    });
    column.most = column.costs[0];
#pragma unroll
    for (int k = 1; k < kRows; ++k) column.most = greater(column.most, column.costs[k]);
    return column;
  }
  __device__ __forceinline__ bool is_in_range(const CostsOfColumn<kRows>& column) const { return column.most <= deepest; }
  // e times the slopes of row k's cost at a column, to the sums of both.
  __device__ __forceinline__ void add_slopes(int k, const Number& y, float e, Number& row, Number& sum) const {
    with_kind<CostType>(kind, [&](auto type) {
      using Type = decltype(type);
      float u[kDims], shares = 0;
#pragma unroll
      for (int d = 0; d < kDims; ++d) {
        u[d] = x[k].at[d] - y.at[d];
        shares = Type::share(u[d], shares);
      }
      const float over = Type::over(e, shares);
#pragma unroll
      for (int d = 0; d < kDims; ++d) {
        row.at[d] = Type::add_slope(over, u[d], row.at[d]);
        sum.at[d] = Type::add_slope(over, u[d], sum.at[d]);
      }
    });
  }
};

}  // namespace softdtw
