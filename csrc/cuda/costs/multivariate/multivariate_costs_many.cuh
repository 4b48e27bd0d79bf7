// Costs of a strip with many dimensions. Squared Euclidean ones and what follows from them: |x - y|^2 = |x|^2 + |y|^2 - 2 x.y, the last a
// matrix product, of series moved by an origin near both: the strip's middle row. That cancels where x is near y, so wherever the result
// is below a share of |x|^2 + |y|^2 the block of 16 x 16 cells around it is computed again from differences. Below kMatrixDims, and of
// other costs: from differences throughout, as with few dimensions: a lane has two rows, which stand in shared memory, and all lanes read
// the same columns.
//
// Lanes to work: the strip's warps take batches of columns in turn, and a batch is four blocks of 16 rows, for all of which its columns
// are split into factors once. Those of the rows are the same in every batch: they stand in shared memory, as many dimensions as fit
// there. A block is held as tensor_core.cuh says, with the columns of a group of 8 permuted, so that a lane has those of its member
// number t and t + 4, and stores meet different banks. A lane reads four dimensions at once and the order of dimensions in a product is
// free: member t of a group takes 4 t to 4 t + 3 of every 16.
#pragma once

#include "cuda/numbers/extended_range_state.cuh"
#include "multivariate_series.cuh"

namespace softdtw {

// kMarks: costs from differences get a minus, for gradients that would cancel where the costs did. Own: how the series are seen, and
// `others` what that takes.
template <class CostType, bool kFours, class Pipeline, bool kMarks, class Own = Vectors>
class ManyCosts : StripOfVectors<Own> {
  using Series = StripOfVectors<Own>;
  using Series::cost, Series::x, Series::y, Series::strip, Series::group, Series::member, Series::origin;
  using S = MultivariateShape;
  using RowFactors = CutFactor[2][4];  // of a tile of rows, for two steps of eight dimensions
  static constexpr int kWarps = Pipeline::kWarps, kFewNumbers = 4;
  static_assert(Pipeline::kBatches % kWarps == 0, "a slot's batches are the same warp's");
  Pipeline& pipeline;
  const int warp;
  const HeldRows held;
  const int end_dim, held_blocks;  // of products: of few numbers behind all others those that differ
  const OutsideBand outside;
  const float scale;                                 // from the unit of the costs to that of m, for split costs
  float4 columns_ahead[kBatchGroups], origin_ahead;  // of the next block of dimensions

 public:
  static constexpr int kStride = kWarps;  // between the batches of a warp

  template <class... Others>
  __device__ ManyCosts(
      const Problem<float>& problem, const Extent& extent, const Strip<S>& strip_, int64_t pair, Pipeline& pipeline_,
      int warp_, HeldRows held_, const Others&... others)
      : Series(problem, extent, strip_, pair, others...),
        pipeline(pipeline_),
        warp(warp_),
        held(held_),
        end_dim(
            has_products() && 0 < x.dim % HeldRows::kDims && x.dim % HeldRows::kDims <= kFewNumbers
                ? this->end_of_dims(0, HeldRows::kDims, HeldRows::kDims)
                : x.dim),
        held_blocks(min(held_.blocks, (end_dim + HeldRows::kDims - 1) / HeldRows::kDims)),
        outside(extent),
        scale(Pipeline::kIsSplit ? Recurrences<S>(problem, pair).plain.scale : 0) {
    if (has_products()) {
      for (int tile = warp; tile < kTiles; tile += kWarps) prepare(tile);
    } else if (held.hold_plain(x.dim)) {
      hold_plain();
    }
    // Batches left of the first column are never announced: whoever fills batch 0 clears them all, and with that one they are there.
    if (first_own(0, 1) == 0)
      for (int batch = -kEarlyBatches; batch < 0; ++batch) clear(Pipeline::slot(batch));
    pipeline.meet();
  }
  // The first of the warp's batches, from this one on, to the right (`direction` 1) or to the left (-1).
  __device__ __forceinline__ int first_own(int batch, int direction) const {
    while (Pipeline::slot(batch) % kWarps != warp) batch += direction;
    return batch;
  }
  // Starts the loads of a batch's columns. Before the first batch is filled.
  __device__ __forceinline__ void fetch(int batch) {
    if (batch >= 0 && has_products()) load_columns(strip.first_column + batch * kBatchColumns, 0);
  }
  // `next`: the batch that will be filled after this one.
  __device__ void fill(int batch, int next) {
    const int first = strip.first_column + batch * kBatchColumns, slot = Pipeline::slot(batch);
    if (batch < 0 || first >= strip.end_column) {
      fetch(next);
      return clear(slot);
    }
    float greatest[kBatchGroups] = {};
    unsigned left = (1u << kTiles) - 1;  // tiles to be computed from differences
    if (has_products())
      left = fill_from_products(first, next, slot, greatest);
    else if (held.hold_plain(x.dim))
      left = fill_from_held_rows(first, slot, greatest);
#pragma unroll 1
    for (int tile = 0; tile < kTiles; ++tile) {
      if ((left >> tile & 1) == 0) continue;
      float costs[kBatchGroups][4];
      differences(tile, first, costs);
      store<kMarks>(tile, slot, costs, greatest);
    }
    outside.mark(pipeline, strip, first, slot * kBatchColumns, kBatchColumns);
#pragma unroll
    for (int h = 0; h < kBatchGroups; ++h) {
      const float reach = greatest_of_warp(greatest[h]);
      if (threadIdx.x == 0) pipeline.reach[0][slot * kBatchGroups + h] = reach;
    }
    __syncwarp();
  }

 private:
  __device__ __forceinline__ bool has_products() const { return softdtw::has_products<CostType>(x.dim); }
  __device__ __forceinline__ void clear(int slot) {
    pipeline.clear(slot, threadIdx.x, kWarp);
    if (threadIdx.x < kBatchGroups) pipeline.reach[0][slot * kBatchGroups + threadIdx.x] = 0;
    __syncwarp();
  }
  // Rows group and group + 8 of a tile.
  __device__ __forceinline__ const float* row(int tile, int half) const {
    return x.at(strip.first_row + tile * kTileRows + 8 * half + group);
  }
  __device__ __forceinline__ void load_rows(int tile, int d, const float4& from, float4 (&moved)[2]) const {
#pragma unroll
    for (int half = 0; half < 2; ++half) moved[half] = load_four<kFours>(row(tile, half), d, x.dim) - from;
  }
  __device__ __forceinline__ static void split_rows(const float4 (&moved)[2], RowFactors& factors) {
    const float4 &upper = moved[0], &lower = moved[1];
    const float in_order[2][4] = {{upper.x, lower.x, upper.y, lower.y}, {upper.z, lower.z, upper.w, lower.w}};
#pragma unroll
    for (int i = 0; i < 2; ++i)
#pragma unroll
      for (int j = 0; j < 4; ++j) factors[i][j] = CutFactor(in_order[i][j]);
  }
  __device__ __forceinline__ void hold(int block, int tile, const float4 (&moved)[2]) const {
    RowFactors factors;
    split_rows(moved, factors);
    float4* const out = held.at(block, tile);
#pragma unroll
    for (int i = 0; i < 2; ++i) {
      out[2 * i * kWarp] = {factors[i][0].high, factors[i][1].high, factors[i][2].high, factors[i][3].high};
      out[(2 * i + 1) * kWarp] = {factors[i][0].low, factors[i][1].low, factors[i][2].low, factors[i][3].low};
    }
  }
  // What does not depend on columns: norms and factors of a tile of rows.
  __device__ __forceinline__ void prepare(int tile) {
    constexpr int kAtOnce = 4;  // blocks whose loads are on their way together
    float norms[2] = {};
#pragma unroll 1
    for (int first = 0; first * HeldRows::kDims < x.dim; first += kAtOnce) {
      float4 moved[kAtOnce][2];
#pragma unroll
      for (int i = 0; i < kAtOnce; ++i) {
        const int d = (first + i) * HeldRows::kDims + 4 * member;
        load_rows(tile, d, load_four<kFours>(origin, d, x.dim), moved[i]);
      }
#pragma unroll
      for (int i = 0; i < kAtOnce; ++i) {
        norms[0] = add_square(moved[i][0], norms[0]);
        norms[1] = add_square(moved[i][1], norms[1]);
        if (first + i < held.blocks) hold(first + i, tile, moved[i]);
      }
    }
#pragma unroll
    for (int half = 0; half < 2; ++half) {
      const float norm = sum_of_group(norms[half]);
      if (member == 0) pipeline.norms[tile * kTileRows + 8 * half + group] = norm;
    }
  }
  __device__ __forceinline__ void hold_plain() const {
#pragma unroll 1
    for (int d = 4 * warp; d < x.dim; d += 4 * kWarps)
#pragma unroll
      for (int row = threadIdx.x; row < S::kStripRows; row += kWarp) {
        const float4 four = load_four<kFours>(x.at(strip.first_row + row), d, x.dim);
        held.plain(d)[row] = four.x;
        held.plain(d + 1)[row] = four.y;
        held.plain(d + 2)[row] = four.z;
        held.plain(d + 3)[row] = four.w;
      }
  }
  template <bool kHeld>
  __device__ __forceinline__ void load_factors(int block, int tile, const float4& from, RowFactors& factors) const {
    if constexpr (kHeld) {
      const float4* const in = held.at(block, tile);
#pragma unroll
      for (int i = 0; i < 2; ++i) {
        const float4 high = in[2 * i * kWarp], low = in[(2 * i + 1) * kWarp];
        factors[i][0] = {high.x, low.x}, factors[i][1] = {high.y, low.y};
        factors[i][2] = {high.z, low.z}, factors[i][3] = {high.w, low.w};
      }
    } else {
      float4 moved[2];
      load_rows(tile, block * HeldRows::kDims + 4 * member, from, moved);
      split_rows(moved, factors);
    }
  }

  // Starts the loads of a batch's columns, of a block of dimensions.
  __device__ __forceinline__ void load_columns(int first, int block) {
    const int d = block * HeldRows::kDims + 4 * member;
    origin_ahead = load_four<kFours>(origin, d, x.dim);
#pragma unroll
    for (int h = 0; h < kBatchGroups; ++h)
      columns_ahead[h] = load_four<kFours>(y.at(first + 8 * h + group / 2 + group % 2 * 4), d, x.dim);
  }
  // Adds the products of a block of dimensions. Tiles follow each other without a jump, so that none waits for tensor cores that
  // another one could use.
  template <bool kHeld>
  __device__ __forceinline__ void add_products(
      int block, int first, float (&sums)[kTiles][kBatchGroups][4], float (&y_norms)[kBatchGroups]) {
    const float4 from = origin_ahead;
    float4 columns[kBatchGroups];
#pragma unroll
    for (int h = 0; h < kBatchGroups; ++h) columns[h] = columns_ahead[h] - from;
    load_columns(first, block + 1);
    __syncwarp();  // or the compiler starts the loads where it needs them
    Factor right[kBatchGroups][2][2];
#pragma unroll
    for (int h = 0; h < kBatchGroups; ++h) {
      y_norms[h] = add_square(columns[h], y_norms[h]);
      right[h][0][0] = Factor(columns[h].x), right[h][0][1] = Factor(columns[h].y);
      right[h][1][0] = Factor(columns[h].z), right[h][1][1] = Factor(columns[h].w);
    }
#pragma unroll
    for (int tile = 0; tile < kTiles; ++tile) {
      RowFactors left;
      load_factors<kHeld>(block, tile, from, left);
      // Tensor cores cut off what they round, so long sums in them drift: these are short.
      Sums parts[2 * kBatchGroups] = {};
      multiply_add<3, 2 * kBatchGroups>(
          parts, {&left[0], &left[0], &left[1], &left[1]}, {&right[0][0], &right[1][0], &right[0][1], &right[1][1]});
#pragma unroll
      for (int h = 0; h < kBatchGroups; ++h)
#pragma unroll
        for (int j = 0; j < 4; ++j) sums[tile][h][j] += parts[h][j] + parts[kBatchGroups + h][j];
    }
  }

  // Returns the tiles that were left out because something cancelled in them. Columns have been fetched; those of the next batch
  // will be.
  __device__ __forceinline__ unsigned fill_from_products(int first, int next, int slot, float (&greatest)[kBatchGroups]) {
    float sums[kTiles][kBatchGroups][4] = {}, y_norms[kBatchGroups] = {};
    int block = 0;
#pragma unroll 1
    for (; block < held_blocks; ++block) add_products<true>(block, first, sums, y_norms);
#pragma unroll 1
    for (; block * HeldRows::kDims < end_dim; ++block) add_products<false>(block, first, sums, y_norms);
    fetch(next);
    float y_norm_of[kBatchGroups][2];  // the sum's column 2 member + j belongs to the group of that number
#pragma unroll
    for (int h = 0; h < kBatchGroups; ++h) {
      const float norm = sum_of_group(y_norms[h]);
#pragma unroll
      for (int j = 0; j < 2; ++j) y_norm_of[h][j] = __shfl_sync(kAllLanes, norm, 4 * (2 * member + j));
    }
    const float y_norms_sum = (y_norm_of[0][0] + y_norm_of[0][1]) + (y_norm_of[1][0] + y_norm_of[1][1]);
    unsigned cancelled = 0;
#pragma unroll
    for (int tile = 0; tile < kTiles; ++tile) {
      const float* const norms = pipeline.norms + tile * kTileRows + group;
      float least = INFINITY;  // of what is left of a cost above the share that tells of cancelling
#pragma unroll
      for (int h = 0; h < kBatchGroups; ++h)
#pragma unroll
        for (int j = 0; j < 4; ++j) {
          const float magnitude = norms[j / 2 * 8] + y_norm_of[h][j % 2];
          sums[tile][h][j] = fmaf(-2.0f, sums[tile][h][j], magnitude);
          least = fminf(least, fmaf(-kCancelled, magnitude, sums[tile][h][j]));
        }
      // So every magnitude is finite, and so are all products.
      const bool is_finite = norms[0] + norms[8] + y_norms_sum < INFINITY;
      if (__all_sync(kAllLanes, is_finite && least >= 0))
        store<false>(tile, slot, sums[tile], greatest);
      else
        cancelled |= 1u << tile;
    }
    return cancelled;
  }

  // All tiles of a batch. Returns those that are left, which are none.
  __device__ __forceinline__ unsigned fill_from_held_rows(int first, int slot, float (&greatest)[kBatchGroups]) const {
#pragma unroll 1
    for (int h = 0; h < kBatchGroups; ++h) {
      const float* columns[S::kSteps];
      float costs[S::kSteps][S::kRows] = {}, most = 0;
#pragma unroll
      for (int t = 0; t < S::kSteps; ++t) columns[t] = y.at(first + h * S::kSteps + t);
      with_kind<CostType>(cost, [&](auto type) {
#pragma unroll 1
        for (int d = 0; d < x.dim; d += 4) {
          float2 rows[4];
#pragma unroll
          for (int j = 0; j < 4; ++j) rows[j] = reinterpret_cast<const float2*>(held.plain(d + j))[threadIdx.x];
          const float4 upper = {rows[0].x, rows[1].x, rows[2].x, rows[3].x},
                       lower = {rows[0].y, rows[1].y, rows[2].y, rows[3].y};
#pragma unroll
          for (int t = 0; t < S::kSteps; ++t) {
            const float4 column = load_four<kFours>(columns[t], d, x.dim);
            costs[t][0] = add_shares<decltype(type)>(upper - column, costs[t][0]);
            costs[t][1] = add_shares<decltype(type)>(lower - column, costs[t][1]);
          }
        }
      });
      finish(costs);
#pragma unroll
      for (int t = 0; t < S::kSteps; ++t)
#pragma unroll
        for (int k = 0; k < S::kRows; ++k) most = greater(most, costs[t][k]);
      if (h == 0)
        greatest[0] = most;
      else
        greatest[1] = most;
      store_all<kMarks>(most, [&](auto&& cell_of) {
#pragma unroll
        for (int t = 0; t < S::kSteps; ++t)
          pipeline.two_rows(threadIdx.x * S::kRows, slot * kBatchColumns + h * S::kSteps + t) = {
              cell_of(costs[t][0]), cell_of(costs[t][1])};
      });
    }
    return 0;
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
    with_kind<CostType>(cost, [&](auto type) {
#pragma unroll 2
      for (int d = 0; d < x.dim; d += 4) {
        const float4 a = load_four<kFours>(upper, d, x.dim), b = load_four<kFours>(lower, d, x.dim);
#pragma unroll
        for (int h = 0; h < kBatchGroups; ++h)
#pragma unroll
          for (int i = 0; i < 2; ++i) {
            const float4 column = load_four<kFours>(columns[h][i], d, x.dim);
            costs[h][i] = add_shares<decltype(type)>(a - column, costs[h][i]);
            costs[h][2 + i] = add_shares<decltype(type)>(b - column, costs[h][2 + i]);
          }
      }
    });
  }

  // Sums of shares become costs.
  template <int kCount, int kSize>
  __device__ __forceinline__ void finish(float (&costs)[kCount][kSize]) const {
    with_kind<CostType>(cost, [&](auto type) {
#pragma unroll
      for (int i = 0; i < kCount; ++i)
#pragma unroll
        for (int j = 0; j < kSize; ++j) costs[i][j] = type.finish(costs[i][j]);
    });
  }

  // Costs, before finish().
  template <bool kIsMarked>
  __device__ __forceinline__ void store(
      int tile, int slot, float (&costs)[kBatchGroups][4], float (&greatest)[kBatchGroups]) const {
    float most[kBatchGroups] = {};
    finish(costs);
#pragma unroll
    for (int h = 0; h < kBatchGroups; ++h) {
#pragma unroll
      for (int i = 0; i < 4; ++i) most[h] = greater(most[h], costs[h][i]);
      greatest[h] = greater(greatest[h], most[h]);
    }
    store_all<kIsMarked>(greater(most[0], most[1]), [&](auto&& cell_of) {
#pragma unroll
      for (int h = 0; h < kBatchGroups; ++h)
#pragma unroll
        for (int i = 0; i < 4; ++i)
          pipeline.at_quarter(tile * kTileRows + group + i / 2 * 8, slot * kBatchColumns + 8 * h + i % 2 * 4, member) =
              cell_of(costs[h][i]);
    });
  }

  // Calls store(cell_of), where cell_of makes a cell of the pipeline of a cost; `most`: no cost of the lane is larger.
  template <bool kIsMarked, class Store>
  __device__ __forceinline__ void store_all(float most, Store&& store) const {
    if constexpr (Pipeline::kIsSplit) {
      using Plain = Recurrences<S>::Plain;
      // What a fraction cannot be told of, NaN included, no plain sweep will take: it stays as it is.
      if (__all_sync(kAllLanes, most * scale < Whole<float>::limit))
        store([&](float cost) { return Plain::split(cost, scale); });
      else
        store([&](float cost) {
          return cost * scale < Whole<float>::limit ? Plain::split(cost, scale) : Entry<float>{cost, 0};
        });
    } else {
      store([](float cost) { return kIsMarked ? -cost : cost; });
    }
  }
};

}  // namespace softdtw
