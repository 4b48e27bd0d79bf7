// stencil: one block per pair, the table never leaves the chip.
//
// Threads to work: block b is pair b, and where there are fewer blocks than pairs, every one that many further; its W warps
// take consecutive strips (strip.cuh), so strip s belongs to warp s % W, and a round is W strips. Within a round warps run as a
// pipeline: warp w sweeps its strip while warp w - 1 is still ahead of it in the strip above. W = 1 for many pairs (no waiting at
// all), more for few.
#include <algorithm>

#include "engines.cuh"
#include "few_tile.cuh"
#include "level.h"
#include "strip_variant.h"

namespace softdtw {
namespace {

constexpr int kMostWarps = 4;

// `verdicts`: null where there is no linear engine beside the robust one.
template <class Engine, class S = typename Engine::S>
__global__ void __launch_bounds__(kWarp* kMostWarps, Engine::kForwardBlocks) stencil_forward(
    const __grid_constant__ Problem<typename S::Scalar> problem, typename S::Scalar* value, typename Engine::Kept saved,
    Edges<S> edges, Verdict* verdicts) {
  __shared__ Progress words[kMostWarps];
  const int warp = threadIdx.y, warps = blockDim.y;
  const auto sweep = [&](int64_t pair) {
    if (Engine::kIsLinear && threadIdx.x == 0 && warp == 0) verdicts[pair] = Verdict::kAccepted;
    if (!Engine::kIsLinear && verdicts != nullptr && verdicts[pair] != Verdict::kRejected) return;
    const Extent extent = problem.extent(pair);
    if (!extent.valid()) return invalid_forward(value, pair);
    __syncthreads();  // the pair before is done
    if (threadIdx.x == 0) words[warp] = 0;
    __syncthreads();

    const int strips = strips_of<S>(extent);
    for (int strip = warp, round = 0; strip < strips; strip += warps, ++round) {
      ForwardStrip<S> job;
      job.pair = pair;
      job.strip = strip;
      job.round = round;
      job.edges = edges;
      if (warps > 1) {
        if (strip > 0) job.producer = {&words[(warp + warps - 1) % warps], nullptr, round - (warp == 0)};
        job.own_word = &words[warp];
      }
      if (!Engine::forward(problem, extent, job, saved, value)) {
        if (threadIdx.x == 0) verdicts[pair] = Verdict::kRejected;
        return;
      }
    }
  };
  if constexpr (Engine::kTakesTurns)
    for (int64_t pair = blockIdx.x; pair < problem.batch; pair += gridDim.x) sweep(pair);
  else
    sweep(blockIdx.x);
}

template <class Engine, class S = typename Engine::S>
__global__ void __launch_bounds__(kWarp* kMostWarps, Engine::kBackwardBlocks) stencil_backward(
    const __grid_constant__ Problem<typename S::Scalar> problem,
    const __grid_constant__ Gradient<typename S::Scalar> gradient, typename Engine::Kept saved,
    typename Engine::Upwards flows, const Verdict* verdicts) {
  __shared__ Progress words[kMostWarps];
  const int warp = threadIdx.y, warps = blockDim.y;
  const auto go_back = [&](int64_t pair) {
    if (verdicts != nullptr && verdicts[pair] != (Engine::kIsLinear ? Verdict::kAccepted : Verdict::kRejected)) return;
    const Extent extent = problem.extent(pair);
    if (!has_gradient(gradient, extent, pair)) return invalid_backward(problem, gradient, extent, pair);
    __syncthreads();  // the pair before is done
    if (threadIdx.x == 0) words[warp] = 0;
    __syncthreads();

    // Warp w takes the strips w, w + W, ... counted from the last one.
    const int strips = strips_of<S>(extent);
    for (int i = warp, round = 0; i < strips; i += warps, ++round) {
      BackwardStrip job;
      job.pair = pair;
      job.row = blockIdx.x;
      job.strip = strips - 1 - i;
      job.round = round;
      if (warps > 1) {
        if (i > 0) job.producer = {&words[(warp + warps - 1) % warps], nullptr, round - (warp == 0)};
        job.own_word = &words[warp];
      }
      Engine::backward(problem, gradient, extent, job, saved, flows);
    }
  };
  if constexpr (Engine::kTakesTurns)
    for (int64_t pair = blockIdx.x; pair < problem.batch; pair += gridDim.x) go_back(pair);
  else
    go_back(blockIdx.x);
}

// Warps per pair: as many as there are strips, unless the pairs alone fill the machine.
int warps_for(int64_t batch, int64_t strips, int least) {
  const int64_t wanted = batch >= 2048 ? least : batch >= 1024 ? 2 : kMostWarps;
  return static_cast<int>(std::min(strips, wanted));
}

template <class Engine>
constexpr int kLeastWarps = Engine::kIsLinear ? 2 : 1;

// `rows`: pairs under way at once.
template <class Engine, typename T>
cudaError_t launch_forward(
    const Problem<T>& problem, T* value, const typename Engine::Kept& kept, void* scratch, int64_t rows, Verdict* verdicts,
    cudaStream_t stream) {
  using S = typename Engine::S;
  const Sizes<S> sizes(problem);
  const Edges<S> edges = kept.memory != nullptr ? kept.edges : Edges<S>::rows(scratch, sizes.groups);
  return launch(
      stencil_forward<Engine>, rows, warps_for(rows, sizes.strips, kLeastWarps<Engine>), Engine::kForwardBytes, stream,
      problem, value, kept, edges, verdicts);
}

// Each of the rows has what flows between the strips of its pair.
template <class Engine, typename T>
cudaError_t launch_backward(
    const Problem<T>& problem, const Gradient<T>& gradient, const typename Engine::Kept& kept, void* scratch, int64_t rows,
    const Verdict* verdicts, cudaStream_t stream) {
  const Sizes<typename Engine::S> sizes(problem);
  return launch(
      stencil_backward<Engine>, rows, warps_for(rows, sizes.strips, kLeastWarps<Engine>), Engine::kBackwardBytes, stream,
      problem, gradient, kept, typename Engine::Upwards(scratch, rows, sizes), verdicts);
}

// As with_tile, for forward, where series of few dimensions have tiles of their own.
template <class S, class Launch>
cudaError_t with_forward_tile(const Problem<typename S::Scalar>& problem, Launch&& launch) {
  if constexpr (sizeof(typename S::Scalar) == 4)
    if (is_few(problem.cost, problem.dim, S::kRows))
      return launch(static_cast<FewTile<S, few_dims(S::kRows) / 4>*>(nullptr));
  return with_tile<S>(problem, launch);
}

template <class S>
struct Stencil {
  using T = typename S::Scalar;
  using Layout = SavedLayout<S>;

  static int64_t saved_bytes(const Problem<T>& problem) { return Layout::bytes(problem); }

  static int64_t row_bytes(const Problem<T>& problem) {
    return Edges<S>::bytes_of_rows(problem.batch, Sizes<S>(problem).groups);
  }
  static int64_t forward_scratch_bytes(const Problem<T>& problem, bool save) {
    return save ? 0 : row_bytes(problem) + Layout::verdict_bytes(problem);
  }

  static int64_t backward_scratch_bytes(const Problem<T>& problem) {
    return sizeof(T) * table_scalars(problem) + Layout::flow_bytes(problem);
  }

  // The engine that may give pairs up.
  static cudaError_t try_forward(
      const Problem<T>& problem, T* value, void* saved, void* scratch, Verdict* verdicts, cudaStream_t stream) {
    if (level_applies(problem))
      return launch_level_forward(
          problem, value, Layout::kept_memory(problem, saved), Layout::bytes_of_pair(problem), verdicts, stream);
    const auto kept = Layout::template kept<LinearEngineFor<T>>(problem, saved);
    return launch_forward<LinearEngineFor<T>>(problem, value, kept, scratch, problem.batch, verdicts, stream);
  }
  static cudaError_t try_backward(
      const Problem<T>& problem, const Gradient<T>& gradient, void* saved, void* flows, const Verdict* verdicts,
      cudaStream_t stream) {
    if (level_applies(problem))
      return launch_level_backward(
          problem, gradient, Layout::kept_memory(problem, saved), Layout::bytes_of_pair(problem), verdicts, stream);
    const auto kept = Layout::template kept<LinearEngineFor<T>>(problem, saved);
    return launch_backward<LinearEngineFor<T>>(problem, gradient, kept, flows, problem.batch, verdicts, stream);
  }

  static cudaError_t forward(const Problem<T>& problem, T* value, void* saved, void* scratch, cudaStream_t stream) {
    Verdict* verdicts = nullptr;
    if (may_reject(problem) && float64_is_fast()) {
      verdicts = static_cast<Verdict*>(saved != nullptr ? saved : static_cast<char*>(scratch) + row_bytes(problem));
      const cudaError_t error = try_forward(problem, value, saved, scratch, verdicts, stream);
      if (error != cudaSuccess) return error;
    }
    return with_forward_tile<S>(problem, [&](auto tile) {
      using Engine = RobustEngine<S, std::remove_pointer_t<decltype(tile)>>;
      // A few rejected pairs leave the machine idle: several warps a pair shorten their time, and cost little where there are many.
      return launch_forward<Engine>(
          problem, value, Layout::template kept<Engine>(problem, saved), scratch, Layout::rows(problem), verdicts, stream);
    });
  }

  static cudaError_t backward(
      const Problem<T>& problem, const Gradient<T>& gradient, const void* saved, void* scratch, cudaStream_t stream) {
    T* const table = static_cast<T*>(scratch);
    void* const flows = table + table_scalars(problem);
    void* const memory = const_cast<void*>(saved);
    return run_backward(problem, gradient, table, stream, [&](const Gradient<T>& target) {
      const Verdict* verdicts = nullptr;
      if (may_reject(problem) && float64_is_fast()) {
        verdicts = static_cast<const Verdict*>(saved);
        const cudaError_t error = try_backward(problem, target, memory, flows, verdicts, stream);
        if (error != cudaSuccess) return error;
      }
      return with_tile<S>(problem, [&](auto tile) {
        using Engine = RobustEngine<S, std::remove_pointer_t<decltype(tile)>>;
        return launch_backward<Engine>(
            problem, target, Layout::template kept<Engine>(problem, memory), flows, Layout::rows(problem), verdicts,
            stream);
      });
    });
  }
};

}  // namespace

template <typename T>
Variant<T> stencil_variant() {
  Variant<T> variant = strip_variant<T, Stencil, kStencilProductDims>("stencil");
  variant.has_few_dims = true;
  return variant;
}
template Variant<float> stencil_variant<float>();
template Variant<double> stencil_variant<double>();

}  // namespace softdtw
