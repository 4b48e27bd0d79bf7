// Where paths that leave a strip by its last row have come into it: for every column of that row the column of the row above the strip.
//
// A path is walked row by row, one after another, and a row takes some 300 cycles. Maps of all strips are made at once, by a thread for
// each column, so that of few pairs each strip's part of the path is walked by a warp of its own: which column it ends in is a
// look-up for every strip below.
#pragma once

#include "cuda/hardware/launch.cuh"
#include "hard_steps.cuh"

namespace softdtw {

template <class S>
__device__ __forceinline__ int last_row_of(const Strip<S>& strip, const Extent& extent) {
  return min(strip.first_row + S::kStripRows, extent.n) - 1;
}

// [pair][strip][column], columns from the strip's first on. Of the first strip there is nothing above, and it is left out.
template <class S>
struct StripMaps {
  int* columns = nullptr;
  int64_t strips = 0, stride = 0;

  StripMaps() = default;
  StripMaps(char* memory, const Sizes<S>& sizes)
      : columns(reinterpret_cast<int*>(memory)), strips(sizes.strips), stride(columns_of(sizes)) {}
  static int64_t columns_of(const Sizes<S>& sizes) { return sizes.chunks * S::kSteps; }
  static int64_t bytes(int64_t batch, const Sizes<S>& sizes) {
    return batch * sizes.strips * columns_of(sizes) * int64_t{sizeof(int)};
  }

  __host__ __device__ bool exist() const { return columns != nullptr; }
  __device__ __forceinline__ int* of(int64_t pair, int strip) const { return columns + (pair * strips + strip) * stride; }
  __device__ __forceinline__ int column_above(const Extent& extent, int64_t pair, int strip, int column) const {
    return of(pair, strip)[column - Strip<S>(extent, strip).first_column];
  }
};

// The walk of PathWalk through a strip, by a thread, from a column of its last row. `row`: that one, counted from the strip's first.
template <class S>
__device__ __forceinline__ int column_above_strip(
    const StepTable<S>& table, int64_t pair, int index, const Strip<S>& strip, int row, int column) {
  using Words = StepWords<S>;
  const Words* const tiles = reinterpret_cast<const Words*>(table.of(pair, index, 0, 0));
  const int time = column - strip.first_column + row / S::kRows;
  int chunk = time / S::kSteps, t = time % S::kSteps;
  for (int lane = row / S::kRows, from = row % S::kRows; lane >= 0; --lane, from = S::kRows - 1) {
    const auto load = [&] { return chunk < 0 ? Words() : tiles[chunk * kWarp + lane]; };
    Words tile = load();
    const auto go_back = [&] {
      t += S::kSteps;
      --chunk;
      tile = load();
    };
#pragma unroll
    for (int k = S::kRows - 1; k >= 0; --k) {
      if (k > from) continue;
      if (t < 0) go_back();
      const bool is_diagonal = leave_row(tile, k, t, go_back);
      t -= is_diagonal;
    }
    if (lane > 0) --t;  // the lane above is a step ahead
  }
  return strip.first_column + chunk * S::kSteps + t;
}

constexpr int kMapThreads = 128;

// A thread for every column of every strip but the first.
template <class S, class P>
__global__ void __launch_bounds__(kMapThreads)
    strip_map_kernel(const __grid_constant__ P problem, StepTable<S> table, StripMaps<S> maps, int width_of_others) {
  const int64_t blocks_of_strip = (maps.stride + kMapThreads - 1) / kMapThreads;
  const int64_t of_pairs = blockIdx.x / blocks_of_strip, pair = of_pairs / (maps.strips - 1);
  const int index = static_cast<int>(of_pairs % (maps.strips - 1)) + 1;
  const Extent extent = problem.extent(pair);
  if (!extent.valid() || extent.high - extent.low < width_of_others || index >= strips_of<S>(extent)) return;
  const Strip<S> strip(extent, index), above(extent, index - 1);
  const int place = static_cast<int>(blockIdx.x % blocks_of_strip) * kMapThreads + threadIdx.x;
  if (strip.first_column + place >= strip.end_column) return;
  const int row = last_row_of(strip, extent) - strip.first_row;
  const int column = column_above_strip(table, pair, index, strip, row, strip.first_column + place);
  // Of cells that no path reaches it may be any.
  maps.of(pair, index)[place] = min(max(column, above.first_column), above.end_column - 1);
}

// Nothing, where there are no maps.
template <class S, class P>
cudaError_t launch_strip_maps(
    const P& problem, const StepTable<S>& table, const StripMaps<S>& maps, int width_of_others, cudaStream_t stream) {
  if (!maps.exist()) return cudaSuccess;
  const int64_t blocks = problem.batch * (maps.strips - 1) * ((maps.stride + kMapThreads - 1) / kMapThreads);
  return launch_kernel(strip_map_kernel<S, P>, blocks, kMapThreads, 0, stream, problem, table, maps, width_of_others);
}

}  // namespace softdtw
