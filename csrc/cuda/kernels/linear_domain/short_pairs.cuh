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
  if (which != Which::kAll) {
    ptx::wait_for_kernel_before();  // by which the lists are
    own = which == Which::kThoseForLinearDomain ? lists.linear_pair(place) : lists.pair(PairStatus::kGivenUp, place);
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
      if (is_tried) continue;
      const bool foresees = which == Which::kAll && may_log2 && i == 0;
      then = linear_forward<T, kRows, Options>(problem, layout, wanted, memory, value, saved, stride, foresees, is_tried);
    } else if constexpr (sizeof(T) == 4) {
      then = log2_forward<kRows, Options>(problem, layout, wanted, memory, value, saved, stride);
    }
    if (wanted >= 0) status = then;
  }
  if (threadIdx.x % layout.lanes != 0 || own < 0) return;
  statuses[own] = status;
  if (layout.has_lists && (which == Which::kThoseForLinearDomain || status != PairStatus::kGivenUp))
    lists.append(status, own);
}

template <class Engine, bool kInWindows, typename T>
__global__ void __launch_bounds__(kWarp, Engine::kWarps) backward_kernel(
    const __grid_constant__ Problem<T> problem, const __grid_constant__ Gradient<T> gradient,
    const __grid_constant__ ShortPairLayout layout, const char* saved, int64_t stride, PairStatus* statuses) {
  using Pair = typename Engine::Pair;
  char* const memory = reinterpret_cast<char*>(short_pair_memory);
  const PairLists lists(statuses, problem.batch);
  const int64_t block = blockIdx.x;
  ptx::let_next_kernel_start();
  const auto end = [&] {
    if (Engine::kOverlaps && block == 0) ptx::wait_for_kernel_before();
  };
  // Pairs without a window take longer: they come first.
  const int64_t place = block * (kWarp / layout.lanes) + threadIdx.x / layout.lanes;
  if constexpr (kInWindows) {
    using Window = typename Engine::Window;
    const int64_t first = lists.count(Engine::kStatus);
    if (block >= first) {
      const int64_t own = lists.pair(Engine::kInWindow, (block - first) * Window::kPairs + threadIdx.x / Window::kLanes);
      short_pair_window_backward<Engine>(problem, gradient, layout, own, memory, saved, stride);
      return end();
    }
  }
  const bool is_own = !layout.has_lists && place < problem.batch && statuses[place] == Engine::kStatus;
  const int64_t own = layout.has_lists ? lists.pair(Engine::kStatus, place) : is_own ? place : -1;
  short_pair_backward<Engine, Pair>(problem, gradient, layout, own, memory, saved, stride);
  end();
}

// Calls f with the rows of a lane, as the type of a number.
template <class F>
cudaError_t with_rows(int rows, F&& f) {
  if (rows == 4) return f(std::integral_constant<int, 4>());
  if (rows == 8) return f(std::integral_constant<int, 8>());
  if (rows == 12) return f(std::integral_constant<int, 12>());
  return f(std::integral_constant<int, 16>());
}

// `windows`: of y, in the shared memory of a warp. overlaps: with the kernel before.
template <typename T, class Kernel, class... Arguments>
cudaError_t launch(
    Kernel kernel, bool overlaps, const Problem<T>& problem, const ShortPairLayout& layout, int windows,
    size_t bytes_of_warp, cudaStream_t stream, const Arguments&... arguments) {
  const size_t bytes = bytes_of_warp + windows * layout.window() * sizeof(T);
  const int64_t blocks = ceil_div(problem.batch, layout.pairs());
  return overlaps ? launch_overlapping_kernel(kernel, blocks, kWarp, bytes, stream, arguments...)
                  : launch_kernel(kernel, blocks, kWarp, bytes, stream, arguments...);
}

template <class Options, typename T>
cudaError_t forward_of_short_pairs(
    const Problem<T>& problem, bool in_linear_domain, T* value, char* saved, int64_t stride, PairStatus* statuses,
    cudaStream_t stream) {
  const ShortPairLayout layout(problem);
  return with_rows(layout.rows, [&](auto rows) {
    const auto run = [&](Which which) {
      return launch(
          forward_kernel<Options, T, rows()>, which != Which::kAll && in_linear_domain, problem, layout, layout.pairs(), 0,
          stream, problem, layout, which, in_linear_domain, value, saved, stride, statuses);
    };
    if (!layout.has_lists) return run(Which::kAll);
    cudaError_t error = cudaMemsetAsync(PairLists(statuses, problem.batch).counters(), 0, PairLists::kCountBytes, stream);
    if constexpr (sizeof(T) == 4) {
      if (error != cudaSuccess || !in_linear_domain) return error == cudaSuccess ? run(Which::kAll) : error;
      error = launch_kernel(
          foresee_kernel<Options>, ceil_div(problem.batch, Foresight::kPairs), Foresight::kWarps * kWarp, 0, stream,
          problem, statuses);
      if (error == cudaSuccess) error = run(Which::kThoseForLinearDomain);
      if (error == cudaSuccess) error = run(Which::kThoseForIntegerLog2);
    }
    return error;
  });
}

template <class Options, typename T>
cudaError_t backward_of_short_pairs(
    const Problem<T>& problem, bool in_linear_domain, const Gradient<T>& gradient, const char* saved, int64_t stride,
    PairStatus* statuses, cudaStream_t stream) {
  const ShortPairLayout layout(problem);
  return with_rows(layout.rows, [&](auto rows) {
    constexpr int kRows = rows();
    const auto run = [&](auto engine, auto in_windows) {
      using Engine = decltype(engine);
      return launch(
          backward_kernel<Engine, decltype(in_windows)::value, T>, Engine::kOverlaps && in_linear_domain, problem, layout,
          in_windows() ? Engine::Window::kPairs : layout.pairs(), sizeof(typename Engine::Table), stream, problem, gradient,
          layout, saved, stride, statuses);
    };
    const auto run_all = [&](auto in_windows) {
      cudaError_t error = cudaSuccess;
      if (in_linear_domain) error = run(LinearBackward<T, kRows, Options>(), in_windows);
      if constexpr (sizeof(T) == 4)
        if (error == cudaSuccess) error = run(Log2Backward<kRows, Options>(), in_windows);
      return error;
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
