// diagonal, of elastic measures: the table in device memory, anti-diagonal after anti-diagonal. The plain variant that the others
// are checked against: any length, measure and cost, hard and soft, float64 inside whatever the dtype.
//
// Threads to work: one block per pair; its threads stride over an anti-diagonal and meet at a barrier before the next.
//
// Layout: elastic_table.cuh. Kept are the step into every cell (hard), which one thread a pair walks back over, or its three shares
// (soft), each a table of its own; entries live for three diagonals only.
#include "cuda/hardware/launch.cuh"
#include "cuda/kernels/diagonal/diagonals.cuh"
#include "elastic_kernels.h"
#include "elastic_masses.cuh"

namespace softdtw {
namespace {

constexpr int kWalkThreads = 32;

// Calls f(place, i, j, costs, diagonal, up, left) for the cells but the first, diagonal after diagonal. The last three are where the
// entries of predecessors are among `recent`, three diagonals by row, or null where the table has none. By all threads of a block.
template <class Type, typename T, class Entry, class F>
__device__ void for_each_elastic_cell(
    const ElasticProblem<T>& problem, int64_t pair, const Extent& extent, Entry* recent, const Entry& first, F&& f) {
  const StepsInto<Type, T> steps(problem, pair);
  const Extent all = with_border(extent);
  const int64_t stride = problem.n + 1;
  recent += pair * 3 * stride;
  if (threadIdx.x == 0) recent[0] = first;
  __syncthreads();
  for (int d = 1; d < all.n + all.m - 1; ++d) {
    const Diagonal diagonal(all, d);
    Entry* const now = recent + d % 3 * stride;
    const Entry* const last = recent + (d + 2) % 3 * stride;
    const Entry* const before = recent + (d + 1) % 3 * stride;
    for (int i = diagonal.first + threadIdx.x; i <= diagonal.last; i += blockDim.x) {
      const int j = d - i;
      const Entry* const from_diagonal = i > 0 && j > 0 ? before + i - 1 : nullptr;
      const Entry* const from_up = i > 0 && all.in_band(i - 1, j) ? last + i - 1 : nullptr;
      const Entry* const from_left = j > 0 && all.in_band(i, j - 1) ? last + i : nullptr;
      now[i] = f(i, j, steps(i, j), from_diagonal, from_up, from_left);
    }
    __syncthreads();
  }
}

template <class Type, typename T>
__global__ void __launch_bounds__(kMostThreads) elastic_diagonal_hard(
    const __grid_constant__ ElasticProblem<T> problem, T* value, uint8_t* steps, double* recent, ElasticLayout layout) {
  const int64_t pair = blockIdx.x;
  const Extent extent = problem.extent(pair);
  if (!extent.valid()) {
    if (threadIdx.x == 0) value[pair] = T(NAN);
    return;
  }
  const auto cell = [&](int i, int j, const StepCosts<T>& costs, const double* diagonal, const double* up,
                        const double* left) {
    const auto after = [](const double* from, T cost) { return from ? *from + static_cast<double>(cost) : INFINITY; };
    const double by_diagonal = after(diagonal, costs.diagonal), by_up = after(up, costs.up);
    const double by_left = after(left, costs.left), side = lesser(by_up, by_left);
    if (steps != nullptr)
      steps[pair * layout.cells() + layout.at(i, j)] = side < by_diagonal ? by_left < by_up ? kLeft : kUp : kDiagonal;
    const double r = lesser(side, by_diagonal);
    if (i == extent.n && j == extent.m) value[pair] = static_cast<T>(r);
    return r;
  };
  for_each_elastic_cell<Type>(problem, pair, extent, recent, 0.0, cell);
}

// A thread for each pair.
template <typename T>
__global__ void __launch_bounds__(kWalkThreads) elastic_walk(
    const __grid_constant__ ElasticProblem<T> problem, const T* value, const uint8_t* steps, ElasticLayout layout,
    Span* spans) {
  const int64_t pair = static_cast<int64_t>(blockIdx.x) * kWalkThreads + threadIdx.x;
  if (pair >= problem.batch) return;
  const Extent extent = problem.extent(pair);
  const bool has_path = extent.valid() && isfinite(value[pair]);
  const int m = static_cast<int>(problem.m);
  spans += pair * (problem.n + 1);
  steps += pair * layout.cells();
  for (int64_t i = has_path ? extent.n + 1 : 0; i <= problem.n; ++i) spans[i] = {m + 1, m};
  if (!has_path) return;
  int j = extent.m;
  for (int i = extent.n; i >= 0; --i) {
    const int last = j;
    int step = kLeft;
    while (i + j > 0 && (step = steps[layout.at(i, j)]) == kLeft) --j;
    spans[i] = {j, last};
    if (step == kDiagonal) --j;
  }
}

template <class Type, typename T>
__global__ void __launch_bounds__(kMostThreads) elastic_diagonal_soft(
    const __grid_constant__ ElasticProblem<T> problem, T* value, T* shares, Entry<double>* recent, ElasticLayout layout) {
  const int64_t pair = blockIdx.x, cells = layout.cells();
  const Extent extent = problem.extent(pair);
  if (!extent.valid()) {
    if (threadIdx.x == 0) value[pair] = T(NAN);
    return;
  }
  using Recurrence = SoftDtw<double, double, DeviceMath, true>;
  using Cell = Entry<double>;
  const double scale = problem.scale_of(pair);
  const Recurrence recurrence = {1.0, {0.0, 1.0}};
  const auto cell = [&](int i, int j, const StepCosts<T>& costs, const Cell* diagonal, const Cell* up, const Cell* left) {
    const auto after = [&](const Cell* from, T cost) {
      if (from == nullptr) return Cell{Unreachable<double>::value, 1.0};
      const Cell own = Recurrence::split(static_cast<double>(cost), scale);
      return Cell{from->m + own.m, from->s * own.s};
    };
    Weights<double> weights;
    Cell own = recurrence.cell(after(diagonal, costs.diagonal), after(up, costs.up), after(left, costs.left), 0.0, weights);
    normalise(own);
    if (shares != nullptr) {
      T* const to = shares + pair * 3 * cells + layout.at(i, j);
      to[0] = static_cast<T>(Recurrence::diagonal_share(weights));
      to[cells] = static_cast<T>(weights.up);
      to[2 * cells] = static_cast<T>(weights.left);
    }
    if (i == extent.n && j == extent.m)
      value[pair] =
          is_unreachable(own.m) ? T(INFINITY) : static_cast<T>((own.m - log2(own.s)) * problem.gamma_of(pair) * kLn2);
    return own;
  };
  for_each_elastic_cell<Type>(problem, pair, extent, recent, Cell{0.0, 1.0}, cell);
}

// (12): E of every cell.
template <typename T>
__global__ void __launch_bounds__(kMostThreads) elastic_alignment(
    const __grid_constant__ ElasticProblem<T> problem, const T* shares, T* alignment, ElasticLayout layout) {
  const int64_t pair = blockIdx.x;
  const Extent extent = problem.extent(pair);
  if (!extent.valid()) return;
  const Extent all = with_border(extent);
  alignment += pair * layout.cells();
  const ElasticShares<T> masses(shares, alignment, layout, pair, extent);
  for (int d = all.n + all.m - 2; d >= 0; --d) {
    const Diagonal diagonal(all, d);
    for (int i = diagonal.first + threadIdx.x; i <= diagonal.last; i += blockDim.x) {
      const int j = d - i;
      const double onward = masses.diagonal(i + 1, j + 1) + masses.up(i + 1, j) + masses.left(i, j + 1);
      alignment[layout.at(i, j)] = i == extent.n && j == extent.m ? T(1) : static_cast<T>(onward);
    }
    __syncthreads();
  }
}

template <typename T>
unsigned threads_of(const ElasticProblem<T>& problem) {
  return threads_of_diagonals(static_cast<const Problem<T>&>(problem));
}

}  // namespace

template <typename T>
int64_t elastic_diagonal_bytes(const ElasticProblem<T>& problem) {
  return problem.batch * 3 * ElasticLayout(problem).cells() * sizeof(T);
}

template <typename T>
cudaError_t elastic_diagonal_forward(
    const ElasticProblem<T>& problem, T* value, void* saved, Scratch& scratch, cudaStream_t stream) {
  const ElasticLayout layout(problem);
  const int64_t entries = problem.batch * 3 * layout.rows;
  const bool has_path = problem.is_hard() && saved != nullptr;
  const auto parts = scratch.parts(
      entries * (problem.is_hard() ? sizeof(double) : sizeof(Entry<double>)),
      has_path ? problem.batch * layout.cells() : 0);
  const auto run = [&](auto kernel, auto* kept, auto* recent) {
    return launch_kernel(kernel, problem.batch, threads_of(problem), 0, stream, problem, value, kept, recent, layout);
  };
  uint8_t* const steps = has_path ? reinterpret_cast<uint8_t*>(parts[1]) : nullptr;
  const cudaError_t error = with_type(problem, [&](auto type) {
    using Type = decltype(type);
    if (problem.is_hard()) return run(elastic_diagonal_hard<Type, T>, steps, reinterpret_cast<double*>(parts[0]));
    return run(elastic_diagonal_soft<Type, T>, static_cast<T*>(saved), reinterpret_cast<Entry<double>*>(parts[0]));
  });
  if (error != cudaSuccess || !has_path) return error;
  return launch_kernel(
      elastic_walk<T>, (problem.batch + kWalkThreads - 1) / kWalkThreads, kWalkThreads, 0, stream, problem, value, steps,
      layout, static_cast<Span*>(saved));
}

template <typename T>
cudaError_t elastic_diagonal_backward(
    const ElasticProblem<T>& problem, const ElasticGradient<T>& gradient, const void* saved, Scratch& scratch,
    cudaStream_t stream) {
  const ElasticLayout layout(problem);
  const T* const shares = static_cast<const T*>(saved);
  const auto [memory] = scratch.parts(problem.batch * layout.cells() * sizeof(T));
  T* const alignment = reinterpret_cast<T*>(memory);
  const cudaError_t error = launch_kernel(
      elastic_alignment<T>, problem.batch, threads_of(problem), 0, stream, problem, shares, alignment, layout);
  if (error != cudaSuccess) return error;
  return elastic_gradient<ElasticShares<T>>(problem, gradient, {shares, alignment, layout}, stream);
}

#define SOFTDTW_INSTANTIATE(T)                                                                                   \
  template int64_t elastic_diagonal_bytes<T>(const ElasticProblem<T>&);                                          \
  template cudaError_t elastic_diagonal_forward<T>(const ElasticProblem<T>&, T*, void*, Scratch&, cudaStream_t); \
  template cudaError_t elastic_diagonal_backward<T>(                                                             \
      const ElasticProblem<T>&, const ElasticGradient<T>&, const void*, Scratch&, cudaStream_t);
SOFTDTW_INSTANTIATE(float)
SOFTDTW_INSTANTIATE(double)

}  // namespace softdtw
