// stencil: one block per pair, the table never leaves the chip.
//
// Threads to work: block b is pair b; its W warps take consecutive strips (strip.cuh), so strip s belongs to warp s % W, and
// a round is W strips. Within a round warps run as a pipeline: warp w sweeps its strip while warp w - 1 is still ahead of it
// in the strip above. W = 1 for many pairs (no waiting at all), more for few.
#include <algorithm>

#include "engines.cuh"
#include "strip_variant.h"

namespace softdtw {
namespace {

constexpr int kMostWarps = 4;

template <class Engine, class S = typename Engine::S>
__global__ void __launch_bounds__(kWarp* kMostWarps, sizeof(typename S::Scalar) == 4 ? 4 : 2) stencil_forward(
    const __grid_constant__ Problem<typename S::Scalar> problem, typename S::Scalar* value, Saved<S> saved, Edges<S> edges,
    Verdict* verdicts) {
  __shared__ Progress words[kMostWarps];
  const int64_t pair = blockIdx.x;
  const int warp = threadIdx.y, warps = blockDim.y;
  if (Engine::kIsLinear && threadIdx.x == 0 && warp == 0) verdicts[pair] = Verdict::kAccepted;
  if (!Engine::kIsLinear && verdicts != nullptr && verdicts[pair] == Verdict::kAccepted) return;
  const Extent extent = problem.extent(pair);
  if (!extent.valid()) return invalid_forward(value, pair);
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
}

template <class Engine, class S = typename Engine::S>
__global__ void __launch_bounds__(kWarp* kMostWarps, sizeof(typename S::Scalar) == 4 ? 3 : 2) stencil_backward(
    const __grid_constant__ Problem<typename S::Scalar> problem,
    const __grid_constant__ Gradient<typename S::Scalar> gradient, Saved<S> saved, Flows<S> flows) {
  __shared__ Progress words[kMostWarps];
  const int64_t pair = blockIdx.x;
  const int warp = threadIdx.y, warps = blockDim.y;
  const Extent extent = problem.extent(pair);
  if (!extent.valid()) return invalid_backward(problem, gradient, pair);
  if (threadIdx.x == 0) words[warp] = 0;
  __syncthreads();

  // Warp w takes the strips w, w + W, ... counted from the last one.
  const int strips = strips_of<S>(extent);
  for (int i = warp, round = 0; i < strips; i += warps, ++round) {
    BackwardStrip job;
    job.pair = pair;
    job.strip = strips - 1 - i;
    job.round = round;
    if (warps > 1) {
      if (i > 0) job.producer = {&words[(warp + warps - 1) % warps], nullptr, round - (warp == 0)};
      job.own_word = &words[warp];
    }
    Engine::backward(problem, gradient, extent, job, saved, flows);
  }
}

// Warps per pair: as many as there are strips, unless the pairs alone fill the machine.
int warps_for(int64_t batch, int64_t strips) {
  const int64_t wanted = batch >= 2048 ? 1 : batch >= 1024 ? 2 : batch >= 512 ? 4 : kMostWarps;
  return static_cast<int>(strips < wanted ? strips : wanted);
}

template <class S>
struct Stencil {
  using T = typename S::Scalar;

  static int64_t saved_bytes(const Problem<T>& problem) { return Saved<S>::bytes(problem.batch, Sizes<S>(problem)); }

  static int64_t row_bytes(const Problem<T>& problem) {
    return Edges<S>::bytes(problem.batch, 1, Sizes<S>(problem).groups);
  }
  static int64_t forward_scratch_bytes(const Problem<T>& problem, bool save) {
    return save ? 0 : row_bytes(problem) + problem.batch * sizeof(Verdict);
  }

  static int64_t backward_scratch_bytes(const Problem<T>& problem) {
    return sizeof(T) * (table_scalars(problem) + Flows<S>::scalars(problem.batch, Sizes<S>(problem), problem.dim));
  }

  static cudaError_t forward(const Problem<T>& problem, T* value, void* saved, void* scratch, cudaStream_t stream) {
    const Sizes<S> sizes(problem);
    const unsigned blocks = static_cast<unsigned>(problem.batch);
    const int warps = warps_for(problem.batch, sizes.strips);
    const Saved<S> kept = saved != nullptr ? Saved<S>(saved, problem.batch, sizes) : Saved<S>();
    const Edges<S> edges = saved != nullptr ? kept.edges : Edges<S>(scratch, problem.batch, 1, sizes.groups, true);
    Verdict* verdicts = nullptr;
    if (linear_applies<S>(problem, saved != nullptr)) {
      verdicts = reinterpret_cast<Verdict*>(static_cast<char*>(scratch) + row_bytes(problem));
      stencil_forward<LinearEngine<S, LinearTileOf<S>>>
          <<<blocks, dim3(kWarp, warps), 0, stream>>>(problem, value, kept, edges, verdicts);
      const cudaError_t error = cudaGetLastError();
      if (error != cudaSuccess) return error;
    }
    // A few rejected pairs leave the machine idle: two warps shorten their time, and cost little where there are many.
    const int robust_warps = verdicts != nullptr && sizes.strips > 1 ? std::max(warps, 2) : warps;
    return with_tile<S>(problem, [&](auto tile) {
      using Engine = RobustEngine<S, std::remove_pointer_t<decltype(tile)>>;
      stencil_forward<Engine><<<blocks, dim3(kWarp, robust_warps), 0, stream>>>(problem, value, kept, edges, verdicts);
      return cudaGetLastError();
    });
  }

  static cudaError_t backward(
      const Problem<T>& problem, const Gradient<T>& gradient, const void* saved, void* scratch, cudaStream_t stream) {
    const Sizes<S> sizes(problem);
    T* const table = static_cast<T*>(scratch);
    const Flows<S> flows(table + table_scalars(problem), problem.batch, sizes);
    const Saved<S> kept(const_cast<void*>(saved), problem.batch, sizes);
    return run_backward(problem, gradient, table, stream, [&](const Gradient<T>& target) {
      return with_tile<S>(problem, [&](auto tile) {
        using Engine = RobustEngine<S, std::remove_pointer_t<decltype(tile)>>;
        return launch_backward<Engine>(
            stencil_backward<Engine>, problem.batch, warps_for(problem.batch, sizes.strips), stream, problem, target, kept,
            flows);
      });
    });
  }
};

}  // namespace

template <typename T>
Variant<T> stencil_variant() {
  return strip_variant<T, Stencil, kStencilProductDims>("stencil");
}
template Variant<float> stencil_variant<float>();
template Variant<double> stencil_variant<double>();

}  // namespace softdtw
