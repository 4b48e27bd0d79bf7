// Few pairs of float32 series of few dimensions: forward by the warps of warp_specialised.cuh, which needs fewer instructions a cell
// than warps that hand costs over. What is saved is multivariate's, and so is backward.
#include "cuda/costs/few_dims_tile.cuh"
#include "cuda/kernels/multivariate/costs/vector_cost.cuh"
#include "cuda/select/face.h"
#include "warp_specialised.cuh"

namespace softdtw {
namespace {

// Tiles of a cost (vector_cost.cuh), of vectors of up to 4 kGroups numbers.
template <class CostType, int kGroups, bool kFours, bool kHasOptions>
struct TilesOf {
  template <class S>
  using Plain = FewTile<S, kGroups, kFours, CostType>;
  template <class S>
  using Tile = std::conditional_t<kHasOptions, InBand<S, Plain<S>>, Plain<S>>;
};

template <class CostType, bool kFours, bool kHasOptions = false>
cudaError_t launch(
    const Problem<float>& problem, int rows, float* value, void* saved, Scratch& scratch, cudaStream_t stream) {
  return problem.dim <= 4 ? launch_warp_specialised_forward<TilesOf<CostType, 1, kFours, kHasOptions>::template Tile>(
                                rows, problem, value, saved, scratch, stream)
                          : launch_warp_specialised_forward<TilesOf<CostType, 2, kFours, kHasOptions>::template Tile>(
                                rows, problem, value, saved, scratch, stream);
}

cudaError_t forward(
    const Problem<float>& problem, const Plan& plan, float* value, void* saved, Scratch& scratch, cudaStream_t stream) {
  return with_cost<VectorCosts>(problem.cost, [&](auto type) {
    using CostType = decltype(type);
    if (!call_of(problem, true).is_plain())
      return launch<CostType, false, true>(problem, plan.forward_rows, value, saved, scratch, stream);
    // A vector is read once for all lanes, so reading it by fours gains little: what is compiled for it is for one cost alone.
    if constexpr (std::is_same_v<CostType, Squared>)
      if (reads_fours(problem)) return launch<CostType, true>(problem, plan.forward_rows, value, saved, scratch, stream);
    return launch<CostType, false>(problem, plan.forward_rows, value, saved, scratch, stream);
  });
}

}  // namespace

Face<float> few_dims_face() { return {multivariate_face().saved_bytes, forward, multivariate_face().backward}; }

}  // namespace softdtw
