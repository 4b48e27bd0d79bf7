// (5) for a strip, from rectangles of E, by the strip's gradient warps: with both series moved by the strip's origin,
//   dx_i = 2 g (x_i sum_j E[i,j] - sum_j E[i,j] y_j),   dy_j = 2 g (y_j sum_i E[i,j] - sum_i E[i,j] x_i),
// where the sums of vectors are matrix products (tensor_core.cuh). dx is the strip's own: with few dimensions the products add up in
// registers, otherwise in its memory, and the rest comes at the end. To dy every other strip of a pair adds in turn, the last
// one first, and the strips between them to a table of their own, which is added to dy in the end: so every sum has one order,
// and strips that are next to each other, whose likely paths meet the same columns, do not wait for each other. What is added
// to in memory starts from zeros.
//
// Of other costs the same from E / cost, for Euclidean ones, or from the slopes of differences. Products cancel where x is near y, so
// euclidean gradients of many dimensions are sums of differences in a block of 16 x 16 cells where the costs were (ManyCosts).
//
// Most of E is all but 0, far from every likely path. A block of E below kNegligible is left out: in the row and in the column
// of each cell E adds up to at least 1, next to which even 2^28 such cells do not count.
#pragma once

#include "cuda/costs/multivariate/multivariate_series.cuh"
#include "cuda/kernels/multivariate/multivariate_channel.cuh"

namespace softdtw {

// What both gradients of a strip need of the series and of E.
template <bool kFew, class CostType>
struct StripGradient : StripOfSeries {
  static constexpr bool kDivides = !kFew && CostType::kOverCost;  // what comes is E / cost, with marks
  using Pipeline = typename BackwardChannel<kFew>::Alignment;
  Pipeline& pipeline;
  const float scale;

  __device__ StripGradient(
      const Problem<float>& problem, const Gradient<float>& gradient, const Extent& extent, const Strip<S>& strip_,
      int64_t pair, Pipeline& pipeline_)
      : StripOfSeries(problem, extent, strip_, pair),
        pipeline(pipeline_),
        scale(CostType::kFactor * gradient.arriving(pair)) {}

  // E in the rows group and group + 8 of a tile and the columns member + 4 c of a batch.
  struct Rectangle {
    float e[2][4], sums[2];  // by rows, this lane's share

    __device__ __forceinline__ Rectangle(const StripGradient& own, int tile, int pipeline_column) {
#pragma unroll
      for (int half = 0; half < 2; ++half) {
#pragma unroll
        for (int c = 0; c < 4; ++c)
          e[half][c] = own.pipeline.at(tile * kTileRows + own.group + 8 * half, pipeline_column + own.member + 4 * c);
        sums[half] = (e[half][0] + e[half][1]) + (e[half][2] + e[half][3]);
      }
    }
    __device__ __forceinline__ bool matters() const {
      return __any_sync(kAllLanes, fmaxf(sums[0], sums[1]) >= kNegligible);
    }
    __device__ __forceinline__ void add_to(float (&rows)[2]) const {
      rows[0] += sums[0];
      rows[1] += sums[1];
    }
  };
  // The tiles of a batch that matter, as bits: those with an E of 2^-63 or more, of which bit 29 or 30 is set, or of E / cost those
  // that have any. Those among them that are sums of differences.
  __device__ __forceinline__ unsigned tiles_of(int pipeline_column, unsigned& differences) const {
    // A lane has four rows of two columns in every four, and the same rows swizzled of the other two.
    const uint4* const cells =
        reinterpret_cast<const uint4*>(pipeline.cells + (pipeline_column + threadIdx.x / 16) * Pipeline::kRows) +
        threadIdx.x % 16;
    unsigned any[2] = {};
#pragma unroll
    for (int i = 0; i < kBatchColumns / 2; ++i) {
      const uint4 four = cells[2 * i * Pipeline::kRows / 4];
      any[i % 2] |= (four.x | four.y) | (four.z | four.w);
    }
    const auto tiles_with = [&](unsigned bits) {
      unsigned tiles = 0;
#pragma unroll
      for (int i = 0; i < 2; ++i) {
        const unsigned lanes = __ballot_sync(kAllLanes, (any[i] & bits) != 0), rows = lanes | lanes >> 16;
#pragma unroll
        for (int tile = 0; tile < kTiles; ++tile)
          if ((rows >> 4 * tile & 0xf) != 0) tiles |= 1u << (tile ^ i);
      }
      return tiles;
    };
    const unsigned tiles = tiles_with(kDivides ? 0x7fffffffu : 0x60000000u);
    if (!kIsOfSquares<CostType>)
      differences = tiles;
    else if (kDivides)
      differences = tiles_with(0x80000000u);
    return tiles;
  }
  // A coordinate of a vector, moved by the origin; 0 past the last one.
  __device__ __forceinline__ float moved(const float* vector, int d) const {
    return d < x.dim ? __ldg(vector + d) - __ldg(origin + d) : 0.0f;
  }
  // Coordinates of a vector, moved by `from`: dimensions first_dim + 8 i + group; 0 past the last one.
  template <int kEights>
  __device__ __forceinline__ void load(
      const float* vector, int first_dim, const float (&from)[kEights], float (&values)[kEights]) const {
#pragma unroll
    for (int i = 0; i < kEights; ++i) {
      const int d = first_dim + 8 * i + group;
      values[i] = d < x.dim ? __ldg(vector + d) - from[i] : 0.0f;
    }
  }
  // Calls f(i, j, number) for the lane's sums in memory, from `out` on, of vectors 0 and 8 from it on and dimensions own_dim + 8 i
  // and the next one, as far as there are such.
  template <int kEights, class F>
  __device__ __forceinline__ void for_each_sum(float* out, int64_t stride, int vectors, int own_dim, F&& f) const {
#pragma unroll
    for (int i = 0; i < kEights; ++i)
#pragma unroll
      for (int j = 0; j < 4; ++j)
        if (j / 2 * 8 < vectors && own_dim + 8 * i + j % 2 < x.dim) f(i, j, (out + j / 2 * 8 * stride)[8 * i + j % 2]);
  }
  __device__ __forceinline__ static void add_terms(const Sums (&terms)[4], Sums& sums) {
#pragma unroll
    for (int j = 0; j < 4; ++j) sums[j] += ((terms[3][j] + terms[2][j]) + terms[1][j]) + terms[0][j];
  }
  // sums[i] += left (upper[i], lower[i]) for the dimensions that there are, two blocks of eight at a time.
  template <int kEights>
  __device__ __forceinline__ void multiply(
      Sums (&sums)[kEights], int first_dim, const Factor (&left)[4], const float (&upper)[kEights],
      const float (&lower)[kEights]) const {
#pragma unroll
    for (int i = 0; i < kEights; i += 2) {
      if (first_dim + 8 * i >= x.dim) continue;
      const Factor right[2][2] = {{Factor(upper[i]), Factor(lower[i])}, {Factor(upper[i + 1]), Factor(lower[i + 1])}};
      multiply_add<4, 2>(reinterpret_cast<Sums(&)[2]>(sums[i]), {&left, &left}, {&right[0], &right[1]});
    }
  }
};

// sums += E dC/dx / kFactor of a cell, of few dimensions.
template <class CostType>
__device__ __forceinline__ void add_slopes(
    float e, int dim, const float4 (&x)[kFewDims / 4], const float4 (&y)[kFewDims / 4], float4 (&sums)[kFewDims / 4]) {
  float4 differences[kFewDims / 4];
  float shares = 0;
#pragma unroll
  for (int i = 0; i < kFewDims / 4; ++i) {
    if (4 * i >= dim) continue;
    differences[i] = x[i] - y[i];
    if (CostType::kOverCost) shares = add_shares<CostType>(differences[i], shares);
  }
  const float weight = CostType::over(e, shares);
#pragma unroll
  for (int i = 0; i < kFewDims / 4; ++i) {
    if (4 * i >= dim) continue;
    sums[i].x = CostType::add_slope(weight, differences[i].x, sums[i].x);
    sums[i].y = CostType::add_slope(weight, differences[i].y, sums[i].y);
    sums[i].z = CostType::add_slope(weight, differences[i].z, sums[i].z);
    sums[i].w = CostType::add_slope(weight, differences[i].w, sums[i].w);
  }
}

}  // namespace softdtw
