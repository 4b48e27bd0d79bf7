// Gradients along the paths of hard DTW: a thread for every row of x and of y, or up to a warp's, four dimensions each.
//
// Where pairs fill the machine, a block has a pair: the rows of x, a span each, say which rows each column meets, in shared memory.
// Elsewhere a column's thread looks for its rows.
#include <algorithm>

#include "cuda/hardware/assembly.cuh"
#include "cuda/hardware/launch.cuh"
#include "cuda/select/hard.h"
#include "hard.h"

namespace softdtw {
namespace {

constexpr int kThreads = 128, kBlocksAtOnce = 10;  // of a multiprocessor
constexpr int kDimsAtOnce = 4;

// Threads that share a row's dimensions.
inline int threads_of_row(int64_t dim) {
  int threads = 1;
  while (threads < kWarp && threads * kDimsAtOnce < dim) threads *= 2;
  return threads;
}

// The rows of all columns of a pair, by a block.
__device__ __forceinline__ void find_rows_of_columns(const Span* spans, const Extent& extent, Span* rows_of_columns) {
  for (int row = threadIdx.x; row < extent.n; row += kThreads) {
    const bool is_first = row == 0, is_last = row == extent.n - 1;
    const int before = is_first ? -1 : spans[row - 1].last, after = is_last ? extent.m : spans[row + 1].first;
    const Span own = spans[row];
    for (int j = max(before + 1, 0); j <= min(own.last, extent.m - 1); ++j) rows_of_columns[j].first = row;
    for (int j = max(own.first, 0); j < min(after, extent.m); ++j) rows_of_columns[j].last = row;
    // With open ends there are columns that no row meets.
    if (is_first)
      for (int j = 0; j < min(own.first, extent.m); ++j) rows_of_columns[j].last = -1;
    if (is_last)
      for (int j = max(own.last + 1, 0); j < extent.m; ++j) rows_of_columns[j].first = extent.n;
  }
}

extern __shared__ Span rows_of_pair[];  // rows of its columns

// A block per pair. kDims: dimensions at once.
template <int kDims, typename T>
__global__ void __launch_bounds__(kThreads, kBlocksAtOnce)
    hard_pair_gradient(const __grid_constant__ Problem<T> problem, const __grid_constant__ HardGradient<T> gradient) {
  const int64_t pair = blockIdx.x;
  if (gradient.y.data != nullptr) {
    const Extent extent = problem.extent(pair);
    if (extent.valid() && isfinite(gradient.value[pair]))
      find_rows_of_columns(gradient.spans + pair * problem.n, extent, rows_of_pair);
  }
  const auto rows_of = [](const Span*, int, int column) { return rows_of_pair[column]; };
  if (gradient.x.data != nullptr)
    for (int i = threadIdx.x; i < problem.n; i += kThreads) path_gradient<true, kDims>(problem, gradient, pair, i, rows_of);
  __syncthreads();
  if (gradient.y.data != nullptr)
    for (int j = threadIdx.x; j < problem.m; j += kThreads)
      path_gradient<false, kDims>(problem, gradient, pair, j, rows_of);
}

// Blocks of kThreads per pair: first those of x, `x_blocks` of all pairs, then those of y.
template <typename T>
__global__ void __launch_bounds__(kThreads) hard_series_gradient(
    const __grid_constant__ Problem<T> problem, const __grid_constant__ HardGradient<T> gradient, int threads_of_row,
    int64_t x_blocks) {
  const ShareOfDims share{static_cast<int>(threadIdx.x) % threads_of_row, threads_of_row};
  const auto of = [&](auto for_x, int64_t block, int64_t length) {
    const int64_t blocks = ceil_div(length * threads_of_row, kThreads);
    const int64_t index = (block % blocks * kThreads + threadIdx.x) / threads_of_row;
    if (index < length) path_gradient<for_x()>(problem, gradient, block / blocks, static_cast<int>(index), share);
  };
  if (blockIdx.x < x_blocks)
    of(std::true_type(), blockIdx.x, problem.n);
  else
    of(std::false_type(), blockIdx.x - x_blocks, problem.m);
}

template <typename T>
__global__ void __launch_bounds__(kThreads)
    hard_cost_gradient(const __grid_constant__ Problem<T> problem, const __grid_constant__ HardGradient<T> gradient) {
  const int64_t rows = problem.batch * problem.n;
  for (int64_t i = blockIdx.x; i < rows; i += gridDim.x)
    path_gradient_of_cost(problem, gradient, i / problem.n, static_cast<int>(i % problem.n), threadIdx.x, kThreads);
}

}  // namespace

template <typename T>
cudaError_t hard_backward(const Problem<T>& problem, const HardGradient<T>& gradient, cudaStream_t stream) {
  const int threads = threads_of_row(problem.dim);
  cudaError_t error = cudaSuccess;
  const auto run = [&](auto kernel, int64_t blocks, int64_t bytes, const auto&... of_rows) {
    if (error == cudaSuccess) error = launch_kernel(kernel, blocks, kThreads, bytes, stream, problem, gradient, of_rows...);
  };
  const bool is_of_series = gradient.x.data != nullptr || gradient.y.data != nullptr;
  if (is_of_series && has_block_of_pair(call_of(problem, true), current_device())) {
    const int64_t bytes = problem.m * int64_t{sizeof(Span)};
    if (problem.dim == 1)
      run(hard_pair_gradient<1, T>, problem.batch, bytes);
    else
      run(hard_pair_gradient<kDimsAtOnce, T>, problem.batch, bytes);
  } else {
    const auto blocks = [&](const auto& view, int64_t length) {
      return view.data == nullptr ? 0 : problem.batch * ceil_div(length * threads, kThreads);
    };
    const int64_t x_blocks = blocks(gradient.x, problem.n), y_blocks = blocks(gradient.y, problem.m);
    if (x_blocks + y_blocks > 0) run(hard_series_gradient<T>, x_blocks + y_blocks, 0, threads, x_blocks);
  }
  if (gradient.cost.data != nullptr) run(hard_cost_gradient<T>, std::min(problem.batch * problem.n, int64_t{1} << 20), 0);
  return error;
}

template cudaError_t hard_backward<float>(const Problem<float>&, const HardGradient<float>&, cudaStream_t);
template cudaError_t hard_backward<double>(const Problem<double>&, const HardGradient<double>&, cudaStream_t);

}  // namespace softdtw
