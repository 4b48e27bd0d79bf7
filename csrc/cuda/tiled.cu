// tiled: one pair spread over many blocks in one launch, for long pairs and small batches, to any length.
//
// Threads to work: a block of W warps takes a ticket, which stands for W consecutive strips (strip.cuh) of one pair; ticket
// order is top strips first, all pairs side by side. Within a block warps run as a pipeline, as in stencil.cu; the block's
// last warp hands its edge through global memory to whichever block holds the next ticket of the pair. Few pairs of float32
// series have several warps a strip: of one dimension meeting.cu's, which sweeps from both ends of the table, or team.cuh's, of several
// product.cu's, or in forward team.cuh's if they are few.
#include "engines.cuh"
#include "few_tile.cuh"
#include "meeting.h"
#include "strip_variant.h"
#include "team.cuh"
#include "tickets.cuh"

namespace softdtw {
namespace {

constexpr int kBackwardWarps = 4;

// Strips of two rows a lane are for few pairs, which leave a warp a quarter of a multiprocessor to itself.
template <class S>
constexpr int kForwardWarps = S::kRows == 2 && sizeof(typename S::Scalar) == 4 ? 4 : 8;
constexpr int kLeastForwardWarps = 1, kLeastBackwardWarps = 1;

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

template <class Engine>
cudaError_t launch_team_forward(
    const Problem<float>& problem, float* value, const typename Engine::Kept& kept, void* tickets, void* row,
    cudaStream_t stream) {
  using S = typename Engine::S;
  const Edges<S> edges = kept.memory != nullptr ? kept.edges : Edges<S>::rows(row, Sizes<S>(problem).groups);
  using Team = ForwardTeam<S, typename Engine::Tile>;
  const int teams = teams_of(sizeof(Team));
  return with_tickets<S>(problem, tickets, teams, stream, [&](const Tickets& zeroed, int64_t groups, int64_t blocks) {
    return launch_teams(
        tiled_team_forward<Engine>, blocks, kForwardTeam * teams, teams * sizeof(Team), stream, problem, value, kept, edges,
        zeroed, groups);
  });
}

template <class Engine, typename T>
cudaError_t launch_team_backward(
    const Problem<T>& problem, const Gradient<T>& gradient, const typename Engine::Kept& kept, void* tickets, void* flows,
    cudaStream_t stream) {
  using S = typename Engine::S;
  const int teams = teams_of(sizeof(TeamStages<S>));
  return with_tickets<S>(problem, tickets, teams, stream, [&](const Tickets& zeroed, int64_t groups, int64_t blocks) {
    return launch_teams(
        tiled_team_backward<Engine>, blocks, kBackwardTeam * teams, teams * sizeof(TeamStages<S>), stream, problem,
        gradient, kept, static_cast<FlowSlot<S>*>(flows), zeroed, groups);
  });
}

template <class S>
Saved<S> kept(const Problem<typename S::Scalar>& problem, void* saved) {
  const Sizes<S> sizes(problem);
  return saved == nullptr ? Saved<S>() : Saved<S>(saved, sizes, Saved<S>::bytes_of_pair(sizes));
}

// Rows a lane of the teams that go forward, or 0 where other blocks are faster; `rows`: those of the plan. Where strips of two rows
// would have to take turns, those of four are faster, if nothing is kept, which backward would want in strips of two.
int rows_of_teams(const Problem<float>& problem, bool keeps, int rows) {
  const auto blocks = [&](auto shape) { return problem.batch * groups_of(Sizes<decltype(shape)>(problem), kTeams); };
  if (rows == 2 && (keeps || teams_pay<1>(blocks(Shape<float, 2>()))))
    return teams_pay<2>(blocks(Shape<float, 2>())) ? 2 : 0;
  return teams_pay<2>(blocks(Shape<float, 4>())) ? 4 : 0;
}

template <template <class> class TileOf>
cudaError_t launch_teams_forward(
    int rows, const Problem<float>& problem, float* value, void* saved, void* tickets, void* row, cudaStream_t stream) {
  const auto run = [&](auto shape) {
    using S = decltype(shape);
    return launch_team_forward<RobustEngine<S, TileOf<S>, true>>(
        problem, value, kept<S>(problem, saved), tickets, row, stream);
  };
  return rows == 4 ? run(Shape<float, 4>()) : run(Shape<float, 2>());
}

template <class S>
struct Tiled {
  using T = typename S::Scalar;
  static constexpr bool kMayMeet = sizeof(T) == 4 && S::kRows == 2;  // meeting.h

  static int64_t ticket_bytes(const Problem<T>& problem, int warps) {
    return softdtw::ticket_bytes(problem.batch, groups_of(Sizes<S>(problem), warps));
  }
  static int64_t saved_bytes(const Problem<T>& problem) {
    const int64_t own = problem.batch * Saved<S>::bytes_of_pair(Sizes<S>(problem));
    if constexpr (kMayMeet)
      if (Meeting::applies(problem, S::kRows)) return std::max(own, Meeting::saved_bytes(problem));
    return own;
  }

  static int64_t forward_scratch_bytes(const Problem<T>& problem, bool save) {
    if constexpr (kMayMeet)
      if (Meeting::pays(problem, S::kRows, save)) return Meeting::forward_scratch_bytes(problem, save);
    const int64_t row = Edges<S>::bytes_of_rows(problem.batch, Sizes<S>(problem).groups);
    return ticket_bytes(problem, kLeastForwardWarps) + (save ? 0 : row);
  }

  static int64_t backward_scratch_bytes(const Problem<T>& problem) {
    if constexpr (kMayMeet)
      if (Meeting::pays(problem, S::kRows, true)) return Meeting::backward_scratch_bytes(problem);
    const Sizes<S> sizes(problem);
    int64_t flow_bytes = sizeof(T) * Flows<S>::scalars(problem.batch, sizes, problem.dim);
    if (sizeof(T) == 4 && S::kRows == 2)
      flow_bytes = std::max<int64_t>(flow_bytes, problem.batch * sizes.groups * sizeof(FlowSlot<S>));
    return ticket_bytes(problem, kLeastBackwardWarps) + sizeof(T) * table_scalars(problem) + flow_bytes;
  }

  static cudaError_t forward(const Problem<T>& problem, T* value, void* saved, void* scratch, cudaStream_t stream) {
    void* const row = static_cast<char*>(scratch) + ticket_bytes(problem, kLeastForwardWarps);
    if constexpr (kMayMeet)
      if (Meeting::pays(problem, S::kRows, saved != nullptr))
        return Meeting::forward(problem, value, saved, scratch, stream);
    if constexpr (sizeof(T) == 4)
      if (is_univariate(problem)) {
        const int rows = rows_of_teams(problem, saved != nullptr, S::kRows);
        if (rows > 0) return launch_teams_forward<UnivariateTile>(rows, problem, value, saved, scratch, row, stream);
        using Taller = Shape<T, 4>;
        if (S::kRows == 2 && saved == nullptr)
          return launch_forward<RobustEngine<Taller, UnivariateTile<Taller>, true>>(
              problem, value, Saved<Taller>(), scratch, row, stream);
      }
    return with_tile<S>(problem, [&](auto tile) {
      using Engine = RobustEngine<S, std::remove_pointer_t<decltype(tile)>, true>;
      return launch_forward<Engine>(problem, value, kept<S>(problem, saved), scratch, row, stream);
    });
  }

  static cudaError_t backward(
      const Problem<T>& problem, const Gradient<T>& gradient, const void* saved, void* scratch, cudaStream_t stream) {
    if constexpr (kMayMeet)
      if (Meeting::pays(problem, S::kRows, true)) return Meeting::backward(problem, gradient, saved, scratch, stream);
    T* const table = reinterpret_cast<T*>(static_cast<char*>(scratch) + ticket_bytes(problem, kLeastBackwardWarps));
    void* const flows = table + table_scalars(problem);
    const Saved<S> memory = kept<S>(problem, const_cast<void*>(saved));
    return run_backward(problem, gradient, table, stream, [&](const Gradient<T>& target) {
      return with_tile<S>(problem, [&](auto tile) {
        using Engine = RobustEngine<S, std::remove_pointer_t<decltype(tile)>, true>;
        if constexpr (Engine::kIsAhead)
          return launch_team_backward<Engine>(problem, target, memory, scratch, flows, stream);
        else
          return launch_backward<Engine>(problem, target, memory, scratch, flows, stream);
      });
    });
  }
};

// Forward of few pairs of few dimensions, in the place of product.cu's: a team needs fewer instructions a cell than warps that hand
// costs over. What it keeps is the same.
using TeamShape = Shape<float, 2>;

template <class S>
using Fours = FewTile<S, 1, true>;
template <class S>
using EightsInFours = FewTile<S, 2, true>;
template <class S>
using UpToFour = FewTile<S, 1, false>;
template <class S>
using UpToEight = FewTile<S, 2, false>;

int rows_of_few_dims(const Problem<float>& problem, bool keeps) {
  const bool are_few = problem.cost == Cost::kSqEuclidean && problem.dim > 1 && problem.dim <= kFewDims;
  return are_few ? rows_of_teams(problem, keeps, TeamShape::kRows) : 0;
}

cudaError_t forward_of_few_dims(
    int rows, const Problem<float>& problem, float* value, void* saved, void* scratch, cudaStream_t stream) {
  void* const row = static_cast<char*>(scratch) + Tiled<TeamShape>::ticket_bytes(problem, kLeastForwardWarps);
  if (problem.dim <= 4)
    return reads_fours(problem) ? launch_teams_forward<Fours>(rows, problem, value, saved, scratch, row, stream)
                                : launch_teams_forward<UpToFour>(rows, problem, value, saved, scratch, row, stream);
  return reads_fours(problem) ? launch_teams_forward<EightsInFours>(rows, problem, value, saved, scratch, row, stream)
                              : launch_teams_forward<UpToEight>(rows, problem, value, saved, scratch, row, stream);
}

}  // namespace

template <typename T>
Variant<T> tiled_variant() {
  constexpr auto others = strip_variant<T, Tiled, kTiledProductDims>;
  Variant<T> variant = others("tiled");
  if constexpr (std::is_same_v<T, float>) {
    variant.forward_scratch_bytes = [](const Problem<T>& problem, int rows, bool save) {
      return rows_of_few_dims(problem, save) > 0 ? Tiled<TeamShape>::forward_scratch_bytes(problem, save)
                                                 : others("tiled").forward_scratch_bytes(problem, rows, save);
    };
    variant.forward = [](const Problem<T>& problem, int rows, T* value, void* saved, void* scratch, cudaStream_t stream) {
      const int team_rows = rows_of_few_dims(problem, saved != nullptr);
      return team_rows > 0 ? forward_of_few_dims(team_rows, problem, value, saved, scratch, stream)
                           : others("tiled").forward(problem, rows, value, saved, scratch, stream);
    };
  }
  return variant;
}
template Variant<float> tiled_variant<float>();
template Variant<double> tiled_variant<double>();

}  // namespace softdtw
