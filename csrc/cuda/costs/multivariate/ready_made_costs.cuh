// Ready-made costs of float32, copied from their matrix to a pipeline of costs, with columns come a batch ahead. A strip's cost warps have
// equal parts of a batch's columns.
#pragma once

#include "cuda/costs/cost_pipeline.cuh"
#include "cuda/hardware/vectors.cuh"

namespace softdtw {

template <class Pipeline>
class ReadyMadeCosts {
  using S = MultivariateShape;
  static constexpr int kOwnColumns = kBatchColumns / Pipeline::kWarps, kFours = kOwnColumns / 4;
  static constexpr int kRowsAtOnce = kWarp / kFours, kPieces = S::kStripRows / kRowsAtOnce;
  static_assert(kOwnColumns == S::kSteps && kFours == 2);
  Pipeline& pipeline;
  const int warp;
  const OutsideBand outside;
  const View<const float> matrix;
  const bool reads_fours;
  const Strip<S> strip;
  const int rows_left;     // of the pair, from the strip's first one on
  const int own_row, own;  // the lane's first row, and its first column among the warp's
  float pieces[kPieces][4] = {};

 public:
  static constexpr int kStride = 1;  // between the batches of a warp

  __device__ ReadyMadeCosts(
      const Problem<float>& problem, const Extent& extent, const Strip<S>& strip_, int64_t pair, Pipeline& pipeline_,
      int warp_, HeldRows)
      : pipeline(pipeline_),
        warp(warp_),
        outside(extent),
        matrix(problem.cost_matrix.pair(pair)),
        reads_fours(rows_have_fours(problem.cost_matrix)),
        strip(strip_),
        rows_left(extent.n - strip_.first_row),
        own_row(threadIdx.x / kFours),
        own(threadIdx.x % kFours * 4) {}
  // The first of the warp's batches, from this one on, to the right or to the left.
  __device__ __forceinline__ int first_own(int batch, int) const { return batch; }

  // Starts the loads of the warp's own columns of a batch, four of each of a lane's rows. Before the first batch is filled. Cells that the
  // pair does not have cost 0.
  __device__ __forceinline__ void fetch(int batch) {
    const int column = strip.first_column + batch * kBatchColumns + warp * kOwnColumns + own;
    const int columns_left = batch >= 0 ? strip.end_column - column : 0;
#pragma unroll
    for (int i = 0; i < kPieces; ++i) {
      const int row = own_row + i * kRowsAtOnce, count = row < rows_left ? columns_left : 0;
      const float* const from = matrix.data + (strip.first_row + row) * matrix.row_stride + column * matrix.column_stride;
      if (reads_fours && count >= 4) {
        const float4 four = __ldg(reinterpret_cast<const float4*>(from));
        pieces[i][0] = four.x, pieces[i][1] = four.y, pieces[i][2] = four.z, pieces[i][3] = four.w;
      } else {
#pragma unroll
        for (int j = 0; j < 4; ++j) pieces[i][j] = j < count ? __ldg(from + j * matrix.column_stride) : 0.0f;
      }
    }
  }

  // `next`: the batch that will be filled after this one.
  __device__ __forceinline__ void fill(int batch, int next) {
    const int first = strip.first_column + batch * kBatchColumns, begin = warp * kOwnColumns;
    const int place = Pipeline::slot(batch) * kBatchColumns + begin;
    float greatest = 0;
#pragma unroll
    for (int i = 0; i < kPieces; ++i) {
      const int row = own_row + i * kRowsAtOnce;
      // Neighbouring lanes have the same row: the second one begins two columns further, in other banks.
#pragma unroll
      for (int j = 0; j < 4; ++j) {
        const float cost = own == 0 ? pieces[i][j] : pieces[i][j ^ 2];
        greatest = greater(greatest, fabsf(cost));
        pipeline.at(row, place + (own + j ^ own / 2)) = cost;
      }
    }
    fetch(next);
    outside.mark(pipeline, strip, first + begin, place, kOwnColumns);
    greatest = greatest_of_warp(greatest);
    // The warp's own columns are a group.
    if (threadIdx.x < kBatchGroups)
      pipeline.reach[warp][Pipeline::slot(batch) * kBatchGroups + threadIdx.x] = threadIdx.x == warp ? greatest : 0;
    __syncwarp();
  }
};

}  // namespace softdtw
