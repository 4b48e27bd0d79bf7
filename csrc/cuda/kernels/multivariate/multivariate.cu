// The kernels (multivariate.cuh) by what vectors cost and whether there is a band or a penalty, and those of squared Euclidean costs
// without.
#include "multivariate.cuh"

namespace softdtw {

SOFTDTW_VECTOR_KERNELS(extern, EuclideanVectors, false)
SOFTDTW_VECTOR_KERNELS(extern, CityblockVectors, false)
SOFTDTW_VECTOR_KERNELS(extern, HuberVectors, false)
SOFTDTW_VECTOR_KERNELS(extern, SquaredVectors, true)
SOFTDTW_VECTOR_KERNELS(extern, EuclideanVectors, true)
SOFTDTW_VECTOR_KERNELS(extern, CityblockVectors, true)
SOFTDTW_VECTOR_KERNELS(extern, HuberVectors, true)

namespace {

int64_t saved_bytes(const Problem<float>& problem, const Plan&) {
  return problem.batch * Saved<MultivariateShape>::bytes_of_pair(Sizes<MultivariateShape>(problem));
}

bool is_plain(const Problem<float>& problem) { return call_of(problem, true).is_plain(); }

cudaError_t forward(
    const Problem<float>& problem, const Plan&, float* value, void* saved, Scratch& scratch, cudaStream_t stream) {
  return with_cost<VectorCosts>(problem.cost, [&](auto type) {
    return is_plain(problem) ? forward_of_vectors<decltype(type), false>(problem, value, saved, scratch, stream)
                             : forward_of_vectors<decltype(type), true>(problem, value, saved, scratch, stream);
  });
}

cudaError_t backward(
    const Problem<float>& problem, const Plan&, const Gradient<float>& gradient, const void* saved, Scratch& scratch,
    cudaStream_t stream) {
  return with_cost<VectorCosts>(problem.cost, [&](auto type) {
    return is_plain(problem) ? backward_of_vectors<decltype(type), false>(problem, gradient, saved, scratch, stream)
                             : backward_of_vectors<decltype(type), true>(problem, gradient, saved, scratch, stream);
  });
}

}  // namespace

Face<float> multivariate_face() { return {saved_bytes, forward, backward}; }

}  // namespace softdtw
