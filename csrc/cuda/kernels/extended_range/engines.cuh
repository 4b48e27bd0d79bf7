// The extended range's strips as kernels launch them. Where another engine tries every pair first, this one computes those that were
// given up, in a launch of its own.
#pragma once

#include <cuda_runtime_api.h>

#include <algorithm>

#include "cuda/hardware/launch.cuh"
#include "cuda/kernels/banded/banded.h"
#include "cuda/kernels/foresight/pair_lists.cuh"
#include "cuda/kernels/vector_log2/vector_log2.h"
#include "cuda/kernels/warp_pair/warp_pair.cuh"
#include "cuda/select/blocks.h"
#include "cuda/select/plan.h"
#include "extended_range_strip.cuh"

namespace softdtw {

// Of a warp's shared memory, where costs come ready-made.
template <class S, class Tile, template <class> class Slab>
constexpr int bytes_of_slab() {
  if constexpr (kIsOfMatrix<Tile>)
    return sizeof(typename Slab<S>::Memory);
  else
    return 0;
}

// kFewPairs: latency is what counts. kTakesOptions: a band or a penalty in the plain sweep; others take them in the general one.
template <class S_, class Tile_, bool kFewPairs = false, bool kTakesOptions = false>
struct ExtendedRange {
  using S = S_;
  using Tile = Tile_;
  using T = typename S::Scalar;
  using Kept = Saved<S>;
  using Upwards = Flows<S>;
  // Whether others come first, and whether they may: what they leave has blocks of teams, but for ready-made costs.
  static constexpr bool kIsLeft = std::is_same_v<Tile, LeftOverTile<S>>,
                        kMayHaveTeams = sizeof(T) == 8 || Tile::kUnivariate || kIsLeft;
  static constexpr bool kIsAhead = kFewPairs && sizeof(T) == 4 && S::kRows == 2 && Tile::kUnivariate;
  static constexpr bool kIsOfMatrix = softdtw::kIsOfMatrix<Tile>;
  static constexpr bool kIsForwardAhead = kIsAhead || (kIsOfMatrix && S::kRows == 2);
  static constexpr int kForwardBlocks = sizeof(T) == 4 ? 4 : 2,
                       kBackwardBlocks = sizeof(T) == 4 && !kIsAhead && !kIsOfMatrix ? 3 : 2;
  // Of a block in backward, at most: a multiprocessor holds two blocks of three with their slabs, but one of four.
  static constexpr int kBackwardWarps = kIsOfMatrix ? 3 : 4;
  // Of a warp's shared memory.
  static constexpr int kForwardBytes = bytes_of_slab<S, Tile, MatrixNext>(),
                       kBackwardBytes = ExtendedStage<S>::kBytes + bytes_of_slab<S, Tile, MatrixStages>();

  __device__ static void forward(
      const Problem<T>& problem, const Extent& extent, const ForwardStrip<S>& job, const Kept& saved, T* value) {
    extended_forward_strip<S, Tile, kIsForwardAhead, kTakesOptions>(problem, extent, job, saved, value);
  }
  __device__ static void backward(
      const Problem<T>& problem, const Gradient<T>& gradient, const Extent& extent, const BackwardStrip& job,
      const Kept& saved, const Upwards& flows) {
    extended_backward_strip<S, Tile, kTakesOptions>(problem, gradient, extent, job, saved, flows);
  }
};

// What forward saves for backward in stencil: the statuses, where engines come first that may give pairs up, and for every pair
// what its engine keeps.
template <class S>
struct SavedLayout {
  using T = typename S::Scalar;
  const Problem<T>& problem;
  bool has_statuses, is_banded, is_of_vectors, has_lists;

  SavedLayout(const Problem<T>& problem_, const Plan& plan)
      : problem(problem_),
        has_statuses(plan.gives_up_pairs()),
        is_banded(plan.is(Specialization::kBanded)),
        is_of_vectors(plan.is(Specialization::kVectorLog2)),
        has_lists(has_statuses && !is_banded && !is_of_vectors && ShortPairLayout(problem_).has_lists) {}

  int64_t status_bytes() const {
    if (!has_statuses) return 0;
    const int64_t bytes = problem.batch * sizeof(PairStatus) + (has_lists ? PairLists::bytes(problem.batch) : 0);
    return (bytes + 255) / 256 * 256;
  }
  int64_t bytes_of_pair() const {
    const int64_t extended = Saved<S>::bytes_of_pair(Sizes<S>(problem));
    if (!has_statuses) return extended;
    if constexpr (sizeof(T) == 4) {
      if (is_banded) return std::max(extended, banded_bytes_of_pair(problem));
      if (is_of_vectors) return std::max(extended, vector_bytes_of_pair(problem).kept);
    }
    return std::max(extended, ShortPairLayout(problem).template bytes_of_pair<T>());
  }
  int64_t bytes() const { return status_bytes() + problem.batch * bytes_of_pair(); }
  // What the engines keep; null, if there is no memory.
  char* kept_memory(void* saved) const { return saved == nullptr ? nullptr : static_cast<char*>(saved) + status_bytes(); }
  // Of an engine; nothing, if there is no memory.
  template <class Engine>
  typename Engine::Kept kept(void* saved) const {
    using Kept = typename Engine::Kept;
    return saved == nullptr ? Kept() : Kept(kept_memory(saved), Sizes<typename Engine::S>(problem), bytes_of_pair());
  }
  // A launch of the extended range: its blocks, their warps, and of these how many a pair has at least (kernels/stencil/team.cuh).
  struct Grid {
    int64_t blocks;
    int warps, fewest;
  };
  // A block has a pair, and up to `most_of_pair` warps. has_teams: no more blocks than are under way at once, each with as many warps as
  // a pair has strips, of `most` that a multiprocessor has registers for. In a band strips wait for each other.
  Grid grid(bool has_teams, int most_of_pair, int most, int bytes_of_warp) const {
    const int64_t strips = Sizes<S>(problem).strips;
    if (!has_teams) {
      const int warps = std::min(stencil_warps(is_of_vectors ? 1 : problem.batch, strips), most_of_pair);
      return {problem.batch, warps, warps};
    }
    constexpr int kMostInBand = 4;
    const DeviceProperties& device = current_device();
    int warps = 1;
    while (warps < strips && 2 * warps <= (is_banded ? kMostInBand : most) &&
           2 * warps * bytes_of_warp <= device.block_bytes)
      warps *= 2;
    return {
        std::min(problem.batch, int64_t{device.processors} * (most / warps)), warps, is_banded ? 1 : std::min(warps, 2)};
  }
  // Pairs under way at once, at most: all, or of teams one for each warp.
  int64_t rows() const {
    constexpr int64_t kMostWarps = kStencilWarps * 4;
    const bool may_have_teams = has_statuses && problem.cost != Cost::kMatrix;
    return may_have_teams ? std::min(problem.batch, current_device().processors * kMostWarps) : problem.batch;
  }
  // Which they are, by the statuses.
  PairsLeft left(PairStatus* statuses) const {
    return has_lists ? PairLists(statuses, problem.batch).given_up() : PairsLeft{statuses};
  }
  // What flows between strips in backward.
  int64_t flow_bytes() const { return sizeof(T) * Flows<S>::scalars(rows(), Sizes<S>(problem), problem.dim); }
};

// Calls f(Shape<T, K>{}) for the K asked for. float64 has one shape: its weights take twice the registers.
template <typename T, class F>
auto with_shape(int rows, F&& f) {
  if constexpr (sizeof(T) == 8)
    return f(Shape<T, 2>{});
  else
    return rows == 2 ? f(Shape<T, 2>{}) : f(Shape<T, 4>{});
}

// Calls launch(tile, takes_options) with the tiles that suit the problem: float32 series of one dimension have their own, by the type of
// a null pointer. kMayBeLeft: other kernels may have come first, as `are_left` says. By plan.cpp a lane has two rows where costs
// are ready-made, of what others leave, and of all but one dimension where they cannot have come first.
template <class S, bool kMayBeLeft = false, class Launch>
cudaError_t with_tile(const Problem<typename S::Scalar>& problem, Launch&& launch, bool are_left = false) {
  constexpr bool kIsFloat32 = sizeof(typename S::Scalar) == 4;
  const Call call = call_of(problem, true);
  const auto with = [&](auto* tile) {
    if constexpr (S::kRows == 2)
      if (!call.is_plain()) return launch(tile, std::true_type());
    return launch(tile, std::false_type());
  };
  if constexpr (kIsFloat32)
    if (call.is_univariate()) {
      const auto tile = static_cast<UnivariateTile<S>*>(nullptr);
      if constexpr (kMayBeLeft) return with(tile);  // else backward is another kernel's, or has four rows a lane
      return launch(tile, std::false_type());
    }
  if constexpr (kIsFloat32 && S::kRows == 2 && kMayBeLeft) {
    constexpr int kMostBytes = kStencilWarps * ExtendedRange<S, MatrixTile<S>>::kBackwardBytes;
    if (problem.cost == Cost::kMatrix && current_device().block_bytes >= kMostBytes)
      return with(static_cast<MatrixTile<S>*>(nullptr));
    if (are_left) return launch(static_cast<LeftOverTile<S>*>(nullptr), std::true_type());
  }
  if constexpr (kMayBeLeft || S::kRows == 2)
    return with(static_cast<DenseTile<S>*>(nullptr));
  else
    return cudaErrorInvalidValue;
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
