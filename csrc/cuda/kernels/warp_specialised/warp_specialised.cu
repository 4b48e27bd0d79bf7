// Few pairs of float32 series whose strips have several warps (warp_specialised.cuh): of one dimension, and forward of few.
#include "warp_specialised.cuh"

#include "cuda/costs/few_dims_tile.cuh"
#include "cuda/select/face.h"

namespace softdtw {
namespace {

using S = Shape<float, 2>;  // of what is saved, but for strips of four rows, and of backward

template <class S>
using UnivariateWithOptions = WithOptions<S, UnivariateTile<S>>;

// One dimension.
cudaError_t forward(
    const Problem<float>& problem, const Plan& plan, float* value, void* saved, Scratch& scratch, cudaStream_t stream) {
  if (!plan.is_specialised) return tiled_face<float>().forward(problem, plan, value, saved, scratch, stream);
  if (has_options(problem))
    return launch_warp_specialised_forward<UnivariateWithOptions>(
        plan.forward_rows, problem, value, saved, scratch, stream);
  return launch_warp_specialised_forward<UnivariateTile>(plan.forward_rows, problem, value, saved, scratch, stream);
}
cudaError_t backward(
    const Problem<float>& problem, const Plan& plan, const Gradient<float>& gradient, const void* saved, Scratch& scratch,
    cudaStream_t stream) {
  if (plan.rows != S::kRows) return tiled_face<float>().backward(problem, plan, gradient, saved, scratch, stream);
  if (has_options(problem))
    return launch_specialised_backward<ExtendedRange<S, UnivariateWithOptions<S>, true>>(
        problem, gradient, saved, scratch, stream);
  return launch_specialised_backward<ExtendedRange<S, UnivariateTile<S>, true>>(problem, gradient, saved, scratch, stream);
}

template <class S>
using Fours = FewTile<S, 1, true>;
template <class S>
using EightsInFours = FewTile<S, 2, true>;
template <class S>
using UpToFour = FewTile<S, 1, false>;
template <class S>
using UpToEight = FewTile<S, 2, false>;

// Few dimensions: forward alone, which needs fewer instructions a cell than warps that hand costs over.
cudaError_t forward_of_few_dims(
    const Problem<float>& problem, const Plan& plan, float* value, void* saved, Scratch& scratch, cudaStream_t stream) {
  const int rows = plan.forward_rows;
  if (problem.dim <= 4)
    return reads_fours(problem) ? launch_warp_specialised_forward<Fours>(rows, problem, value, saved, scratch, stream)
                                : launch_warp_specialised_forward<UpToFour>(rows, problem, value, saved, scratch, stream);
  return reads_fours(problem) ? launch_warp_specialised_forward<EightsInFours>(rows, problem, value, saved, scratch, stream)
                              : launch_warp_specialised_forward<UpToEight>(rows, problem, value, saved, scratch, stream);
}

}  // namespace

// What is saved is tiled's, so that either pass may have tiled's blocks, where there are too many for this kernel's.
Face<float> warp_specialised_face() { return {tiled_face<float>().saved_bytes, forward, backward}; }
// What is saved is multivariate's, and so is backward.
Face<float> few_dims_face() { return {multivariate_face().saved_bytes, forward_of_few_dims, multivariate_face().backward}; }

}  // namespace softdtw
