// The kernels of the linear domain and of integer log2, which computes what the other gives up: one warp a block, which has several
// pairs if they are short (warp_pair.cuh). Options (options/univariate_cost.cuh) say of which cost they are, and whether with a penalty: a file of
// `options` compiles those of each.
#pragma once

#include "cuda/hardware/launch.cuh"
#include "cuda/kernels/foresight/foresight.cuh"
#include "cuda/kernels/integer_log2/integer_log2_backward.cuh"
#include "cuda/kernels/integer_log2/integer_log2_forward.cuh"
#include "linear_domain_backward.cuh"
#include "linear_domain_forward.cuh"

namespace softdtw {

// Warps of a multiprocessor that registers are given out for.
template <typename T>
constexpr int kForwardWarps = sizeof(T) == 4 ? 16 : 8;

extern __shared__ int4 short_pair_memory[];

// Of backward: a chunk, and the windows of y.
template <class Engine, bool kInWindows, typename T>
__host__ __device__ int64_t bytes_of_warp(const ShortPairLayout& layout) {
  const int windows = kInWindows ? Engine::Window::kPairs : kWarp / layout.lanes;
  const int64_t bytes = sizeof(typename Engine::Table) + windows * layout.window() * sizeof(T);
  return (bytes + 15) / 16 * 16;
}

// Which pairs forward has, and which number formats try them. Where there are lists, pairs of a kind run side by side: the code of two
// formats does not fit the nearest instruction cache.
enum class Which : int {
  kAll,                   // the linear domain, then integer log2; this first where pairs are foreseen to leave the former
  kThoseForLinearDomain,  // alone: what it gives up goes to the next ones
  kThoseForIntegerLog2,   // then the linear domain, for values so small that integer log2 gave them up
};

template <class Options, typename T, int kRows>
__global__ void __launch_bounds__(kWarp, kForwardWarps<T>) forward_kernel(
    const __grid_constant__ Problem<T> problem, const __grid_constant__ ShortPairLayout layout, Which which,
    bool in_linear_domain, T* value, char* saved, int64_t stride, PairStatus* statuses) {
  T* const memory = reinterpret_cast<T*>(short_pair_memory);
  const PairLists lists(statuses, problem.batch);
  const int64_t place = int64_t{blockIdx.x} * (kWarp / layout.lanes) + threadIdx.x / layout.lanes;
  int64_t own = place < problem.batch ? place : -1;
  if (which == Which::kThoseForLinearDomain) {
    ptx::wait_for_kernel_before();  // foresight, which makes the lists
    own = lists.linear_pair(place);
  } else if (which == Which::kThoseForIntegerLog2) {
    // Those foreseen need not wait. The kernel before has begun when all of its blocks knew of the lists.
    own = lists.pair(Waiting::kForeseen, place);
    if (own < 0) {
      ptx::wait_for_kernel_before();
      own = lists.pair(Waiting::kLeft, place - lists.count(Waiting::kForeseen));
    }
  }
  ptx::let_next_kernel_start();
  PairStatus status = PairStatus::kGivenUp;
  // The linear domain, if that is likely to do; integer log2; the linear domain, if that has not been tried.
  const bool may_log2 = sizeof(T) == 4 && which != Which::kThoseForLinearDomain;
  bool is_tried = !in_linear_domain;
#pragma unroll 1
  for (int i = which == Which::kThoseForIntegerLog2 ? 1 : 0; i < (may_log2 ? 3 : 1); ++i) {
    const int64_t wanted = status == PairStatus::kGivenUp ? own : -1;
    if (!__any_sync(kAllLanes, wanted >= 0)) break;
    __syncwarp();  // another format writes its columns over those that one has read
    PairStatus then = PairStatus::kGivenUp;
    if (i != 1) {
      if (!kHasLinearDomain<Options> || is_tried) continue;
      const bool foresees = which == Which::kAll && may_log2 && i == 0;
      if constexpr (kHasLinearDomain<Options>)
        then = linear_forward<T, kRows, Options>(problem, layout, wanted, memory, value, saved, stride, foresees, is_tried);
    } else if constexpr (sizeof(T) == 4) {
      then = log2_forward<kRows, Options>(problem, layout, wanted, memory, value, saved, stride);
    }
    if (wanted >= 0) status = then;
  }
  if (threadIdx.x % layout.lanes == 0 && own >= 0) {
    statuses[own] = status;
    if (which == Which::kThoseForLinearDomain && status == PairStatus::kGivenUp)
      lists.append(Waiting::kLeft, own);
    else if (layout.has_lists)
      lists.append(status, own);
  }
  if (which == Which::kThoseForIntegerLog2 && blockIdx.x == 0) ptx::wait_for_kernel_before();
}

// Which pairs of its number format a launch of backward has. Where few of integer log2's are in lists, they come first, a block to a
// multiprocessor: the other one's then go on beside them. Many come last, so that what their last ones leave idle is small.
enum class Turn : int { kOnly, kFewFirst, kManyLast };

// It overlaps with the kernel before, which is backward's, too.
template <class Engine, bool kInWindows, typename T>
__global__ void __launch_bounds__(kWarp* Engine::kMostWarps, Engine::kBlocks) backward_kernel(
    const __grid_constant__ Problem<T> problem, const __grid_constant__ Gradient<T> gradient,
    const __grid_constant__ ShortPairLayout layout, Turn turn, int few, const char* saved, int64_t stride,
    PairStatus* statuses) {
  using Pair = typename Engine::Pair;
  char* const memory =
      reinterpret_cast<char*>(short_pair_memory) + threadIdx.y * bytes_of_warp<Engine, kInWindows, T>(layout);
  const PairLists lists(statuses, problem.batch);
  const int64_t warp = int64_t{blockIdx.x} * blockDim.y + threadIdx.y;
  ptx::let_next_kernel_start();
  const int count = layout.has_lists ? lists.count(Engine::kStatus) : 0;
  int windows = 0;
  if constexpr (kInWindows) windows = ceil_div(lists.count(Engine::kInWindow), Engine::Window::kPairs);
  const bool are_few = (count + windows) <= few;
  if (turn == Turn::kOnly || are_few == (turn == Turn::kFewFirst)) {
    // Pairs without a window take longer: they come first.
    if (kInWindows && warp >= count) {
      if constexpr (kInWindows) {
        using Window = typename Engine::Window;
        const int64_t own = lists.pair(Engine::kInWindow, (warp - count) * Window::kPairs + threadIdx.x / Window::kLanes);
        short_pair_window_backward<Engine>(problem, gradient, layout, own, memory, saved, stride);
      }
    } else {
      const int64_t place = warp * (kWarp / layout.lanes) + threadIdx.x / layout.lanes;
      const bool is_own = !layout.has_lists && place < problem.batch && statuses[place] == Engine::kStatus;
      const int64_t own = layout.has_lists ? lists.pair(Engine::kStatus, place) : is_own ? place : -1;
      short_pair_backward<Engine, Pair>(problem, gradient, layout, own, memory, saved, stride);
    }
  }
  if (blockIdx.x == 0) ptx::wait_for_kernel_before();
}

// Calls f with the rows of a lane, as the type of a number.
template <class Options, class F>
cudaError_t with_rows(int rows, F&& f) {
  if constexpr (!Options::kHasBand)
    if (rows == 4) return f(std::integral_constant<int, 4>());
  if (rows == 8) return f(std::integral_constant<int, 8>());
  if (rows == 12) return f(std::integral_constant<int, 12>());
  return f(std::integral_constant<int, 16>());
}

template <class Options, typename T>
cudaError_t forward_of_short_pairs(
    const Problem<T>& problem, bool in_linear_domain, T* value, char* saved, int64_t stride, PairStatus* statuses,
    cudaStream_t stream) {
  const ShortPairLayout layout(problem);
  return with_rows<Options>(layout.rows, [&](auto rows) {
    const auto run = [&](Which which) {
      return launch_kernel_at(
          which == Which::kAll ? Start::kAfterKernelBefore : overlapping(), forward_kernel<Options, T, rows()>,
          ceil_div(problem.batch, layout.pairs()), kWarp, layout.pairs() * layout.window() * sizeof(T), stream, problem,
          layout, which, in_linear_domain, value, saved, stride, statuses);
    };
    if (!layout.has_lists) return run(Which::kAll);
    cudaError_t error = cudaMemsetAsync(PairLists(statuses, problem.batch).counters(), 0, PairLists::kCountBytes, stream);
    if (error != cudaSuccess) return error;
    if constexpr (sizeof(T) == 4 && kHasLinearDomain<Options>)
      if (in_linear_domain) {
        error = launch_kernel(
            foresee_kernel<Options>, ceil_div(problem.batch, Foresight::kPairs), Foresight::kWarps * kWarp, 0, stream,
            problem, statuses);
        if (error == cudaSuccess) error = run(Which::kThoseForLinearDomain);
        return error == cudaSuccess ? run(Which::kThoseForIntegerLog2) : error;
      }
    return run(Which::kAll);
  });
}

template <class Options, typename T>
cudaError_t backward_of_short_pairs(
    const Problem<T>& problem, bool in_linear_domain, const Gradient<T>& gradient, const char* saved, int64_t stride,
    PairStatus* statuses, cudaStream_t stream) {
  const ShortPairLayout layout(problem);
  return with_rows<Options>(layout.rows, [&](auto rows) {
    constexpr int kRows = rows();
    const auto run_all = [&](auto in_windows) {
      constexpr bool kInWindows = decltype(in_windows)::value;
      const int64_t all = ceil_div(problem.batch, layout.pairs());
      const auto run = [&](auto engine, Turn turn, int64_t blocks, int warps, int few) {
        using Engine = decltype(engine);
        return launch_kernel_at(
            overlapping(), backward_kernel<Engine, kInWindows, T>, blocks, dim3(kWarp, warps),
            warps * bytes_of_warp<Engine, kInWindows, T>(layout), stream, problem, gradient, layout, turn, few, saved,
            stride, statuses);
      };
      const auto run_linear = [&] {
        if constexpr (kHasLinearDomain<Options>)
          if (in_linear_domain) return run(LinearBackward<T, kRows, Options>(), Turn::kOnly, all, 1, 0);
        return cudaSuccess;
      };
      if constexpr (sizeof(T) == 8) {
        return run_linear();
      } else {
        using Log2 = Log2Backward<kRows, Options>;
        const DeviceProperties& device = current_device();
        const int warps = static_cast<int>(device.block_bytes / bytes_of_warp<Log2, kInWindows, T>(layout));
        if (!in_linear_domain || !layout.has_lists || warps < 2) {
          const cudaError_t error = run_linear();
          return error == cudaSuccess ? run(Log2(), Turn::kOnly, all, 1, 0) : error;
        }
        const int few_warps = std::min(warps, Log2::kMostWarps), few = device.processors * few_warps;
        cudaError_t error = run(Log2(), Turn::kFewFirst, device.processors, few_warps, few);
        if (error == cudaSuccess) error = run_linear();
        return error == cudaSuccess ? run(Log2(), Turn::kManyLast, all, 1, few) : error;
      }
    };
    if constexpr (sizeof(T) == 4 && kRows == ShortPairLayout::kMostRows)
      if (layout.has_windows) return run_all(std::true_type());
    return run_all(std::false_type());
  });
}

#define SOFTDTW_SHORT_PAIRS_OF(prefix, T, ...)                                 \
  prefix template cudaError_t forward_of_short_pairs<__VA_ARGS__, T>(          \
      const Problem<T>&, bool, T*, char*, int64_t, PairStatus*, cudaStream_t); \
  prefix template cudaError_t backward_of_short_pairs<__VA_ARGS__, T>(         \
      const Problem<T>&, bool, const Gradient<T>&, const char*, int64_t, PairStatus*, cudaStream_t);

#define SOFTDTW_SHORT_PAIRS(prefix, ...)             \
  SOFTDTW_SHORT_PAIRS_OF(prefix, float, __VA_ARGS__) \
  SOFTDTW_SHORT_PAIRS_OF(prefix, double, __VA_ARGS__)

}  // namespace softdtw
