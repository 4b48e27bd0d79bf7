// stencil: one block per pair, the table never leaves the chip.
//
// Threads to work: block b has pair b, and where there are fewer blocks than pairs, every one that many further, or what other kernels
// have left of these. W warps, all of the block or a team (team.cuh), take consecutive strips of a pair (strip.cuh), so strip s belongs to
// warp s % W, and a round is W strips. Within a round warps run as a pipeline: warp w sweeps its strip while warp w - 1 is still ahead
// of it in the strip above. W = 1 for many pairs (no waiting at all), more for few.
#include <algorithm>

#include "cuda/costs/few_dims_tile.cuh"
#include "cuda/kernels/extended_range/engines.cuh"
#include "cuda/kernels/linear_domain/linear_domain.h"
#include "cuda/select/face.h"
#include "team.cuh"

namespace softdtw {
namespace {

// Warps of a multiprocessor that registers are given out for: of blocks of kStencilWarps, or of one block of teams.
template <class Engine>
constexpr int kForwardWarps = kStencilWarps * Engine::kForwardBlocks;
template <class Engine>
constexpr int kBackwardWarps = kStencilWarps * Engine::kBackwardBlocks;

// Calls go(team, pair) for the block's pairs: those that are left, or its own one, if that is.
template <bool kHasTeams, class S, class Go>
__device__ __forceinline__ void for_pairs_of_block(
    const Problem<typename S::Scalar>& problem, const PairsLeft& left, int fewest, Progress* words, Go&& go) {
  if constexpr (kHasTeams) {
    Team team(left, problem.batch, fewest, words);
    const int rounds = static_cast<int>(problem.n / S::kStripRows) + 2;
    team.for_each_pair(left, problem.batch, rounds, [&](int64_t pair) { go(team, pair); });
  } else if (left.has(blockIdx.x)) {
    go(WholeBlock(words), int64_t{blockIdx.x});
  }
}

template <class Engine, bool kHasTeams, class S = typename Engine::S>
__global__ void __launch_bounds__(
    kWarp*(kHasTeams ? kForwardWarps<Engine> : kStencilWarps), kHasTeams ? 1 : Engine::kForwardBlocks)
    stencil_forward(
        const __grid_constant__ Problem<typename S::Scalar> problem, typename S::Scalar* value, typename Engine::Kept saved,
        Edges<S> edges, const __grid_constant__ PairsLeft left, int fewest) {
  __shared__ Progress words[kHasTeams ? kForwardWarps<Engine> : kStencilWarps];
  const auto sweep = [&](const auto& team, int64_t pair) {
    const int warp = team.warp, warps = team.warps;
    const Extent extent = problem.extent(pair);
    if (!extent.valid()) {
      if (warp == 0 && threadIdx.x == 0) value[pair] = NAN;
      return;
    }
    const int strips = strips_of<S>(extent);
    for (int strip = warp, round = 0; strip < strips; strip += warps, ++round) {
      ForwardStrip<S> job;
      job.pair = pair;
      job.strip = strip;
      job.round = team.first_round + round;
      job.edges = edges;
      if (warps > 1) {
        if (strip > 0) job.producer = {&team.words[(warp + warps - 1) % warps], nullptr, job.round - (warp == 0)};
        job.own_word = &team.words[warp];
      }
      Engine::forward(problem, extent, job, saved, value);
    }
  };
  for_pairs_of_block<kHasTeams, S>(problem, left, fewest, words, sweep);
}

template <class Engine, bool kHasTeams, class S = typename Engine::S>
__global__ void __launch_bounds__(
    kWarp*(kHasTeams ? kBackwardWarps<Engine> : kStencilWarps), kHasTeams ? 1 : Engine::kBackwardBlocks)
    stencil_backward(
        const __grid_constant__ Problem<typename S::Scalar> problem,
        const __grid_constant__ Gradient<typename S::Scalar> gradient, typename Engine::Kept saved,
        typename Engine::Upwards flows, int64_t rows, const __grid_constant__ PairsLeft left, int fewest) {
  ptx::let_next_kernel_start();
  __shared__ Progress words[kHasTeams ? kBackwardWarps<Engine> : kStencilWarps];
  const auto go_back = [&](const auto& team, int64_t pair) {
    const int warp = team.warp, warps = team.warps;
    const Extent extent = problem.extent(pair);
    if (!has_gradient(gradient, extent, pair)) {
      if (warp == 0) invalid_backward(problem, gradient, pair, threadIdx.x, kWarp);
      return;
    }
    // Warp w takes the strips w, w + W, ... counted from the last one.
    const int strips = strips_of<S>(extent);
    for (int i = warp, round = 0; i < strips; i += warps, ++round) {
      BackwardStrip job;
      job.pair = pair;
      job.row = blockIdx.x;
      if (kHasTeams) job.row = rows == problem.batch ? pair : job.row * blockDim.y + team.number;
      job.strip = strips - 1 - i;
      job.round = team.first_round + round;
      if (warps > 1) {
        if (i > 0) job.producer = {&team.words[(warp + warps - 1) % warps], nullptr, job.round - (warp == 0)};
        job.own_word = &team.words[warp];
      }
      Engine::backward(problem, gradient, extent, job, saved, flows);
    }
  };
  for_pairs_of_block<kHasTeams, S>(problem, left, fewest, words, go_back);
}

// Calls launch(whether with teams) for an engine whose pairs are left by others, or are all of a problem's.
template <class Engine, class Launch>
cudaError_t with_teams(bool are_left, Launch&& launch) {
  if constexpr (Engine::kMayHaveTeams)
    if (are_left) return launch(std::true_type());
  if constexpr (Engine::kIsLeft)
    return cudaErrorInvalidValue;
  else
    return launch(std::false_type());
}

// As with_tile, for forward, where series of few dimensions have tiles of their own.
template <class S, class Launch>
cudaError_t with_forward_tile(const Problem<typename S::Scalar>& problem, const Plan& plan, Launch&& launch) {
  if constexpr (sizeof(typename S::Scalar) == 4)
    if (const Call call = call_of(problem, false);
        reads_vectors(call, S::kRows) && call.is_plain() && !plan.gives_up_pairs())
      return with_squared_or_not(problem.cost, [&](auto type) {
        using Tile = FewTile<S, held_dims(S::kRows) / 4, true, decltype(type)>;
        return launch(static_cast<Tile*>(nullptr), std::false_type());
      });
  return with_tile<S, true>(problem, launch, plan.gives_up_pairs());
}

// Calls f(shape, layout of what is saved).
template <typename T, class F>
auto with_layout(const Problem<T>& problem, const Plan& plan, F&& f) {
  return with_shape<T>(plan.rows, [&](auto shape) { return f(shape, SavedLayout<decltype(shape)>(problem, plan)); });
}

template <typename T>
int64_t saved_bytes(const Problem<T>& problem, const Plan& plan) {
  return with_layout(problem, plan, [](auto, const auto& layout) { return layout.bytes(); });
}

// Memory that integer log2 of vectors needs for its edges, where nothing is saved, or for its flows.
template <typename T>
int64_t vector_scratch(const Problem<T>& problem, const Plan& plan, bool keeps, bool goes_back) {
  if constexpr (sizeof(T) == 4)
    if (plan.is(Specialization::kVectorLog2)) {
      const VectorBytes bytes = vector_bytes_of_pair(problem);
      return problem.batch * (goes_back ? bytes.flow : keeps ? 0 : bytes.edge);
    }
  return 0;
}

// By those that may give pairs up.
template <typename T>
cudaError_t first_forward(
    const Problem<T>& problem, const Plan& plan, T* value, char* saved, int64_t stride, char* scratch, PairStatus* statuses,
    cudaStream_t stream) {
  if constexpr (sizeof(T) == 4) {
    if (plan.is(Specialization::kBanded)) return launch_banded_forward(problem, value, saved, stride, statuses, stream);
    if (plan.is(Specialization::kVectorLog2)) {
      const bool keeps = saved != nullptr;
      return launch_vector_forward(
          problem, keeps, value, keeps ? saved : scratch, keeps ? stride : vector_bytes_of_pair(problem).edge, statuses,
          stream);
    }
  }
  return launch_short_pairs_forward(
      problem, plan.is(Specialization::kLinearDomain), value, saved, stride, statuses, stream);
}
template <typename T>
cudaError_t first_backward(
    const Problem<T>& problem, const Plan& plan, const Gradient<T>& gradient, char* saved, int64_t stride, char* scratch,
    PairStatus* statuses, cudaStream_t stream) {
  if constexpr (sizeof(T) == 4) {
    if (plan.is(Specialization::kBanded)) return launch_banded_backward(problem, gradient, saved, stride, statuses, stream);
    if (plan.is(Specialization::kVectorLog2))
      return launch_vector_backward(problem, gradient, saved, stride, scratch, statuses, stream);
  }
  return launch_short_pairs_backward(
      problem, plan.is(Specialization::kLinearDomain), gradient, saved, stride, statuses, stream);
}

template <typename T>
cudaError_t forward(
    const Problem<T>& problem, const Plan& plan, T* value, void* saved, Scratch& scratch, cudaStream_t stream) {
  return with_layout(problem, plan, [&](auto shape, const auto& layout) {
    using S = decltype(shape);
    const Sizes<S> sizes(problem);
    const bool keeps = saved != nullptr;
    const auto parts = scratch.parts(
        keeps ? 0 : Edges<S>::bytes_of_rows(problem.batch, sizes.groups), keeps ? 0 : layout.status_bytes(),
        vector_scratch(problem, plan, keeps, false));
    PairStatus* statuses = nullptr;
    if (plan.gives_up_pairs()) {
      statuses = static_cast<PairStatus*>(keeps ? saved : parts[1]);
      const cudaError_t error = first_forward(
          problem, plan, value, layout.kept_memory(saved), layout.bytes_of_pair(), parts[2], statuses, stream);
      if (error != cudaSuccess) return error;
    }
    return with_forward_tile<S>(problem, plan, [&](auto tile, auto takes_options) {
      using Engine = ExtendedRange<S, std::remove_pointer_t<decltype(tile)>, false, takes_options()>;
      const Saved<S> kept = layout.template kept<Engine>(saved);
      return with_teams<Engine>(plan.gives_up_pairs(), [&](auto has_teams) {
        const auto grid = layout.grid(has_teams(), kStencilWarps, kForwardWarps<Engine>, Engine::kForwardBytes);
        return launch(
            stencil_forward<Engine, has_teams()>, grid.blocks, grid.warps, Engine::kForwardBytes, stream, problem, value,
            kept, keeps ? kept.edges : Edges<S>::rows(parts[0], sizes.groups), layout.left(statuses), grid.fewest);
      });
    });
  });
}

template <typename T>
cudaError_t backward(
    const Problem<T>& problem, const Plan& plan, const Gradient<T>& gradient, const void* saved, Scratch& scratch,
    cudaStream_t stream) {
  void* const memory = const_cast<void*>(saved);
  return with_layout(problem, plan, [&](auto shape, const auto& layout) {
    using S = decltype(shape);
    const Sizes<S> sizes(problem);
    const auto parts =
        scratch.parts(table_scalars(problem) * sizeof(T), layout.flow_bytes(), vector_scratch(problem, plan, true, true));
    return run_backward(problem, gradient, reinterpret_cast<T*>(parts[0]), stream, [&](const Gradient<T>& target) {
      PairStatus* const statuses = plan.gives_up_pairs() ? static_cast<PairStatus*>(memory) : nullptr;
      // The slowest first; others may go on beside it.
      const auto go_back = [&](auto tile, auto takes_options) {
        using Engine = ExtendedRange<S, std::remove_pointer_t<decltype(tile)>, false, takes_options()>;
        // Each of the pairs under way has a row of what flows between its strips.
        return with_teams<Engine>(plan.gives_up_pairs(), [&](auto has_teams) {
          const auto grid =
              layout.grid(has_teams(), Engine::kBackwardWarps, kBackwardWarps<Engine>, Engine::kBackwardBytes);
          const int64_t rows = layout.rows();
          return launch(
              stencil_backward<Engine, has_teams()>, grid.blocks, grid.warps, Engine::kBackwardBytes, stream, problem,
              target, layout.template kept<Engine>(memory), Flows<S>(parts[1], rows, sizes), rows, layout.left(statuses),
              grid.fewest);
        });
      };
      const cudaError_t error = with_tile<S, true>(problem, go_back, plan.gives_up_pairs());
      if (error != cudaSuccess || !plan.gives_up_pairs()) return error;
      return first_backward(
          problem, plan, target, layout.kept_memory(memory), layout.bytes_of_pair(), parts[2], statuses, stream);
    });
  });
}

}  // namespace

SOFTDTW_DEFINE_FACE(stencil_face)

}  // namespace softdtw
