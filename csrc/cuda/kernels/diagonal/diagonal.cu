// diagonal: the table in device memory, anti-diagonal after anti-diagonal. The plain variant that the others are checked
// against: any length, any cost, float64 inside whatever the dtype.
//
// Threads to work: one block per pair; its threads stride over an anti-diagonal and meet at a barrier before the next.
//
// Layout: diagonal d = row + column holds its cells of the band by row, from first_row(d) on, and follows diagonal d - 1
// without a gap, so neighbours on a diagonal are neighbours in memory. Saved for backward are the three weights of every
// cell, each a table of its own; costs and entries live for three diagonals only.
#include "core/row_gradient.h"
#include "cuda/hardware/launch.cuh"
#include "cuda/numbers/device_math.cuh"
#include "cuda/select/face.h"
#include "diagonals.cuh"

namespace softdtw {
namespace {

constexpr int kGradientThreads = 128;

// In exponents of 2.
template <typename T>
__device__ double scaled_cost_at(const Problem<T>& problem, int64_t pair, int row, int column, double scale) {
  if (problem.cost == Cost::kMatrix) return problem.cost_matrix.pair(pair).at(row, column) * scale;
  const View<const T> x = problem.x.pair(pair), y = problem.y.pair(pair);
  const double cost = cost_of_vectors<DeviceMath<T>>(problem, x, y, row, column) * scale;
  return cost < kMostRounded ? cost : cost_of_vectors<DeviceMath<double>>(problem, x, y, row, column) * scale;
}

// (1). `recent` holds the entries of the last three diagonals by row; `weights` the saved tables, or is null.
template <typename T>
__global__ void __launch_bounds__(kMostThreads) diagonal_forward(
    const __grid_constant__ Problem<T> problem, T* value, T* weights, Entry<double>* recent, int64_t cells) {
  const int64_t pair = blockIdx.x;
  const Extent extent = problem.extent(pair);
  if (!extent.valid()) {
    if (threadIdx.x == 0) value[pair] = T(NAN);
    return;
  }
  using Recurrence = SoftDtw<double, double, DeviceMath, true>;
  const double scale = problem.scale_of(pair);
  const Recurrence recurrence = {1.0, Recurrence::split(problem.penalty_of(pair) * scale, 1.0)};
  const Entry<double> nowhere = {Unreachable<double>::value, 1.0};
  weights += weights == nullptr ? 0 : pair * 3 * cells;
  recent += pair * 3 * problem.n;

  const int diagonals = extent.n + extent.m - 1;
  for (int d = 0; d < diagonals; ++d) {
    const Diagonal diagonal(extent, d);
    Entry<double>* now = recent + d % 3 * problem.n;
    const Entry<double>* last = recent + (d + 2) % 3 * problem.n;
    const Entry<double>* before = recent + (d + 1) % 3 * problem.n;
    for (int row = diagonal.first + threadIdx.x; row <= diagonal.last; row += blockDim.x) {
      const int column = d - row;
      const Entry<double> diag = d == 0 ? Entry<double>{0.0, 1.0} : row > 0 && column > 0 ? before[row - 1] : nowhere;
      const Entry<double> up = row > 0 && extent.in_band(row - 1, column) ? last[row - 1] : nowhere;
      const Entry<double> left = column > 0 && extent.in_band(row, column - 1) ? last[row] : nowhere;
      const double cost = scaled_cost_at(problem, pair, row, column, scale);
      Weights<double> shares;
      Entry<double> cell = recurrence.cell(diag, up, left, cost, shares);
      normalise(cell);
      now[row] = cell;
      if (weights != nullptr) {
        T* const to = weights + row - diagonal.first;
        to[0] = static_cast<T>(Recurrence::diagonal_share(shares));
        to[cells] = static_cast<T>(shares.up);
        to[2 * cells] = static_cast<T>(shares.left);
      }
      if (d == diagonals - 1)
        value[pair] =
            is_unreachable(cell.m) ? T(INFINITY) : static_cast<T>((cell.m - log2(cell.s)) * problem.gamma_of(pair) * kLn2);
    }
    if (weights != nullptr) weights += diagonal.width();
    __syncthreads();
  }
}

// (3), (4): E of every cell into `alignment`, in the layout of the tables, and where each diagonal starts into `starts`.
template <typename T>
__global__ void __launch_bounds__(kMostThreads) diagonal_alignment(
    const __grid_constant__ Problem<T> problem, const T* weights, T* alignment, int64_t* starts, int64_t cells) {
  const int64_t pair = blockIdx.x;
  const Extent extent = problem.extent(pair);
  if (!extent.valid()) return;
  weights += pair * 3 * cells;
  alignment += pair * cells;
  starts += pair * (problem.n + problem.m);

  const int diagonals = extent.n + extent.m - 1;
  if (threadIdx.x == 0) {
    int64_t start = 0;
    for (int d = 0; d < diagonals; ++d) {
      starts[d] = start;
      start += Diagonal(extent, d).width();
    }
  }
  __syncthreads();

  const T *to_diag = weights, *to_up = weights + cells, *to_left = weights + 2 * cells;
  for (int d = diagonals - 1; d >= 0; --d) {
    const Diagonal here(extent, d), next(extent, d + 1), after(extent, d + 2);
    const int64_t start = starts[d];
    const int64_t next_start = start + here.width() - next.first,
                  after_start = next_start + next.first + next.width() - after.first;
    for (int row = here.first + threadIdx.x; row <= here.last; row += blockDim.x) {
      const int column = d - row;
      T e = d == diagonals - 1 ? T(1) : T(0);
      const auto take = [&](int64_t successor, const T* share) { e += alignment[successor] * share[successor]; };
      if (row + 1 < extent.n && column + 1 < extent.m) take(after_start + row + 1, to_diag);
      if (row + 1 < extent.n && extent.in_band(row + 1, column)) take(next_start + row + 1, to_up);
      if (column + 1 < extent.m && extent.in_band(row, column + 1)) take(next_start + row, to_left);
      alignment[start + row - here.first] = e;
    }
    __syncthreads();
  }
}

// (5) for one side: a thread per row of x (kForX) or of y, which walks the cells of its row (column) of the table.
template <bool kForX, typename T>
__global__ void __launch_bounds__(kGradientThreads) diagonal_series_gradient(
    const __grid_constant__ Problem<T> problem, const __grid_constant__ Gradient<T> gradient, const T* alignment,
    const int64_t* starts, int64_t cells) {
  const int64_t length = kForX ? problem.n : problem.m;
  const int64_t blocks = (length + kGradientThreads - 1) / kGradientThreads;
  const int64_t pair = blockIdx.x / blocks, index = blockIdx.x % blocks * kGradientThreads + threadIdx.x;
  const View<T> out = (kForX ? gradient.x : gradient.y).pair(pair);
  if (index >= length) return;
  const Extent extent = problem.extent(pair);
  if (extent.valid() && index >= (kForX ? extent.n : extent.m)) return;
  if (!extent.valid() || !isfinite(gradient.value[pair])) {
    for (int64_t d = 0; d < problem.dim; ++d) out.at(index, d) = gradient.without_value(pair);
    return;
  }
  alignment += pair * cells;
  starts += pair * (problem.n + problem.m);

  const int fixed = static_cast<int>(index);
  const int from = kForX ? max(0, fixed + extent.low) : max(0, fixed - extent.high);
  const int to = kForX ? min(extent.m - 1, fixed + extent.high) : min(extent.n - 1, fixed - extent.low);
  row_gradient<kForX, DeviceMath<T>>(problem, gradient, pair, fixed, from, to, [&](int row, int column) {
    return alignment[starts[row + column] + row - Diagonal(extent, row + column).first];
  });
}

// (4) times the gradient that arrives, as a (N, M) matrix: a thread per cell.
template <typename T>
__global__ void __launch_bounds__(kGradientThreads) diagonal_cost_gradient(
    const __grid_constant__ Problem<T> problem, const __grid_constant__ Gradient<T> gradient, const T* alignment,
    const int64_t* starts, int64_t cells) {
  const int64_t size = problem.n * problem.m, total = problem.batch * size;
  const int64_t stride = static_cast<int64_t>(gridDim.x) * blockDim.x;
  for (int64_t i = static_cast<int64_t>(blockIdx.x) * blockDim.x + threadIdx.x; i < total; i += stride) {
    const int64_t pair = i / size;
    const int row = static_cast<int>(i % size / problem.m), column = static_cast<int>(i % problem.m);
    const Extent extent = problem.extent(pair);
    T& out = gradient.cost.pair(pair).at(row, column);
    if (!extent.valid()) {
      out = gradient.without_value(pair);
    } else if (row < extent.n && column < extent.m && extent.in_band(row, column)) {
      const int64_t start = starts[pair * (problem.n + problem.m) + row + column];
      const T e = alignment[pair * cells + start + row - Diagonal(extent, row + column).first];
      out = isfinite(gradient.value[pair]) ? e * gradient.arriving(pair) : gradient.without_value(pair);
    }
  }
}

template <typename T>
int64_t saved_bytes(const Problem<T>& problem, const Plan&) {
  return problem.batch * 3 * cells_of(problem) * sizeof(T);
}

template <typename T>
cudaError_t forward(const Problem<T>& problem, const Plan&, T* value, void* saved, Scratch& scratch, cudaStream_t stream) {
  const auto [recent] = scratch.parts(problem.batch * 3 * problem.n * sizeof(Entry<double>));
  return launch_kernel(
      diagonal_forward<T>, problem.batch, threads_of_diagonals(problem), 0, stream, problem, value, static_cast<T*>(saved),
      reinterpret_cast<Entry<double>*>(recent), cells_of(problem));
}

template <typename T>
cudaError_t backward(
    const Problem<T>& problem, const Plan&, const Gradient<T>& gradient, const void* saved, Scratch& scratch,
    cudaStream_t stream) {
  const int64_t cells = cells_of(problem);
  const auto parts =
      scratch.parts(problem.batch * (problem.n + problem.m) * sizeof(int64_t), problem.batch * cells * sizeof(T));
  int64_t* const starts = reinterpret_cast<int64_t*>(parts[0]);
  T* const alignment = reinterpret_cast<T*>(parts[1]);
  cudaError_t error = launch_kernel(
      diagonal_alignment<T>, problem.batch, threads_of_diagonals(problem), 0, stream, problem, static_cast<const T*>(saved),
      alignment, starts, cells);
  const auto run = [&](auto kernel, int64_t blocks) {
    if (error == cudaSuccess)
      error = launch_kernel(kernel, blocks, kGradientThreads, 0, stream, problem, gradient, alignment, starts, cells);
  };
  const auto blocks = [&](int64_t length) { return problem.batch * ((length + kGradientThreads - 1) / kGradientThreads); };
  if (gradient.x.data != nullptr) run(diagonal_series_gradient<true, T>, blocks(problem.n));
  if (gradient.y.data != nullptr) run(diagonal_series_gradient<false, T>, blocks(problem.m));
  if (gradient.cost.data != nullptr) {
    const int64_t wanted = (problem.batch * problem.n * problem.m + kGradientThreads - 1) / kGradientThreads;
    const int64_t most = int64_t{1} << 20;
    run(diagonal_cost_gradient<T>, wanted < most ? wanted : most);
  }
  return error;
}

}  // namespace

SOFTDTW_DEFINE_FACE(diagonal_face)

}  // namespace softdtw
