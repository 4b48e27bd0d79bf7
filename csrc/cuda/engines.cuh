// Which engine computes a forward pass that keeps nothing: linear tries every pair where there are warps enough to fill the
// machine (with fewer its longer chains of instructions cost more than it saves), robust computes those that it rejects, in a
// second launch whose blocks look at the pair's verdict first. All other passes are robust's alone.
#pragma once

#include "linear_strip.cuh"
#include "robust_strip.cuh"

namespace softdtw {

enum class Verdict : int { kAccepted, kRejected };

template <class S_, class Tile>
struct LinearEngine {
  using S = S_;
  using T = typename S::Scalar;
  static constexpr bool kIsLinear = true;

  // False where the pair is given up.
  __device__ static bool forward(
      const Problem<T>& problem, const Extent& extent, const ForwardStrip<S>& job, const Saved<S>&, T* value) {
    return linear_forward_strip<S, LinearTile<S, Tile>>(problem, extent, job, value);
  }
};

// kFewPairs: latency is what counts.
template <class S_, class Tile, bool kFewPairs = false>
struct RobustEngine {
  using S = S_;
  using T = typename S::Scalar;
  static constexpr bool kIsLinear = false;
  static constexpr bool kIsAhead = kFewPairs && sizeof(T) == 4 && S::kRows == 2 && Tile::kUnivariate;
  static constexpr int kStageBytes = RobustStage<S>::kBytes;  // a warp's, in backward

  __device__ static bool forward(
      const Problem<T>& problem, const Extent& extent, const ForwardStrip<S>& job, const Saved<S>& saved, T* value) {
    robust_forward_strip<S, Tile, kIsAhead>(problem, extent, job, saved, value);
    return true;
  }
  __device__ static void backward(
      const Problem<T>& problem, const Gradient<T>& gradient, const Extent& extent, const BackwardStrip& job,
      const Saved<S>& saved, const Flows<S>& flows) {
    robust_backward_strip<S, Tile, kIsAhead>(problem, gradient, extent, job, saved, flows);
  }
};

// Longer pairs could overflow the linear engine's exponents, which are ints; the factor of a larger penalty is not a number.
constexpr int64_t kFullMachine = 2048, kLongestLinear = int64_t{1} << 22;
constexpr double kLargestPenalty = 500;

template <class S>
bool linear_applies(const Problem<typename S::Scalar>& problem, bool keeps) {
  const Sizes<S> sizes(problem);
  if (sizeof(typename S::Scalar) == 4 && !is_univariate(problem)) return false;
  return !keeps && problem.batch * sizes.strips >= kFullMachine && problem.n + problem.m < kLongestLinear &&
         !problem.warp_penalties && (problem.warp_penalty == 0 || !problem.gammas) &&
         fabs(problem.warp_penalty * problem.scale) < kLargestPenalty;
}

// The only tile of the linear engine: in float32 it takes series of one dimension alone, since with more, costs are dearer than
// what the engine saves.
template <class S>
using LinearTileOf = std::conditional_t<sizeof(typename S::Scalar) == 4, UnivariateTile<S, true>, DenseTile<S>>;

// Calls launch(tile) with the tiles that suit the problem: float32 series of one dimension have their own, by the type of a
// null pointer.
template <class S, class Launch>
cudaError_t with_tile(const Problem<typename S::Scalar>& problem, Launch&& launch) {
  if constexpr (sizeof(typename S::Scalar) == 4)
    if (is_univariate(problem)) return launch(static_cast<UnivariateTile<S, false>*>(nullptr));
  return launch(static_cast<DenseTile<S>*>(nullptr));
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
