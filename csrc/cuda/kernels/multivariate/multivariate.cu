// The kernels (multivariate.cuh) by what vectors cost, and the forward ones of squared Euclidean and euclidean costs.
#include "multivariate.cuh"

namespace softdtw {

SOFTDTW_VECTOR_BACKWARD(extern, true, SquaresAndRoots)
SOFTDTW_VECTOR_BACKWARD(extern, false, Squared)
SOFTDTW_VECTOR_BACKWARD(extern, false, Roots)
SOFTDTW_VECTOR_FORWARD(extern, CityblockAndHuber)
SOFTDTW_VECTOR_BACKWARD(extern, true, CityblockAndHuber)
SOFTDTW_VECTOR_BACKWARD(extern, false, CityblockAndHuber)

namespace {

// Which kernels a cost has, in the order of Cost. With many dimensions E / cost takes shared memory and registers, so the
// gradients of squared Euclidean and of euclidean costs have their own.
using Kernels = std::tuple<SquaresAndRoots, SquaresAndRoots, CityblockAndHuber, CityblockAndHuber>;
using ManyBackwardKernels = std::tuple<Squared, Roots, CityblockAndHuber, CityblockAndHuber>;

int64_t saved_bytes(const Problem<float>& problem, const Plan&) {
  return problem.batch * Saved<MultivariateShape>::bytes_of_pair(Sizes<MultivariateShape>(problem));
}

cudaError_t forward(
    const Problem<float>& problem, const Plan&, float* value, void* saved, Scratch& scratch, cudaStream_t stream) {
  return with_cost<Kernels>(
      problem.cost, [&](auto type) { return forward_of_vectors<decltype(type)>(problem, value, saved, scratch, stream); });
}

cudaError_t backward(
    const Problem<float>& problem, const Plan&, const Gradient<float>& gradient, const void* saved, Scratch& scratch,
    cudaStream_t stream) {
  const auto run = [&](auto few, auto type) {
    return backward_of_vectors<few(), decltype(type)>(problem, gradient, saved, scratch, stream);
  };
  return problem.dim <= kFewDims
             ? with_cost<Kernels>(problem.cost, [&](auto type) { return run(std::true_type(), type); })
             : with_cost<ManyBackwardKernels>(problem.cost, [&](auto type) { return run(std::false_type(), type); });
}

}  // namespace

Face<float> multivariate_face() { return {saved_bytes, forward, backward}; }

}  // namespace softdtw
