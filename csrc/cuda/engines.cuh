// The two engines behind one interface, and which pairs each of them takes: linear tries every pair, robust computes those
// that it rejects, in a second launch whose blocks look at the pair's verdict first.
#pragma once

#include "linear_strip.cuh"
#include "robust_strip.cuh"

namespace softdtw {

template <class S_, class Tile, bool kSquared>
struct LinearEngine {
  using S = S_;
  using T = typename S::Scalar;
  static constexpr bool kIsLinear = true;
  static constexpr int kStageBytes = LinearStage<S, LinearTile<S, Tile, kSquared>>::kBytes;  // a warp's, in backward

  // False where the pair is given up.
  __device__ static bool forward(
      const Problem<T>& problem, const Extent& extent, const ForwardStrip<S>& job, const Saved<S>& saved, T* value) {
    return linear_forward_strip<S, LinearTile<S, Tile, kSquared>>(problem, extent, job, saved, value);
  }
  __device__ static void backward(
      const Problem<T>& problem, const Gradient<T>& gradient, const Extent& extent, const BackwardStrip& job,
      const Saved<S>& saved, const Flows<S>& flows) {
    linear_backward_strip<S, LinearTile<S, Tile, kSquared>>(problem, gradient, extent, job, saved, flows);
  }
};

template <class S_, class Tile>
struct RobustEngine {
  using S = S_;
  using T = typename S::Scalar;
  static constexpr bool kIsLinear = false;
  static constexpr int kStageBytes = RobustStage<S>::kBytes;

  __device__ static bool forward(
      const Problem<T>& problem, const Extent& extent, const ForwardStrip<S>& job, const Saved<S>& saved, T* value) {
    robust_forward_strip<S, Tile>(problem, extent, job, saved, value);
    return true;
  }
  __device__ static void backward(
      const Problem<T>& problem, const Gradient<T>& gradient, const Extent& extent, const BackwardStrip& job,
      const Saved<S>& saved, const Flows<S>& flows) {
    robust_backward_strip<S, Tile>(problem, gradient, extent, job, saved, flows);
  }
};

// Whether a pair is this engine's. Without verdicts robust takes all.
template <class Engine>
__device__ __forceinline__ bool is_mine(const Verdict* verdicts, int64_t pair) {
  return verdicts == nullptr || verdicts[pair] == (Engine::kIsLinear ? Verdict::kLinear : Verdict::kRobust);
}

// Longer pairs could overflow the linear engine's exponents, which are ints.
template <typename T>
bool linear_applies(const Problem<T>& problem) {
  return problem.n + problem.m < (int64_t{1} << 22);
}

// Calls launch(engine), which returns an error, for the engines that a problem needs, in order. Series of one dimension have tiles of their own in
// float32.
template <class S, bool kSquared, class Launch>
cudaError_t each_engine(const Problem<typename S::Scalar>& problem, Launch&& launch) {
  const auto both = [&](auto linear, auto robust) {
    const cudaError_t error = linear_applies(problem) ? launch(linear) : cudaSuccess;
    return error != cudaSuccess ? error : launch(robust);
  };
  if constexpr (sizeof(typename S::Scalar) == 4)
    if (is_univariate(problem))
      return both(LinearEngine<S, UnivariateTile<S, true>, kSquared>{}, RobustEngine<S, UnivariateTile<S, false>>{});
  return both(LinearEngine<S, DenseTile<S>, true>{}, RobustEngine<S, DenseTile<S>>{});
}

// Launches a kernel of backward with its warps' shared memory.
template <class Engine, class Kernel, class... Arguments>
cudaError_t launch_backward(Kernel kernel, int64_t blocks, int warps, cudaStream_t stream, const Arguments&... arguments) {
  const int bytes = warps * Engine::kStageBytes;
  if (bytes > 40 * 1024) {  // with the static part more than what needs no permission
    const cudaError_t error = cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, bytes);
    if (error != cudaSuccess) return error;
  }
  kernel<<<static_cast<unsigned>(blocks), dim3(kWarp, warps), bytes, stream>>>(arguments...);
  return cudaGetLastError();
}

// The answer for lengths out of range, which only the device can see.
template <typename T>
__device__ __forceinline__ void invalid_forward(T* value, int64_t pair) {
  if (threadIdx.x == 0 && threadIdx.y == 0) value[pair] = T(NAN);
}

}  // namespace softdtw
