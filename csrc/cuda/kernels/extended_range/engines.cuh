// Which engine computes a problem. Where the level engine may take it, it tries every pair, and robust computes those that it
// gives up, in a second launch whose blocks look at the pair's verdict first. All others are robust's alone.
#pragma once

#include <cuda_runtime_api.h>

#include <algorithm>

#include "cuda/hardware/launch.cuh"
#include "cuda/kernels/linear_domain/warp_pair.cuh"
#include "cuda/numbers/pair_status.cuh"
#include "extended_range_strip.cuh"

namespace softdtw {

// kFewPairs: latency is what counts.
template <class S_, class Tile_, bool kFewPairs = false>
struct RobustEngine {
  using S = S_;
  using Tile = Tile_;
  using T = typename S::Scalar;
  using Kept = Saved<S>;
  using Upwards = Flows<S>;
  // Where level_applies: blocks of pairs that were taken before are not launched one by one.
  static constexpr bool kTakesTurns = sizeof(T) == 8 || Tile::kUnivariate;
  static constexpr bool kIsAhead = kFewPairs && sizeof(T) == 4 && S::kRows == 2 && Tile::kUnivariate;
  static constexpr int kForwardBlocks = sizeof(T) == 4 ? 4 : 2, kBackwardBlocks = sizeof(T) == 4 && !kIsAhead ? 3 : 2;
  static constexpr int kForwardBytes = 0, kBackwardBytes = RobustStage<S>::kBytes;  // of a warp's shared memory

  __device__ static void forward(
      const Problem<T>& problem, const Extent& extent, const ForwardStrip<S>& job, const Kept& saved, T* value) {
    robust_forward_strip<S, Tile, kIsAhead>(problem, extent, job, saved, value);
  }
  __device__ static void backward(
      const Problem<T>& problem, const Gradient<T>& gradient, const Extent& extent, const BackwardStrip& job,
      const Kept& saved, const Upwards& flows) {
    robust_backward_strip<S, Tile>(problem, gradient, extent, job, saved, flows);
  }
};

// Whether float64 is fast enough on the current device for the engines that use it.
inline bool float64_is_fast() { return current_device().has_fast_float64(); }

constexpr int64_t kRowsOfRejected = 1024;

// What forward saves for backward in stencil: the verdicts, where there may be any, and for every pair what its engine keeps.
template <class S>
struct SavedLayout {
  using T = typename S::Scalar;

  static int64_t verdict_bytes(const Problem<T>& problem) {
    return level_applies(problem) ? (problem.batch * sizeof(Verdict) + 255) / 256 * 256 : 0;
  }
  static int64_t bytes_of_pair(const Problem<T>& problem) {
    const int64_t robust = Saved<S>::bytes_of_pair(Sizes<S>(problem));
    return level_applies(problem) ? std::max(robust, LevelLayout(problem).template bytes_of_pair<T>()) : robust;
  }
  static int64_t bytes(const Problem<T>& problem) {
    return verdict_bytes(problem) + problem.batch * bytes_of_pair(problem);
  }
  // What the engines keep; null, if there is no memory.
  static char* kept_memory(const Problem<T>& problem, void* saved) {
    return saved == nullptr ? nullptr : static_cast<char*>(saved) + verdict_bytes(problem);
  }
  // Of an engine; nothing, if there is no memory.
  template <class Engine>
  static typename Engine::Kept kept(const Problem<T>& problem, void* saved) {
    using Kept = typename Engine::Kept;
    return saved == nullptr ? Kept()
                            : Kept(kept_memory(problem, saved), Sizes<typename Engine::S>(problem), bytes_of_pair(problem));
  }
  // Pairs of the robust engine that are under way at once: after another engine, no more than fill the machine.
  static int64_t rows(const Problem<T>& problem) {
    return level_applies(problem) ? std::min(problem.batch, kRowsOfRejected) : problem.batch;
  }
  // What flows between strips in backward.
  static int64_t flow_bytes(const Problem<T>& problem) {
    return sizeof(T) * Flows<S>::scalars(rows(problem), Sizes<S>(problem), problem.dim);
  }
};

// Calls launch(tile) with the tiles that suit the problem: float32 series of one dimension have their own, by the type of a
// null pointer.
template <class S, class Launch>
cudaError_t with_tile(const Problem<typename S::Scalar>& problem, Launch&& launch) {
  if constexpr (sizeof(typename S::Scalar) == 4)
    if (is_univariate(problem)) return launch(static_cast<UnivariateTile<S>*>(nullptr));
  return launch(static_cast<DenseTile<S>*>(nullptr));
}

// Launches a kernel with its warps' shared memory.
template <class Kernel, class... Arguments>
cudaError_t launch(
    Kernel kernel, int64_t blocks, int warps, int bytes_per_warp, cudaStream_t stream, const Arguments&... arguments) {
  return launch_kernel(kernel, blocks, dim3(kWarp, warps), warps * bytes_per_warp, stream, arguments...);
}

// The answer for lengths out of range, which only the device can see.
template <typename T>
__device__ __forceinline__ void invalid_forward(T* value, int64_t pair) {
  if (threadIdx.x == 0 && threadIdx.y == 0) value[pair] = T(NAN);
}

}  // namespace softdtw
