// The kernels (multivariate.cuh) by what vectors cost, and those of squared Euclidean costs.
#include "multivariate.cuh"

namespace softdtw {

SOFTDTW_VECTOR_KERNELS(extern, EuclideanVectors)
SOFTDTW_VECTOR_KERNELS(extern, CityblockVectors)
SOFTDTW_VECTOR_KERNELS(extern, HuberVectors)

namespace {

int64_t saved_bytes(const Problem<float>& problem, const Plan&) {
  return problem.batch * Saved<MultivariateShape>::bytes_of_pair(Sizes<MultivariateShape>(problem));
}

cudaError_t forward(
    const Problem<float>& problem, const Plan&, float* value, void* saved, Scratch& scratch, cudaStream_t stream) {
  return with_cost<VectorCosts>(
      problem.cost, [&](auto type) { return forward_of_vectors<decltype(type)>(problem, value, saved, scratch, stream); });
}

cudaError_t backward(
    const Problem<float>& problem, const Plan&, const Gradient<float>& gradient, const void* saved, Scratch& scratch,
    cudaStream_t stream) {
  return with_cost<VectorCosts>(problem.cost, [&](auto type) {
    return backward_of_vectors<decltype(type)>(problem, gradient, saved, scratch, stream);
  });
}

}  // namespace

Face<float> multivariate_face() { return {saved_bytes, forward, backward}; }

}  // namespace softdtw
