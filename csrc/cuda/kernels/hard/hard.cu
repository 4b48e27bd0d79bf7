// Hard DTW, (9), by strips that are swept on the chip (hard_strip.cuh), for one pair or many.
//
// Threads to work: a block of W warps has W consecutive strips of one pair. Its warps go on together, a chunk at a time, and meet
// at a barrier after each; every strip is as many chunks behind the one above as it takes for the edge between them to be there. So
// nobody looks for what another warp has done. Where a pair has more strips, it has several blocks, which take tickets
// (tickets.cuh) and hand edges over as in tiled.cu: two more warps carry them between global memory and pipelines in shared memory
// (pipeline.cuh), by which a block's first warp waits, and with it the others.
//
// A path is walked by one warp per pair, a gradient has a thread for every row of x and of y.
#include <algorithm>
#include <type_traits>

#include "cuda/hardware/assembly.cuh"
#include "hard.h"
#include "hard_banded.h"
#include "hard_strip.cuh"
#include "hard_tile.cuh"

namespace softdtw {
namespace {

constexpr int kMostWarps = 8;
constexpr int kGradientThreads = 128;

// Waits for the block's warps that sweep.
__device__ __forceinline__ void meet(int warps) {
  if (warps == 1)
    __syncwarp();
  else
    ptx::bar_sync(warps * kWarp);
}

// What a block's warps share.
template <class S>
struct HardHandover {
  HardEdge<S> edges[kMostWarps][2];    // of a strip, its groups in turn
  Pipeline<HardEdge<S>> above, below;  // between blocks
};

// kHasGroups: a pair has several blocks. Pairs whose band has no more than `width_of_others` columns are done.
template <bool kPath, bool kHasGroups, class S, class Tile>
__global__ void __launch_bounds__(kWarp*(kMostWarps + (kHasGroups ? kHaloWarps : 0))) hard_forward_kernel(
    const __grid_constant__ Problem<typename S::Scalar> problem, bool open_ends, typename S::Scalar* value,
    HardRows<S> rows, StepTable<S> table, int* ends, Tickets tickets, int groups, int width_of_others) {
  __shared__ HardHandover<S> shared_handover;
  __shared__ typename Tile::Memory memory[kMostWarps];
  HardHandover<S>& handover = pinned(shared_handover);
  const int lane = threadIdx.x, warp = threadIdx.y, most_warps = blockDim.y - (kHasGroups ? kHaloWarps : 0);
  Turn turn{blockIdx.x, 0};
  if constexpr (kHasGroups) {
    if (warp == 0) {
      handover.above.start(lane);
      handover.below.start(lane);
    }
    turn = take_turn(tickets, problem.batch);
  }
  const int64_t pair = turn.pair;
  const Extent extent = problem.extent(pair);
  if (!extent.valid()) {
    if (turn.group == 0 && lane == 0 && warp == 0) value[pair] = NAN;
    return;
  }
  if (extent.high - extent.low < width_of_others) return;
  const int strips = strips_of<S>(extent), first = turn.group * most_warps, warps = min(most_warps, strips - first);
  if (warps <= 0) return;
  const bool has_above = kHasGroups && first > 0, has_below = kHasGroups && first + warps < strips;
  if (kHasGroups && warp >= most_warps) {
    Progress* const words = tickets.words + pair * groups + turn.group;
    if (warp == most_warps && has_above)
      carry_edge_in(rows, extent, pair, first, handover.above, words - 1, lane);
    else if (warp > most_warps && has_below)
      carry_edge_out(rows, extent, pair, first + warps - 1, handover.below, words, lane);
    return;
  }
  if (warp >= warps) return;

  // A strip writes a group of its edge kSkewChunks after it has begun to sweep it, and the next chunk may read it.
  constexpr int kBehind = S::kSkewChunks + 1;
  const Strip<S> top(extent, first), own(extent, first + warp), bottom(extent, first + warps - 1);
  const int start = kBehind * warp + (own.first_column - top.first_column) / S::kSteps;
  const int stop = kBehind * (warps - 1) + (bottom.first_column - top.first_column) / S::kSteps + bottom.chunks;
  HardSweep<kPath, S, Tile> sweep(problem, open_ends, extent, pair, first + warp, lane, memory[warp]);
  HardPipelines<S> pipelines{
      has_above && warp == 0 ? &handover.above : nullptr, has_below && warp == warps - 1 ? &handover.below : nullptr};
  pipelines.start(sweep);
  for (int time = 0; time < stop; ++time) {
    const int chunk = time - start;
    if (chunk >= 0 && chunk < sweep.chunks) {
      const HardEdge<S>* above = &handover.edges[max(warp - 1, 0)][sweep.group_above(chunk) & 1];
      HardEdge<S>* below = &handover.edges[warp][sweep.own_group(chunk) & 1];
      if constexpr (kHasGroups) pipelines.open(sweep, chunk, above, below);
      sweep.sweep(chunk, *above, *below, table);
      if constexpr (kHasGroups) pipelines.close(sweep, chunk, lane);
    }
    meet(warps);
  }
  pipelines.finish(sweep);
  sweep.finish(value, ends);
}

// Blocks of kGradientThreads per pair, along y the pairs.
template <bool kForX, typename T>
__global__ void __launch_bounds__(kGradientThreads)
    hard_series_gradient(const __grid_constant__ Problem<T> problem, const __grid_constant__ HardGradient<T> gradient) {
  const int64_t length = kForX ? problem.n : problem.m, blocks = (length + kGradientThreads - 1) / kGradientThreads;
  const int64_t index = blockIdx.x % blocks * kGradientThreads + threadIdx.x;
  if (index < length) path_gradient<kForX>(problem, gradient, blockIdx.x / blocks, static_cast<int>(index));
}

template <typename T>
__global__ void __launch_bounds__(kGradientThreads)
    hard_cost_gradient(const __grid_constant__ Problem<T> problem, const __grid_constant__ HardGradient<T> gradient) {
  const int64_t rows = problem.batch * problem.n;
  for (int64_t i = blockIdx.x; i < rows; i += gridDim.x)
    path_gradient_of_cost(problem, gradient, i / problem.n, static_cast<int>(i % problem.n), threadIdx.x, kGradientThreads);
}

// Calls f with a null pointer of the tile's type (hard_tile.cuh) that the plan asks for. Longer chunks are fewer, and tiles whose
// costs do not stand in registers have room for them.
template <typename T, class F>
auto with_tile(const HardPlan& plan, F&& f) {
  if constexpr (std::is_same_v<T, double>) {
    return f(static_cast<HardDenseTile<Shape<T, 2>>*>(nullptr));
  } else {
    const auto with_rows = [&](auto* low, auto* high) { return plan.rows == 2 ? f(low) : f(high); };
    using Two = Shape<T, 2, 16>;
    using Four = Shape<T, 4, 16>;
    switch (plan.sweep) {
      case HardSpecialization::kTall:
        return f(static_cast<HardUnivariateTile<Shape<T, kTallRows>>*>(nullptr));
      case HardSpecialization::kUnivariate:
        return with_rows(static_cast<HardUnivariateTile<Two>*>(nullptr), static_cast<HardUnivariateTile<Four>*>(nullptr));
      case HardSpecialization::kFourDims:
        return with_rows(static_cast<HardFewDimsTile<Two, 1>*>(nullptr), static_cast<HardFewDimsTile<Four, 1>*>(nullptr));
      case HardSpecialization::kEightDims:
        return with_rows(static_cast<HardFewDimsTile<Two, 2>*>(nullptr), static_cast<HardFewDimsTile<Four, 2>*>(nullptr));
      default:
        return with_rows(
            static_cast<HardDenseTile<Shape<T, 2>>*>(nullptr), static_cast<HardDenseTile<Shape<T, 4>>*>(nullptr));
    }
  }
}

template <class Tile, bool kPath, class S = typename Tile::Shape>
cudaError_t launch_hard(
    const Problem<typename S::Scalar>& problem, bool open_ends, typename S::Scalar* value, Span* spans, int width_of_others,
    Scratch& scratch, cudaStream_t stream) {
  constexpr bool kIsOneStrip = sizeof(typename S::Scalar) == 4 && S::kRows == 2;  // by hard_plan()
  const int64_t strips = Sizes<S>(problem).strips;
  const int warps = static_cast<int>(std::min<int64_t>(strips, kMostWarps));
  const int64_t groups = (strips + warps - 1) / warps;
  const bool has_groups = groups > 1;
  const HardMemory<S> memory(problem, has_groups ? groups : 0, kPath, scratch);
  cudaError_t error = cudaSuccess;
  if (has_groups) error = cudaMemsetAsync(memory.tickets, 0, Tickets::bytes(problem.batch, groups), stream);
  const auto run = [&](auto kernel, int carriers) {
    if (error == cudaSuccess)
      error = launch_kernel(
          kernel, groups * problem.batch, dim3(kWarp, warps + carriers), 0, stream, problem, open_ends, value, memory.rows,
          memory.table, memory.ends, Tickets(memory.tickets, problem.batch, groups), static_cast<int>(groups),
          width_of_others);
  };
  if (!has_groups)
    run(hard_forward_kernel<kPath, false, S, Tile>, 0);
  else if constexpr (!kIsOneStrip)
    run(hard_forward_kernel<kPath, true, S, Tile>, kHaloWarps);
  if constexpr (kPath)
    if (error == cudaSuccess) error = launch_hard_path(problem, value, memory, spans, stream);
  return error;
}

}  // namespace

template <typename T>
cudaError_t hard_forward(
    const Problem<T>& problem, bool open_ends, T* value, Span* spans, Scratch& scratch, cudaStream_t stream) {
  const Call call = call_of(problem, spans != nullptr);
  HardPlan plan = hard_plan(call, current_device());
  int width_of_others = 0;
  if constexpr (std::is_same_v<T, float>)
    if (plan.sweep == HardSpecialization::kRing) {
      const cudaError_t error = hard_ring_forward(problem, plan.ring, value, stream);
      if (error != cudaSuccess || !call.is_ragged) return error;
      width_of_others = static_cast<int>(plan.ring.of_side.width());
      plan = hard_plan(call, current_device(), false);
    }
  if constexpr (std::is_same_v<T, float>)
    if (plan.sweep == HardSpecialization::kMultivariate)
      return hard_multivariate_forward(problem, open_ends, value, spans, scratch, stream);
  return with_tile<T>(plan, [&](auto* tile) {
    using Tile = std::remove_pointer_t<decltype(tile)>;
    if constexpr (Tile::Shape::kRows != kTallRows)
      if (spans != nullptr)
        return launch_hard<Tile, true>(problem, open_ends, value, spans, width_of_others, scratch, stream);
    return launch_hard<Tile, false>(problem, open_ends, value, spans, width_of_others, scratch, stream);
  });
}

template <typename T>
cudaError_t hard_backward(const Problem<T>& problem, const HardGradient<T>& gradient, cudaStream_t stream) {
  const auto blocks = [&](int64_t length) { return problem.batch * ((length + kGradientThreads - 1) / kGradientThreads); };
  cudaError_t error = cudaSuccess;
  const auto run = [&](auto kernel, int64_t blocks) {
    if (error == cudaSuccess) error = launch_kernel(kernel, blocks, kGradientThreads, 0, stream, problem, gradient);
  };
  if (gradient.x.data != nullptr) run(hard_series_gradient<true, T>, blocks(problem.n));
  if (gradient.y.data != nullptr) run(hard_series_gradient<false, T>, blocks(problem.m));
  if (gradient.cost.data != nullptr) run(hard_cost_gradient<T>, std::min(problem.batch * problem.n, int64_t{1} << 20));
  return error;
}

template cudaError_t hard_forward<float>(const Problem<float>&, bool, float*, Span*, Scratch&, cudaStream_t);
template cudaError_t hard_forward<double>(const Problem<double>&, bool, double*, Span*, Scratch&, cudaStream_t);
template cudaError_t hard_backward<float>(const Problem<float>&, const HardGradient<float>&, cudaStream_t);
template cudaError_t hard_backward<double>(const Problem<double>&, const HardGradient<double>&, cudaStream_t);

}  // namespace softdtw
