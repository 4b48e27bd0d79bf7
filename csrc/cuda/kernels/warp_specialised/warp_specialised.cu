// Few pairs of float32 series whose strips have several warps (warp_specialised.cuh): of one dimension, and forward of few.
#include "warp_specialised.cuh"

#include "cuda/costs/few_dims_tile.cuh"
#include "cuda/select/face.h"

namespace softdtw {
namespace {

using S = Shape<float, 2>;  // of what is saved, but for strips of four rows, and of backward

// One dimension. What is saved is tiled's, so that either pass may have tiled's blocks, where there are too many for this kernel's.
struct WarpSpecialised {
  static int64_t saved_bytes(const Problem<float>& problem, const Plan& plan) {
    return tiled_face<float>().saved_bytes(problem, plan);
  }
  static int64_t forward_scratch_bytes(const Problem<float>& problem, const Plan& plan, bool save) {
    return tiled_face<float>().forward_scratch_bytes(problem, plan, save);
  }
  static int64_t backward_scratch_bytes(const Problem<float>& problem, const Plan& plan) {
    if (plan.rows != S::kRows) return tiled_face<float>().backward_scratch_bytes(problem, plan);
    return ticket_bytes<S>(problem, 1) + problem.batch * Sizes<S>(problem).groups * sizeof(FlowSlot<S>);
  }
  static cudaError_t forward(
      const Problem<float>& problem, const Plan& plan, float* value, void* saved, void* scratch, cudaStream_t stream) {
    if (!plan.is_specialised) return tiled_face<float>().forward(problem, plan, value, saved, scratch, stream);
    return launch_warp_specialised_forward<UnivariateTile>(plan.forward_rows, problem, value, saved, scratch, stream);
  }
  static cudaError_t backward(
      const Problem<float>& problem, const Plan& plan, const Gradient<float>& gradient, const void* saved, void* scratch,
      cudaStream_t stream) {
    if (plan.rows != S::kRows) return tiled_face<float>().backward(problem, plan, gradient, saved, scratch, stream);
    void* const flows = static_cast<char*>(scratch) + ticket_bytes<S>(problem, 1);
    return launch_specialised_backward<ExtendedRange<S, UnivariateTile<S>, true>>(
        problem, gradient, saved, scratch, flows, stream);
  }
};

template <class S>
using Fours = FewTile<S, 1, true>;
template <class S>
using EightsInFours = FewTile<S, 2, true>;
template <class S>
using UpToFour = FewTile<S, 1, false>;
template <class S>
using UpToEight = FewTile<S, 2, false>;

// Few dimensions: forward alone, which needs fewer instructions a cell than warps that hand costs over. What it keeps is
// multivariate's, and so is backward.
struct FewDims {
  static int64_t saved_bytes(const Problem<float>& problem, const Plan& plan) {
    return multivariate_face().saved_bytes(problem, plan);
  }
  static int64_t forward_scratch_bytes(const Problem<float>& problem, const Plan& plan, bool save) {
    return tiled_face<float>().forward_scratch_bytes(problem, plan, save);
  }
  static int64_t backward_scratch_bytes(const Problem<float>& problem, const Plan& plan) {
    return multivariate_face().backward_scratch_bytes(problem, plan);
  }
  static cudaError_t forward(
      const Problem<float>& problem, const Plan& plan, float* value, void* saved, void* scratch, cudaStream_t stream) {
    const int rows = plan.forward_rows;
    if (problem.dim <= 4)
      return reads_fours(problem) ? launch_warp_specialised_forward<Fours>(rows, problem, value, saved, scratch, stream)
                                  : launch_warp_specialised_forward<UpToFour>(rows, problem, value, saved, scratch, stream);
    return reads_fours(problem)
               ? launch_warp_specialised_forward<EightsInFours>(rows, problem, value, saved, scratch, stream)
               : launch_warp_specialised_forward<UpToEight>(rows, problem, value, saved, scratch, stream);
  }
  static cudaError_t backward(
      const Problem<float>& problem, const Plan& plan, const Gradient<float>& gradient, const void* saved, void* scratch,
      cudaStream_t stream) {
    return multivariate_face().backward(problem, plan, gradient, saved, scratch, stream);
  }
};

}  // namespace

Face<float> warp_specialised_face() { return face<float, WarpSpecialised>(); }
Face<float> few_dims_face() { return face<float, FewDims>(); }

}  // namespace softdtw
