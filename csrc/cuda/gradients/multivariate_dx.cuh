// dx of a strip (multivariate_gradient.cuh).
#pragma once

#include "multivariate_gradient.cuh"

namespace softdtw {

constexpr int kRowEights = 4;  // blocks of eight dimensions whose sums a warp holds at once

// Moves everything one place down and the first to the end, for loops that are not unrolled, which cannot choose a register.
template <int kCount, int kSize>
__device__ __forceinline__ void rotate(float (&items)[kCount][kSize]) {
#pragma unroll
  for (int j = 0; j < kSize; ++j) {
    const float first = items[0][j];
#pragma unroll
    for (int i = 0; i + 1 < kCount; ++i) items[i][j] = items[i + 1][j];
    items[kCount - 1][j] = first;
  }
}

// dx. Several warps take blocks of dimensions in turn, or tiles of rows where there is one block: most of E is in one tile or
// two.
template <bool kFew, class CostType>
class RowGradients : public StripGradient<kFew, CostType> {
  using Base = StripGradient<kFew, CostType>;
  using S = MultivariateShape;
  using Base::group, Base::member, Base::origin, Base::scale, Base::strip, Base::x, Base::y;
  static constexpr int kWarps = MultivariateWarps<kFew>::kRows, kEights = kFew ? 1 : kRowEights, kDims = 8 * kEights;
  static constexpr bool kHasProducts = kIsOfSquares<CostType>;
  const View<float> dx;
  const int warp;
  const int end_dim;                        // of products
  const HeldSums block_sums;                // of products, if dimensions are many
  float columns[kBatchGroups][2][kEights];  // those of y in a batch, in a block of dimensions
  float row_sums[kTiles][2] = {};           // of E, this lane's share, rows group and group + 8 of a tile
  Sums held[kFew ? kTiles : 1] = {};        // of products, if dimensions are few

 public:
  __device__ RowGradients(
      const Problem<float>& problem, const Gradient<float>& gradient, const Extent& extent, const Strip<S>& strip_,
      int64_t pair, typename Base::Pipeline& pipeline_, int warp_, HeldSums block_sums_)
      : Base(problem, gradient, extent, strip_, pair, pipeline_),
        dx(gradient.x.data == nullptr ? gradient.x : gradient.x.pair(pair)),
        warp(warp_),
        end_dim(!kFew && kHasProducts && x.dim > kStride ? this->end_of_dims(kDims * warp_, kStride, kDims) : x.dim),
        block_sums(block_sums_) {
    if (!kFew && kHasProducts && block_sums.memory != nullptr) clear_sums();
  }

  // What does not depend on E: with one block of dimensions, its columns, for the tiles that are the warp's own.
  __device__ __forceinline__ void prepare(int batch) {
    if (kHasProducts && dx.data != nullptr && has_one_block())
      load_columns(strip.first_column + batch * kBatchColumns, first_dim_of(warp));
  }
  __device__ __forceinline__ void add(int batch) {
    if (dx.data == nullptr) return;
    const int first = strip.first_column + batch * kBatchColumns,
              pipeline_column = Base::Pipeline::slot(batch) * kBatchColumns;
    if constexpr (kFew) {
#pragma unroll 1
      for (int tile = 0; tile < kTiles; ++tile, rotate(row_sums), rotate(held)) {
        const typename Base::Rectangle e(*this, tile, pipeline_column);
        if (!e.matters()) continue;
        e.add_to(row_sums[0]);
        add_to_held(Left(e));
      }
    } else {
      unsigned differences = 0;
      unsigned tiles = Base::tiles_of(pipeline_column, differences);
#pragma unroll 1
      for (; differences != 0; differences &= differences - 1) {
        const int tile = __ffs(differences) - 1;
        add_differences(tile, first, pipeline_column);
        tiles &= ~(1u << tile);
      }
      if (!kHasProducts || tiles == 0) return;
      int further = 0;  // to another block of dimensions
#pragma unroll 1
      do {
        if (!has_one_block()) load_columns(first, kDims * warp + further);
#pragma unroll 1
        for (int tile = 0; tile < kTiles; ++tile, rotate(row_sums)) {
          if ((tiles >> tile & 1) == 0) continue;
          const typename Base::Rectangle e(*this, tile, pipeline_column);
          if (further == 0) e.add_to(row_sums[0]);
          const int first_dim = first_dim_of(tile) + further;
          if (first_dim < end_dim) add_products(tile, first_dim, Left(e));
        }
        further += kStride;
      } while (kDims * warp + further < end_dim);
    }
  }

  // The part of dx that is no product.
  __device__ __forceinline__ void finish() {
    if (dx.data == nullptr) return;
    __syncwarp();
#pragma unroll
    for (int tile = 0; tile < kTiles; ++tile)
#pragma unroll
      for (int half = 0; half < 2; ++half) row_sums[tile][half] = sum_of_group(row_sums[tile][half]);
    if constexpr (kFew)
      finish_held();
    else if (!kHasProducts || block_sums.memory == nullptr)
      finish_memory();
    else
      finish_sums();
  }

 private:
  // E of a tile as a left factor.
  struct Left {
    Factor factors[kBatchGroups][4];

    __device__ __forceinline__ explicit Left(const typename Base::Rectangle& rectangle) {
#pragma unroll
      for (int h = 0; h < kBatchGroups; ++h)
#pragma unroll
        for (int j = 0; j < 4; ++j) factors[h][j] = Factor(rectangle.e[j % 2][2 * h + j / 2]);
    }
  };
  // Of a warp: dimensions first_dim_of(tile) and, if it has more than one block, every kStride further.
  static constexpr int kStride = kDims * kWarps;
  __device__ __forceinline__ bool has_one_block() const { return end_dim <= kDims * warp + kStride; }
  __device__ __forceinline__ int first_dim_of(int tile) const {
    return x.dim > kDims ? kDims * warp : kDims * ((warp + tile) % kWarps);
  }
  __device__ __forceinline__ void load_columns(int first, int first_dim) {
    float from[kEights] = {};
    Base::load(origin, first_dim, from, from);
#pragma unroll
    for (int h = 0; h < kBatchGroups; ++h)
#pragma unroll
      for (int j = 0; j < 2; ++j) Base::load(y.at(first + 8 * h + member + 4 * j), first_dim, from, columns[h][j]);
  }

  __device__ __forceinline__ void add_to_held(const Left& left) {
    Sums terms[4] = {};
#pragma unroll
    for (int h = 0; h < kBatchGroups; ++h) {
      const Factor right[2] = {Factor(columns[h][0][0]), Factor(columns[h][1][0])};
      multiply_add_apart(terms, left.factors[h], right);
    }
    Base::add_terms(terms, held[0]);
  }
  __device__ __forceinline__ void finish_held() const {
#pragma unroll
    for (int tile = 0; tile < kTiles; ++tile)
#pragma unroll
      for (int half = 0; half < 2; ++half) {
        const int row = strip.first_row + tile * kTileRows + group + 8 * half;
#pragma unroll
        for (int j = 0; j < 2; ++j) {
          const int d = 2 * member + j;
          if (row < x.count && d < x.dim)
            dx.at(row, d) = scale * fmaf(row_sums[tile][half], Base::moved(x.at(row), d), -held[tile][2 * half + j]);
        }
      }
  }

  // The lane's dimensions of a block, which are its own in sums.
  __device__ __forceinline__ void clear_sums() const {
#pragma unroll 1
    for (int tile = 0; tile < kTiles; ++tile)
#pragma unroll 1
      for (int first_dim = first_dim_of(tile); first_dim < x.dim; first_dim += kStride)
#pragma unroll
        for (int i = 0; i < kEights; ++i) block_sums.at(tile, first_dim / 8 + i) = float4{};
  }
  // In memory are the sums of differences, if there may be any.
  __device__ __forceinline__ void finish_sums() {
#pragma unroll 1
    for (int tile = 0; tile < kTiles; ++tile, rotate(row_sums)) {
      const int row = strip.first_row + tile * kTileRows + group;
#pragma unroll 1
      for (int first_dim = first_dim_of(tile); first_dim < x.dim; first_dim += kStride) {
        const int own_dim = first_dim + 2 * member;
        const float* const own[2] = {x.at(row) + own_dim, x.at(row + 8) + own_dim};
        Sums products[kEights] = {}, moved[kEights] = {};
        float* const out = dx.data + row * dx.row_stride + own_dim;
        const auto for_each_sum = [&](auto&& f) {
          Base::template for_each_sum<kEights>(out, dx.row_stride, x.count - row, own_dim, f);
        };
        for_each_sum([&](int i, int j, float& sum) {
          moved[i][j] = __ldg(own[j / 2] + 8 * i + j % 2) - __ldg(origin + own_dim + 8 * i + j % 2);
          products[i][j] = Base::kDivides ? sum : 0;
        });
#pragma unroll
        for (int i = 0; i < kEights; ++i) {
          const float4 four = block_sums.at(tile, first_dim / 8 + i);
          products[i][0] += four.x, products[i][1] += four.y, products[i][2] += four.z, products[i][3] += four.w;
        }
        for_each_sum(
            [&](int i, int j, float& sum) { sum = scale * fmaf(row_sums[0][j / 2], moved[i][j], -products[i][j]); });
      }
    }
  }

  // sum_j E y_j for the rows of a tile and the columns of a batch.
  __device__ __forceinline__ void add_products(int tile, int first_dim, const Left& left) {
    const int own_row = strip.first_row + tile * kTileRows + group, own_dim = first_dim + 2 * member;
    float* const out = dx.data + own_row * dx.row_stride + own_dim;
    const auto for_each_sum = [&](auto&& f) {
      Base::template for_each_sum<kEights>(out, dx.row_stride, x.count - own_row, own_dim, f);
    };
    const bool is_held = block_sums.memory != nullptr;
    Sums sums[kEights] = {}, before[kEights];
    if (!is_held) for_each_sum([&](int i, int j, float& out) { before[i][j] = out; });
#pragma unroll
    for (int h = 0; h < kBatchGroups; ++h) Base::multiply(sums, first_dim, left.factors[h], columns[h][0], columns[h][1]);
    if (!is_held) return for_each_sum([&](int i, int j, float& out) { out = before[i][j] + sums[i][j]; });
#pragma unroll
    for (int i = 0; i < kEights; ++i) {
      float4& own = block_sums.at(tile, first_dim / 8 + i);
      own = {own.x + sums[i][0], own.y + sums[i][1], own.z + sums[i][2], own.w + sums[i][3]};
    }
  }

  // sum_j E slope(y_j - x_i) for them, of E or E / cost: a dimension a lane.
  __device__ __forceinline__ void add_differences(int tile, int first, int pipeline_column) {
    const int first_row = strip.first_row + tile * kTileRows;
#pragma unroll 1
    for (int first_dim = first_dim_of(tile); first_dim < x.dim; first_dim += kStride) {
      const int d = first_dim + threadIdx.x;
      const bool inside = d < x.dim;
      float own[kTileRows], sums[kTileRows] = {};
#pragma unroll
      for (int r = 0; r < kTileRows; ++r) own[r] = inside ? __ldg(x.at(first_row + r) + d) : 0.0f;
#pragma unroll 2
      for (int c = 0; c < kBatchColumns; ++c) {
        const float other = inside ? __ldg(y.at(first + c) + d) : 0.0f;
#pragma unroll
        for (int r = 0; r < kTileRows; r += 4) {
          const float4 e = Base::pipeline.four_rows(tile * kTileRows + r, pipeline_column + c);
          sums[r] = CostType::add_slope(fabsf(e.x), other - own[r], sums[r]);
          sums[r + 1] = CostType::add_slope(fabsf(e.y), other - own[r + 1], sums[r + 1]);
          sums[r + 2] = CostType::add_slope(fabsf(e.z), other - own[r + 2], sums[r + 2]);
          sums[r + 3] = CostType::add_slope(fabsf(e.w), other - own[r + 3], sums[r + 3]);
        }
      }
      __syncwarp();  // products are added by other lanes
#pragma unroll
      for (int r = 0; r < kTileRows; ++r)
        if (inside && first_row + r < x.count) dx.at(first_row + r, d) += sums[r];
    }
    __syncwarp();
  }

  // A lane has a dimension of eight rows, and of one of them the sum.
  __device__ __forceinline__ void finish_memory() {
#pragma unroll 1
    for (int tile = 0; tile < kTiles; ++tile, rotate(row_sums))
#pragma unroll
      for (int half = 0; half < 2; ++half) {
        const int first_row = strip.first_row + tile * kTileRows + 8 * half;
#pragma unroll 1
        for (int first_dim = first_dim_of(tile); first_dim < x.dim; first_dim += kStride) {
          const int d = first_dim + threadIdx.x;
          const bool inside = d < x.dim;
          const float from = inside ? __ldg(origin + d) : 0.0f;
          float products[8], own[8];
#pragma unroll
          for (int g = 0; g < 8; ++g) {
            const int row = first_row + g;
            products[g] = inside && row < x.count ? dx.at(row, d) : 0.0f;
            own[g] = inside ? __ldg(x.at(row) + d) - from : 0.0f;
          }
#pragma unroll
          for (int g = 0; g < 8; ++g) {
            const int row = first_row + g;
            const float weight = __shfl_sync(kAllLanes, row_sums[0][half], 4 * g);
            if (inside && row < x.count) dx.at(row, d) = scale * fmaf(weight, own[g], -products[g]);
          }
        }
      }
  }
};
static_assert(8 * kRowEights == kWarp, "a warp finishes what it has added");

// dx of few dimensions where it is no product: a lane has two rows.
template <class CostType, bool kFours>
class RowSlopes : public StripGradient<true, CostType> {
  using Base = StripGradient<true, CostType>;
  using S = MultivariateShape;
  using Base::pipeline, Base::scale, Base::strip, Base::x, Base::y;
  static constexpr int kGroups = kFewDims / 4;
  const View<float> dx;
  const int first_row;
  float4 own[S::kRows][kGroups], sums[S::kRows][kGroups] = {};

 public:
  __device__ RowSlopes(
      const Problem<float>& problem, const Gradient<float>& gradient, const Extent& extent, const Strip<S>& strip_,
      int64_t pair, typename Base::Pipeline& pipeline_, int /* warp */, HeldSums)
      : Base(problem, gradient, extent, strip_, pair, pipeline_),
        dx(gradient.x.data == nullptr ? gradient.x : gradient.x.pair(pair)),
        first_row(strip_.first_row + threadIdx.x * S::kRows) {
#pragma unroll
    for (int k = 0; k < S::kRows; ++k)
#pragma unroll
      for (int i = 0; i < kGroups; ++i) own[k][i] = load_four<kFours>(x.at(first_row + k), 4 * i, x.dim);
  }
  __device__ __forceinline__ void prepare(int) {}
  __device__ __forceinline__ void add(int batch) {
    if (dx.data == nullptr) return;
    const int first = strip.first_column + batch * kBatchColumns,
              pipeline_column = Base::Pipeline::slot(batch) * kBatchColumns;
#pragma unroll 1
    for (int c = 0; c < kBatchColumns; c += 2) {
      const auto e0 = pipeline.two_rows(threadIdx.x * S::kRows, pipeline_column + c),
                 e1 = pipeline.two_rows(threadIdx.x * S::kRows, pipeline_column + c + 1);
      if (!__any_sync(kAllLanes, fmaxf(fmaxf(e0.x, e0.y), fmaxf(e1.x, e1.y)) >= kNegligible)) continue;
      float4 columns[2][kGroups];
#pragma unroll
      for (int j = 0; j < 2; ++j)
#pragma unroll
        for (int i = 0; i < kGroups; ++i) columns[j][i] = load_four<kFours>(y.at(first + c + j), 4 * i, x.dim);
      add_slopes<CostType>(e0.x, x.dim, own[0], columns[0], sums[0]);
      add_slopes<CostType>(e0.y, x.dim, own[1], columns[0], sums[1]);
      add_slopes<CostType>(e1.x, x.dim, own[0], columns[1], sums[0]);
      add_slopes<CostType>(e1.y, x.dim, own[1], columns[1], sums[1]);
    }
  }
  __device__ __forceinline__ void finish() {
    if (dx.data == nullptr) return;
#pragma unroll
    for (int k = 0; k < S::kRows; ++k)
#pragma unroll
      for (int i = 0; i < kGroups; ++i) {
        const float four[4] = {sums[k][i].x, sums[k][i].y, sums[k][i].z, sums[k][i].w};
#pragma unroll
        for (int j = 0; j < 4; ++j)
          if (first_row + k < x.count && 4 * i + j < x.dim) dx.at(first_row + k, 4 * i + j) = scale * four[j];
      }
  }
};

}  // namespace softdtw
