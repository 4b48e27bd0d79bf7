// Squared distances for a strip, a batch of columns at a time, by the strip's cost warps.
//
// Many dimensions: |x - y|^2 = |x|^2 + |y|^2 - 2 x.y, the last a matrix product, of series moved by an origin near both: the
// strip's middle row. That cancels where x is near y, so wherever the result is below a share of |x|^2 + |y|^2 the block of
// 16 x 16 cells around it is computed again from differences. Fewer dimensions: from differences throughout. Few: between two
// rows that a lane holds and columns that all lanes read from shared memory, where they have come a batch ahead.
//
// Lanes to work, few dimensions: the strip's warps have equal parts of a batch's columns. Many: of its blocks of 16 rows. A
// block is held as matrix.cuh says, with the columns of a group of 8 permuted, so that a lane has those of its member number t
// and t + 4, and stores meet different banks. A lane reads four dimensions at once and the order of dimensions in a product is
// free: member t of a group takes 4 t to 4 t + 3 of every 16.
#pragma once

#include "matrix.cuh"
#include "product_channel.cuh"
#include "products.h"
#include "vectors.cuh"

namespace softdtw {

constexpr int kTileRows = 16, kTiles = ProductShape::kStripRows / kTileRows;
constexpr int kMatrixDims = 16;          // below so many dimensions differences are cheaper
constexpr float kCancelled = 1.0f / 16;  // a cost below this share of |x|^2 + |y|^2 has lost more than four bits

// Where a strip and its columns lie in the series.
struct StripOfSeries {
  using S = ProductShape;
  const Vectors x, y;
  const Strip<S> strip;
  const int group, member;
  const float* const origin;

  __device__ StripOfSeries(const Problem<float>& problem, const Extent& extent, const Strip<S>& strip_, int64_t pair)
      : x(problem.x, pair, extent.n, problem.dim),
        y(problem.y, pair, extent.m, problem.dim),
        strip(strip_),
        group(threadIdx.x / 4),
        member(threadIdx.x % 4),
        origin(x.at(strip.first_row + S::kStripRows / 2)) {}
};

template <bool kFew, bool kFours, class Ring>
class StripCosts : StripOfSeries {
  static constexpr int kWarps = Ring::kWarps, kOwnTiles = kTiles / kWarps;
  static constexpr int kOwnColumns = kBatchColumns / kWarps, kGroups = kFewDims / 4;
  Ring& ring;
  const int warp, first_tile;
  const float* rows[kFew ? 1 : kOwnTiles][2];  // many dimensions: rows group and group + 8 of the warp's tiles
  float norms[kFew ? 1 : kOwnTiles][2];        // and |x|^2 of these
  float4 held[S::kRows][kFew ? kGroups : 1];   // few: the lane's rows
  float4 piece = {};                           // and of the next batch's columns

 public:
  __device__ StripCosts(
      const Problem<float>& problem, const Extent& extent, const Strip<S>& strip_, int64_t pair, Ring& ring_, int warp_)
      : StripOfSeries(problem, extent, strip_, pair), ring(ring_), warp(warp_), first_tile(warp * kOwnTiles) {
    if constexpr (kFew) {
#pragma unroll
      for (int k = 0; k < S::kRows; ++k)
#pragma unroll
        for (int i = 0; i < kGroups; ++i)
          held[k][i] = load_four<kFours>(x.at(strip.first_row + threadIdx.x * S::kRows + k), 4 * i, x.dim);
    } else {
#pragma unroll
      for (int i = 0; i < kOwnTiles; ++i)
#pragma unroll
        for (int half = 0; half < 2; ++half) {
          rows[i][half] = x.at(strip.first_row + (first_tile + i) * kTileRows + 8 * half + group);
          norms[i][half] = 0;
        }
#pragma unroll 1
      for (int d = 4 * member; d < x.dim; d += 16) {
        const float4 from = load_four<kFours>(origin, d, x.dim);
#pragma unroll
        for (int i = 0; i < kOwnTiles; ++i)
#pragma unroll
          for (int half = 0; half < 2; ++half)
            norms[i][half] = add_square(load_four<kFours>(rows[i][half], d, x.dim) - from, norms[i][half]);
      }
#pragma unroll
      for (int i = 0; i < kOwnTiles; ++i)
#pragma unroll
        for (int half = 0; half < 2; ++half) norms[i][half] = sum_of_group(norms[i][half]);
    }
  }

  // Few dimensions: starts the loads of the warp's own columns of a batch, four numbers a lane. Before the first batch is filled.
  __device__ __forceinline__ void fetch(int batch) {
    const int column = strip.first_column + batch * kBatchColumns + warp * kOwnColumns + threadIdx.x / kGroups;
    if (kFew && batch >= 0 && threadIdx.x < kOwnColumns * kGroups)
      piece = load_four<kFours>(y.at(column), threadIdx.x % kGroups * 4, x.dim);
  }

  // Costs of 0 outside the strip's columns and below the pair's last row: nothing depends on them. `next`: the batch that will
  // be filled after this one.
  __device__ void fill(int batch, int next) {
    const int first = strip.first_column + batch * kBatchColumns, slot = Ring::slot(batch);
    float greatest[kBatchGroups] = {};
    if constexpr (kFew) {
      if (threadIdx.x < kOwnColumns * kGroups) ring.columns[warp][threadIdx.x] = piece;
      __syncwarp();
      fetch(next);
    }
    if (batch < 0 || first >= strip.end_column) {
      for (int i = warp * kWarp + threadIdx.x; i < kBatchColumns * S::kStripRows; i += kWarps * kWarp)
        ring.cells[slot * kBatchColumns * S::kStripRows + i] = 0;
    } else if constexpr (kFew) {
      fill_from_held_rows(first, slot, greatest);
    } else {
      unsigned left = (1u << kOwnTiles) - 1;  // tiles to be computed from differences
      if (x.dim >= kMatrixDims) left = fill_from_products(first, slot, greatest);
#pragma unroll 1
      for (int i = 0; i < kOwnTiles; ++i) {
        if ((left >> i & 1) == 0) continue;
        float costs[kBatchGroups][4];
        differences(first_tile + i, first, costs);
        store(first_tile + i, first, slot, costs, greatest);
      }
    }
#pragma unroll
    for (int h = 0; h < kBatchGroups; ++h) {
      const float reach = greatest_of_warp(greatest[h]);
      if (threadIdx.x == 0) ring.reach[warp][slot * kBatchGroups + h] = reach;
    }
    __syncwarp();
  }

 private:
  // A loop of few instructions, since the warps of a strip share what caches them. The warp's own columns are a group.
  __device__ __forceinline__ void fill_from_held_rows(int first, int slot, float (&greatest)[kBatchGroups]) const {
    static_assert(kOwnColumns == S::kSteps);
    constexpr int kAtOnce = 2;
    const int begin = warp * kOwnColumns, columns_left = strip.end_column - first - begin;
    const int rows_left = x.count - strip.first_row - threadIdx.x * S::kRows;
    float most = 0;
#pragma unroll 1
    for (int own = 0; own < kOwnColumns; own += kAtOnce) {
      float4 columns[kAtOnce][kGroups];
#pragma unroll
      for (int c = 0; c < kAtOnce; ++c)
#pragma unroll
        for (int i = 0; i < kGroups; ++i) columns[c][i] = ring.columns[warp][(own + c) * kGroups + i];
      float costs[kAtOnce][S::kRows] = {};
#pragma unroll
      for (int i = 0; i < kGroups; ++i) {
        if (4 * i >= x.dim) continue;
#pragma unroll
        for (int c = 0; c < kAtOnce; ++c)
#pragma unroll
          for (int k = 0; k < S::kRows; ++k) costs[c][k] = add_square(held[k][i] - columns[c][i], costs[c][k]);
      }
#pragma unroll
      for (int c = 0; c < kAtOnce; ++c) {
#pragma unroll
        for (int k = 0; k < S::kRows; ++k) {
          if (own + c >= columns_left || k >= rows_left) costs[c][k] = 0;
          most = greater(most, costs[c][k]);
        }
        ring.two_rows(threadIdx.x * S::kRows, slot * kBatchColumns + begin + own + c) =
            make_float2(costs[c][0], costs[c][1]);
      }
    }
    greatest[0] = warp == 0 ? most : 0;
    greatest[1] = warp == 1 ? most : 0;
  }

  // Returns the tiles that were left out because something cancelled in them. Loads are started 16 dimensions ahead.
  __device__ __forceinline__ unsigned fill_from_products(int first, int slot, float (&greatest)[kBatchGroups]) const {
    float4 rows_ahead[kOwnTiles][2], columns_ahead[kBatchGroups], origin_ahead;
    const float* columns_of_groups[kBatchGroups];
#pragma unroll
    for (int h = 0; h < kBatchGroups; ++h) columns_of_groups[h] = y.at(first + 8 * h + group / 2 + group % 2 * 4);
    const auto load_ahead = [&](int d) {
      origin_ahead = load_four<kFours>(origin, d, x.dim);
#pragma unroll
      for (int h = 0; h < kBatchGroups; ++h) columns_ahead[h] = load_four<kFours>(columns_of_groups[h], d, x.dim);
#pragma unroll
      for (int i = 0; i < kOwnTiles; ++i)
#pragma unroll
        for (int half = 0; half < 2; ++half) rows_ahead[i][half] = load_four<kFours>(rows[i][half], d, x.dim);
    };
    float sums[kOwnTiles][kBatchGroups][4] = {}, y_norms[kBatchGroups] = {};
    load_ahead(4 * member);
#pragma unroll 1
    for (int d = 4 * member; d - 4 * member < x.dim; d += 16) {
      const float4 from = origin_ahead;
      float4 moved[kOwnTiles][2], columns[kBatchGroups];
#pragma unroll
      for (int h = 0; h < kBatchGroups; ++h) columns[h] = columns_ahead[h] - from;
#pragma unroll
      for (int i = 0; i < kOwnTiles; ++i)
#pragma unroll
        for (int half = 0; half < 2; ++half) moved[i][half] = rows_ahead[i][half] - from;
      load_ahead(d + 16);
      __syncwarp();  // or the compiler starts the loads where it needs them
      Factor right[kBatchGroups][2][2];
#pragma unroll
      for (int h = 0; h < kBatchGroups; ++h) {
        y_norms[h] = add_square(columns[h], y_norms[h]);
        right[h][0][0] = Factor(columns[h].x), right[h][0][1] = Factor(columns[h].y);
        right[h][1][0] = Factor(columns[h].z), right[h][1][1] = Factor(columns[h].w);
      }
#pragma unroll
      for (int i = 0; i < kOwnTiles; ++i) {
        const float4 upper = moved[i][0], lower = moved[i][1];
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
          for (int j = 0; j < 4; ++j) sums[i][h][j] += parts[h][j] + parts[kBatchGroups + h][j];
      }
    }
    float y_norm_of[kBatchGroups][2];  // the sum's column 2 member + j belongs to the group of that number
#pragma unroll
    for (int h = 0; h < kBatchGroups; ++h) {
      const float norm = sum_of_group(y_norms[h]);
#pragma unroll
      for (int j = 0; j < 2; ++j) y_norm_of[h][j] = __shfl_sync(kAllLanes, norm, 4 * (2 * member + j));
    }
    unsigned cancelled = 0;
#pragma unroll
    for (int i = 0; i < kOwnTiles; ++i) {
      bool exact = true;
#pragma unroll
      for (int h = 0; h < kBatchGroups; ++h)
#pragma unroll
        for (int j = 0; j < 4; ++j) {
          const float magnitude = norms[i][j / 2] + y_norm_of[h][j % 2];
          sums[i][h][j] = fmaf(-2.0f, sums[i][h][j], magnitude);
          exact = exact && sums[i][h][j] >= kCancelled * magnitude && magnitude < INFINITY;
        }
      if (__all_sync(kAllLanes, exact))
        store(first_tile + i, first, slot, sums[i], greatest);
      else
        cancelled |= 1u << i;
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
        ring.at(own_row, slot * kBatchColumns + column) = cost;
        greatest[h] = greater(greatest[h], cost);
      }
  }
};

}  // namespace softdtw
