// Second and third order (core/tangent.h) by anti-diagonals, as diagonal.cu has it: any length, float64 inside.
//
// Threads to work: one block per pair; its threads stride over an anti-diagonal and meet at a barrier before the next. The
// sweep of tangents and the one back are one launch, since both belong to the same block.
//
// Layout: diagonal d = row + column holds its cells of the band by row, from its first row on, and follows diagonal d - 1
// without a gap. Kept between the two sweeps are the shares of every cell, each in a table of its own, and the mean over its
// predecessors; entries, R's derivatives and flows live for three diagonals only, by row.
#include "cuda/hardware/launch.cuh"
#include "cuda/numbers/device_math.cuh"
#include "diagonals.cuh"
#include "tangent_kernels.h"

namespace softdtw {
namespace {

// The memory of one pair, 16-byte aligned throughout.
template <typename T, int kDirections>
struct PairMemory {
  Entry<double>* entries;        // [3][rows]
  Jet<kDirections>* jets;        // [3][rows]
  Flow<kDirections>* flows;      // [3][rows]
  Jet<kDirections>* means;       // [cells]
  T *to_diag, *to_up, *to_left;  // [cells]

  SOFTDTW_HD static int64_t bytes(int64_t rows, int64_t cells) {
    const int64_t recent = sizeof(Entry<double>) + sizeof(Jet<kDirections>) + sizeof(Flow<kDirections>);
    return (3 * rows * recent + cells * int64_t(sizeof(Jet<kDirections>) + 3 * sizeof(T)) + 15) / 16 * 16;
  }
  __device__ PairMemory(char* memory, int64_t rows, int64_t cells) {
    entries = reinterpret_cast<Entry<double>*>(memory);
    flows = reinterpret_cast<Flow<kDirections>*>(entries + 3 * rows);
    jets = reinterpret_cast<Jet<kDirections>*>(flows + 3 * rows);
    means = jets + 3 * rows;
    to_diag = reinterpret_cast<T*>(means + cells);
    to_up = to_diag + cells;
    to_left = to_up + cells;
  }
};

template <typename T>
__device__ double direction(const View<const T>& view, int64_t pair, int row, int column) {
  return view.data ? static_cast<double>(view.pair(pair).at(row, column)) : 0.0;
}

// NaN for a pair without a finite value. Derivatives along no direction are 0. By all threads of the block.
template <typename T, int kDirections>
__device__ void spoil(const Problem<T>& problem, const Tangents<T>& tangents, int64_t pair, const Extent& extent) {
  // Calls visit(row, column) for the thread's share of the cells.
  const auto for_each_cell = [&](auto&& visit) {
    for (int row = 0; row < extent.n; ++row) {
      const int first = max(0, row + extent.low), last = min(extent.m - 1, row + extent.high);
      for (int column = first + threadIdx.x; column <= last; column += blockDim.x) visit(row, column);
    }
  };
  __shared__ bool moves;
  const auto along = [&](const View<const T>& view) {
    __syncthreads();
    if (threadIdx.x == 0) moves = false;
    __syncthreads();
    for_each_cell([&](int row, int column) {
      if (direction(view, pair, row, column) != 0) moves = true;
    });
    __syncthreads();
    return moves ? double(NAN) : 0.0;
  };
  Flow<kDirections> flow;
  flow.e = NAN;
  flow.s = along(tangents.first);
  if constexpr (kDirections == 2) {
    flow.t = along(tangents.second);
    flow.st = flow.s == 0 || flow.t == 0 ? 0.0 : double(NAN);
  }
  if (threadIdx.x == 0) tangents.value_tangent[pair] = static_cast<T>(flow.s);
  for_each_cell([&](int row, int column) { write_flow(tangents, pair, row, column, flow); });
}

template <typename T, int kDirections>
__global__ void __launch_bounds__(kMostThreads) sweeps(
    const __grid_constant__ Problem<T> problem, const __grid_constant__ Tangents<T> tangents, char* scratch,
    int64_t cells) {
  const int64_t pair = blockIdx.x;
  const Extent extent = problem.extent(pair);
  if (!extent.valid()) {
    const int n = static_cast<int>(problem.n), m = static_cast<int>(problem.m);
    return spoil<T, kDirections>(problem, tangents, pair, {n, m, -n, m});
  }
  using Recurrence = SoftDtw<double, double, DeviceMath, true>;
  const double scale = problem.scale_of(pair), inverse_gamma = 1 / problem.gamma_of(pair);
  const Recurrence recurrence = {1.0, Recurrence::split(problem.penalty_of(pair) * scale, 1.0)};
  const Entry<double> nowhere = {Unreachable<double>::value, 1.0};
  const int64_t rows = problem.n;
  const PairMemory<T, kDirections> memory(scratch + pair * PairMemory<T, kDirections>::bytes(rows, cells), rows, cells);
  const View<const T> costs = problem.cost_matrix.pair(pair);
  __shared__ bool finite;

  // (1), and R's derivatives.
  const int diagonals = extent.n + extent.m - 1;
  int64_t start = 0;
  for (int d = 0; d < diagonals; ++d) {
    const Diagonal diagonal(extent, d);
    const int64_t now = d % 3 * rows, last = (d + 2) % 3 * rows, before = (d + 1) % 3 * rows;
    for (int row = diagonal.first + threadIdx.x; row <= diagonal.last; row += blockDim.x) {
      const int column = d - row;
      const bool has_diag = row > 0 && column > 0;
      const bool has_up = row > 0 && extent.in_band(row - 1, column);
      const bool has_left = column > 0 && extent.in_band(row, column - 1);
      const Entry<double> diag = d == 0 ? Entry<double>{0.0, 1.0} : has_diag ? memory.entries[before + row - 1] : nowhere;
      const Entry<double> up = has_up ? memory.entries[last + row - 1] : nowhere;
      const Entry<double> left = has_left ? memory.entries[last + row] : nowhere;
      const double cost = static_cast<double>(costs.at(row, column)) * scale;
      Weights<double> weights;
      Entry<double> cell = recurrence.cell(diag, up, left, cost, weights);
      normalise(cell);
      const Shares<double> share = {Recurrence::diagonal_share(weights), weights.up, weights.left};
      const Jet<kDirections> none;
      const Jet<kDirections> mean = mean_of(
          share, has_diag ? memory.jets[before + row - 1] : none, has_up ? memory.jets[last + row - 1] : none,
          has_left ? memory.jets[last + row] : none, inverse_gamma);
      const Jet<kDirections> own =
          at_cell(mean, direction(tangents.first, pair, row, column), direction(tangents.second, pair, row, column));
      memory.entries[now + row] = cell;
      memory.jets[now + row] = own;
      const int64_t at = start + row - diagonal.first;
      memory.means[at] = mean;
      memory.to_diag[at] = static_cast<T>(share.diag);
      memory.to_up[at] = static_cast<T>(share.up);
      memory.to_left[at] = static_cast<T>(share.left);
      if (d == diagonals - 1) {
        finite = !is_unreachable(cell.m) && cell.m == cell.m;
        tangents.value_tangent[pair] = static_cast<T>(own.s);
      }
    }
    start += diagonal.width();
    __syncthreads();
  }
  if (!finite) return spoil<T, kDirections>(problem, tangents, pair, extent);

  // (3), (4), and E's derivatives: every cell gathers from its successors.
  int64_t next_start = 0, after_start = 0;
  for (int d = diagonals - 1; d >= 0; --d) {
    const Diagonal diagonal(extent, d), next(extent, d + 1), after(extent, d + 2);
    const int64_t now = d % 3 * rows, later = (d + 1) % 3 * rows, latest = (d + 2) % 3 * rows;
    after_start = next_start;
    next_start = start;
    start -= diagonal.width();
    for (int row = diagonal.first + threadIdx.x; row <= diagonal.last; row += blockDim.x) {
      const int column = d - row;
      const Jet<kDirections> own = at_cell(
          memory.means[start + row - diagonal.first], direction(tangents.first, pair, row, column),
          direction(tangents.second, pair, row, column));
      Flow<kDirections> flow;
      if (d == diagonals - 1) flow.e = 1;
      if (row + 1 < extent.n && column + 1 < extent.m) {
        const int64_t at = after_start + row + 1 - after.first;
        receive(flow, memory.flows[latest + row + 1], memory.means[at], own, double(memory.to_diag[at]), inverse_gamma);
      }
      if (row + 1 < extent.n && extent.in_band(row + 1, column)) {
        const int64_t at = next_start + row + 1 - next.first;
        receive(flow, memory.flows[later + row + 1], memory.means[at], own, double(memory.to_up[at]), inverse_gamma);
      }
      if (column + 1 < extent.m && extent.in_band(row, column + 1)) {
        const int64_t at = next_start + row - next.first;
        receive(flow, memory.flows[later + row], memory.means[at], own, double(memory.to_left[at]), inverse_gamma);
      }
      memory.flows[now + row] = flow;
      write_flow(tangents, pair, row, column, flow);
    }
    __syncthreads();
  }
}

}  // namespace

template <typename T, int kDirections>
cudaError_t tangent_sweeps(const Problem<T>& problem, const Tangents<T>& tangents, Scratch& scratch, cudaStream_t stream) {
  const int64_t cells = cells_of(problem);
  const auto [memory] = scratch.parts(problem.batch * PairMemory<T, kDirections>::bytes(problem.n, cells));
  return launch_kernel(
      sweeps<T, kDirections>, problem.batch, threads_of_diagonals(problem), 0, stream, problem, tangents, memory, cells);
}

#define SOFTDTW_INSTANTIATE(T, kDirections) \
  template cudaError_t tangent_sweeps<T, kDirections>(const Problem<T>&, const Tangents<T>&, Scratch&, cudaStream_t);
SOFTDTW_INSTANTIATE(float, 1)
SOFTDTW_INSTANTIATE(float, 2)
SOFTDTW_INSTANTIATE(double, 1)
SOFTDTW_INSTANTIATE(double, 2)

}  // namespace softdtw
