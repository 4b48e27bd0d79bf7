// Few pairs of float32 series of one dimension whose strips have several warps (warp_specialised.cuh).
#include "warp_specialised.cuh"

#include "cuda/select/face.h"

namespace softdtw {
namespace {

using S = Shape<float, 2>;  // of what is saved, but for strips of four rows, and of backward

template <class Tiles>
struct UnivariateTiles {
  template <class S>
  using Tile = typename Tiles::template Of<S, UnivariateTile<S>>;
};

cudaError_t forward(
    const Problem<float>& problem, const Plan& plan, float* value, void* saved, Scratch& scratch, cudaStream_t stream) {
  if (!plan.is_specialised) return tiled_face<float>().forward(problem, plan, value, saved, scratch, stream);
  return with_tiles(problem, [&](auto tiles) {
    return launch_warp_specialised_forward<UnivariateTiles<decltype(tiles)>::template Tile>(
        plan.forward_rows, problem, value, saved, scratch, stream);
  });
}
cudaError_t backward(
    const Problem<float>& problem, const Plan& plan, const Gradient<float>& gradient, const void* saved, Scratch& scratch,
    cudaStream_t stream) {
  if (plan.rows != S::kRows) return tiled_face<float>().backward(problem, plan, gradient, saved, scratch, stream);
  return with_tiles(problem, [&](auto tiles) {
    using Tile = typename UnivariateTiles<decltype(tiles)>::template Tile<S>;
    return launch_specialised_backward<ExtendedRange<S, Tile, true>>(problem, gradient, saved, scratch, stream);
  });
}

}  // namespace

// What is saved is tiled's, so that either pass may have tiled's blocks, where there are too many for this kernel's.
Face<float> warp_specialised_face() { return {tiled_face<float>().saved_bytes, forward, backward}; }

}  // namespace softdtw
