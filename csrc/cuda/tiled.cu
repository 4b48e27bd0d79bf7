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
constexpr int kLeastForwardWarps = 4;

template <class Engine, class S = typename Engine::S>
__global__ void __launch_bounds__(kWarp* kForwardWarps<S>, Engine::kIsAhead ? 3 : 16 / kForwardWarps<S>) tiled_forward(
    const __grid_constant__ Problem<typename S::Scalar> problem, typename S::Scalar* value, typename Engine::Kept saved,
    Edges<S> edges, Verdict* verdicts, Tickets tickets, int64_t groups) {
  __shared__ Progress words[kForwardWarps<S>];
  const int warp = threadIdx.y;
  if (threadIdx.x == 0) words[warp] = 0;
  const unsigned ticket = take_ticket(tickets);
  const int64_t pair = ticket % problem.batch;
  const int group = static_cast<int>(ticket / problem.batch);
  if (!Engine::kIsLinear && verdicts != nullptr && verdicts[pair] == Verdict::kAccepted) return;
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
  if (!Engine::forward(problem, extent, job, saved, value) && threadIdx.x == 0) verdicts[pair] = Verdict::kRejected;
}

template <class Engine, class S = typename Engine::S>
__global__ void __launch_bounds__(kWarp* kBackwardWarps, Engine::kBackwardBlocks) tiled_backward(
    const __grid_constant__ Problem<typename S::Scalar> problem,
    const __grid_constant__ Gradient<typename S::Scalar> gradient, typename Engine::Kept saved,
    typename Engine::Upwards flows, const Verdict* verdicts, Tickets tickets, int64_t groups) {
  __shared__ Progress words[kBackwardWarps];
  const int warp = threadIdx.y;
  if (threadIdx.x == 0) words[warp] = 0;
  const unsigned ticket = take_ticket(tickets);
  const int64_t pair = ticket % problem.batch;
  const int group = static_cast<int>(ticket / problem.batch);
  if (verdicts != nullptr && (verdicts[pair] == Verdict::kAccepted) != Engine::kIsLinear) return;
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
int64_t groups_of(const Sizes<S>& sizes, int warps) {
  return (sizes.strips + warps - 1) / warps;
}
// Tickets come first in scratch memory, padded to keep what follows aligned.
inline int64_t ticket_bytes(int64_t batch, int64_t groups) { return (Tickets::bytes(batch, groups) + 255) / 256 * 256; }

// Zeroes the tickets of a launch and calls launch(tickets, groups, blocks).
template <class S, class Launch>
cudaError_t with_tickets(
    const Problem<typename S::Scalar>& problem, void* memory, int warps, cudaStream_t stream, Launch&& launch) {
  const int64_t groups = groups_of(Sizes<S>(problem), warps), blocks = groups * problem.batch;
  if (blocks > INT32_MAX) return cudaErrorInvalidConfiguration;
  const cudaError_t error = cudaMemsetAsync(memory, 0, ticket_bytes(problem.batch, groups), stream);
  return error != cudaSuccess ? error : launch(Tickets(memory, problem.batch, groups), groups, blocks);
}

template <class Engine, typename T>
cudaError_t launch_forward(
    const Problem<T>& problem, T* value, const typename Engine::Kept& kept, void* tickets, void* row, Verdict* verdicts,
    cudaStream_t stream) {
  using S = typename Engine::S;
  const Edges<S> edges = kept.memory != nullptr ? kept.edges : Edges<S>::rows(row, Sizes<S>(problem).groups);
  return with_tickets<S>(
      problem, tickets, kForwardWarps<S>, stream, [&](const Tickets& zeroed, int64_t groups, int64_t blocks) {
        return launch(
            tiled_forward<Engine>, blocks, kForwardWarps<S>, Engine::kForwardBytes, stream, problem, value, kept, edges,
            verdicts, zeroed, groups);
      });
}

template <class Engine, typename T>
cudaError_t launch_backward(
    const Problem<T>& problem, const Gradient<T>& gradient, const typename Engine::Kept& kept, void* tickets, void* flows,
    const Verdict* verdicts, cudaStream_t stream) {
  using S = typename Engine::S;
  const Sizes<S> sizes(problem);
  return with_tickets<S>(
      problem, tickets, kBackwardWarps, stream, [&](const Tickets& zeroed, int64_t groups, int64_t blocks) {
        return launch(
            tiled_backward<Engine>, blocks, kBackwardWarps, Engine::kBackwardBytes, stream, problem, gradient, kept,
            typename Engine::Upwards(flows, problem.batch, sizes), verdicts, zeroed, groups);
      });
}

template <class S>
struct Tiled {
  using T = typename S::Scalar;
  using Layout = SavedLayout<S>;

  // Of whichever engine has more strips.
  static int64_t ticket_bytes(const Problem<T>& problem, int warps) {
    const int64_t robust = groups_of(Sizes<S>(problem), warps);
    if (!linear_applies(problem)) return softdtw::ticket_bytes(problem.batch, robust);
    return softdtw::ticket_bytes(problem.batch, std::max(robust, with_linear_engine(problem, [&](auto engine) {
                                                           using L = typename std::remove_pointer_t<decltype(engine)>::S;
                                                           return groups_of(Sizes<L>(problem), warps);
                                                         })));
  }

  static int64_t saved_bytes(const Problem<T>& problem) { return Layout::bytes(problem); }

  static int64_t row_bytes(const Problem<T>& problem) {
    return Edges<S>::bytes_of_rows(problem.batch, Sizes<S>(problem).groups);
  }
  static int64_t forward_scratch_bytes(const Problem<T>& problem, bool save) {
    return ticket_bytes(problem, kLeastForwardWarps) + (save ? 0 : row_bytes(problem) + Layout::verdict_bytes(problem));
  }

  static int64_t backward_scratch_bytes(const Problem<T>& problem) {
    return ticket_bytes(problem, kBackwardWarps) + sizeof(T) * table_scalars(problem) + Layout::flow_bytes(problem);
  }

  static cudaError_t forward(const Problem<T>& problem, T* value, void* saved, void* scratch, cudaStream_t stream) {
    Verdict* verdicts = nullptr;
    char* const row = static_cast<char*>(scratch) + ticket_bytes(problem, kLeastForwardWarps);
    if (linear_applies(problem) && linear_pays()) {
      verdicts = static_cast<Verdict*>(saved != nullptr ? saved : row + row_bytes(problem));
      cudaError_t error = cudaMemsetAsync(verdicts, 0, problem.batch * sizeof(Verdict), stream);  // kAccepted
      if (error == cudaSuccess)
        error = with_linear_engine(problem, [&](auto engine) {
          using Engine = std::remove_pointer_t<decltype(engine)>;
          return launch_forward<Engine>(
              problem, value, Layout::template kept<Engine>(problem, saved), scratch, row, verdicts, stream);
        });
      if (error != cudaSuccess) return error;
    }
    return with_tile<S>(problem, [&](auto tile) {
      using Engine = RobustEngine<S, std::remove_pointer_t<decltype(tile)>, true>;
      return launch_forward<Engine>(
          problem, value, Layout::template kept<Engine>(problem, saved), scratch, row, verdicts, stream);
    });
  }

  static cudaError_t backward(
      const Problem<T>& problem, const Gradient<T>& gradient, const void* saved, void* scratch, cudaStream_t stream) {
    T* const table = reinterpret_cast<T*>(static_cast<char*>(scratch) + ticket_bytes(problem, kBackwardWarps));
    void* const flows = table + table_scalars(problem);
    void* const memory = const_cast<void*>(saved);
    return run_backward(problem, gradient, table, stream, [&](const Gradient<T>& target) {
      const Verdict* verdicts = nullptr;
      if (linear_applies(problem) && linear_pays()) {
        verdicts = static_cast<const Verdict*>(saved);
        const cudaError_t error = with_linear_engine(problem, [&](auto engine) {
          using Engine = std::remove_pointer_t<decltype(engine)>;
          return launch_backward<Engine>(
              problem, target, Layout::template kept<Engine>(problem, memory), scratch, flows, verdicts, stream);
        });
        if (error != cudaSuccess) return error;
      }
      return with_tile<S>(problem, [&](auto tile) {
        using Engine = RobustEngine<S, std::remove_pointer_t<decltype(tile)>, true>;
        return launch_backward<Engine>(
            problem, target, Layout::template kept<Engine>(problem, memory), scratch, flows, verdicts, stream);
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
