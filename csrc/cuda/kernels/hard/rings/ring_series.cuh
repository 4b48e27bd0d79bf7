// The series of a side of a pair (hard_ring.cuh), and what cells cost: a type for numbers, and one for vectors. Beside what RingSweep asks
// for (ring_band.cuh) they have
//
//     floats_of(layout)                    of shared memory for a side of a pair
//     read(problem, side, layout, own)     before the first group; own: that memory
//     kIsOfVectors, kIsOfFewPairs          whether costs are those of vectors, and there are few pairs whatever the problem
//     start()                              what stands before the table's first cell
//     look_at(columns, from)               what a column costs, for; from: the lane of the block above
//     add(column, k, is_inside, best)      the entry of row k: infinity outside the band
#pragma once

#include "cuda/hardware/vectors.cuh"
#include "cuda/kernels/multivariate/costs/vector_cost.cuh"
#include "ring_vectors.cuh"

namespace softdtw {

// What a cell adds to the best of its predecessors. Squared differences: a multiplication and an addition are one.
struct HardSquared {
  __device__ explicit HardSquared(Cost) {}
  __device__ __forceinline__ static float add(float u, float best) { return fmaf(u, u, best); }
};
// Every cost of a difference u: d (|u| - h d), where d is 1 (cityblock, and of one dimension euclidean) or |u| up to a corner.
struct HardAnyCost {
  float steepness, corner, half;

  __device__ explicit HardAnyCost(Cost cost)
      : steepness(cost == Cost::kSqEuclidean || cost == Cost::kHuber ? 1 : 0),
        corner(cost == Cost::kSqEuclidean ? INFINITY : 1),
        half(cost == Cost::kHuber ? 0.5f : 0) {}
  __device__ __forceinline__ float add(float u, float best) const {
    const float size = fabsf(u), d = steepness != 0 ? fminf(size, corner) : 1;
    return best + d * fmaf(-half, d, size);
  }
};

// Where the lines of a side's x or y begin, and how far rows are apart: the lower side's from the end on.
struct SideOfSeries {
  const float* line;
  int64_t step, column_stride;
  int last;

  __device__ SideOfSeries(const View<const float>& series, bool is_reversed, int length, int own_length)
      : line(series.data + (is_reversed ? length - 1 : 0) * series.row_stride),
        step(is_reversed ? -series.row_stride : series.row_stride),
        column_stride(series.column_stride),
        last(own_length - 1) {}
  // Rows and columns past the end, or before the start, repeat the last ones, or the first: no path comes from there.
  __device__ __forceinline__ const float* at(int i) const { return line + min(max(i, 0), last) * step; }
};

// A side of a pair: its part of the pair's rows and columns, reversed if it is the lower one.
struct SideOfPair {
  int64_t pair;
  bool is_reversed;
  Extent whole, part;

  template <class P>
  __device__ SideOfSeries x(const P& problem) const {
    return {problem.x.pair(pair), is_reversed, whole.n, part.n};
  }
  template <class P>
  __device__ SideOfSeries y(const P& problem) const {
    return {problem.y.pair(pair), is_reversed, whole.m, part.m};
  }
};

// One dimension.
template <int kRows, class CellCost>
struct HardNumbers : RingNumbers<kRows> {
  using Numbers = RingNumbers<kRows>;
  using Columns = typename Numbers::Columns;
  static constexpr bool kIsOfVectors = false, kIsOfFewPairs = false;
  static int floats_of(const RingLayout& layout) { return layout.floats_of_pair(); }
  const CellCost cost;

  __device__ HardNumbers(
      const Problem<float>& problem, int64_t, const RingLayout& layout, const Extent& extent, int end_column, bool wanted)
      : Numbers(layout, extent, end_column, wanted), cost(problem.cost) {}

  __device__ __forceinline__ void read(
      const Problem<float>& problem, const SideOfPair& side, const RingLayout& layout, float* own) {
    const SideOfSeries of_x = side.x(problem), of_y = side.y(problem);
    constexpr int kAtOnce = 16;
    for (int first = this->lane; first < max(layout.x_floats, layout.y_floats); first += kAtOnce * this->lanes) {
      float x[kAtOnce], y[kAtOnce];
#pragma unroll
      for (int i = 0; i < kAtOnce; ++i) {
        const int place = first + i * this->lanes;
        x[i] = *of_x.at(place);
        y[i] = *of_y.at(place - layout.before());
      }
#pragma unroll
      for (int i = 0; i < kAtOnce; ++i) {
        const int place = first + i * this->lanes;
        if (place < layout.x_floats) own[place] = x[i];
        if (place < layout.y_floats) own[layout.x_floats + place] = y[i];
      }
    }
    __syncwarp();
    this->find_series(layout, own);
    this->take_rows(this->block(0));
  }
  __device__ __forceinline__ static float start() { return 0; }
  __device__ __forceinline__ float look_at(const Columns& columns, int) const { return columns.now; }
  __device__ __forceinline__ float add(float column, int k, bool is_inside, float best) const {
    return cost.add(is_inside ? this->x[k] - column : INFINITY, best);
  }
};

// The vectors of a side's series.
struct SideOfVectors {
  SideOfSeries series = SideOfSeries({}, false, 0, 0);
  int dim = 0;

  __device__ __forceinline__ bool reads_fours() const {
    const bool stands_in_fours = series.column_stride == 1 && series.step % 4 == 0;
    return dim % 4 == 0 && stands_in_fours && reinterpret_cast<uintptr_t>(series.line) % 16 == 0;
  }
  // 0 past the last coordinate.
  __device__ __forceinline__ float4 four(int i, int f, bool reads_fours) const {
    const float* const vector = series.at(i);
    if (reads_fours) return load_four<true>(vector, 4 * f, dim);
    const auto number = [&](int d) { return d < dim ? __ldg(vector + d * series.column_stride) : 0; };
    return {number(4 * f), number(4 * f + 1), number(4 * f + 2), number(4 * f + 3)};
  }
};

// Several dimensions; CostType: of vector_cost.cuh, by a jump for every column if it is several.
template <int kRows, int kFours, class CostType>
struct HardVectors : RingVectors<kRows, kFours, SideOfVectors> {
  using Vectors = RingVectors<kRows, kFours, SideOfVectors>;
  using Columns = typename Vectors::Columns;
  struct Column {
    float costs[kRows];
  };
  const Cost cost;

  __device__ HardVectors(
      const Problem<float>& problem, int64_t, const RingLayout& layout, const Extent& extent, int end_column, bool wanted)
      : Vectors(layout, extent, end_column, wanted), cost(problem.cost) {}

  __device__ __forceinline__ void read(
      const Problem<float>& problem, const SideOfPair& side, const RingLayout&, float* own) {
    const int dim = static_cast<int>(problem.dim);
    Vectors::read({side.x(problem), dim}, {side.y(problem), dim}, own);
  }
  __device__ __forceinline__ static float start() { return 0; }
  __device__ __forceinline__ Column look_at(const Columns& columns, int) const {
    Column column;
    with_kind<CostType>(cost, [&](auto type) {
      using Type = decltype(type);
#pragma unroll
      for (int k = 0; k < kRows; ++k) {
        float sum = 0;
#pragma unroll
        for (int f = 0; f < kFours; ++f) sum = add_shares<Type>(this->x[k][f] - columns.now[f], sum);
        column.costs[k] = Type::finish(sum);
      }
    });
    return column;
  }
  __device__ __forceinline__ static float add(const Column& column, int k, bool is_inside, float best) {
    return best + (is_inside ? column.costs[k] : INFINITY);
  }
};

}  // namespace softdtw
