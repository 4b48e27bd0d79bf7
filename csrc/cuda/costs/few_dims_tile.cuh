// Costs of series of few dimensions in forward, where a strip's own lanes compute them: a lane holds the
// vectors of its rows and reads those of its columns, whose neighbours other lanes have read just before.
#pragma once

#include "cuda/hardware/vectors.cuh"
#include "cuda/kernels/multivariate/costs/vector_cost.cuh"
#include "cuda/select/blocks.h"
#include "tile.cuh"

namespace softdtw {

// Of vectors of up to four times kGroups numbers, with a cost of vector_cost.cuh, by a jump for each tile if it is several. kFours: which
// can be read four at a time.
template <class S, int kGroups, bool kFours, class CostType>
class FewTile {
  float4 rows[S::kRows][kGroups];
  float costs[S::kRows][S::kSteps];

 public:
  static constexpr bool kUnivariate = false, kExactCosts = true;
  float reach = 0;  // no cost of the tile is larger; NaN if one is NaN

  // is_back: of a table that is seen from its last cell (kernels/bidirectional), of which the first rows and columns may be missing.
  __device__ FewTile(
      const Problem<float>& problem, const Extent& extent, const Strip<S>& strip, int64_t pair, int lane,
      bool is_back = false)
      : x(problem.x, pair, extent.n, problem.dim, is_back),
        columns(problem.y, pair, extent.m, problem.dim, is_back),
        kind(problem.cost) {
#pragma unroll
    for (int k = 0; k < S::kRows; ++k)
#pragma unroll
      for (int i = 0; i < kGroups; ++i)
        rows[k][i] = load_four<kFours>(vector_at(x, strip.first_row + lane * S::kRows + k), 4 * i, x.dim);
  }
  __device__ __forceinline__ void fetch(const Place<S>&) {}
  __device__ __forceinline__ void use(const Place<S>& place) {
    const float* vectors[S::kSteps];
#pragma unroll
    for (int t = 0; t < S::kSteps; ++t) vectors[t] = vector_at(columns, place.column + t);
    use_columns([&](int t, int i) { return load_four<kFours>(vectors[t], 4 * i, columns.dim); });
  }
  __device__ __forceinline__ float cost(int k, int t) const { return costs[k][t]; }
  // All of them in float64, row by row: cell by cell, since there are too few dimensions for the code that more at once would take.
  __device__ __forceinline__ void exact_costs(
      const Problem<float>& problem, const Place<S>& place, double (&exact)[S::kRows * S::kSteps]) const {
    const View<const float> rows_view = x.view(), columns_view = columns.view();
#pragma unroll 1
    for (int i = 0; i < S::kRows * S::kSteps; ++i)
      exact[i] = cost_of_vectors<DeviceMath<double>>(
          problem, rows_view, columns_view, min(max(place.row + i / S::kSteps, 0), x.count - 1),
          min(max(place.column + i % S::kSteps, 0), columns.count - 1));
  }

 protected:
  Vectors x, columns;
  Cost kind;

  __device__ __forceinline__ static const float* vector_at(const Vectors& vectors, int i) { return vectors.at(max(i, 0)); }
  // `column(t, i)`: the i-th four numbers of one.
  template <class Column>
  __device__ __forceinline__ void use_columns(Column&& column) {
    for_each_cell<S>([&](int k, int t) { costs[k][t] = 0; });
    with_kind<CostType>(kind, [&](auto type) {
      using Type = decltype(type);
#pragma unroll
      for (int i = 0; i < kGroups; ++i) {
        if (i > 0 && 4 * i >= columns.dim) continue;
#pragma unroll
        for (int t = 0; t < S::kSteps; ++t) {
          const float4 four = column(t, i);
#pragma unroll
          for (int k = 0; k < S::kRows; ++k) costs[k][t] = add_shares<Type>(rows[k][i] - four, costs[k][t]);
        }
      }
      for_each_cell<S>([&](int k, int t) { costs[k][t] = Type::finish(costs[k][t]); });
    });
    reach = 0;
    for_each_cell<S>([&](int k, int t) { reach = greater(reach, costs[k][t]); });
  }
};

// Columns are read once, a chunk ahead, and stay in a pipeline in shared memory while lanes meet them. A second copy behind the first
// spares them the pipeline's end.
template <class S, int kGroups, bool kFours, class CostType>
struct TileAhead<FewTile<S, kGroups, kFours, CostType>> : FewTile<S, kGroups, kFours, CostType> {
  using Tile = FewTile<S, kGroups, kFours, CostType>;
  static constexpr int kRoom = 2 * kWarp;  // lanes meet kWarp - 1 columns beside those of the chunk
  static_assert(kWarp - 1 + S::kSteps <= kRoom && S::kSteps * kGroups <= kWarp);
  struct alignas(16) Memory {
    float4 columns[kGroups][2 * kRoom];
  };

  template <class... Others>
  __device__ TileAhead(
      Memory& memory, const Problem<float>& problem, const Extent& extent, const Strip<S>& strip, int64_t pair, int lane,
      const Others&... others)
      : Tile(problem, extent, strip, pair, lane, others...),
        pipeline(&memory),
        own_column(lane / kGroups),
        own_group(lane % kGroups) {
    for (int first = strip.first_column - kWarp; first < strip.first_column; first += S::kSteps) {
      fetch_from(first);
      put(first);
    }
  }
  __device__ __forceinline__ void fetch(const Place<S>& place) { fetch_from(first_of(place)); }
  __device__ __forceinline__ void use(const Place<S>& place) {
    put(first_of(place));
    __syncwarp();
    const float4* const first = pipeline->columns[0] + (place.column & (kRoom - 1));
    this->use_columns([&](int t, int i) { return first[i * 2 * kRoom + t]; });
  }

 private:
  Memory* pipeline;
  int own_column, own_group;
  float4 piece;

  __device__ __forceinline__ static int first_of(const Place<S>& place) {
    return place.column + static_cast<int>(threadIdx.x);
  }
  __device__ __forceinline__ void fetch_from(int first) {
    if (own_column < S::kSteps)
      piece = load_four<kFours>(this->vector_at(this->columns, first + own_column), 4 * own_group, this->columns.dim);
  }
  __device__ __forceinline__ void put(int first) {
    if (own_column >= S::kSteps) return;
    float4* const place = pipeline->columns[own_group] + ((first + own_column) & (kRoom - 1));
    place[0] = place[kRoom] = piece;
  }
};

}  // namespace softdtw
