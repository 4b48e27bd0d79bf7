// The kernels of the linear domain and of integer log2, which computes what the other gives up: one warp a block, which has several
// pairs if they are short (warp_pair.cuh). Options (options/univariate_cost.cuh) say of which cost they are, and whether with a penalty: a file of
// `options` compiles those of each.
#pragma once

#include "cuda/hardware/launch.cuh"
#include "cuda/kernels/integer_log2/integer_log2_backward.cuh"
#include "cuda/kernels/integer_log2/integer_log2_forward.cuh"
#include "linear_domain_backward.cuh"
#include "linear_domain_forward.cuh"

namespace softdtw {

// Warps of a multiprocessor that registers are given out for.
template <typename T>
constexpr int kForwardWarps = sizeof(T) == 4 ? 16 : 8;

extern __shared__ int4 short_pair_memory[];

__device__ __forceinline__ int64_t first_pair_of_block(const ShortPairLayout& layout) {
  return int64_t{blockIdx.x} * (kWarp / layout.lanes);
}

template <class Options, typename T, int kRows>
__global__ void __launch_bounds__(kWarp, kForwardWarps<T>) forward_kernel(
    const __grid_constant__ Problem<T> problem, const __grid_constant__ ShortPairLayout layout, bool in_linear_domain,
    T* value, char* saved, int64_t stride, PairStatus* statuses) {
  T* const memory = reinterpret_cast<T*>(short_pair_memory);
  const int64_t first_pair = first_pair_of_block(layout);
  PairStatus status = PairStatus::kGivenUp;
  if (in_linear_domain && linear_forward<T, kRows, Options>(problem, layout, first_pair, memory, value, saved, stride))
    status = PairStatus::kLinearDomain;
  if constexpr (sizeof(T) == 4) {
    __syncwarp();  // the next engine writes its columns over those that this one has read
    const bool exists = ShortPair<T, kRows>::number(layout, first_pair) < problem.batch;
    const bool wanted = status == PairStatus::kGivenUp;
    if (log2_forward<kRows, Options>(problem, layout, first_pair, exists && wanted, memory, value, saved, stride))
      status = PairStatus::kIntegerLog2;
  }
  const int64_t pair = first_pair + threadIdx.x / layout.lanes;
  if (threadIdx.x % layout.lanes == 0 && pair < problem.batch) statuses[pair] = status;
}

template <class Engine, bool kInWindows, typename T>
__global__ void __launch_bounds__(kWarp, Engine::kWarps) backward_kernel(
    const __grid_constant__ Problem<T> problem, const __grid_constant__ Gradient<T> gradient,
    const __grid_constant__ ShortPairLayout layout, const char* saved, int64_t stride, const PairStatus* statuses) {
  char* const memory = reinterpret_cast<char*>(short_pair_memory);
  if constexpr (kInWindows)
    short_pair_window_backward<Engine>(
        problem, gradient, layout, int64_t{blockIdx.x} * Engine::Window::kPairs, memory, saved, stride, statuses);
  else
    short_pair_backward<Engine, typename Engine::Pair>(
        problem, gradient, layout, first_pair_of_block(layout), memory, saved, stride, statuses);
}

// Calls f with the rows of a lane, as the type of a number.
template <class F>
cudaError_t with_rows(int rows, F&& f) {
  if (rows == 4) return f(std::integral_constant<int, 4>());
  if (rows == 8) return f(std::integral_constant<int, 8>());
  if (rows == 12) return f(std::integral_constant<int, 12>());
  return f(std::integral_constant<int, 16>());
}

// `pairs`: of a warp.
template <typename T, class Kernel, class... Arguments>
cudaError_t launch(
    Kernel kernel, const Problem<T>& problem, const ShortPairLayout& layout, int pairs, size_t bytes_of_warp,
    cudaStream_t stream, const Arguments&... arguments) {
  const size_t bytes = bytes_of_warp + pairs * layout.window() * sizeof(T);
  return launch_kernel(kernel, (problem.batch + pairs - 1) / pairs, kWarp, bytes, stream, arguments...);
}

template <class Options, typename T>
cudaError_t forward_of_short_pairs(
    const Problem<T>& problem, bool in_linear_domain, T* value, char* saved, int64_t stride, PairStatus* statuses,
    cudaStream_t stream) {
  const ShortPairLayout layout(problem);
  return with_rows(layout.rows, [&](auto rows) {
    return launch(
        forward_kernel<Options, T, rows()>, problem, layout, layout.pairs(), 0, stream, problem, layout, in_linear_domain,
        value, saved, stride, statuses);
  });
}

template <class Options, typename T>
cudaError_t backward_of_short_pairs(
    const Problem<T>& problem, bool in_linear_domain, const Gradient<T>& gradient, const char* saved, int64_t stride,
    const PairStatus* statuses, cudaStream_t stream) {
  const ShortPairLayout layout(problem);
  return with_rows(layout.rows, [&](auto rows) {
    constexpr int kRows = rows();
    const auto run = [&](auto engine, auto in_windows) {
      using Engine = decltype(engine);
      const int pairs = in_windows() ? Engine::Window::kPairs : layout.pairs();
      return launch(
          backward_kernel<Engine, decltype(in_windows)::value, T>, problem, layout, pairs, sizeof(typename Engine::Table),
          stream, problem, gradient, layout, saved, stride, statuses);
    };
    const auto run_all = [&](auto in_windows) {
      cudaError_t error = cudaSuccess;
      if (in_linear_domain) error = run(LinearBackward<T, kRows, Options>(), in_windows);
      if constexpr (sizeof(T) == 4)
        if (error == cudaSuccess) error = run(Log2Backward<kRows, Options>(), in_windows);
      return error;
    };
    if constexpr (sizeof(T) == 4 && kRows == ShortPairLayout::kMostRows)
      if (goes_back_in_windows(problem.batch, sizeof(T) == 8, layout.lanes, layout.rows)) return run_all(std::true_type());
    return run_all(std::false_type());
  });
}

#define SOFTDTW_SHORT_PAIRS_OF(prefix, T, ...)                                 \
  prefix template cudaError_t forward_of_short_pairs<__VA_ARGS__, T>(          \
      const Problem<T>&, bool, T*, char*, int64_t, PairStatus*, cudaStream_t); \
  prefix template cudaError_t backward_of_short_pairs<__VA_ARGS__, T>(         \
      const Problem<T>&, bool, const Gradient<T>&, const char*, int64_t, const PairStatus*, cudaStream_t);

#define SOFTDTW_SHORT_PAIRS(prefix, ...)             \
  SOFTDTW_SHORT_PAIRS_OF(prefix, float, __VA_ARGS__) \
  SOFTDTW_SHORT_PAIRS_OF(prefix, double, __VA_ARGS__)

}  // namespace softdtw
