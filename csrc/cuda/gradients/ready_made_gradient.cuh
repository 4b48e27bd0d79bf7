// Gradients of ready-made costs, which are E itself, from rectangles of E to their matrix, by the strip's gradient warps: each has equal
// parts of the strip's rows.
#pragma once

#include "cuda/hardware/vectors.cuh"
#include "cuda/kernels/multivariate/multivariate_channel.cuh"

namespace softdtw {

template <class Channel>
class ReadyMadeGradient {
  using S = MultivariateShape;
  using Pipeline = typename Channel::Alignment;
  static constexpr int kFours = kBatchColumns / 4, kRowsAtOnce = kWarp / kFours,
                       kPieces = S::kStripRows / Channel::Warps::kGradients / kRowsAtOnce;
  Pipeline& pipeline;
  const View<float> out;
  const bool writes_fours, are_cleared;
  const float scale;
  const Strip<S> strip;
  const int rows_left;          // of the pair, from the strip's first one on
  const int own_row, own_four;  // the lane's first row, and its columns of a batch
  int lowest;                   // of the batches that are written

 public:
  __device__ ReadyMadeGradient(
      const Problem<float>& problem, const Gradient<float>& gradient, const Extent& extent, const Strip<S>& strip_,
      int64_t pair, Pipeline& pipeline_, int warp)
      : pipeline(pipeline_),
        out(gradient.cost.pair(pair)),
        writes_fours(rows_have_fours(gradient.cost)),
        are_cleared(problem.ragged()),
        scale(gradient.arriving(pair)),
        strip(strip_),
        rows_left(extent.n - strip_.first_row),
        own_row(warp * kPieces * kRowsAtOnce + threadIdx.x / kFours),
        own_four(threadIdx.x % kFours),
        lowest((strip_.end_column - strip_.first_column + kBatchColumns - 1) / kBatchColumns) {}

  // Columns that E does not come to are 0, unless what is not written has been cleared: those right of this batch, before the first one,
  __device__ __forceinline__ void prepare(int batch) { clear_down_to(batch + 1); }
  __device__ __forceinline__ void add(int batch) {
    lowest = batch;
    const int column = Pipeline::slot(batch) * kBatchColumns + 4 * own_four;
#pragma unroll
    for (int i = 0; i < kPieces; ++i) {
      const int row = own_row + i * kRowsAtOnce;
      // The four lanes of a row begin with different columns, in other banks.
      float turned[4];
#pragma unroll
      for (int j = 0; j < 4; ++j) turned[j] = scale * pipeline.at(row, column + (j ^ own_four));
      const bool is_odd = own_four & 1, is_upper = own_four & 2;
      float four[4];
#pragma unroll
      for (int j = 0; j < 4; ++j) {
        const float near = is_odd ? turned[j ^ 1] : turned[j], far = is_odd ? turned[j ^ 3] : turned[j ^ 2];
        four[j] = is_upper ? far : near;
      }
      write(batch, row, four);
    }
  }
  // and those left of the last one.
  __device__ __forceinline__ void finish() { clear_down_to(0); }

 private:
  __device__ __forceinline__ void clear_down_to(int end) {
    if (are_cleared) return;
#pragma unroll 1
    while (lowest > end) {
      --lowest;
      const float none[4] = {};
#pragma unroll
      for (int i = 0; i < kPieces; ++i) write(lowest, own_row + i * kRowsAtOnce, none);
    }
  }
  __device__ __forceinline__ void write(int batch, int row, const float (&four)[4]) const {
    const int column = strip.first_column + batch * kBatchColumns + 4 * own_four;
    const int count = row < rows_left ? strip.end_column - column : 0;
    float* const to = out.data + (strip.first_row + row) * out.row_stride + column * out.column_stride;
    if (writes_fours && count >= 4)
      *reinterpret_cast<float4*>(to) = {four[0], four[1], four[2], four[3]};
    else
#pragma unroll
      for (int j = 0; j < 4; ++j)
        if (j < count) to[j * out.column_stride] = four[j];
  }
};

}  // namespace softdtw
