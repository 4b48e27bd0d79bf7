// dy of a strip (multivariate_gradient.cuh).
#pragma once

#include "multivariate_gradient.cuh"

namespace softdtw {

constexpr int kColumnEights = 2;    // blocks of eight dimensions whose sums a warp holds at once
constexpr int kGradientTables = 2;  // of dy

// Whom a strip waits for before it adds to its table of dy, and who waits for it. What is published grows from right to left:
// how many groups lie between `start`, a group beyond any strip's last one, and the last one done; and a round more when it and
// all strips below are done.
struct GradientChain : Watchers {
  Neighbour below;
  int start;
};

// dy. Several warps take blocks of dimensions in turn. In its products columns are the rows of the left factor; rows 2 t and
// 2 t + 1 of every 8 are what member t holds.
template <bool kFew, bool kFours, class CostType>
class ColumnGradients : public StripGradient<kFew, CostType> {
  using Base = StripGradient<kFew, CostType>;
  using S = MultivariateShape;
  using Base::group, Base::member, Base::origin, Base::pipeline, Base::scale, Base::strip, Base::x, Base::y;
  static constexpr int kOwnEights = kFew ? 1 : kColumnEights;
  const View<float> dy;
  const int warp;
  const GradientChain& chain;
  const bool works;  // there may be more warps than blocks of dimensions
  const int end_dim;
  Progress seen = 0, done = 0, told = 0;  // of the strip below; of this one, and what is published
  int coming = 0;                         // what will be done next

 public:
  __device__ ColumnGradients(
      const Problem<float>& problem, const Gradient<float>& gradient, const Extent& extent, const Strip<S>& strip_,
      int64_t pair, typename Base::Pipeline& pipeline_, const View<float>& dy_, const GradientChain& chain_, int warp_)
      : Base(problem, gradient, extent, strip_, pair, pipeline_),
        dy(dy_),
        warp(warp_),
        chain(chain_),
        works(dy_.data != nullptr && kDims * warp_ < problem.dim),
        end_dim(
            !kFew && kIsOfSquares<CostType> && x.dim > kStride ? this->end_of_dims(kDims * warp_, kStride, kDims) : x.dim) {
  }

  // Tells of what is done, of every other batch: what was stored has to arrive first, which takes as long as half a batch.
  __device__ __forceinline__ void prepare(int batch) {
    if (!works) return;
    if (batch % 2 == 0) publish();
    coming = chain.start - (strip.first_column / S::kSteps + batch * kBatchGroups);
  }
  __device__ __forceinline__ void add(int batch) {
    if (!works) return;
    const int first = strip.first_column + batch * kBatchColumns,
              pipeline_column = Base::Pipeline::slot(batch) * kBatchColumns;
    // With few dimensions two blocks share what caches instructions, and fewer of these are faster.
    unsigned tiles = 0, differences = 0;
    if constexpr (kFew) {
#pragma unroll 1
      for (int tile = 0; tile < kTiles; ++tile)
        if (typename Base::Rectangle(*this, tile, pipeline_column).matters()) tiles |= 1u << tile;
    } else {
      tiles = Base::tiles_of(pipeline_column, differences);
    }
    if (tiles == 0) {
      // Who waits for this strip will hear of it, if not now, with a later batch.
      if (threadIdx.x == 0 && chain.below.has_done(coming, seen)) done = progress_of(0, coming);
    } else {
      // Ahead of the products, so that what they are added to is on its way meanwhile: mostly the strip below has long done it.
      await_below();
      if constexpr (kFew && !std::is_same_v<CostType, Squared>) {
        add_columns(tiles, first, pipeline_column);
      } else {
#pragma unroll 1
        for (int first_dim = kDims * warp; first_dim < end_dim; first_dim += kStride) {
          if (tiles != differences) add_dims(tiles & ~differences, first, pipeline_column, first_dim);
          if constexpr (!std::is_same_v<CostType, Squared>)
            if (differences != 0) add_differences(differences, first, pipeline_column, first_dim);
        }
      }
    }
    __syncwarp();
  }
  __device__ __forceinline__ void finish() {
    if (!works) return;
    publish();
    if (threadIdx.x > 0) return;
    Neighbour below = chain.below;
    below.round = 1;
    while (!below.has_done(0, seen)) __nanosleep(20);
    chain.publish(progress_of(1, 0));
  }

 private:
  static constexpr int kDims = 8 * kOwnEights, kStride = kDims * MultivariateWarps<kFew>::kColumns;
  __device__ __forceinline__ void publish() {
    if (threadIdx.x == 0 && done != told) chain.publish(done);
    told = done;
  }
  // Until the strip below has added what it has to what comes.
  __device__ __forceinline__ void await_below() {
    if (threadIdx.x == 0) {
#pragma unroll 1
      while (!chain.below.has_done(coming, seen)) __nanosleep(20);
    }
    __syncwarp();
    done = progress_of(0, coming);
  }

  __device__ __forceinline__ void add_dims(unsigned tiles, int first, int pipeline_column, int first_dim) {
    const int column = first + group, own_dim = first_dim + 2 * member;
    float* const out = dy.data + column * dy.row_stride + own_dim;
    const float* const own[2] = {y.at(column) + own_dim, y.at(column + 8) + own_dim};
    const auto for_each_sum = [&](auto&& f) {
      Base::template for_each_sum<kOwnEights>(out, dy.row_stride, y.count - column, own_dim, f);
    };
    Sums before[kOwnEights], moved[kOwnEights], sums[kOwnEights] = {};
    for_each_sum([&](int i, int j, float& sum) {
      before[i][j] = __ldcg(&sum);
      moved[i][j] = __ldg(own[j / 2] + 8 * i + j % 2) - __ldg(origin + own_dim + 8 * i + j % 2);
    });
    float column_sums[2] = {};
    if constexpr (kFew) {
      Sums terms[4] = {};
#pragma unroll 1
      for (int tile = 0; tile < kTiles; ++tile) {
        if ((tiles >> tile & 1) == 0) continue;
        for_each_half(tile, pipeline_column, column_sums, [&](int half, const Factor(&left)[4]) {
          const int row = strip.first_row + tile * kTileRows + 8 * half + 2 * member;
          const Factor right[2] = {Factor(Base::moved(x.at(row), group)), Factor(Base::moved(x.at(row + 1), group))};
          multiply_add_apart(terms, left, right);
        });
      }
      Base::add_terms(terms, sums[0]);
    } else {
      float from[kOwnEights] = {};
      Base::load(origin, first_dim, from, from);
#pragma unroll 1
      for (int tile = 0; tile < kTiles; ++tile) {
        if ((tiles >> tile & 1) == 0) continue;
        for_each_half(tile, pipeline_column, column_sums, [&](int half, const Factor(&left)[4]) {
          const int row = strip.first_row + tile * kTileRows + 8 * half + 2 * member;
          float upper[kOwnEights], lower[kOwnEights];
          Base::load(x.at(row), first_dim, from, upper);
          Base::load(x.at(row + 1), first_dim, from, lower);
          Base::multiply(sums, first_dim, left, upper, lower);
        });
      }
    }
    column_sums[0] = sum_of_group(column_sums[0]);
    column_sums[1] = sum_of_group(column_sums[1]);
    for_each_sum([&](int i, int j, float& sum) {
      sum = fmaf(scale, fmaf(column_sums[j / 2], moved[i][j], -sums[i][j]), before[i][j]);
    });
  }

  // The same from differences, of E or E / cost: a dimension a lane, of half of a tile's rows.
  __device__ __forceinline__ void add_differences(unsigned tiles, int first, int pipeline_column, int first_dim) const {
    constexpr int kAtOnce = 4, kRows = kTileRows / 2;
    static_assert(2 * kDims == kWarp || kFew);
    const int d = first_dim + threadIdx.x % kDims, half = threadIdx.x / kDims;
    const bool inside = d < x.dim;
    __syncwarp();  // products are added by other lanes
#pragma unroll 1
    for (int c = 0; c < kBatchColumns; c += kAtOnce) {
      float before[kAtOnce], own[kAtOnce], sums[kAtOnce] = {};
#pragma unroll
      for (int i = 0; i < kAtOnce; ++i) {
        const int column = first + c + i;
        before[i] = inside && half == 0 && column < y.count ? __ldcg(dy.data + column * dy.row_stride + d) : 0.0f;
        own[i] = inside ? __ldg(y.at(column) + d) : 0.0f;
      }
#pragma unroll 1
      for (int tile = 0; tile < kTiles; ++tile) {
        if ((tiles >> tile & 1) == 0) continue;
        const int row = tile * kTileRows + half * kRows;
        float others[kRows];
#pragma unroll
        for (int r = 0; r < kRows; ++r) others[r] = inside ? __ldg(x.at(strip.first_row + row + r) + d) : 0.0f;
#pragma unroll
        for (int r = 0; r < kRows; r += 4)
#pragma unroll
          for (int i = 0; i < kAtOnce; ++i) {
            const float4 e = pipeline.four_rows(row + r, pipeline_column + c + i);
            sums[i] = CostType::add_slope(fabsf(e.x), own[i] - others[r], sums[i]);
            sums[i] = CostType::add_slope(fabsf(e.y), own[i] - others[r + 1], sums[i]);
            sums[i] = CostType::add_slope(fabsf(e.z), own[i] - others[r + 2], sums[i]);
            sums[i] = CostType::add_slope(fabsf(e.w), own[i] - others[r + 3], sums[i]);
          }
      }
#pragma unroll
      for (int i = 0; i < kAtOnce; ++i) {
        const int column = first + c + i;
        sums[i] += __shfl_xor_sync(kAllLanes, sums[i], kDims);
        if (inside && half == 0 && column < y.count) dy.data[column * dy.row_stride + d] = fmaf(scale, sums[i], before[i]);
      }
    }
    __syncwarp();
  }

  // Few dimensions, where dy is no product: a lane has a column, of half of a tile's rows.
  __device__ __forceinline__ void add_columns(unsigned tiles, int first, int pipeline_column) const {
    constexpr int kGroups = kFewDims / 4, kRows = kTileRows / 2;
    static_assert(kGroups == 2 && 2 * kBatchColumns == kWarp);
    const int c = threadIdx.x % kBatchColumns, half = threadIdx.x / kBatchColumns, column = first + c;
    float* const out = dy.data + column * dy.row_stride + 4 * half;  // each half leaves four numbers
    const int count = column < y.count ? x.dim - 4 * half : 0;
    float before[4];
#pragma unroll
    for (int j = 0; j < 4; ++j) before[j] = j < count ? __ldcg(out + j) : 0.0f;
    float4 own[kGroups], sums[kGroups] = {};
#pragma unroll
    for (int i = 0; i < kGroups; ++i) own[i] = load_four<kFours>(y.at(column), 4 * i, x.dim);
#pragma unroll 1
    for (int tile = 0; tile < kTiles; ++tile) {
      if ((tiles >> tile & 1) == 0) continue;
#pragma unroll 1
      for (int r = 0; r < kRows; r += 4) {
        const int row = tile * kTileRows + half * kRows + r;
        const float4 four = pipeline.four_rows(row, pipeline_column + c);
        const float e[4] = {four.x, four.y, four.z, four.w};
#pragma unroll
        for (int k = 0; k < 4; ++k) {
          float4 other[kGroups];
#pragma unroll
          for (int i = 0; i < kGroups; ++i) other[i] = load_four<kFours>(x.at(strip.first_row + row + k), 4 * i, x.dim);
          add_slopes<CostType>(e[k], x.dim, own, other, sums);
        }
      }
    }
    float totals[kGroups][4];
#pragma unroll
    for (int i = 0; i < kGroups; ++i) {
      const float own_sums[4] = {sums[i].x, sums[i].y, sums[i].z, sums[i].w};
#pragma unroll
      for (int j = 0; j < 4; ++j) totals[i][j] = own_sums[j] + __shfl_xor_sync(kAllLanes, own_sums[j], kBatchColumns);
    }
#pragma unroll
    for (int j = 0; j < 4; ++j)
      if (j < count) out[j] = fmaf(scale, half == 0 ? totals[0][j] : totals[1][j], before[j]);
  }

  // f(half, E as a left factor) for the two halves of a tile's rows.
  template <class F>
  __device__ __forceinline__ void for_each_half(int tile, int pipeline_column, float (&column_sums)[2], F&& f) const {
#pragma unroll
    for (int half = 0; half < 2; ++half) {
      const int row = tile * kTileRows + 8 * half + 2 * member;
      const auto e0 = pipeline.two_rows(row, pipeline_column + group);
      const auto e1 = pipeline.two_rows(row, pipeline_column + 8 + group);
      column_sums[0] += e0.x + e0.y;
      column_sums[1] += e1.x + e1.y;
      const Factor left[4] = {Factor(e0.x), Factor(e1.x), Factor(e0.y), Factor(e1.y)};
      f(half, left);
    }
  }
};

}  // namespace softdtw
