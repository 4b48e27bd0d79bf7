// Few pairs of ready-made costs in float32: forward by the warps of warp_specialised.cuh, one of which copies costs and splits them ahead of
// the sweep. What is saved is multivariate's, and so is backward, whose gradient warps write E out.
#include "cuda/costs/matrix_tile.cuh"
#include "cuda/select/face.h"
#include "warp_specialised.cuh"

namespace softdtw {
namespace {

template <class S>
using ReadyMadeTile = InBand<S, MatrixTile<S>>;

cudaError_t forward(
    const Problem<float>& problem, const Plan& plan, float* value, void* saved, Scratch& scratch, cudaStream_t stream) {
  return launch_warp_specialised_forward<ReadyMadeTile>(plan.forward_rows, problem, value, saved, scratch, stream);
}

}  // namespace

Face<float> ready_made_face() { return {multivariate_face().saved_bytes, forward, multivariate_face().backward}; }

}  // namespace softdtw
