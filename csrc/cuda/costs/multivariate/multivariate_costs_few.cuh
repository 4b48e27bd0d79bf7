// Costs of a strip from differences, with few dimensions: between two rows that a lane holds and columns that all lanes read from
// shared memory, where they have come a batch ahead. The strip's cost warps have equal parts of a batch's columns.
#pragma once

#include "multivariate_series.cuh"

namespace softdtw {

template <class CostType, bool kFours, class Pipeline>
class FewCosts : StripOfSeries {
  static constexpr int kWarps = Pipeline::kWarps, kOwnColumns = kBatchColumns / kWarps, kGroups = kFewDims / 4;
  Pipeline& pipeline;
  const int warp;
  const OutsideBand outside;
  float4 held[S::kRows][kGroups];  // the lane's rows
  float4 piece = {};               // and of the next batch's columns

 public:
  static constexpr int kStride = 1;  // between the batches of a warp

  __device__ FewCosts(
      const Problem<float>& problem, const Extent& extent, const Strip<S>& strip_, int64_t pair, Pipeline& pipeline_,
      int warp_, HeldRows)
      : StripOfSeries(problem, extent, strip_, pair), pipeline(pipeline_), warp(warp_), outside(extent) {
#pragma unroll
    for (int k = 0; k < S::kRows; ++k)
#pragma unroll
      for (int i = 0; i < kGroups; ++i)
        held[k][i] = load_four<kFours>(x.at(strip.first_row + threadIdx.x * S::kRows + k), 4 * i, x.dim);
  }
  // The first of the warp's batches, from this one on, to the right or to the left.
  __device__ __forceinline__ int first_own(int batch, int) const { return batch; }

  // Starts the loads of the warp's own columns of a batch, four numbers a lane. Before the first batch is filled.
  __device__ __forceinline__ void fetch(int batch) {
    const int column = strip.first_column + batch * kBatchColumns + warp * kOwnColumns + threadIdx.x / kGroups;
    if (batch >= 0 && threadIdx.x < kOwnColumns * kGroups)
      piece = load_four<kFours>(y.at(column), threadIdx.x % kGroups * 4, x.dim);
  }

  // `next`: the batch that will be filled after this one.
  __device__ void fill(int batch, int next) {
    const int first = strip.first_column + batch * kBatchColumns, slot = Pipeline::slot(batch);
    if (threadIdx.x < kOwnColumns * kGroups) pipeline.columns[warp][threadIdx.x] = piece;
    __syncwarp();
    fetch(next);
    float greatest = 0;
    if (batch < 0 || first >= strip.end_column) {
      pipeline.clear(slot, warp * kWarp + threadIdx.x, kWarps * kWarp);
    } else {
      with_kind<CostType>(cost, [&](auto type) { fill_from_held_rows<decltype(type)>(first, slot, greatest); });
      const int begin = warp * kOwnColumns;
      outside.mark(pipeline, strip, first + begin, slot * kBatchColumns + begin, kOwnColumns);
    }
    greatest = greatest_of_warp(greatest);
    // The warp's own columns are a group.
    if (threadIdx.x < kBatchGroups)
      pipeline.reach[warp][slot * kBatchGroups + threadIdx.x] = threadIdx.x == warp ? greatest : 0;
    __syncwarp();
  }

 private:
  // A loop of few instructions, since the warps of a strip share what caches them.
  template <class Type>
  __device__ __forceinline__ void fill_from_held_rows(int first, int slot, float& greatest) const {
    static_assert(kOwnColumns == S::kSteps);
    constexpr int kAtOnce = 2;
    const int begin = warp * kOwnColumns, columns_left = strip.end_column - first - begin;
    const int rows_left = x.count - strip.first_row - threadIdx.x * S::kRows;
#pragma unroll 1
    for (int own = 0; own < kOwnColumns; own += kAtOnce) {
      float4 columns[kAtOnce][kGroups];
#pragma unroll
      for (int c = 0; c < kAtOnce; ++c)
#pragma unroll
        for (int i = 0; i < kGroups; ++i) columns[c][i] = pipeline.columns[warp][(own + c) * kGroups + i];
      float costs[kAtOnce][S::kRows] = {};
#pragma unroll
      for (int i = 0; i < kGroups; ++i) {
        if (4 * i >= x.dim) continue;
#pragma unroll
        for (int c = 0; c < kAtOnce; ++c)
#pragma unroll
          for (int k = 0; k < S::kRows; ++k) costs[c][k] = add_shares<Type>(held[k][i] - columns[c][i], costs[c][k]);
      }
#pragma unroll
      for (int c = 0; c < kAtOnce; ++c) {
#pragma unroll
        for (int k = 0; k < S::kRows; ++k) {
          costs[c][k] = own + c >= columns_left || k >= rows_left ? 0 : Type::finish(costs[c][k]);
          greatest = greater(greatest, costs[c][k]);
        }
        pipeline.two_rows(threadIdx.x * S::kRows, slot * kBatchColumns + begin + own + c) = {costs[c][0], costs[c][1]};
      }
    }
  }
};

}  // namespace softdtw
