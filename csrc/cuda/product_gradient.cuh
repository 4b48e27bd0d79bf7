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

constexpr float kNegligible = 5.421011e-20f;              // 2^-64
constexpr int kBlockDims = 32, kEights = kBlockDims / 8;  // dimensions whose sums a warp holds at once

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
        for (int i = 0; i < 2; ++i) sums[i] += channel.at(tile * kTileRows + group + 8 * i, ring_column + member + 4 * c);
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
        const bool inside = d < x.dim;
        const float from = inside ? __ldg(origin + d) : 0.0f;
        float products[8], moved[8];
#pragma unroll
        for (int g = 0; g < 8; ++g) {
          const int row = strip.first_row + 8 * i + g;
          products[g] = inside && row < x.count ? dx.at(row, d) : 0.0f;
          moved[g] = inside ? __ldg(x.at(row) + d) - from : 0.0f;
        }
#pragma unroll
        for (int g = 0; g < 8; ++g) {
          const int row = strip.first_row + 8 * i + g;
          const float weight = __shfl_sync(kAllLanes, sum, 4 * g);
          if (inside && row < x.count) dx.at(row, d) = scale * fmaf(weight, moved[g], -products[g]);
        }
      }
    }
  }

 private:
  // Coordinates of a vector, moved by `from`: dimensions first_dim + 8 i + group; 0 past the last one.
  __device__ __forceinline__ void load(
      const float* vector, int first_dim, const float (&from)[kEights], float (&values)[kEights]) const {
#pragma unroll
    for (int i = 0; i < kEights; ++i) {
      const int d = first_dim + 8 * i + group;
      values[i] = d < x.dim ? __ldg(vector + d) - from[i] : 0.0f;
    }
  }
  // sums[i] += left (upper[i], lower[i]) for the dimensions that there are, two blocks of eight at a time.
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

  // sum_j E y_j for the rows of a tile and the columns of a batch.
  __device__ __forceinline__ void add_to_x(Channel& channel, int tile, int first, int ring_column) const {
    const int row = tile * kTileRows + group, own_row = strip.first_row + row;
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
      const int own_dim = first_dim + 2 * member;
      float* const out = dx.data + own_row * dx.row_stride + own_dim;
      const auto for_each_sum = [&](auto&& f) {
#pragma unroll
        for (int i = 0; i < kEights; ++i)
#pragma unroll
          for (int j = 0; j < 4; ++j)
            if (own_row + j / 2 * 8 < x.count && own_dim + 8 * i + j % 2 < x.dim)
              f(i, j, (out + j / 2 * 8 * dx.row_stride)[8 * i + j % 2]);
      };
      float from[kEights] = {};
      Sums sums[kEights] = {}, before[kEights];
      load(origin, first_dim, from, from);
      for_each_sum([&](int i, int j, float& out) { before[i][j] = out; });
#pragma unroll
      for (int h = 0; h < kBatchGroups; ++h) {
        float upper[kEights], lower[kEights];
        load(columns[h][0], first_dim, from, upper);
        load(columns[h][1], first_dim, from, lower);
        multiply(sums, first_dim, left[h], upper, lower);
      }
      for_each_sum([&](int i, int j, float& out) { out = before[i][j] + sums[i][j]; });
    }
  }

  // dy of a batch. The columns are the rows of the left factor; rows 2 t and 2 t + 1 of every 8 are what member t holds.
  __device__ __forceinline__ void add_to_y(
      Channel& channel, unsigned tiles, int first, int ring_column, bool is_last) const {
    const int first_group = first / S::kSteps;
    if (threadIdx.x == 0) chain.below.wait(chain.start - first_group);
    __syncwarp();
    if (tiles != 0) {
#pragma unroll 1
      for (int first_dim = 0; first_dim < x.dim; first_dim += kBlockDims) {
        float from[kEights] = {}, column_sums[2] = {};
        Sums sums[kEights] = {};
        load(origin, first_dim, from, from);
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
            float upper[kEights], lower[kEights];
            load(x.at(strip.first_row + row), first_dim, from, upper);
            load(x.at(strip.first_row + row + 1), first_dim, from, lower);
            multiply(sums, first_dim, left, upper, lower);
          }
        }
        column_sums[0] = sum_of_group(column_sums[0]);
        column_sums[1] = sum_of_group(column_sums[1]);
        const int column = first + group, own_dim = first_dim + 2 * member;
        float* const out = dy.data + column * dy.row_stride + own_dim;
        const float* const own[2] = {y.at(column) + own_dim, y.at(column + 8) + own_dim};
        const auto for_each_sum = [&](auto&& f) {
#pragma unroll
          for (int i = 0; i < kEights; ++i)
#pragma unroll
            for (int j = 0; j < 4; ++j)
              if (column + j / 2 * 8 < y.count && own_dim + 8 * i + j % 2 < x.dim)
                f(i, j, (out + j / 2 * 8 * dy.row_stride)[8 * i + j % 2]);
        };
        for_each_sum([&](int i, int j, float& sum) {
          const float moved = __ldg(own[j / 2] + 8 * i + j % 2) - __ldg(origin + own_dim + 8 * i + j % 2);
          sums[i][j] = fmaf(scale, fmaf(column_sums[j / 2], moved, -sums[i][j]), __ldcg(&sum));
        });
        for_each_sum([&](int i, int j, float& sum) { sum = sums[i][j]; });
      }
      __threadfence();
    }
    __syncwarp();
    if (threadIdx.x == 0) chain.publish(progress_of(is_last, chain.start - first_group));
  }
};

}  // namespace softdtw
