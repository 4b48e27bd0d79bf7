// Few pairs of float32 series of few dimensions: forward by the warps of warp_specialised.cuh, which needs fewer instructions a cell
// than warps that hand costs over. What is saved is multivariate's, and so is backward.
#include "cuda/costs/few_dims_tile.cuh"
#include "cuda/select/face.h"
#include "warp_specialised.cuh"

namespace softdtw {
namespace {

// Tiles of vectors of up to 4 kGroups numbers. Of calls without a band and a penalty, too: it is not the sweep that asks for these. A vector
// is read once for all lanes, so reading it by fours would gain little.
template <int kGroups, class CostType>
struct TilesOf {
  template <class S>
  using Tile = InBand<S, FewTile<S, kGroups, false, CostType>>;
};

cudaError_t forward(
    const Problem<float>& problem, const Plan& plan, float* value, void* saved, Scratch& scratch, cudaStream_t stream) {
  return with_squared_or_not(problem.cost, [&](auto type) {
    using CostType = decltype(type);
    return problem.dim <= 4 ? launch_warp_specialised_forward<TilesOf<1, CostType>::template Tile>(
                                  plan.forward_rows, problem, value, saved, scratch, stream)
                            : launch_warp_specialised_forward<TilesOf<2, CostType>::template Tile>(
                                  plan.forward_rows, problem, value, saved, scratch, stream);
  });
}

}  // namespace

Face<float> few_dims_face() { return {multivariate_face().saved_bytes, forward, multivariate_face().backward}; }

}  // namespace softdtw
