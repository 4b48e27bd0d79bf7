// The kernels of the linear domain and of integer log2, which computes what the other gives up: one warp a block, which has several
// pairs if they are short (warp_pair.cuh).
#include "linear_domain.h"

#include "cuda/hardware/launch.cuh"
#include "cuda/kernels/integer_log2/integer_log2_forward.cuh"
#include "cuda/kernels/integer_log2/integer_log2_window.cuh"
#include "linear_domain_forward.cuh"
#include "linear_domain_window.cuh"

namespace softdtw {
namespace {

// Warps a multiprocessor that registers are given out for.
template <typename T>
constexpr int kForwardWarps = sizeof(T) == 4 ? 16 : 8;
constexpr int kBackwardWarps = 8;

extern __shared__ int4 short_pair_memory[];

__device__ __forceinline__ int64_t first_pair_of_block(const ShortPairLayout& layout) {
  return int64_t{blockIdx.x} * (kWarp / layout.lanes);
}

template <typename T, int kRows>
__global__ void __launch_bounds__(kWarp, kForwardWarps<T>) forward_kernel(
    const __grid_constant__ Problem<T> problem, const __grid_constant__ ShortPairLayout layout, bool in_linear_domain,
    T* value, char* saved, int64_t stride, PairStatus* statuses) {
  T* const memory = reinterpret_cast<T*>(short_pair_memory);
  const int64_t first_pair = first_pair_of_block(layout);
  PairStatus status = PairStatus::kGivenUp;
  if (in_linear_domain && linear_forward<T, kRows>(problem, layout, first_pair, memory, value, saved, stride))
    status = PairStatus::kLinearDomain;
  if constexpr (sizeof(T) == 4) {
    __syncwarp();  // the next engine writes its columns over those that this one has read
    const bool exists = ShortPair<T, kRows>::exists(problem, layout, first_pair), wanted = status == PairStatus::kGivenUp;
    if (log2_forward<kRows>(problem, layout, first_pair, exists && wanted, memory, value, saved, stride))
      status = PairStatus::kIntegerLog2;
  }
  const int64_t pair = first_pair + threadIdx.x / layout.lanes;
  if (threadIdx.x % layout.lanes == 0 && pair < problem.batch) statuses[pair] = status;
}

template <typename T, int kRows>
__global__ void __launch_bounds__(kWarp, kBackwardWarps) backward_kernel(
    const __grid_constant__ Problem<T> problem, const __grid_constant__ Gradient<T> gradient,
    const __grid_constant__ ShortPairLayout layout, const char* saved, int64_t stride, const PairStatus* statuses) {
  linear_backward<T, kRows>(
      problem, gradient, layout, first_pair_of_block(layout), reinterpret_cast<char*>(short_pair_memory), saved, stride,
      statuses);
}

template <int kRows>
__global__ void __launch_bounds__(kWarp, kBackwardWarps) window_backward_kernel(
    const __grid_constant__ Problem<float> problem, const __grid_constant__ Gradient<float> gradient,
    const __grid_constant__ ShortPairLayout layout, const char* saved, int64_t stride, const PairStatus* statuses) {
  linear_window_backward<kRows>(
      problem, gradient, layout, int64_t{blockIdx.x} * PairWindow<kRows>::kPairs,
      reinterpret_cast<char*>(short_pair_memory), saved, stride, statuses);
}

template <int kRows>
__global__ void __launch_bounds__(kWarp) log2_window_backward_kernel(
    const __grid_constant__ Problem<float> problem, const __grid_constant__ Gradient<float> gradient,
    const __grid_constant__ ShortPairLayout layout, const char* saved, int64_t stride, const PairStatus* statuses) {
  log2_window_backward<kRows>(
      problem, gradient, layout, int64_t{blockIdx.x} * PairWindow<kRows>::kPairs,
      reinterpret_cast<char*>(short_pair_memory), saved, stride, statuses);
}

template <int kRows>
__global__ void __launch_bounds__(kWarp) log2_backward_kernel(
    const __grid_constant__ Problem<float> problem, const __grid_constant__ Gradient<float> gradient,
    const __grid_constant__ ShortPairLayout layout, const char* saved, int64_t stride, const PairStatus* statuses) {
  log2_backward<kRows>(
      problem, gradient, layout, first_pair_of_block(layout), reinterpret_cast<char*>(short_pair_memory), saved, stride,
      statuses);
}

// Calls f with the rows of a lane, as the type of a number.
template <class F>
cudaError_t with_rows(int rows, F&& f) {
  switch (rows) {
    case 4:
      return f(std::integral_constant<int, 4>());
    case 8:
      return f(std::integral_constant<int, 8>());
    case 12:
      return f(std::integral_constant<int, 12>());
    default:
      return f(std::integral_constant<int, 16>());
  }
}

// `pairs`: of a warp.
template <typename T, class Kernel, class... Arguments>
cudaError_t launch(
    Kernel kernel, const Problem<T>& problem, const ShortPairLayout& layout, int pairs, size_t bytes_of_warp,
    cudaStream_t stream, const Arguments&... arguments) {
  const size_t bytes = bytes_of_warp + pairs * layout.window() * sizeof(T);
  return launch_kernel(kernel, (problem.batch + pairs - 1) / pairs, kWarp, bytes, stream, arguments...);
}

}  // namespace

template <typename T>
cudaError_t launch_short_pairs_forward(
    const Problem<T>& problem, bool in_linear_domain, T* value, char* saved, int64_t stride, PairStatus* statuses,
    cudaStream_t stream) {
  const ShortPairLayout layout(problem);
  return with_rows(layout.rows, [&](auto rows) {
    return launch(
        forward_kernel<T, rows()>, problem, layout, layout.pairs(), 0, stream, problem, layout, in_linear_domain, value,
        saved, stride, statuses);
  });
}

template <typename T>
cudaError_t launch_short_pairs_backward(
    const Problem<T>& problem, bool in_linear_domain, const Gradient<T>& gradient, const char* saved, int64_t stride,
    const PairStatus* statuses, cudaStream_t stream) {
  const ShortPairLayout layout(problem);
  return with_rows(layout.rows, [&](auto rows) {
    const auto run = [&](auto kernel, int pairs, size_t bytes) {
      return launch(kernel, problem, layout, pairs, bytes, stream, problem, gradient, layout, saved, stride, statuses);
    };
    cudaError_t error = cudaSuccess;
    if constexpr (sizeof(T) == 4 && rows() == ShortPairLayout::kMostRows)
      if (goes_back_in_windows(problem.batch, sizeof(T) == 8, layout.lanes, layout.rows)) {
        constexpr int kPairs = PairWindow<rows()>::kPairs;
        if (in_linear_domain) error = run(window_backward_kernel<rows()>, kPairs, sizeof(LinearTable<T, rows()>));
        if (error != cudaSuccess) return error;
        return run(log2_window_backward_kernel<rows()>, kPairs, sizeof(Log2Table<rows()>));
      }
    if (in_linear_domain) error = run(backward_kernel<T, rows()>, layout.pairs(), sizeof(LinearTable<T, rows()>));
    if constexpr (sizeof(T) == 4)
      if (error == cudaSuccess) return run(log2_backward_kernel<rows()>, layout.pairs(), sizeof(Log2Table<rows()>));
    return error;
  });
}

template cudaError_t launch_short_pairs_forward(
    const Problem<float>&, bool, float*, char*, int64_t, PairStatus*, cudaStream_t);
template cudaError_t launch_short_pairs_forward(
    const Problem<double>&, bool, double*, char*, int64_t, PairStatus*, cudaStream_t);
template cudaError_t launch_short_pairs_backward(
    const Problem<float>&, bool, const Gradient<float>&, const char*, int64_t, const PairStatus*, cudaStream_t);
template cudaError_t launch_short_pairs_backward(
    const Problem<double>&, bool, const Gradient<double>&, const char*, int64_t, const PairStatus*, cudaStream_t);

}  // namespace softdtw
