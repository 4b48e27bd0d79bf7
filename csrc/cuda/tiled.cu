// tiled: one pair spread over many blocks in one launch, for long pairs and small batches, to any length.
//
// Threads to work: a block of W warps takes a ticket, which stands for W consecutive strips (strip.cuh) of one pair; ticket
// order is top strips first, all pairs side by side. Within a block warps run as a pipeline, as in stencil.cu; the block's
// last warp hands its edge through global memory to whichever block holds the next ticket of the pair.
#include "engines.cuh"
#include "strip_variant.h"
#include "tickets.cuh"

namespace softdtw {
namespace {

constexpr int kBackwardWarps = 4;

// Strips of two rows a lane are for few pairs, which leave a warp a quarter of a multiprocessor to itself.
template <class S>
constexpr int kForwardWarps = S::kRows == 2 && sizeof(typename S::Scalar) == 4 ? 4 : 8;

template <class Engine, class S = typename Engine::S>
__global__ void __launch_bounds__(kWarp* kForwardWarps<S>, Engine::kIsAhead ? 3 : 16 / kForwardWarps<S>) tiled_forward(
    const __grid_constant__ Problem<typename S::Scalar> problem, typename S::Scalar* value, Saved<S> saved, Edges<S> edges,
    Tickets tickets, int64_t groups) {
  __shared__ Progress words[kForwardWarps<S>];
  const int warp = threadIdx.y;
  if (threadIdx.x == 0) words[warp] = 0;
  const unsigned ticket = take_ticket(tickets);
  const int64_t pair = ticket % problem.batch;
  const int group = static_cast<int>(ticket / problem.batch);
  const Extent extent = problem.extent(pair);
  if (!extent.valid()) {
    if (group == 0) invalid_forward(value, pair);
    return;
  }
  const int strips = strips_of<S>(extent), strip = group * kForwardWarps<S> + warp;
  if (strip >= strips) return;

  Progress* const pair_words = tickets.words + pair * groups;
  ForwardStrip<S> job;
  job.pair = pair;
  job.strip = strip;
  job.edges = edges;
  job.own_word = &words[warp];
  if (strip > 0)
    job.producer = warp > 0 ? Neighbour{&words[warp - 1], nullptr} : Neighbour{nullptr, pair_words + group - 1};
  if (warp == kForwardWarps<S> - 1) job.far_word = pair_words + group;
  Engine::forward(problem, extent, job, saved, value);
}

template <class Engine, class S = typename Engine::S>
__global__ void __launch_bounds__(kWarp* kBackwardWarps, sizeof(typename S::Scalar) == 4 && !Engine::kIsAhead ? 3 : 2)
    tiled_backward(
        const __grid_constant__ Problem<typename S::Scalar> problem,
        const __grid_constant__ Gradient<typename S::Scalar> gradient, Saved<S> saved, Flows<S> flows, Tickets tickets,
        int64_t groups) {
  __shared__ Progress words[kBackwardWarps];
  const int warp = threadIdx.y;
  if (threadIdx.x == 0) words[warp] = 0;
  const unsigned ticket = take_ticket(tickets);
  const int64_t pair = ticket % problem.batch;
  const int group = static_cast<int>(ticket / problem.batch);
  const Extent extent = problem.extent(pair);
  if (!extent.valid()) {
    if (group == 0) invalid_backward(problem, gradient, pair);
    return;
  }
  // Groups and warps count from the pair's last strip.
  const int strip = strips_of<S>(extent) - 1 - (group * kBackwardWarps + warp);
  if (strip < 0) return;

  Progress* const pair_words = tickets.words + pair * groups;
  BackwardStrip job;
  job.pair = pair;
  job.strip = strip;
  job.own_word = &words[warp];
  if (group + warp > 0)
    job.producer = warp > 0 ? Neighbour{&words[warp - 1], nullptr} : Neighbour{nullptr, pair_words + group - 1};
  if (warp == kBackwardWarps - 1) job.far_word = pair_words + group;
  Engine::backward(problem, gradient, extent, job, saved, flows);
}

template <class S>
struct Tiled {
  using T = typename S::Scalar;

  static int64_t groups_of(const Sizes<S>& sizes, int warps) { return (sizes.strips + warps - 1) / warps; }
  // Tickets come first in scratch memory, padded to keep what follows aligned.
  static int64_t ticket_bytes(const Problem<T>& problem, int64_t groups) {
    return (Tickets::bytes(problem.batch, groups) + 255) / 256 * 256;
  }

  static int64_t saved_bytes(const Problem<T>& problem) { return Saved<S>::bytes(problem.batch, Sizes<S>(problem)); }

  static int64_t forward_scratch_bytes(const Problem<T>& problem, bool save) {
    const Sizes<S> sizes(problem);
    return ticket_bytes(problem, groups_of(sizes, kForwardWarps<S>)) +
           (save ? 0 : Edges<S>::bytes(problem.batch, 1, sizes.groups));
  }

  static int64_t backward_scratch_bytes(const Problem<T>& problem) {
    const Sizes<S> sizes(problem);
    return ticket_bytes(problem, groups_of(sizes, kBackwardWarps)) +
           sizeof(T) * (table_scalars(problem) + Flows<S>::scalars(problem.batch, sizes, problem.dim));
  }

  static cudaError_t forward(const Problem<T>& problem, T* value, void* saved, void* scratch, cudaStream_t stream) {
    const Sizes<S> sizes(problem);
    const int64_t groups = groups_of(sizes, kForwardWarps<S>), blocks = groups * problem.batch;
    if (blocks > INT32_MAX) return cudaErrorInvalidConfiguration;
    const int64_t bytes = ticket_bytes(problem, groups);
    const cudaError_t error = cudaMemsetAsync(scratch, 0, bytes, stream);
    if (error != cudaSuccess) return error;
    const Saved<S> kept = saved != nullptr ? Saved<S>(saved, problem.batch, sizes) : Saved<S>();
    const Edges<S> edges =
        saved != nullptr ? kept.edges : Edges<S>(static_cast<char*>(scratch) + bytes, problem.batch, 1, sizes.groups, true);
    const Tickets tickets(scratch, problem.batch, groups);
    return with_tile<S>(problem, [&](auto tile) {
      using Engine = RobustEngine<S, std::remove_pointer_t<decltype(tile)>, true>;
      tiled_forward<Engine><<<static_cast<unsigned>(blocks), dim3(kWarp, kForwardWarps<S>), 0, stream>>>(
          problem, value, kept, edges, tickets, groups);
      return cudaGetLastError();
    });
  }

  static cudaError_t backward(
      const Problem<T>& problem, const Gradient<T>& gradient, const void* saved, void* scratch, cudaStream_t stream) {
    const Sizes<S> sizes(problem);
    const int64_t groups = groups_of(sizes, kBackwardWarps), blocks = groups * problem.batch;
    if (blocks > INT32_MAX) return cudaErrorInvalidConfiguration;
    const int64_t bytes = ticket_bytes(problem, groups);
    const cudaError_t error = cudaMemsetAsync(scratch, 0, bytes, stream);
    if (error != cudaSuccess) return error;
    T* const table = reinterpret_cast<T*>(static_cast<char*>(scratch) + bytes);
    const Flows<S> flows(table + table_scalars(problem), problem.batch, sizes);
    const Saved<S> kept(const_cast<void*>(saved), problem.batch, sizes);
    const Tickets tickets(scratch, problem.batch, groups);
    return run_backward(problem, gradient, table, stream, [&](const Gradient<T>& target) {
      return with_tile<S>(problem, [&](auto tile) {
        using Engine = RobustEngine<S, std::remove_pointer_t<decltype(tile)>, true>;
        return launch_backward<Engine>(
            tiled_backward<Engine>, blocks, kBackwardWarps, stream, problem, target, kept, flows, tickets, groups);
      });
    });
  }
};

}  // namespace

template <typename T>
Variant<T> tiled_variant() {
  return strip_variant<T, Tiled, kTiledProductDims>("tiled");
}
template Variant<float> tiled_variant<float>();
template Variant<double> tiled_variant<double>();

}  // namespace softdtw
