// Which engine computes a problem. Where the linear engine may take it, it tries every pair, and robust computes those that it
// gives up, in a second launch whose blocks look at the pair's verdict first. All others are robust's alone.
#pragma once

#include <cuda_runtime_api.h>

#include <algorithm>

#include "level_pair.cuh"
#include "linear_strip.cuh"
#include "robust_strip.cuh"
#include "verdict.cuh"

namespace softdtw {

template <class S_, class Tile>
struct LinearEngine {
  using S = S_;
  using T = typename S::Scalar;
  using Kept = LinearSaved<S>;
  using Upwards = LinearFlows<S>;
  static constexpr bool kIsLinear = true, kTakesTurns = false;
  // Blocks of four warps a multiprocessor that registers are given out for.
  static constexpr int kForwardBlocks = sizeof(T) == 8 ? 3 : 4;
  static constexpr int kBackwardBlocks = sizeof(T) == 8 ? 2 : 3;
  static constexpr int kForwardBytes = sizeof(LinearForwardStage<S, Tile::kUnivariate>),
                       kBackwardBytes = sizeof(LinearBackwardStage<S, Tile::kUnivariate>);

  // False where the pair is given up.
  __device__ static bool forward(
      const Problem<T>& problem, const Extent& extent, const ForwardStrip<S>& job, const Kept& saved, T* value) {
    return linear_forward_strip<S, Tile>(problem, extent, job, saved, value);
  }
  __device__ static void backward(
      const Problem<T>& problem, const Gradient<T>& gradient, const Extent& extent, const BackwardStrip& job,
      const Kept& saved, const Upwards& flows) {
    linear_backward_strip<S, Tile>(problem, gradient, extent, job, saved, flows);
  }
};

// kFewPairs: latency is what counts.
template <class S_, class Tile_, bool kFewPairs = false>
struct RobustEngine {
  using S = S_;
  using Tile = Tile_;
  using T = typename S::Scalar;
  using Kept = Saved<S>;
  using Upwards = Flows<S>;
  static constexpr bool kIsLinear = false;
  static constexpr bool kTakesTurns = sizeof(T) == 8 || Tile::kUnivariate;  // where may_reject
  static constexpr bool kIsAhead = kFewPairs && sizeof(T) == 4 && S::kRows == 2 && Tile::kUnivariate;
  static constexpr int kForwardBlocks = sizeof(T) == 4 ? 4 : 2, kBackwardBlocks = sizeof(T) == 4 && !kIsAhead ? 3 : 2;
  static constexpr int kForwardBytes = 0, kBackwardBytes = RobustStage<S>::kBytes;  // of a warp's shared memory

  __device__ static bool forward(
      const Problem<T>& problem, const Extent& extent, const ForwardStrip<S>& job, const Kept& saved, T* value) {
    robust_forward_strip<S, Tile, kIsAhead>(problem, extent, job, saved, value);
    return true;
  }
  __device__ static void backward(
      const Problem<T>& problem, const Gradient<T>& gradient, const Extent& extent, const BackwardStrip& job,
      const Kept& saved, const Upwards& flows) {
    robust_backward_strip<S, Tile>(problem, gradient, extent, job, saved, flows);
  }
};

// Of longer pairs the first rows lie too far apart for what backward keeps; of narrower tables too many chunks are at an edge;
// and fewer strips than the machine holds several times are robust's, whose strips are shorter.
constexpr int64_t kLongestLinear = 2560, kNarrowestLinear = 256;  // n + m, m
template <typename T>
constexpr int64_t kFewestLinearStrips = sizeof(T) == 4 ? 6144 : 4096;  // of all pairs

// The engine that stencil tries first, where linear_applies.
template <typename T>
using LinearEngineFor = std::conditional_t<
    sizeof(T) == 8, LinearEngine<Shape<T, 2>, LinearDense<Shape<T, 2>>>,
    LinearEngine<Shape<T, 8>, LinearSeries<Shape<T, 8>>>>;

// Whether the linear engine may take a problem, and memory is laid out for it. Mirrored in torchsoftdtw/saved_state.py.
template <typename T>
bool linear_applies(const Problem<T>& problem) {
  if (level_applies(problem) || !is_plain(problem)) return false;
  if (problem.n + problem.m >= kLongestLinear || problem.m < kNarrowestLinear) return false;
  constexpr int64_t kRobustRows = Shape<T, 4>::kStripRows, kRows = LinearEngineFor<T>::S::kStripRows;
  const int64_t strips = (problem.n + kRows - 1) / kRows, robust_strips = (problem.n + kRobustRows - 1) / kRobustRows;
  if (problem.batch * strips < kFewestLinearStrips<T>) return false;
  if (sizeof(T) == 8) return true;
  // Strips of 256 rows must not sweep over far more of what lies below the table than robust's of 128.
  return is_univariate(problem) && 5 * strips <= 3 * robust_strips;
}

// Whether float64 is fast enough on the current device for the engines that use it.
inline bool float64_is_fast() {
  int device = 0, ratio = 0;
  return cudaGetDevice(&device) == cudaSuccess &&
         cudaDeviceGetAttribute(&ratio, cudaDevAttrSingleToDoublePrecisionPerfRatio, device) == cudaSuccess && ratio <= 2;
}

// Whether there are verdicts of pairs.
template <typename T>
bool may_reject(const Problem<T>& problem) {
  return level_applies(problem) || linear_applies(problem);
}

constexpr int64_t kRowsOfRejected = 1024;

// What forward saves for backward in stencil: the verdicts, where there may be any, and for every pair what its engine keeps.
template <class S>
struct SavedLayout {
  using T = typename S::Scalar;

  static int64_t verdict_bytes(const Problem<T>& problem) {
    return may_reject(problem) ? (problem.batch * sizeof(Verdict) + 255) / 256 * 256 : 0;
  }
  static int64_t bytes_of_pair(const Problem<T>& problem) {
    const int64_t robust = Saved<S>::bytes_of_pair(Sizes<S>(problem));
    if (level_applies(problem)) return std::max(robust, LevelLayout(problem).template bytes_of_pair<T>());
    if (!linear_applies(problem)) return robust;
    using L = typename LinearEngineFor<T>::S;
    return std::max(robust, LinearSaved<L>::bytes_of_pair(Sizes<L>(problem)));
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
    return may_reject(problem) ? std::min(problem.batch, kRowsOfRejected) : problem.batch;
  }
  // What flows between strips in backward.
  static int64_t flow_bytes(const Problem<T>& problem) {
    const int64_t robust = sizeof(T) * Flows<S>::scalars(rows(problem), Sizes<S>(problem), problem.dim);
    if (!linear_applies(problem)) return robust;
    using L = typename LinearEngineFor<T>::S;
    return std::max(robust, LinearFlows<L>::bytes(problem.batch, Sizes<L>(problem), problem.dim));
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
  const int bytes = warps * bytes_per_warp;
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
