// (5) as a matrix product, for series of many dimensions: from a table of weights G[row, column] = E dC/d(difference) / difference
// (over the slope, if that is another), dx[row, d] = g sum_column G (x[row, d] - y[column, d]), and dy likewise.
//
// Threads to work: a block owns 64 rows of one side and 64 dimensions, a thread 4 x 4 of them; the other side goes by in
// slices of 16 through shared memory. Differences are taken before they are multiplied, so nothing cancels where x is near y.
#include "series_gradient.cuh"

#include "cuda/hardware/launch.cuh"
#include "cuda/numbers/device_math.cuh"

namespace softdtw {
namespace {

constexpr int kProductTile = 64, kProductSlice = 16, kProductThreads = 256;

template <bool kForX, class Sum, typename T>
__global__ void __launch_bounds__(kProductThreads) series_gradient(
    const __grid_constant__ Problem<T> problem, const __grid_constant__ Gradient<T> gradient, const T* table) {
  const int64_t length = kForX ? problem.n : problem.m;
  const int64_t row_tiles = (length + kProductTile - 1) / kProductTile;
  const int64_t dim_tiles = (problem.dim + kProductTile - 1) / kProductTile;
  const int64_t pair = blockIdx.x / (row_tiles * dim_tiles);
  const int first_row = static_cast<int>(blockIdx.x / dim_tiles % row_tiles) * kProductTile;
  const int64_t first_dim = blockIdx.x % dim_tiles * kProductTile;
  const Extent extent = problem.extent(pair);
  if (!has_gradient(gradient, extent, pair)) return;  // the sweep has answered
  const int rows = kForX ? extent.n : extent.m, columns = kForX ? extent.m : extent.n;
  if (first_row >= rows) return;
  const int last_row = min(rows, first_row + kProductTile) - 1;
  const int low = kForX ? extent.low : -extent.high, high = kForX ? extent.high : -extent.low;
  const int from = max(0, first_row + low), to = min(columns - 1, last_row + high);

  const View<const T> own = (kForX ? problem.x : problem.y).pair(pair), other = (kForX ? problem.y : problem.x).pair(pair);
  const View<T> out = (kForX ? gradient.x : gradient.y).pair(pair);
  table += pair * problem.n * problem.m;
  const int64_t row_stride = kForX ? problem.m : 1, column_stride = kForX ? 1 : problem.m;

  __shared__ __align__(16) T weights[kProductSlice][kProductTile + 4];
  __shared__ __align__(16) T others[kProductSlice][kProductTile + 4];
  const int thread = threadIdx.x, row4 = thread / 16 * 4, dim4 = thread % 16 * 4;
  T values[4][4], sums[4][4] = {};
#pragma unroll
  for (int i = 0; i < 4; ++i)
#pragma unroll
    for (int k = 0; k < 4; ++k) {
      const int row = min(first_row + row4 + i, rows - 1);
      values[i][k] = first_dim + dim4 + k < problem.dim ? own.at(row, first_dim + dim4 + k) : T(0);
    }

  for (int column = from; column <= to; column += kProductSlice) {
#pragma unroll 2  // more, here or below, and registers spill
    for (int i = thread; i < kProductSlice * kProductTile; i += kProductThreads) {
      // Neighbouring threads read neighbouring words of the table, along its columns for x and along its rows for y.
      const int r = kForX ? i / kProductSlice : i % kProductTile, c = kForX ? i % kProductSlice : i / kProductTile;
      const bool here = first_row + r < rows && column + c <= to;
      weights[c][r] = here ? table[(first_row + r) * row_stride + (column + c) * column_stride] : T(0);
      const int d = i / kProductSlice, o = i % kProductSlice;
      others[o][d] = first_dim + d < problem.dim ? other.at(min(column + o, columns - 1), first_dim + d) : T(0);
    }
    __syncthreads();
#pragma unroll 1
    for (int c = 0; c < kProductSlice; ++c)
#pragma unroll
      for (int i = 0; i < 4; ++i)
#pragma unroll
        for (int k = 0; k < 4; ++k)
          sums[i][k] = DeviceMath<T>::fma(weights[c][row4 + i], Sum::slope(values[i][k] - others[c][dim4 + k]), sums[i][k]);
    __syncthreads();
  }

  const T scale = gradient.arriving(pair);
#pragma unroll
  for (int i = 0; i < 4; ++i)
#pragma unroll
    for (int k = 0; k < 4; ++k)
      if (first_row + row4 + i < rows && first_dim + dim4 + k < problem.dim)
        out.at(first_row + row4 + i, first_dim + dim4 + k) = sums[i][k] * scale;
}

}  // namespace

template <typename T>
cudaError_t launch_series_gradients(
    const Problem<T>& problem, const Gradient<T>& gradient, const T* table, cudaStream_t stream) {
  const auto blocks = [&](int64_t length) {
    return problem.batch * ((length + kProductTile - 1) / kProductTile) * ((problem.dim + kProductTile - 1) / kProductTile);
  };
  const auto run = [&](auto kernel, int64_t length) {
    return launch_kernel(kernel, blocks(length), kProductThreads, 0, stream, problem, gradient, table);
  };
  return with_sum<Costs<DeviceMath<T>>>(problem.cost, [&](auto sum) {
    using Sum = decltype(sum);
    cudaError_t error = cudaSuccess;
    if (gradient.x.data != nullptr) error = run(series_gradient<true, Sum, T>, problem.n);
    if (error == cudaSuccess && gradient.y.data != nullptr) error = run(series_gradient<false, Sum, T>, problem.m);
    return error;
  });
}

template cudaError_t launch_series_gradients(const Problem<float>&, const Gradient<float>&, const float*, cudaStream_t);
template cudaError_t launch_series_gradients(const Problem<double>&, const Gradient<double>&, const double*, cudaStream_t);

}  // namespace softdtw
