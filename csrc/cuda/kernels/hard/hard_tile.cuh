// The costs of a lane's tile (tile.cuh) as the sweep of hard DTW adds them, a column at a time.
//
// A tile has Memory, in shared memory, of the warp's own; fetch() and use() as in tile.cuh; and costs_of(t), whose add(k, best, is_inside)
// is the cell's entry: infinity outside the band. Where it can be, it is the cost that becomes infinity: the chain down the rows need not
// wait for that. It may have skip<kBy>(), after which step t is the one that was kBy steps later.
#pragma once

#include "cuda/costs/tile.cuh"
#include "hard_strip.cuh"

namespace softdtw {

// A step of a tile that has its costs at hand. Of squared differences in one dimension a multiplication and an addition are one.
template <class Tile>
struct HardColumn {
  const Tile& tile;
  const int t;

  template <typename T>
  __device__ __forceinline__ T add(int k, T best, bool is_inside) const {
    if constexpr (Tile::kUnivariate) {
      const T difference = is_inside ? tile.difference(k, t) : T(INFINITY);
      return DeviceMath<T>::fma(difference, difference, best);
    } else {
      return best + (is_inside ? tile.cost(k, t) : T(INFINITY));
    }
  }
};

// A tile of tile.cuh.
template <template <class> class Tile, class S>
struct HardTile : Tile<S> {
  using Shape = S;
  using T = typename S::Scalar;
  struct Memory {};

  __device__ HardTile(
      const Problem<T>& problem, const Extent& extent, const Strip<S>& strip, int64_t pair, int lane, Memory&)
      : Tile<S>(problem, extent, strip, pair, lane) {}
  __device__ __forceinline__ HardColumn<HardTile> costs_of(int t) const { return {*this, t}; }
};
template <class S>
using HardUnivariateTile = HardTile<UnivariateTile, S>;
template <class S>
using HardDenseTile = HardTile<DenseTile, S>;

// Squared Euclidean costs of up to 4 kFours dimensions in float32: rows in registers, and in shared memory the columns that the
// warp's lanes are at.
template <class S, int kFours>
struct HardFewDimsTile : SweptInParts {
  using Shape = S;
  using T = float;
  static constexpr int kColumns = 64;  // at least those of a step and of a chunk to come
  static constexpr int kResidentWarps = kFours == 1 ? 20 : 0;
  static_assert(kColumns >= kWarp + 2 * S::kSteps);
  struct Memory {
    float4 columns[kFours][kColumns];
  };
  struct Column {
    float costs[S::kRows];
    __device__ __forceinline__ float add(int k, float best, bool is_inside) const {
      return best + (is_inside ? costs[k] : INFINITY);
    }
  };
  const View<const float> y;
  const int last, lane, dim;
  int column = 0;  // the lane's first one of the chunk
  float4 rows[S::kRows][kFours], next;
  Memory& memory;

  __device__ HardFewDimsTile(
      const Problem<float>& problem, const Extent& extent, const Strip<S>& strip, int64_t pair, int lane_, Memory& memory_)
      : y(problem.y.pair(pair)), last(extent.m - 1), lane(lane_), dim(static_cast<int>(problem.dim)), memory(memory_) {
    const View<const float> x = problem.x.pair(pair);
#pragma unroll
    for (int k = 0; k < S::kRows; ++k)
#pragma unroll
      for (int i = 0; i < kFours; ++i)
        rows[k][i] = four_of(x, min(strip.first_row + lane * S::kRows + k, extent.n - 1), 4 * i);
    // What lanes left of the table read: any number will do.
    for (int i = lane; i < kFours * kColumns; i += kWarp) memory.columns[i / kColumns][i % kColumns] = float4{};
    __syncwarp();
  }
  __device__ __forceinline__ void fetch(const Place<S>& place) {
    if (lane < S::kSteps * kFours) next = four_of(y, min(place.column + lane + lane / kFours, last), lane % kFours * 4);
  }
  __device__ __forceinline__ void use(const Place<S>& place) {
    column = place.column;
    if (lane < S::kSteps * kFours) memory.columns[lane % kFours][slot(column + lane + lane / kFours)] = next;
    __syncwarp();
  }
  __device__ __forceinline__ Column costs_of(int t) const {
    Column cells;
#pragma unroll
    for (int i = 0; i < kFours; ++i) {
      const float4 four = memory.columns[i][slot(column + t)];
#pragma unroll
      for (int k = 0; k < S::kRows; ++k) {
        const float4& row = rows[k][i];
        float sum = i == 0 ? 0.0f : cells.costs[k];
        sum = fmaf(row.x - four.x, row.x - four.x, sum);
        sum = fmaf(row.y - four.y, row.y - four.y, sum);
        sum = fmaf(row.z - four.z, row.z - four.z, sum);
        cells.costs[k] = fmaf(row.w - four.w, row.w - four.w, sum);
      }
    }
    return cells;
  }
  template <int kBy>
  __device__ __forceinline__ void skip() {
    column += kBy;
  }

 private:
  __device__ __forceinline__ static unsigned slot(int column) { return static_cast<unsigned>(column) % kColumns; }
  // Coordinates d to d + 3 of a vector; 0 past the last one.
  __device__ __forceinline__ float4 four_of(const View<const float>& series, int i, int d) const {
    const float* const vector = series.data + i * series.row_stride;
    const int64_t stride = series.column_stride;
    return {
        d < dim ? vector[d * stride] : 0, d + 1 < dim ? vector[(d + 1) * stride] : 0,
        d + 2 < dim ? vector[(d + 2) * stride] : 0, d + 3 < dim ? vector[(d + 3) * stride] : 0};
  }
};

}  // namespace softdtw
