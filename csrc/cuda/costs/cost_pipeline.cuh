// Pipelines of a strip's columns in shared memory, of costs or of E, between the warps of a strip that compute with vectors and
// those that sweep (multivariate.cu).
//
// Columns come in batches of kBatchColumns, counted from the strip's first one; batches -2 and -1 stand left of it, where lanes
// wake. Sweeps read costs, and leave E, in the cells of their skewed chunks; costs are filled in, and E is read, batch by
// batch.
#pragma once

#include <algorithm>

#include "cuda/hardware/pipeline.cuh"
#include "cuda/numbers/device_math.cuh"
#include "cuda/strips/strip.cuh"

namespace softdtw {

using MultivariateShape = Shape<float, 2>;
constexpr int kBatchGroups = 2, kBatchColumns = kBatchGroups * MultivariateShape::kSteps;
constexpr int kEarlyBatches = MultivariateShape::kSkewChunks / kBatchGroups;  // left of the strip's first column

// The warps of a strip: those that compute costs (multivariate_costs_few.cuh, multivariate_costs_many.cuh), and in backward those that rebuild stages
// (multivariate_rebuild.cuh), and those that compute dx (multivariate_dx.cuh), and dy (multivariate_dy.cuh). One more sweeps.
template <bool kFew>
struct MultivariateWarps {
  static constexpr int kCosts = 2, kRebuilders = 2;
  static constexpr int kRows = kFew ? 1 : 2, kColumns = kFew ? 1 : 4, kGradients = kRows + kColumns;
};

// kFillers, kReaders: warps that fill a batch, and that are done with it.
template <class Cell_, int kBatches_, int kFillers, int kReaders>
struct __align__(16) BatchPipeline {
  using Cell = Cell_;
  struct alignas(2 * sizeof(Cell)) TwoRows {
    Cell x, y;
  };
  static constexpr int kBatches = kBatches_, kColumns = kBatches * kBatchColumns, kRows = MultivariateShape::kStripRows;
  static constexpr int kSwizzle = 32 / sizeof(Cell);
  Cell cells[kColumns * kRows];
  Mbarrier<kFillers * kWarp> filled[kBatches];
  Mbarrier<kReaders * kWarp> released[kBatches];

  __device__ __forceinline__ void start(int lane) {
    if (lane < kBatches) {
      filled[lane].start();
      released[lane].start();
    }
  }
  __device__ __forceinline__ void stop(int lane) {
    if (lane < kBatches) {
      filled[lane].stop();
      released[lane].stop();
    }
  }
  __device__ __forceinline__ static int slot(int batch) { return (batch + kBatches) % kBatches; }
  // Rows are swizzled by the column: lanes that read along a skewed diagonal, along a column, or in fragments of 8 rows by 4
  // columns meet different banks.
  __device__ __forceinline__ static int swizzled(int row, int column) { return row ^ (column & 3) * kSwizzle; }
  __device__ __forceinline__ Cell& at(int row, int column) { return cells[column * kRows + swizzled(row, column)]; }
  // In the column `member` of four that begin with `column`.
  __device__ __forceinline__ Cell& at_quarter(int row, int column, int member) {
    return cells[(column + member) * kRows + swizzled(row, member)];
  }
  __device__ __forceinline__ TwoRows& two_rows(int row, int column) { return reinterpret_cast<TwoRows&>(at(row, column)); }
  // Of float32, rows a multiple of four.
  __device__ __forceinline__ const float4& four_rows(int row, int column) {
    return reinterpret_cast<const float4&>(at(row, column));
  }
};

// The cells of a lane's chunk in a pipeline.
template <class Pipeline>
struct ChunkInPipeline {
  using TwoRows = typename Pipeline::TwoRows;
  static constexpr int kColumns = Pipeline::kColumns, kRowBytes = sizeof(typename Pipeline::Cell),
                       kColumnBytes = Pipeline::kRows * kRowBytes;
  int first;    // the lane's first column in the pipeline
  int rows[4];  // the lane's first row in every fourth column, in bytes

  __device__ __forceinline__ ChunkInPipeline(int chunk, int lane) {
    constexpr int kGroups = kColumns / MultivariateShape::kSteps;
    first = chunk % kGroups * MultivariateShape::kSteps - lane;
    if (first < 0) first += kColumns;
#pragma unroll
    for (int i = 0; i < 4; ++i) rows[i] = Pipeline::swizzled(lane * MultivariateShape::kRows, i - lane) * kRowBytes;
  }
  __device__ __forceinline__ int column(int t) const { return wrapped(first + t, kColumns); }
  __device__ __forceinline__ TwoRows& two_rows(Pipeline& pipeline, int t) const { return two_rows(pipeline, 0, t); }
  // Moves to the next chunk, or the one before.
  __device__ __forceinline__ void forth() {
    first += MultivariateShape::kSteps;
    if (first >= kColumns) first -= kColumns;
  }
  __device__ __forceinline__ void back() {
    first -= MultivariateShape::kSteps;
    if (first < 0) first += kColumns;
  }
  // Step t0 + t, where t alone is known when compiled, and t0 is even.
  __device__ __forceinline__ TwoRows& two_rows(Pipeline& pipeline, int t0, int t) const {
    const int start = wrapped((first + t0) * kColumnBytes + t * kColumnBytes, kColumns * kColumnBytes);
    const int row = rows[t % 4] ^ (t0 & 2) * kRowBytes * Pipeline::kSwizzle;  // as swizzled() has it, two columns further
    return *reinterpret_cast<TwoRows*>(reinterpret_cast<char*>(pipeline.cells) + (start | row));
  }

 private:
  // A number below 2 `size`, modulo that.
  __device__ __forceinline__ static int wrapped(int number, int size) {
    if ((size & (size - 1)) == 0) return number & (size - 1);
    return min(static_cast<unsigned>(number), static_cast<unsigned>(number - size));
  }
};

// With few dimensions all warps fill a batch together, with many each has its own ones. Cells are costs, or what they add to m and
// multiply s with (recurrence.h).
template <bool kFew, int kCostWarps, class Cell, int kBatches, int kReaders, int kFillers = kFew ? kCostWarps : 1>
struct CostPipeline : BatchPipeline<Cell, kBatches, kFillers, kReaders> {
  using Base = BatchPipeline<Cell, kBatches, kFillers, kReaders>;
  static constexpr bool kIsSplit = sizeof(Cell) > sizeof(float);
  static constexpr int kWarps = kCostWarps;
  // Per warp that fills a batch, and group of columns: no cost is larger; NaN if one is NaN.
  float reach[kFillers][CostPipeline::kColumns / MultivariateShape::kSteps];
  // Few dimensions: the columns of y that a warp computes with (FewCosts). Many: |x|^2 of the strip's rows (ManyCosts).
  float4 columns[kFew ? kCostWarps : 1][kWarp];
  float norms[kFew ? 1 : Base::kRows];
  Mbarrier<kCostWarps * kWarp> prepared;

  __device__ __forceinline__ float reach_of(int column) const {
    float most = reach[0][column / MultivariateShape::kSteps];
#pragma unroll
    for (int warp = 1; warp < kFillers; ++warp) most = greater(most, reach[warp][column / MultivariateShape::kSteps]);
    return most;
  }
  // A cell outside the band.
  __device__ __forceinline__ static Cell outside() {
    if constexpr (kIsSplit)
      return {Unreachable<float>::value, 1};
    else
      return INFINITY;
  }
  // By one of the block's warps, at the beginning.
  __device__ __forceinline__ void start_once(int lane) {
    if (lane == 0) prepared.start();
    this->start(lane);
  }
  // Of the warps that compute costs, once.
  __device__ __forceinline__ void meet() {
    __syncwarp();
    prepared.arrive();
    prepared.wait(0);
  }
  // Costs of 0 in a slot, by a number of threads.
  __device__ __forceinline__ void clear(int slot, int thread, int threads) {
    Cell none;
    if constexpr (kIsSplit)
      none = {0, 1};
    else
      none = 0;
    for (int i = thread; i < kBatchColumns * Base::kRows; i += threads)
      this->cells[slot * kBatchColumns * Base::kRows + i] = none;
  }
};

// The cells of a pipeline that are outside the band.
struct OutsideBand {
  const int low, high;

  __device__ explicit OutsideBand(const Extent& extent) : low(extent.low), high(extent.high) {}
  // Of `count` columns from `first` on, which are in the pipeline from `place` on: such cells cost infinity. By a warp.
  template <class Pipeline>
  __device__ __forceinline__ void mark(
      Pipeline& pipeline, const Strip<MultivariateShape>& strip, int first, int place, int count) const {
    const int last_row = strip.first_row + MultivariateShape::kStripRows - 1;
    if (first + count - 1 - strip.first_row <= high && first - last_row >= low) return;
    __syncwarp();
    const int row = threadIdx.x * MultivariateShape::kRows;
#pragma unroll 1
    for (int i = 0; i < count; ++i) {
      const int apart = first + i - strip.first_row - row;
      auto& two = pipeline.two_rows(row, place + i);
      if (apart < low || apart > high) two.x = Pipeline::outside();
      if (apart - 1 < low || apart - 1 > high) two.y = Pipeline::outside();
    }
  }
};

// The rows of a strip with many dimensions (ManyCosts), behind what all strips of a block share, for as many dimensions as fit there:
// split into factors, or as they are, dimension by dimension.
struct HeldRows {
  static constexpr int kDims = 16, kPlainDims = 2 * kDims;  // of a block: of factors, of numbers as they are
  static constexpr int kTileRows = 16, kTiles = MultivariateShape::kStripRows / kTileRows;
  static constexpr int kFours = 4;  // numbers that a lane has of a tile and a block, by fours
  static constexpr int kBlockBytes = kTiles * kFours * kWarp * sizeof(float4);
  float4* memory;
  int blocks;

  __device__ HeldRows(void* behind_others, int strip, int blocks_)
      : memory(static_cast<float4*>(behind_others) + strip * (blocks_ * kTiles * kFours * kWarp)), blocks(blocks_) {}
  // The first of a lane's fours, which are a warp apart.
  __device__ __forceinline__ float4* at(int block, int tile) const {
    return memory + (block * kTiles + tile) * kFours * kWarp + threadIdx.x;
  }
  // As they are, of a dimension.
  __device__ __forceinline__ float* plain(int d) const {
    return reinterpret_cast<float*>(memory) + d * MultivariateShape::kStripRows;
  }
  __device__ __forceinline__ bool hold_plain(int dim) const { return dim <= blocks * kPlainDims; }
  __device__ __forceinline__ float4* end() const { return memory + blocks * kTiles * kFours * kWarp; }
  // How many blocks there will be for each of `strips`.
  static int blocks_of(int64_t dim, bool are_factors, int64_t free_bytes, int strips) {
    const int64_t dims = are_factors ? kDims : kPlainDims;
    return static_cast<int>(std::clamp<int64_t>(free_bytes / (strips * kBlockBytes), 0, (dim + dims - 1) / dims));
  }
};

// The sums of a strip's dx with many dimensions (RowGradients), behind its rows: each lane's own of a tile and eight dimensions.
struct HeldSums {
  static constexpr int kEight = 8;
  float4* memory;  // or null

  __device__ __forceinline__ float4& at(int tile, int eight) const {
    return memory[(eight * HeldRows::kTiles + tile) * kWarp + threadIdx.x];
  }
  // Of so many dimensions at once.
  static int64_t bytes(int64_t dim, int at_once) {
    return HeldRows::kTiles * ((dim + at_once - 1) / at_once * at_once / kEight) * kWarp * sizeof(float4);
  }
};

// How much of that a block has.
struct Held {
  int row_blocks = 0;
  bool has_sums = false;
};

}  // namespace softdtw
