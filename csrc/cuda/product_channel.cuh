// What the two warps of a strip (product.cu) share: a ring of the strip's columns in shared memory, and the gates through
// which each learns how far the other is.
//
// Columns come in batches of kBatchColumns, counted from the strip's first one; batches -2 and -1 stand left of it, where lanes
// wake. The product warp fills a batch with costs; every lane of the sweep reads the cells of its own skewed chunk, and in
// backward writes E over them, so a batch that all chunks have left behind is a rectangle of E.
#pragma once

#include "gate.cuh"
#include "robust_strip.cuh"

namespace softdtw {

using ProductShape = Shape<float, 2>;
constexpr int kBatchGroups = 2, kBatchColumns = kBatchGroups * ProductShape::kSteps;
// A chunk meets kSkewChunks + 1 groups and a stage of backward three more, which is four batches; the fifth is on its way.
constexpr int kBatches = 5, kRingColumns = kBatches * kBatchColumns;
constexpr int kEarlyBatches = ProductShape::kSkewChunks / kBatchGroups;  // left of the strip's first column
static_assert(ProductShape::kSkewChunks + ProductShape::kStage <= (kBatches - 1) * kBatchGroups);

struct __align__(16) Channel {
  static constexpr int kRows = ProductShape::kStripRows;
  float ring[kRingColumns * kRows];
  float reach[kRingColumns / ProductShape::kSteps];  // per group of columns: no cost is larger; NaN if one is NaN
  float norms[kRows];                                // the product warp's own note: |x|^2 of every row
  Gate<kWarp> filled[kBatches], swept[kBatches];     // per batch, opened by the product warp and by the sweep
  int first_column;                                  // the sweep's own note

  __device__ void start(int lane) {
    if (lane < kBatches) {
      filled[lane].start();
      swept[lane].start();
    }
  }
  __device__ __forceinline__ static int slot(int batch) { return (batch + kBatches) % kBatches; }
  // A cell of the ring. Rows are swizzled by the column: lanes that read along a skewed diagonal, along a column, or in
  // fragments of 8 rows by 4 columns meet different banks.
  __device__ __forceinline__ float& at(int row, int ring_column) {
    return ring[ring_column * kRows + (row ^ (ring_column & 3) << 3)];
  }
  __device__ __forceinline__ float2& two_rows(int row, int ring_column) {
    return reinterpret_cast<float2&>(at(row, ring_column));
  }
};

// The channel of the calling warp's strip, behind what the sweeps keep of a stage.
template <bool kBackward>
__device__ __forceinline__ Channel& own_channel() {
  const int strips = blockDim.y / 2, stage_bytes = kBackward ? strips * RobustStage<ProductShape>::kBytes : 0;
  return reinterpret_cast<Channel*>(stage_memory + stage_bytes)[threadIdx.y % strips];
}

// The chunks that a strip sweeps.
template <bool kBackward>
__device__ __forceinline__ int chunks_of(const Surroundings<ProductShape>& around, bool keeps) {
  return around.is_last && (kBackward || !keeps) ? around.end_chunk + 1 : around.strip.chunks;
}

}  // namespace softdtw
