// Hard DTW of few pairs of several dimensions with a band, by rings whose costs other warps compute (ring_costs.cuh), in float32.
//
// A block has a side of a pair: a warp that sweeps, and several that compute costs ahead of it. Where there are two sides, what they
// leave of the rows that meet goes to device memory, and a launch of its own finds the value.
#include "cost_warps.cuh"
#include "cuda/kernels/hard/rings/hard_banded.h"
#include "cuda/kernels/hard/rings/ring_kernel.cuh"

namespace softdtw {
namespace {

template <int kRows, bool kTwoSides, class Paths>
using CostRingSide = HardRingSide<HardCosts<kRows>, true, kTwoSides, Problem<float>, typename Paths::template Steps<kRows>>;

// kBlocks: of a multiprocessor, at least. Two sides have one.
template <int kRows, int kBlocks, class CostType, bool kTwoSides, class Paths>
__global__ void __launch_bounds__(kWarp* cost_ring_warps(kRows), kBlocks) hard_cost_ring_kernel(
    const __grid_constant__ Problem<float> problem, const __grid_constant__ HardRingLayout layout, float* value,
    double* meets, Paths paths) {
  RingCostMemory<kRows>& memory = *reinterpret_cast<RingCostMemory<kRows>*>(hard_ring_memory);
  const int warp = threadIdx.y;
  const int64_t pair = blockIdx.x / (1 + kTwoSides);
  const bool is_lower = kTwoSides && blockIdx.x % 2 == 1;
  if (warp == 0) memory.groups.start(threadIdx.x);
  __syncthreads();
  CostRingSide<kRows, kTwoSides, Paths> side(problem, layout, pair, true, is_lower);
  side.read_series(layout, reinterpret_cast<float*>(&memory));
  if (warp > 0) {
    if (warp % kSchedulers > 0) RingCostWarp<kRows, CostType>(side.band, warp - warp / kSchedulers - 1, problem.dim).run();
    return;
  }
  if constexpr (kTwoSides) {
    double* const own_meets = meets + blockIdx.x * int64_t{layout.columns_that_meet()};
    for (int i = side.band.lane; i < layout.columns_that_meet(); i += kWarp) own_meets[i] = INFINITY;
    __syncwarp();
    side.sweep(own_meets);
  } else {
    leave_value(side, pair, true, side.sweep(nullptr, paths.of(pair)), value, paths);
  }
}

// A warp a pair.
template <int kRows>
__global__ void __launch_bounds__(kWarp) hard_meeting_kernel(
    const __grid_constant__ Problem<float> problem, const __grid_constant__ HardRingLayout layout, const double* meets,
    float* value) {
  const int64_t pair = blockIdx.x;
  const CostRingSide<kRows, true, NoPaths> upper(problem, layout, pair, true, false);
  const double* const own = meets + 2 * pair * layout.columns_that_meet();
  const double best = upper.meeting(own, own + layout.columns_that_meet());
  if (threadIdx.x == 0) value[pair] = static_cast<float>(best);
}

template <int kRows, int kBlocks, class CostType>
cudaError_t launch_cost_ring(
    const Problem<float>& problem, const HardRing& ring, float* value, Span* spans, Scratch& scratch, cudaStream_t stream) {
  static_assert(sizeof(RingCostMemory<kRows>) <= cost_ring_groups_bytes(kRows));
  static_assert(
      ring_walk_bytes(kRows) <= sizeof(RingCostMemory<kRows>::groups.items), "the walk has the place of the costs");
  using Series = HardCosts<kRows>;
  const int n = static_cast<int>(problem.n);
  const int64_t side_columns = ring.columns_of_side(call_of(problem, spans != nullptr));
  const HardRingLayout layout(ring.sides == 2 ? upper_rows(n) : n, static_cast<int>(side_columns), ring, Series::floats_of);
  const int64_t bytes = cost_ring_bytes(kRows, problem.dim);
  const auto run = [&](auto kernel, double* meets, const auto& paths) {
    return launch_kernel(
        kernel, problem.batch * ring.sides, dim3(kWarp, cost_ring_warps(kRows)), bytes, stream, problem, layout, value,
        meets, paths);
  };
  if (ring.sides == 2) {
    const auto parts = scratch.parts(2 * problem.batch * layout.columns_that_meet() * int64_t{sizeof(double)});
    double* const meets = reinterpret_cast<double*>(parts[0]);
    const cudaError_t error = run(hard_cost_ring_kernel<kRows, 1, CostType, true, NoPaths>, meets, NoPaths());
    if (error != cudaSuccess) return error;
    return launch_kernel(hard_meeting_kernel<kRows>, problem.batch, kWarp, 0, stream, problem, layout, meets, value);
  }
  double* const none = nullptr;
  if (spans == nullptr) return run(hard_cost_ring_kernel<kRows, kBlocks, CostType, false, NoPaths>, none, NoPaths());
  RingPaths paths = ring_paths(problem.batch, layout, scratch, spans);
  paths.rows = problem.n, paths.columns = problem.m;
  return run(hard_cost_ring_kernel<kRows, kBlocks, CostType, false, RingPaths>, none, paths);
}

}  // namespace

cudaError_t hard_cost_ring_forward(
    const Problem<float>& problem, const HardRing& ring, float* value, Span* spans, Scratch& scratch, cudaStream_t stream) {
  return with_squared_or_not(problem.cost, [&](auto type) {
    using CostType = decltype(type);
    const auto run = [&](auto launch) { return launch(problem, ring, value, spans, scratch, stream); };
    const auto of = [&](auto rows) {
      return ring.cost_blocks == 1 ? run(launch_cost_ring<rows(), 1, CostType>)
                                   : run(launch_cost_ring<rows(), 2, CostType>);
    };
    return ring.of_side.rows == 4 ? of(std::integral_constant<int, 4>()) : of(std::integral_constant<int, 8>());
  });
}

}  // namespace softdtw
