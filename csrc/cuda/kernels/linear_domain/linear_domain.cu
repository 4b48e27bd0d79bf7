// The kernels of the level engine and of the steep one, which computes what the other gives up: one warp a block, which has several
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
constexpr int64_t kFewestForWindows = 1024;  // pairs: with fewer, a window has no fewer turns than the whole pair

extern __shared__ int4 level_memory[];

__device__ __forceinline__ int64_t first_pair_of_block(const LevelLayout& layout) {
  return int64_t{blockIdx.x} * (kWarp / layout.lanes);
}

template <typename T, int kRows>
__global__ void __launch_bounds__(kWarp, kForwardWarps<T>) forward_kernel(
    const __grid_constant__ Problem<T> problem, const __grid_constant__ LevelLayout layout, T* value, char* saved,
    int64_t stride, Verdict* verdicts) {
  T* const memory = reinterpret_cast<T*>(level_memory);
  const int64_t first_pair = first_pair_of_block(layout);
  Verdict verdict = Verdict::kRejected;
  if (level_forward<T, kRows>(problem, layout, first_pair, memory, value, saved, stride)) verdict = Verdict::kAccepted;
  if constexpr (sizeof(T) == 4) {
    __syncwarp();  // the next engine writes its columns over those that this one has read
    const bool exists = LevelPair<T, kRows>::exists(problem, layout, first_pair), wanted = verdict == Verdict::kRejected;
    if (steep_forward<kRows>(problem, layout, first_pair, exists && wanted, memory, value, saved, stride))
      verdict = Verdict::kSteep;
  }
  const int64_t pair = first_pair + threadIdx.x / layout.lanes;
  if (threadIdx.x % layout.lanes == 0 && pair < problem.batch) verdicts[pair] = verdict;
}

template <typename T, int kRows>
__global__ void __launch_bounds__(kWarp, kBackwardWarps) backward_kernel(
    const __grid_constant__ Problem<T> problem, const __grid_constant__ Gradient<T> gradient,
    const __grid_constant__ LevelLayout layout, const char* saved, int64_t stride, const Verdict* verdicts) {
  level_backward<T, kRows>(
      problem, gradient, layout, first_pair_of_block(layout), reinterpret_cast<char*>(level_memory), saved, stride,
      verdicts);
}

template <int kRows>
__global__ void __launch_bounds__(kWarp, kBackwardWarps) window_backward_kernel(
    const __grid_constant__ Problem<float> problem, const __grid_constant__ Gradient<float> gradient,
    const __grid_constant__ LevelLayout layout, const char* saved, int64_t stride, const Verdict* verdicts) {
  level_window_backward<kRows>(
      problem, gradient, layout, int64_t{blockIdx.x} * LevelWindow<kRows>::kPairs, reinterpret_cast<char*>(level_memory),
      saved, stride, verdicts);
}

template <int kRows>
__global__ void __launch_bounds__(kWarp) steep_window_backward_kernel(
    const __grid_constant__ Problem<float> problem, const __grid_constant__ Gradient<float> gradient,
    const __grid_constant__ LevelLayout layout, const char* saved, int64_t stride, const Verdict* verdicts) {
  steep_window_backward<kRows>(
      problem, gradient, layout, int64_t{blockIdx.x} * LevelWindow<kRows>::kPairs, reinterpret_cast<char*>(level_memory),
      saved, stride, verdicts);
}

template <int kRows>
__global__ void __launch_bounds__(kWarp) steep_backward_kernel(
    const __grid_constant__ Problem<float> problem, const __grid_constant__ Gradient<float> gradient,
    const __grid_constant__ LevelLayout layout, const char* saved, int64_t stride, const Verdict* verdicts) {
  steep_backward<kRows>(
      problem, gradient, layout, first_pair_of_block(layout), reinterpret_cast<char*>(level_memory), saved, stride,
      verdicts);
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
    Kernel kernel, const Problem<T>& problem, const LevelLayout& layout, int pairs, size_t bytes_of_warp,
    cudaStream_t stream, const Arguments&... arguments) {
  const size_t bytes = bytes_of_warp + pairs * layout.window() * sizeof(T);
  return launch_kernel(kernel, (problem.batch + pairs - 1) / pairs, kWarp, bytes, stream, arguments...);
}

}  // namespace

template <typename T>
cudaError_t launch_level_forward(
    const Problem<T>& problem, T* value, char* saved, int64_t stride, Verdict* verdicts, cudaStream_t stream) {
  const LevelLayout layout(problem);
  return with_rows(layout.rows, [&](auto rows) {
    return launch(
        forward_kernel<T, rows()>, problem, layout, layout.pairs(), 0, stream, problem, layout, value, saved, stride,
        verdicts);
  });
}

template <typename T>
cudaError_t launch_level_backward(
    const Problem<T>& problem, const Gradient<T>& gradient, const char* saved, int64_t stride, const Verdict* verdicts,
    cudaStream_t stream) {
  const LevelLayout layout(problem);
  return with_rows(layout.rows, [&](auto rows) {
    const auto run = [&](auto kernel, int pairs, size_t bytes) {
      return launch(kernel, problem, layout, pairs, bytes, stream, problem, gradient, layout, saved, stride, verdicts);
    };
    if constexpr (sizeof(T) == 4 && rows() == LevelLayout::kMostRows)
      if (layout.has_window<T>() && problem.batch >= kFewestForWindows) {
        constexpr int kPairs = LevelWindow<rows()>::kPairs;
        const cudaError_t error = run(window_backward_kernel<rows()>, kPairs, sizeof(LevelTable<T, rows()>));
        if (error != cudaSuccess) return error;
        return run(steep_window_backward_kernel<rows()>, kPairs, sizeof(SteepTable<rows()>));
      }
    const cudaError_t error = run(backward_kernel<T, rows()>, layout.pairs(), sizeof(LevelTable<T, rows()>));
    if constexpr (sizeof(T) == 4)
      if (error == cudaSuccess) return run(steep_backward_kernel<rows()>, layout.pairs(), sizeof(SteepTable<rows()>));
    return error;
  });
}

template cudaError_t launch_level_forward(const Problem<float>&, float*, char*, int64_t, Verdict*, cudaStream_t);
template cudaError_t launch_level_forward(const Problem<double>&, double*, char*, int64_t, Verdict*, cudaStream_t);
template cudaError_t launch_level_backward(
    const Problem<float>&, const Gradient<float>&, const char*, int64_t, const Verdict*, cudaStream_t);
template cudaError_t launch_level_backward(
    const Problem<double>&, const Gradient<double>&, const char*, int64_t, const Verdict*, cudaStream_t);

}  // namespace softdtw
