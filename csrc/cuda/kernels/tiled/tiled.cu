// tiled: one pair spread over many blocks in one launch, for long pairs and small batches, to any length.
//
// Threads to work: a block of W warps takes a ticket, which stands for W consecutive strips (strip.cuh) of one pair; ticket
// order is top strips first, all pairs side by side. Within a block warps run as a pipeline, as in stencil.cu; the block's
// last warp hands its edge through global memory to whichever block holds the next ticket of the pair.
#include "cuda/kernels/extended_range/engines.cuh"
#include "cuda/select/face.h"
#include "cuda/strips/tickets.cuh"

namespace softdtw {
namespace {

constexpr int kFewestBackwardWarps = 3;  // of an Engine

// Strips of two rows a lane are for few pairs, which leave a warp a quarter of a multiprocessor to itself.
template <class S>
constexpr int kForwardWarps = S::kRows == 2 && sizeof(typename S::Scalar) == 4 ? 4 : 8;

template <class Engine, class S = typename Engine::S>
__global__ void __launch_bounds__(kWarp* kForwardWarps<S>, Engine::kIsAhead ? 3 : 16 / kForwardWarps<S>) tiled_forward(
    const __grid_constant__ Problem<typename S::Scalar> problem, typename S::Scalar* value, typename Engine::Kept saved,
    Edges<S> edges, Tickets tickets, int64_t groups) {
  __shared__ Progress words[kForwardWarps<S>];
  const int warp = threadIdx.y;
  if (threadIdx.x == 0) words[warp] = 0;
  const auto [pair, group] = take_turn(tickets, problem.batch);
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
__global__ void __launch_bounds__(kWarp* Engine::kBackwardWarps, Engine::kBackwardBlocks) tiled_backward(
    const __grid_constant__ Problem<typename S::Scalar> problem,
    const __grid_constant__ Gradient<typename S::Scalar> gradient, typename Engine::Kept saved,
    typename Engine::Upwards flows, Tickets tickets, int64_t groups) {
  __shared__ Progress words[Engine::kBackwardWarps];
  const int warp = threadIdx.y;
  if (threadIdx.x == 0) words[warp] = 0;
  const auto [pair, group] = take_turn(tickets, problem.batch);
  const Extent extent = problem.extent(pair);
  if (!has_gradient(gradient, extent, pair)) {
    if (group == 0) invalid_backward(problem, gradient, pair);
    return;
  }
  // Groups and warps count from the pair's last strip.
  const int strip = strips_of<S>(extent) - 1 - (group * Engine::kBackwardWarps + warp);
  if (strip < 0) return;

  Progress* const pair_words = tickets.words + pair * groups;
  BackwardStrip job;
  job.pair = job.row = pair;
  job.strip = strip;
  job.own_word = &words[warp];
  if (group + warp > 0)
    job.producer = warp > 0 ? Neighbour{&words[warp - 1], nullptr} : Neighbour{nullptr, pair_words + group - 1};
  if (warp == Engine::kBackwardWarps - 1) job.far_word = pair_words + group;
  Engine::backward(problem, gradient, extent, job, saved, flows);
}

template <typename T>
int64_t saved_bytes(const Problem<T>& problem, const Plan& plan) {
  return with_shape<T>(plan.rows, [&](auto shape) {
    using S = decltype(shape);
    return problem.batch * Saved<S>::bytes_of_pair(Sizes<S>(problem));
  });
}

template <typename T>
cudaError_t forward(
    const Problem<T>& problem, const Plan& plan, T* value, void* saved, Scratch& scratch, cudaStream_t stream) {
  return with_shape<T>(plan.forward_rows, [&](auto shape) {
    using S = decltype(shape);
    constexpr int kWarps = kForwardWarps<S>;
    const ForwardMemory<S> memory(problem, kWarps, saved, scratch);
    return with_tile<S>(problem, [&](auto tile, auto takes_options) {
      using Engine = ExtendedRange<S, std::remove_pointer_t<decltype(tile)>, true, takes_options()>;
      const auto run = [&](const Tickets& tickets, int64_t groups, int64_t blocks) {
        return launch(
            tiled_forward<Engine>, blocks, kWarps, Engine::kForwardBytes, stream, problem, value, memory.saved,
            memory.edges, tickets, groups);
      };
      return with_tickets<S>(problem, memory.tickets, kWarps, stream, run);
    });
  });
}

template <typename T>
cudaError_t backward(
    const Problem<T>& problem, const Plan& plan, const Gradient<T>& gradient, const void* saved, Scratch& scratch,
    cudaStream_t stream) {
  return with_shape<T>(plan.rows, [&](auto shape) {
    using S = decltype(shape);
    const Sizes<S> sizes(problem);
    const auto parts = scratch.parts(
        ticket_bytes<S>(problem, kFewestBackwardWarps), table_scalars(problem) * sizeof(T),
        Flows<S>::scalars(problem.batch, sizes, problem.dim) * sizeof(T));
    const Saved<S> kept = saved_at<S>(problem, saved);
    const Flows<S> flows(parts[2], problem.batch, sizes);
    T* const table = reinterpret_cast<T*>(parts[1]);
    return run_backward(problem, gradient, table, stream, [&](const Gradient<T>& target) {
      return with_tile<S>(problem, [&](auto tile, auto takes_options) {
        using Engine = ExtendedRange<S, std::remove_pointer_t<decltype(tile)>, true, takes_options()>;
        const auto run = [&](const Tickets& tickets, int64_t groups, int64_t blocks) {
          // Series of one dimension have strips of four rows here, or warps that rebuild (warp_specialised.cu).
          if constexpr (Engine::kIsAhead)
            return cudaErrorInvalidValue;
          else
            return launch(
                tiled_backward<Engine>, blocks, Engine::kBackwardWarps, Engine::kBackwardBytes, stream, problem, target,
                kept, flows, tickets, groups);
        };
        return with_tickets<S>(problem, parts[0], Engine::kBackwardWarps, stream, run);
      });
    });
  });
}

}  // namespace

SOFTDTW_DEFINE_FACE(tiled_face)

}  // namespace softdtw
