// (5) for a strip, from rectangles of E, by the strip's product warp: with both series moved by the strip's origin,
//   dx_i = 2 g (x_i sum_j E[i,j] - sum_j E[i,j] y_j),   dy_j = 2 g (y_j sum_i E[i,j] - sum_i E[i,j] x_i),
// where the sums of vectors are matrix products (matrix.cuh). dx is the strip's own: the products add up in its memory, the
// rest comes at the end. To dy the strips of a pair add in turn, the last one first, so every sum has one order. Both start
// from zeros.
//
// Most of E is all but 0, far from every likely path. A block of E below kNegligible is left out: in the row and in the column
// of each cell E adds up to at least 1, next to which even 2^28 such cells do not count.
#pragma once

#include "product_costs.cuh"

namespace softdtw {

constexpr float kNegligible = 5.421011e-20f;  // 2^-64
constexpr int kBlockDims = 32;                // dimensions whose sums a warp holds at once

// Whom the product warp of a strip waits for, before it adds to dy, and who waits for it. What is published grows from right to
// left: how many groups lie between `start`, a group beyond any strip's last one, and the last one done.
struct GradientChain : Watchers {
  Neighbour below;
  int start;
};

class StripGradient {
  using S = ProductShape;
  const Vectors x, y;
  const View<float> dx, dy;
  const Strip<S> strip;
  const GradientChain& chain;
  const float scale;
  const int group, member;
  const float* const origin;
  float row_sums[2 * kTiles] = {};  // of E, this lane's share, rows group + 8 i

 public:
  __device__ StripGradient(
      const Problem<float>& problem, const Gradient<float>& gradient, const Extent& extent, const Strip<S>& strip_,
      int64_t pair, const GradientChain& chain_)
      : x(problem.x, pair, extent.n, problem.dim),
        y(problem.y, pair, extent.m, problem.dim),
        dx(gradient.x.data == nullptr ? gradient.x : gradient.x.pair(pair)),
        dy(gradient.y.data == nullptr ? gradient.y : gradient.y.pair(pair)),
        strip(strip_),
        chain(chain_),
        scale(2 * gradient.grad_value[pair]),
        group(threadIdx.x / 4),
        member(threadIdx.x % 4),
        origin(x.at(strip.first_row + S::kStripRows / 2)) {}

  __device__ void add(Channel& channel, int batch) {
    const int first = strip.first_column + batch * kBatchColumns;
    const int ring_column = Channel::slot(batch) * kBatchColumns;
    unsigned tiles = 0;  // those that matter
#pragma unroll
    for (int tile = 0; tile < kTiles; ++tile) {
      float sums[2] = {};
#pragma unroll
      for (int c = 0; c < 4; ++c)
#pragma unroll
        for (int i = 0; i < 2; ++i)
          sums[i] += channel.at(tile * kTileRows + group + 8 * i, ring_column + member + 4 * c);
      row_sums[2 * tile] += sums[0];
      row_sums[2 * tile + 1] += sums[1];
      if (__any_sync(kAllLanes, fmaxf(sums[0], sums[1]) >= kNegligible)) tiles |= 1u << tile;
    }
    if (dx.data != nullptr)
#pragma unroll 1
      for (int tile = 0; tile < kTiles; ++tile)
        if (tiles >> tile & 1) add_to_x(channel, tile, first, ring_column);
    if (dy.data != nullptr) add_to_y(channel, tiles, first, ring_column, batch == 0);
  }

  // The part of dx that is no product.
  __device__ void finish() {
    if (dx.data == nullptr) return;
    __syncwarp();
#pragma unroll
    for (int i = 0; i < 2 * kTiles; ++i) {
      const float sum = sum_of_group(row_sums[i]);
#pragma unroll 1
      for (int d = threadIdx.x; d - static_cast<int>(threadIdx.x) < x.dim; d += kWarp) {
        const float from = d < x.dim ? __ldg(origin + d) : 0.0f;
#pragma unroll
        for (int g = 0; g < 8; ++g) {
          const int row = strip.first_row + 8 * i + g;
          const float weight = __shfl_sync(kAllLanes, sum, 4 * g);
          if (row >= x.count || d >= x.dim) continue;
          float& out = dx.at(row, d);
          out = scale * fmaf(weight, __ldg(x.at(row) + d) - from, -out);
        }
      }
    }
  }

 private:
  // Coordinates of a vector, moved: dimensions first_dim + 8 i + group; 0 past the last one.
  __device__ __forceinline__ void load(
      const Vectors& series, const float* vector, int first_dim, const float (&from)[4], float (&values)[4]) const {
#pragma unroll
    for (int i = 0; i < 4; ++i) {
      const int d = first_dim + 8 * i + group;
      values[i] = d < series.dim ? __ldg(vector + d) - from[i] : 0.0f;
    }
  }
  __device__ __forceinline__ void load_origin(int first_dim, float (&from)[4]) const {
#pragma unroll
    for (int i = 0; i < 4; ++i) {
      const int d = first_dim + 8 * i + group;
      from[i] = d < x.dim ? __ldg(origin + d) : 0.0f;
    }
  }

  // sum_j E y_j for the rows of a tile and the columns of a batch.
  __device__ __forceinline__ void add_to_x(Channel& channel, int tile, int first, int ring_column) const {
    const int row = tile * kTileRows + group;
    Factor left[kBatchGroups][4];
    const float* columns[kBatchGroups][2];
#pragma unroll
    for (int h = 0; h < kBatchGroups; ++h)
#pragma unroll
      for (int j = 0; j < 2; ++j) {
        const int column = 8 * h + member + 4 * j;
        left[h][2 * j] = Factor(channel.at(row, ring_column + column));
        left[h][2 * j + 1] = Factor(channel.at(row + 8, ring_column + column));
        columns[h][j] = y.at(first + column);
      }
#pragma unroll 1
    for (int first_dim = 0; first_dim < x.dim; first_dim += kBlockDims) {
      float from[4], sums[4][4] = {};
      load_origin(first_dim, from);
#pragma unroll
      for (int h = 0; h < kBatchGroups; ++h) {
        float upper[4], lower[4];
        load(y, columns[h][0], first_dim, from, upper);
        load(y, columns[h][1], first_dim, from, lower);
#pragma unroll
        for (int i = 0; i < 4; ++i)
          if (first_dim + 8 * i < x.dim) multiply_add(sums[i], left[h], {Factor(upper[i]), Factor(lower[i])});
      }
#pragma unroll
      for (int i = 0; i < 4; ++i)
#pragma unroll
        for (int j = 0; j < 4; ++j) {
          const int own_row = strip.first_row + row + j / 2 * 8, d = first_dim + 8 * i + 2 * member + j % 2;
          if (own_row < x.count && d < x.dim) dx.at(own_row, d) += sums[i][j];
        }
    }
  }

  // dy of a batch. The columns are the rows of the left factor; rows 2 t and 2 t + 1 of every 8 are what member t holds.
  __device__ __forceinline__ void add_to_y(Channel& channel, unsigned tiles, int first, int ring_column, bool is_last) const {
    const int first_group = first / S::kSteps;
    if (threadIdx.x == 0) chain.below.wait(chain.start - first_group);
    __syncwarp();
    if (tiles != 0) {
#pragma unroll 1
      for (int first_dim = 0; first_dim < x.dim; first_dim += kBlockDims) {
        float from[4], sums[4][4] = {}, column_sums[2] = {};
        load_origin(first_dim, from);
#pragma unroll 1
        for (int tile = 0; tile < kTiles; ++tile) {
          if ((tiles >> tile & 1) == 0) continue;
#pragma unroll
          for (int half = 0; half < 2; ++half) {
            const int row = tile * kTileRows + 8 * half + 2 * member;
            const float2 e0 = channel.two_rows(row, ring_column + group);
            const float2 e1 = channel.two_rows(row, ring_column + 8 + group);
            column_sums[0] += e0.x + e0.y;
            column_sums[1] += e1.x + e1.y;
            const Factor left[4] = {Factor(e0.x), Factor(e1.x), Factor(e0.y), Factor(e1.y)};
            float upper[4], lower[4];
            load(x, x.at(strip.first_row + row), first_dim, from, upper);
            load(x, x.at(strip.first_row + row + 1), first_dim, from, lower);
#pragma unroll
            for (int i = 0; i < 4; ++i)
              if (first_dim + 8 * i < x.dim) multiply_add(sums[i], left, {Factor(upper[i]), Factor(lower[i])});
          }
        }
        column_sums[0] = sum_of_group(column_sums[0]);
        column_sums[1] = sum_of_group(column_sums[1]);
#pragma unroll
        for (int i = 0; i < 4; ++i)
#pragma unroll
          for (int j = 0; j < 4; ++j) {
            const int column = first + group + j / 2 * 8, d = first_dim + 8 * i + 2 * member + j % 2;
            if (column >= y.count || d >= x.dim) continue;
            float* const out = &dy.at(column, d);
            const float moved = __ldg(y.at(column) + d) - __ldg(origin + d);
            *out = fmaf(scale, fmaf(column_sums[j / 2], moved, -sums[i][j]), __ldcg(out));
          }
      }
    }
    __threadfence();
    __syncwarp();
    if (threadIdx.x == 0) chain.publish(progress_of(is_last, chain.start - first_group));
  }
};

}  // namespace softdtw
