// (5) for a strip, from rectangles of E, by the strip's gradient warps: with both series moved by the strip's origin,
//   dx_i = 2 g (x_i sum_j E[i,j] - sum_j E[i,j] y_j),   dy_j = 2 g (y_j sum_i E[i,j] - sum_i E[i,j] x_i),
// where the sums of vectors are matrix products (matrix.cuh). dx is the strip's own: with few dimensions the products add up in
// registers, otherwise in its memory, and the rest comes at the end. To dy every other strip of a pair adds in turn, the last
// one first, and the strips between them to a table of their own, which is added to dy in the end: so every sum has one order,
// and strips that are next to each other, whose likely paths meet the same columns, do not wait for each other. All start from
// zeros.
//
// Most of E is all but 0, far from every likely path. A block of E below kNegligible is left out: in the row and in the column
// of each cell E adds up to at least 1, next to which even 2^28 such cells do not count.
#pragma once

#include "product_costs.cuh"

namespace softdtw {

constexpr int kRowEights = 4, kColumnEights = 2;  // blocks of eight dimensions whose sums a warp holds at once

constexpr int kGradientTables = 2;  // of dy

// Whom a strip waits for before it adds to its table of dy, and who waits for it. What is published grows from right to left:
// how many groups lie between `start`, a group beyond any strip's last one, and the last one done; and a round more when it and
// all strips below are done.
struct GradientChain : Watchers {
  Neighbour below;
  int start;
};

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

// What both gradients of a strip need of the series and of E.
template <bool kFew>
struct StripGradient : StripOfSeries {
  using Ring = typename BackwardChannel<kFew>::Alignment;
  Ring& ring;
  const float scale;

  __device__ StripGradient(
      const Problem<float>& problem, const Gradient<float>& gradient, const Extent& extent, const Strip<S>& strip_,
      int64_t pair, Ring& ring_)
      : StripOfSeries(problem, extent, strip_, pair), ring(ring_), scale(2 * gradient.arriving(pair)) {}

  // E in the rows group and group + 8 of a tile and the columns member + 4 c of a batch, and the lane's sums of it by rows.
  // Returns whether the tile matters.
  __device__ __forceinline__ bool load_alignment(int tile, int ring_column, float (&e)[2][4], float (&sums)[2]) const {
#pragma unroll
    for (int half = 0; half < 2; ++half) {
#pragma unroll
      for (int c = 0; c < 4; ++c) e[half][c] = ring.at(tile * kTileRows + group + 8 * half, ring_column + member + 4 * c);
      sums[half] = (e[half][0] + e[half][1]) + (e[half][2] + e[half][3]);
    }
    return __any_sync(kAllLanes, fmaxf(sums[0], sums[1]) >= kNegligible);
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

// dx. Several warps take blocks of dimensions in turn, or tiles of rows where there is one block: most of E is in one tile or
// two.
template <bool kFew>
class RowGradients : public StripGradient<kFew> {
  using Base = StripGradient<kFew>;
  using S = ProductShape;
  using Base::group, Base::member, Base::origin, Base::scale, Base::strip, Base::x, Base::y;
  static constexpr int kWarps = ProductWarps<kFew>::kRows, kEights = kFew ? 1 : kRowEights, kDims = 8 * kEights;
  const View<float> dx;
  const int warp;
  float columns[kBatchGroups][2][kEights];  // those of y in a batch, in a block of dimensions
  float row_sums[kTiles][2] = {};           // of E, this lane's share, rows group and group + 8 of a tile
  Sums held[kFew ? kTiles : 1] = {};        // of products, if dimensions are few

 public:
  __device__ RowGradients(
      const Problem<float>& problem, const Gradient<float>& gradient, const Extent& extent, const Strip<S>& strip_,
      int64_t pair, typename Base::Ring& ring_, int warp_)
      : Base(problem, gradient, extent, strip_, pair, ring_),
        dx(gradient.x.data == nullptr ? gradient.x : gradient.x.pair(pair)),
        warp(warp_) {}

  // What does not depend on E: with one block of dimensions, its columns, for the tiles that are the warp's own.
  __device__ __forceinline__ void prepare(int batch) {
    if (dx.data != nullptr && has_one_block()) load_columns(strip.first_column + batch * kBatchColumns, first_dim_of(warp));
  }
  __device__ __forceinline__ void add(int batch) {
    if (dx.data == nullptr) return;
    const int first = strip.first_column + batch * kBatchColumns, ring_column = Base::Ring::slot(batch) * kBatchColumns;
#pragma unroll 1
    for (int tile = 0; tile < kTiles; ++tile) {
      float e[2][4], sums[2];
      if (Base::load_alignment(tile, ring_column, e, sums)) {
        row_sums[0][0] += sums[0];
        row_sums[0][1] += sums[1];
        Factor left[kBatchGroups][4];
#pragma unroll
        for (int h = 0; h < kBatchGroups; ++h)
#pragma unroll
          for (int j = 0; j < 4; ++j) left[h][j] = Factor(e[j % 2][2 * h + j / 2]);
        if constexpr (kFew)
          add_to_held(left);
        else
          add_to_memory(tile, first, left);
      }
      rotate(row_sums);
      if constexpr (kFew) rotate(held);
    }
  }

  // The part of dx that is no product.
  __device__ __forceinline__ void finish() {
    if (dx.data == nullptr) return;
    __syncwarp();
#pragma unroll 1
    for (int tile = 0; tile < kTiles; ++tile) {
      const int row = strip.first_row + tile * kTileRows;
#pragma unroll
      for (int half = 0; half < 2; ++half) {
        const float sum = sum_of_group(row_sums[0][half]);
        if constexpr (kFew)
          finish_held(row + group + 8 * half, sum, held[0][2 * half], held[0][2 * half + 1]);
        else
          finish_memory(tile, row + 8 * half, sum);
      }
      rotate(row_sums);
      if constexpr (kFew) rotate(held);
    }
  }

 private:
  // Of a warp: dimensions first_dim_of(tile) and, if it has more than one block, every kStride further.
  static constexpr int kStride = kDims * kWarps;
  __device__ __forceinline__ bool has_one_block() const { return x.dim <= kStride; }
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

  __device__ __forceinline__ void add_to_held(const Factor (&left)[kBatchGroups][4]) {
    Sums terms[4] = {};
#pragma unroll
    for (int h = 0; h < kBatchGroups; ++h) {
      const Factor right[2] = {Factor(columns[h][0][0]), Factor(columns[h][1][0])};
      multiply_add_apart(terms, left[h], right);
    }
#pragma unroll
    for (int j = 0; j < 4; ++j) held[0][j] += ((terms[3][j] + terms[2][j]) + terms[1][j]) + terms[0][j];
  }
  __device__ __forceinline__ void finish_held(int row, float sum, float first, float second) const {
#pragma unroll
    for (int j = 0; j < 2; ++j) {
      const int d = 2 * member + j;
      if (row < x.count && d < x.dim)
        dx.at(row, d) = scale * fmaf(sum, Base::moved(x.at(row), d), -(j == 0 ? first : second));
    }
  }

  // sum_j E y_j for the rows of a tile and the columns of a batch.
  __device__ __forceinline__ void add_to_memory(int tile, int first, const Factor (&left)[kBatchGroups][4]) {
    const int own_row = strip.first_row + tile * kTileRows + group;
#pragma unroll 1
    for (int first_dim = first_dim_of(tile); first_dim < x.dim; first_dim += kStride) {
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
      Sums sums[kEights] = {}, before[kEights];
      for_each_sum([&](int i, int j, float& out) { before[i][j] = out; });
      if (!has_one_block()) load_columns(first, first_dim);
#pragma unroll
      for (int h = 0; h < kBatchGroups; ++h) Base::multiply(sums, first_dim, left[h], columns[h][0], columns[h][1]);
      for_each_sum([&](int i, int j, float& out) { out = before[i][j] + sums[i][j]; });
    }
  }

  // For eight rows of a tile, with the sum of the one that is the lane's group.
  __device__ __forceinline__ void finish_memory(int tile, int first_row, float sum) const {
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
        const float weight = __shfl_sync(kAllLanes, sum, 4 * g);
        if (inside && row < x.count) dx.at(row, d) = scale * fmaf(weight, own[g], -products[g]);
      }
    }
  }
};
static_assert(8 * kRowEights == kWarp, "a warp finishes what it has added");

// dy. Several warps take blocks of dimensions in turn. In its products columns are the rows of the left factor; rows 2 t and
// 2 t + 1 of every 8 are what member t holds.
template <bool kFew>
class ColumnGradients : public StripGradient<kFew> {
  using Base = StripGradient<kFew>;
  using S = ProductShape;
  using Base::group, Base::member, Base::origin, Base::ring, Base::scale, Base::strip, Base::x, Base::y;
  static constexpr int kOwnEights = kFew ? 1 : kColumnEights;
  const View<float> dy;
  const int warp;
  const GradientChain& chain;
  Progress seen = 0, done = 0, told = 0;  // of the strip below; of this one, and what is published
  int coming = 0;                         // what will be done next

 public:
  __device__ ColumnGradients(
      const Problem<float>& problem, const Gradient<float>& gradient, const Extent& extent, const Strip<S>& strip_,
      int64_t pair, typename Base::Ring& ring_, const View<float>& dy_, const GradientChain& chain_, int warp_)
      : Base(problem, gradient, extent, strip_, pair, ring_), dy(dy_), warp(warp_), chain(chain_) {}

  // Tells of what is done, of every other batch: what was stored has to arrive first, which takes as long as half a batch.
  __device__ __forceinline__ void prepare(int batch) {
    if (dy.data == nullptr) return;
    if (batch % 2 == 0) publish();
    coming = chain.start - (strip.first_column / S::kSteps + batch * kBatchGroups);
  }
  __device__ __forceinline__ void add(int batch) {
    if (dy.data == nullptr) return;
    const int first = strip.first_column + batch * kBatchColumns, ring_column = Base::Ring::slot(batch) * kBatchColumns;
    // Those that matter. With few dimensions two blocks share what caches instructions, and fewer of these are faster.
    unsigned tiles = 0;
    if constexpr (kFew) {
#pragma unroll 1
      for (int tile = 0; tile < kTiles; ++tile) {
        float e[2][4], sums[2];
        if (Base::load_alignment(tile, ring_column, e, sums)) tiles |= 1u << tile;
      }
    } else {
      tiles = tiles_of(ring_column);
    }
    if (tiles == 0) {
      // Who waits for this strip will hear of it, if not now, with a later batch.
      if (threadIdx.x == 0 && chain.below.has_done(coming, seen)) done = progress_of(0, coming);
    } else {
      // Ahead of the products, so that what they are added to is on its way meanwhile: mostly the strip below has long done it.
      await_below();
#pragma unroll 1
      for (int block = warp; block * 8 * kOwnEights < x.dim; block += ProductWarps<kFew>::kColumns)
        add_dims(tiles, first, ring_column, block * 8 * kOwnEights);
    }
    __syncwarp();
  }
  __device__ __forceinline__ void finish() {
    if (dy.data == nullptr) return;
    publish();
    if (threadIdx.x > 0) return;
    Neighbour below = chain.below;
    below.round = 1;
    while (!below.has_done(0, seen)) __nanosleep(20);
    chain.publish(progress_of(1, 0));
  }

 private:
  __device__ __forceinline__ void publish() {
    if (threadIdx.x == 0 && done != told) chain.publish(done);
    told = done;
  }
  // The tiles of a batch that matter, as bits: those with an E of 2^-63 or more, of which bit 29 or 30 is set.
  __device__ __forceinline__ unsigned tiles_of(int ring_column) const {
    // A lane has four rows of two columns in every four, and the same rows swizzled of the other two.
    const uint4* const cells =
        reinterpret_cast<const uint4*>(ring.cells + (ring_column + threadIdx.x / 16) * Base::Ring::kRows) +
        threadIdx.x % 16;
    unsigned any[2] = {};
#pragma unroll
    for (int i = 0; i < kBatchColumns / 2; ++i) {
      const uint4 four = cells[2 * i * Base::Ring::kRows / 4];
      any[i % 2] |= (four.x | four.y) | (four.z | four.w);
    }
    unsigned tiles = 0;
#pragma unroll
    for (int i = 0; i < 2; ++i) {
      const unsigned lanes = __ballot_sync(kAllLanes, (any[i] & 0x60000000u) != 0), rows = lanes | lanes >> 16;
#pragma unroll
      for (int tile = 0; tile < kTiles; ++tile)
        if ((rows >> 4 * tile & 0xf) != 0) tiles |= 1u << (tile ^ i);
    }
    return tiles;
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

  __device__ __forceinline__ void add_dims(unsigned tiles, int first, int ring_column, int first_dim) {
    const int column = first + group, own_dim = first_dim + 2 * member;
    float* const out = dy.data + column * dy.row_stride + own_dim;
    const float* const own[2] = {y.at(column) + own_dim, y.at(column + 8) + own_dim};
    const auto for_each_sum = [&](auto&& f) {
#pragma unroll
      for (int i = 0; i < kOwnEights; ++i)
#pragma unroll
        for (int j = 0; j < 4; ++j)
          if (column + j / 2 * 8 < y.count && own_dim + 8 * i + j % 2 < x.dim)
            f(i, j, (out + j / 2 * 8 * dy.row_stride)[8 * i + j % 2]);
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
        for_each_half(tile, ring_column, column_sums, [&](int half, const Factor(&left)[4]) {
          const int row = strip.first_row + tile * kTileRows + 8 * half + 2 * member;
          const Factor right[2] = {Factor(Base::moved(x.at(row), group)), Factor(Base::moved(x.at(row + 1), group))};
          multiply_add_apart(terms, left, right);
        });
      }
#pragma unroll
      for (int j = 0; j < 4; ++j) sums[0][j] = ((terms[3][j] + terms[2][j]) + terms[1][j]) + terms[0][j];
    } else {
      float from[kOwnEights] = {};
      Base::load(origin, first_dim, from, from);
#pragma unroll 1
      for (int tile = 0; tile < kTiles; ++tile) {
        if ((tiles >> tile & 1) == 0) continue;
        for_each_half(tile, ring_column, column_sums, [&](int half, const Factor(&left)[4]) {
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

  // f(half, E as a left factor) for the two halves of a tile's rows.
  template <class F>
  __device__ __forceinline__ void for_each_half(int tile, int ring_column, float (&column_sums)[2], F&& f) const {
#pragma unroll
    for (int half = 0; half < 2; ++half) {
      const int row = tile * kTileRows + 8 * half + 2 * member;
      const float2 e0 = ring.two_rows(row, ring_column + group);
      const float2 e1 = ring.two_rows(row, ring_column + 8 + group);
      column_sums[0] += e0.x + e0.y;
      column_sums[1] += e1.x + e1.y;
      const Factor left[4] = {Factor(e0.x), Factor(e1.x), Factor(e0.y), Factor(e1.y)};
      f(half, left);
    }
  }
};

}  // namespace softdtw
