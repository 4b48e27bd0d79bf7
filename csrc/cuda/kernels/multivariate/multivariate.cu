// The kernels (multivariate.cuh) by what vectors cost, and those of squared Euclidean costs.
#include "multivariate.cuh"

namespace softdtw {

using OfVectors = Costs<DeviceMath<float>>;
using OfEuclidean = Euclidean<DeviceMath<float>>;
using OfCityblock = Cityblock<DeviceMath<float>>;
using OfHuber = Huber<DeviceMath<float>>;
SOFTDTW_VECTOR_KERNELS(extern, OfEuclidean)
SOFTDTW_VECTOR_KERNELS(extern, OfCityblock)
SOFTDTW_VECTOR_KERNELS(extern, OfHuber)

namespace {

int64_t saved_bytes(const Problem<float>& problem, const Plan&) {
  return problem.batch * Saved<MultivariateShape>::bytes_of_pair(Sizes<MultivariateShape>(problem));
}

cudaError_t forward(
    const Problem<float>& problem, const Plan&, float* value, void* saved, Scratch& scratch, cudaStream_t stream) {
  return with_cost<OfVectors>(problem.cost, [&](auto type) {
    return forward_of_vectors<decltype(type)>(problem, value, saved, scratch, stream);
  });
}

cudaError_t backward(
    const Problem<float>& problem, const Plan&, const Gradient<float>& gradient, const void* saved, Scratch& scratch,
    cudaStream_t stream) {
  return with_cost<OfVectors>(problem.cost, [&](auto type) {
    return backward_of_vectors<decltype(type)>(problem, gradient, saved, scratch, stream);
  });
}

}  // namespace

Face<float> multivariate_face() { return {saved_bytes, forward, backward}; }

}  // namespace softdtw
