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

constexpr int kBackwardWarps = 4;

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
__global__ void __launch_bounds__(kWarp* kBackwardWarps, Engine::kBackwardBlocks) tiled_backward(
    const __grid_constant__ Problem<typename S::Scalar> problem,
    const __grid_constant__ Gradient<typename S::Scalar> gradient, typename Engine::Kept saved,
    typename Engine::Upwards flows, Tickets tickets, int64_t groups) {
  __shared__ Progress words[kBackwardWarps];
  const int warp = threadIdx.y;
  if (threadIdx.x == 0) words[warp] = 0;
  const auto [pair, group] = take_turn(tickets, problem.batch);
  const Extent extent = problem.extent(pair);
  if (!has_gradient(gradient, extent, pair)) {
    if (group == 0) invalid_backward(problem, gradient, extent, pair);
    return;
  }
  // Groups and warps count from the pair's last strip.
  const int strip = strips_of<S>(extent) - 1 - (group * kBackwardWarps + warp);
  if (strip < 0) return;

  Progress* const pair_words = tickets.words + pair * groups;
  BackwardStrip job;
  job.pair = job.row = pair;
  job.strip = strip;
  job.own_word = &words[warp];
  if (group + warp > 0)
    job.producer = warp > 0 ? Neighbour{&words[warp - 1], nullptr} : Neighbour{nullptr, pair_words + group - 1};
  if (warp == kBackwardWarps - 1) job.far_word = pair_words + group;
  Engine::backward(problem, gradient, extent, job, saved, flows);
}

template <class Engine, typename T>
cudaError_t launch_forward(
    const Problem<T>& problem, T* value, const typename Engine::Kept& kept, void* tickets, void* row, cudaStream_t stream) {
  using S = typename Engine::S;
  const Edges<S> edges = kept.memory != nullptr ? kept.edges : Edges<S>::rows(row, Sizes<S>(problem).groups);
  return with_tickets<S>(
      problem, tickets, kForwardWarps<S>, stream, [&](const Tickets& zeroed, int64_t groups, int64_t blocks) {
        return launch(
            tiled_forward<Engine>, blocks, kForwardWarps<S>, Engine::kForwardBytes, stream, problem, value, kept, edges,
            zeroed, groups);
      });
}

template <class Engine, typename T>
cudaError_t launch_backward(
    const Problem<T>& problem, const Gradient<T>& gradient, const typename Engine::Kept& kept, void* tickets, void* flows,
    cudaStream_t stream) {
  using S = typename Engine::S;
  const Sizes<S> sizes(problem);
  return with_tickets<S>(
      problem, tickets, kBackwardWarps, stream, [&](const Tickets& zeroed, int64_t groups, int64_t blocks) {
        return launch(
            tiled_backward<Engine>, blocks, kBackwardWarps, Engine::kBackwardBytes, stream, problem, gradient, kept,
            typename Engine::Upwards(flows, problem.batch, sizes), zeroed, groups);
      });
}

template <class S>
Saved<S> kept(const Problem<typename S::Scalar>& problem, void* saved) {
  const Sizes<S> sizes(problem);
  return saved == nullptr ? Saved<S>() : Saved<S>(saved, sizes, Saved<S>::bytes_of_pair(sizes));
}

template <typename T>
struct Tiled {
  // Of either pass, as many tickets as the smallest blocks need.
  template <class S>
  static int64_t least_ticket_bytes(const Problem<T>& problem, S) {
    return ticket_bytes<S>(problem, 1);
  }

  static int64_t saved_bytes(const Problem<T>& problem, const Plan& plan) {
    return with_shape<T>(plan.rows, [&](auto shape) {
      using S = decltype(shape);
      return problem.batch * Saved<S>::bytes_of_pair(Sizes<S>(problem));
    });
  }
  static int64_t forward_scratch_bytes(const Problem<T>& problem, const Plan& plan, bool save) {
    return with_shape<T>(plan.forward_rows, [&](auto shape) {
      using S = decltype(shape);
      const int64_t row = Edges<S>::bytes_of_rows(problem.batch, Sizes<S>(problem).groups);
      return least_ticket_bytes(problem, shape) + (save ? 0 : row);
    });
  }
  static int64_t backward_scratch_bytes(const Problem<T>& problem, const Plan& plan) {
    return with_shape<T>(plan.rows, [&](auto shape) {
      using S = decltype(shape);
      const int64_t flows = Flows<S>::scalars(problem.batch, Sizes<S>(problem), problem.dim);
      return least_ticket_bytes(problem, shape) + static_cast<int64_t>(sizeof(T)) * (table_scalars(problem) + flows);
    });
  }

  static cudaError_t forward(
      const Problem<T>& problem, const Plan& plan, T* value, void* saved, void* scratch, cudaStream_t stream) {
    return with_shape<T>(plan.forward_rows, [&](auto shape) {
      using S = decltype(shape);
      void* const row = static_cast<char*>(scratch) + least_ticket_bytes(problem, shape);
      return with_tile<S>(problem, [&](auto tile) {
        using Engine = ExtendedRange<S, std::remove_pointer_t<decltype(tile)>, true>;
        return launch_forward<Engine>(problem, value, kept<S>(problem, saved), scratch, row, stream);
      });
    });
  }

  static cudaError_t backward(
      const Problem<T>& problem, const Plan& plan, const Gradient<T>& gradient, const void* saved, void* scratch,
      cudaStream_t stream) {
    return with_shape<T>(plan.rows, [&](auto shape) {
      using S = decltype(shape);
      T* const table = reinterpret_cast<T*>(static_cast<char*>(scratch) + least_ticket_bytes(problem, shape));
      void* const flows = table + table_scalars(problem);
      const Saved<S> memory = kept<S>(problem, const_cast<void*>(saved));
      return run_backward(problem, gradient, table, stream, [&](const Gradient<T>& target) {
        return with_tile<S>(problem, [&](auto tile) {
          using Engine = ExtendedRange<S, std::remove_pointer_t<decltype(tile)>, true>;
          // Series of one dimension have strips of four rows here, or warps that rebuild (warp_specialised.cu).
          if constexpr (Engine::kIsAhead)
            return cudaErrorInvalidValue;
          else
            return launch_backward<Engine>(problem, target, memory, scratch, flows, stream);
        });
      });
    });
  }
};

}  // namespace

template <typename T>
Face<T> tiled_face() {
  return face<T, Tiled<T>>();
}
template Face<float> tiled_face<float>();
template Face<double> tiled_face<double>();

}  // namespace softdtw
