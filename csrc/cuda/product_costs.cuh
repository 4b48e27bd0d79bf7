// Squared distances for a strip, a batch of columns at a time, by the strip's product warp.
//
// Many dimensions: |x - y|^2 = |x|^2 + |y|^2 - 2 x.y, the last a matrix product, of series moved by an origin near both: the
// strip's middle row. That cancels where x is near y, so wherever the result is below a share of |x|^2 + |y|^2 the block of
// 16 x 16 cells around it is computed again from differences. Few dimensions: from differences throughout.
//
// Lanes to work: a block of 16 rows is held as matrix.cuh says, with the columns of a group of 8 permuted, so that a lane has
// those of its member number t and t + 4, and stores meet different banks. A lane reads four dimensions at once and the order
// of dimensions in a product is free: member t of a group takes 4 t to 4 t + 3 of every 16.
#pragma once

#include "matrix.cuh"
#include "product_channel.cuh"

namespace softdtw {

// Series with the dimensions of a vector next to each other; vectors past the pair's end repeat its last one.
struct Vectors {
  const float* const data;
  const int64_t stride;
  const int count, dim;

  __device__ Vectors(const View<const float>& series, int64_t pair, int count_, int64_t dim_)
      : data(series.pair(pair).data), stride(series.row_stride), count(count_), dim(static_cast<int>(dim_)) {}
  __device__ __forceinline__ const float* at(int i) const { return data + min(i, count - 1) * stride; }
};

// Whether vectors can be read four numbers at a time.
inline bool reads_fours(const View<const float>& series, int64_t dim) {
  return reinterpret_cast<uintptr_t>(series.data) % 16 == 0 && series.row_stride % 4 == 0 && series.batch_stride % 4 == 0 &&
         dim % 4 == 0;
}

// Coordinates d to d + 3 of a vector; 0 past the last one. d is a multiple of four, kFours: and so is their number.
template <bool kFours>
__device__ __forceinline__ float4 load_four(const float* vector, int d, int dim) {
  if (kFours) return d < dim ? __ldg(reinterpret_cast<const float4*>(vector + d)) : float4{};
  return {
      d < dim ? vector[d] : 0, d + 1 < dim ? vector[d + 1] : 0, d + 2 < dim ? vector[d + 2] : 0,
      d + 3 < dim ? vector[d + 3] : 0};
}

__device__ __forceinline__ float4 operator-(const float4& a, const float4& b) {
  return {a.x - b.x, a.y - b.y, a.z - b.z, a.w - b.w};
}
__device__ __forceinline__ float add_square(const float4& a, float sum) {
  return fmaf(a.w, a.w, fmaf(a.z, a.z, fmaf(a.y, a.y, fmaf(a.x, a.x, sum))));
}

constexpr int kTileRows = 16, kTiles = ProductShape::kStripRows / kTileRows;
constexpr int kMatrixDims = 16;          // below, differences are cheaper
constexpr float kCancelled = 1.0f / 16;  // a cost below this share of |x|^2 + |y|^2 has lost more than four bits

template <bool kFours>
class StripCosts {
  using S = ProductShape;
  const Vectors x, y;
  const Strip<S> strip;
  const int group, member;
  const float* const origin;
  Channel& channel;

 public:
  __device__ StripCosts(
      const Problem<float>& problem, const Extent& extent, const Strip<S>& strip_, int64_t pair, Channel& channel_)
      : x(problem.x, pair, extent.n, problem.dim),
        y(problem.y, pair, extent.m, problem.dim),
        strip(strip_),
        group(threadIdx.x / 4),
        member(threadIdx.x % 4),
        origin(x.at(strip.first_row + S::kStripRows / 2)),
        channel(channel_) {
    if (x.dim < kMatrixDims) return;
    float norms[2 * kTiles] = {};  // of rows group + 8 i
#pragma unroll 1
    for (int d = 4 * member; d < x.dim; d += 16) {
      const float4 from = load_four<kFours>(origin, d, x.dim);
#pragma unroll
      for (int i = 0; i < 2 * kTiles; ++i)
        norms[i] = add_square(load_four<kFours>(x.at(strip.first_row + 8 * i + group), d, x.dim) - from, norms[i]);
    }
#pragma unroll
    for (int i = 0; i < 2 * kTiles; ++i) {
      const float norm = sum_of_group(norms[i]);
      if (member == 0) channel.norms[8 * i + group] = norm;
    }
    __syncwarp();
  }

  // Costs of 0 outside the strip's columns and below the pair's last row: nothing depends on them, and E is 0 there.
  __device__ void fill(int batch) const {
    const int first = strip.first_column + batch * kBatchColumns, slot = Channel::slot(batch);
    float greatest[kBatchGroups] = {};
    if (batch < 0 || first >= strip.end_column) {
      for (int i = threadIdx.x; i < kBatchColumns * S::kStripRows; i += kWarp)
        channel.ring[slot * kBatchColumns * S::kStripRows + i] = 0;
    } else {
      unsigned left = (1u << kTiles) - 1;  // tiles to be computed from differences
      if (x.dim >= kMatrixDims) left = fill_from_products(first, slot, greatest);
#pragma unroll 1
      for (int tile = 0; tile < kTiles; ++tile) {
        if ((left >> tile & 1) == 0) continue;
        float costs[kBatchGroups][4];
        differences(tile, first, costs);
        store(tile, first, slot, costs, greatest);
      }
    }
#pragma unroll
    for (int h = 0; h < kBatchGroups; ++h) {
      const float reach = greatest_of_warp(greatest[h]);
      if (threadIdx.x == 0) channel.reach[slot * kBatchGroups + h] = reach;
    }
    __syncwarp();
  }

 private:
  // Returns the tiles that were left out because something cancelled in them. Loads are started well before their use: those
  // of a tile's rows a tile before, those of columns 16 dimensions before.
  __device__ __forceinline__ unsigned fill_from_products(int first, int slot, float (&greatest)[kBatchGroups]) const {
    float sums[kTiles][kBatchGroups][4] = {}, y_norms[kBatchGroups] = {};
    const auto rows = [&](int tile, int d, int below) {
      return load_four<kFours>(x.at(strip.first_row + tile * kTileRows + group + below), d, x.dim);
    };
    const auto columns = [&](int h, int d) {
      return load_four<kFours>(y.at(first + 8 * h + group / 2 + group % 2 * 4), d, x.dim);
    };
    float4 ahead[kBatchGroups];
#pragma unroll
    for (int h = 0; h < kBatchGroups; ++h) ahead[h] = columns(h, 4 * member);
    float4 upper_ahead = rows(0, 4 * member, 0), lower_ahead = rows(0, 4 * member, 8);
#pragma unroll 1
    for (int d = 4 * member; d - 4 * member < x.dim; d += 16) {
      const float4 from = load_four<kFours>(origin, d, x.dim);
      Factor right[kBatchGroups][2][2];
#pragma unroll
      for (int h = 0; h < kBatchGroups; ++h) {
        const float4 four = ahead[h] - from;
        ahead[h] = columns(h, d + 16);
        y_norms[h] = add_square(four, y_norms[h]);
        right[h][0][0] = Factor(four.x), right[h][0][1] = Factor(four.y);
        right[h][1][0] = Factor(four.z), right[h][1][1] = Factor(four.w);
      }
#pragma unroll
      for (int tile = 0; tile < kTiles; ++tile) {
        const float4 upper = upper_ahead - from, lower = lower_ahead - from;
        const int next_tile = (tile + 1) % kTiles, next_d = next_tile == 0 ? d + 16 : d;
        upper_ahead = rows(next_tile, next_d, 0), lower_ahead = rows(next_tile, next_d, 8);
        const Factor left[2][4] = {
            {Factor(upper.x), Factor(lower.x), Factor(upper.y), Factor(lower.y)},
            {Factor(upper.z), Factor(lower.z), Factor(upper.w), Factor(lower.w)}};
        // Tensor cores cut off what they round, so long sums in them drift: these are short.
        Sums parts[2 * kBatchGroups] = {};
        multiply_add<3, 2 * kBatchGroups>(
            parts, {&left[0], &left[0], &left[1], &left[1]}, {&right[0][0], &right[1][0], &right[0][1], &right[1][1]});
#pragma unroll
        for (int h = 0; h < kBatchGroups; ++h)
#pragma unroll
          for (int i = 0; i < 4; ++i) sums[tile][h][i] += parts[h][i] + parts[kBatchGroups + h][i];
      }
    }
    unsigned cancelled = 0;
#pragma unroll
    for (int h = 0; h < kBatchGroups; ++h) y_norms[h] = sum_of_group(y_norms[h]);
#pragma unroll
    for (int tile = 0; tile < kTiles; ++tile) {
      bool exact = true;
#pragma unroll
      for (int h = 0; h < kBatchGroups; ++h)
#pragma unroll
        for (int i = 0; i < 4; ++i) {
          // The sum's column 2 member + i belongs to the group of that number.
          const float magnitude =
              channel.norms[8 * (2 * tile + i / 2) + group] + __shfl_sync(kAllLanes, y_norms[h], 4 * (2 * member + i % 2));
          sums[tile][h][i] = fmaf(-2.0f, sums[tile][h][i], magnitude);
          exact = exact && sums[tile][h][i] >= kCancelled * magnitude && magnitude < INFINITY;
        }
      if (__all_sync(kAllLanes, exact))
        store(tile, first, slot, sums[tile], greatest);
      else
        cancelled |= 1u << tile;
    }
    return cancelled;
  }

  // The lane's cells of a block: rows group and group + 8, columns member and member + 4 of either group of columns.
  __device__ __forceinline__ void differences(int tile, int first, float (&costs)[kBatchGroups][4]) const {
    const int row = strip.first_row + tile * kTileRows + group;
    const float *const upper = x.at(row), *const lower = x.at(row + 8);
    const float* columns[kBatchGroups][2];
#pragma unroll
    for (int h = 0; h < kBatchGroups; ++h)
#pragma unroll
      for (int i = 0; i < 2; ++i) {
        columns[h][i] = y.at(first + 8 * h + member + 4 * i);
        costs[h][i] = costs[h][2 + i] = 0;
      }
#pragma unroll 2
    for (int d = 0; d < x.dim; d += 4) {
      const float4 a = load_four<kFours>(upper, d, x.dim), b = load_four<kFours>(lower, d, x.dim);
#pragma unroll
      for (int h = 0; h < kBatchGroups; ++h)
#pragma unroll
        for (int i = 0; i < 2; ++i) {
          const float4 column = load_four<kFours>(columns[h][i], d, x.dim);
          costs[h][i] = add_square(a - column, costs[h][i]);
          costs[h][2 + i] = add_square(b - column, costs[h][2 + i]);
        }
    }
  }

  __device__ __forceinline__ void store(
      int tile, int first, int slot, const float (&costs)[kBatchGroups][4], float (&greatest)[kBatchGroups]) const {
    const int row = tile * kTileRows + group;
#pragma unroll
    for (int h = 0; h < kBatchGroups; ++h)
#pragma unroll
      for (int i = 0; i < 4; ++i) {
        const int column = 8 * h + member + i % 2 * 4, own_row = row + i / 2 * 8;
        const bool here = strip.first_row + own_row < x.count && first + column < strip.end_column;
        const float cost = here ? costs[h][i] : 0.0f;
        channel.at(own_row, slot * kBatchColumns + column) = cost;
        greatest[h] = greater(greatest[h], cost);
      }
  }
};

}  // namespace softdtw
