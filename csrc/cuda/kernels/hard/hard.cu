// Hard DTW, (9), by blocks of strips (hard_block.cuh), for one pair or many. A path is walked by one warp per pair.
#include <type_traits>

#include "hard.h"
#include "hard_block.cuh"
#include "hard_tile.cuh"
#include "rings/hard_banded.h"

namespace softdtw {
namespace {

// Calls f with a null pointer of the tile's type (hard_tile.cuh) that the plan asks for. Longer chunks are fewer, and tiles whose
// costs do not stand in registers have room for them.
template <typename T, class F>
auto with_tile(const HardPlan& plan, F&& f) {
  if constexpr (std::is_same_v<T, double>) {
    return f(static_cast<HardDenseTile<Shape<T, 2>>*>(nullptr));
  } else {
    const auto with_rows = [&](auto* low, auto* high) { return plan.rows == 2 ? f(low) : f(high); };
    using Two = Shape<T, 2, 16>;
    using Four = Shape<T, 4, 16>;
    switch (plan.sweep) {
      case HardSpecialization::kTall:
        return f(static_cast<HardUnivariateTile<Shape<T, kTallRows>>*>(nullptr));
      case HardSpecialization::kUnivariate:
        return with_rows(static_cast<HardUnivariateTile<Two>*>(nullptr), static_cast<HardUnivariateTile<Four>*>(nullptr));
      case HardSpecialization::kFourDims:
        return with_rows(static_cast<HardFewDimsTile<Two, 1>*>(nullptr), static_cast<HardFewDimsTile<Four, 1>*>(nullptr));
      case HardSpecialization::kEightDims:
        return with_rows(static_cast<HardFewDimsTile<Two, 2>*>(nullptr), static_cast<HardFewDimsTile<Four, 2>*>(nullptr));
      default:
        return with_rows(
            static_cast<HardDenseTile<Shape<T, 2>>*>(nullptr), static_cast<HardDenseTile<Shape<T, 4>>*>(nullptr));
    }
  }
}

template <class Tile, bool kPath, class S = typename Tile::Shape>
cudaError_t launch_hard(
    const Problem<typename S::Scalar>& problem, bool open_ends, typename S::Scalar* value, Span* spans, int width_of_others,
    Scratch& scratch, cudaStream_t stream) {
  constexpr bool kIsOneStrip = sizeof(typename S::Scalar) == 4 && S::kRows == 2;  // by hard_plan()
  const HardBlocks<S> blocks(problem);
  const HardMemory<S> memory(problem, blocks.tickets(), kPath, scratch);
  const cudaError_t error =
      launch_hard_sweep<Tile, kPath, !kIsOneStrip>(problem, blocks, open_ends, value, memory, stream, width_of_others);
  if constexpr (kPath)
    if (error == cudaSuccess) return launch_hard_path(problem, value, memory, spans, stream, width_of_others);
  return error;
}

}  // namespace

template <typename T>
cudaError_t hard_forward(
    const Problem<T>& problem, bool open_ends, T* value, Span* spans, Scratch& scratch, cudaStream_t stream) {
  const Call call = call_of(problem, spans != nullptr);
  HardPlan plan = hard_plan(call, current_device());
  int width_of_others = 0;
  if constexpr (std::is_same_v<T, float>)
    if (plan.sweep == HardSpecialization::kRing) {
      const cudaError_t error = hard_ring_forward(problem, plan.ring, value, spans, scratch, stream);
      if (error != cudaSuccess || !call.is_ragged) return error;
      width_of_others = static_cast<int>(plan.ring.of_side.width());
      plan = hard_plan(call, current_device(), false);
    }
  if constexpr (std::is_same_v<T, float>)
    if (plan.sweep == HardSpecialization::kMultivariate)
      return hard_multivariate_forward(problem, open_ends, value, spans, scratch, stream);
  return with_tile<T>(plan, [&](auto* tile) {
    using Tile = std::remove_pointer_t<decltype(tile)>;
    if constexpr (Tile::Shape::kRows != kTallRows)
      if (spans != nullptr)
        return launch_hard<Tile, true>(problem, open_ends, value, spans, width_of_others, scratch, stream);
    return launch_hard<Tile, false>(problem, open_ends, value, spans, width_of_others, scratch, stream);
  });
}

template cudaError_t hard_forward<float>(const Problem<float>&, bool, float*, Span*, Scratch&, cudaStream_t);
template cudaError_t hard_forward<double>(const Problem<double>&, bool, double*, Span*, Scratch&, cudaStream_t);

}  // namespace softdtw
