// The kernels (multivariate.cuh) by what vectors cost, and those of few dimensions of squared Euclidean and euclidean costs.
#include "multivariate.cuh"

namespace softdtw {

SOFTDTW_VECTOR_KERNELS(, true, SquaresAndRoots)
SOFTDTW_VECTOR_KERNELS(extern, false, Squared)
SOFTDTW_VECTOR_KERNELS(extern, false, Roots)
SOFTDTW_VECTOR_KERNELS(extern, true, CityblockAndHuber)
SOFTDTW_VECTOR_KERNELS(extern, false, CityblockAndHuber)
SOFTDTW_VECTOR_GRADIENTS(extern, true, ReadyMade)

namespace {

// Calls f(few, type) with what kernels are compiled for, by the order of Cost. With many dimensions E / cost takes shared memory and
// registers, and a branch for each tile a tenth of forward, so squared Euclidean and euclidean costs have their own there.
template <class F>
cudaError_t with_kernels(const Problem<float>& problem, F&& f) {
  using OfFew = std::tuple<SquaresAndRoots, SquaresAndRoots, CityblockAndHuber, CityblockAndHuber>;
  return problem.dim <= kFewDims
             ? with_cost<OfFew>(problem.cost, [&](auto type) { return f(std::true_type(), type); })
             : with_cost<CostsOfMany>(problem.cost, [&](auto type) { return f(std::false_type(), type); });
}

int64_t saved_bytes(const Problem<float>& problem, const Plan&) {
  return problem.batch * Saved<MultivariateShape>::bytes_of_pair(Sizes<MultivariateShape>(problem));
}

cudaError_t forward(
    const Problem<float>& problem, const Plan&, float* value, void* saved, Scratch& scratch, cudaStream_t stream) {
  return with_kernels(problem, [&](auto few, auto type) {
    return forward_of_vectors<few(), decltype(type)>(problem, value, saved, scratch, stream);
  });
}

cudaError_t backward(
    const Problem<float>& problem, const Plan&, const Gradient<float>& gradient, const void* saved, Scratch& scratch,
    cudaStream_t stream) {
  if (problem.cost == Cost::kMatrix) return backward_of_vectors<true, ReadyMade>(problem, gradient, saved, scratch, stream);
  return with_kernels(problem, [&](auto few, auto type) {
    return backward_of_vectors<few(), decltype(type)>(problem, gradient, saved, scratch, stream);
  });
}

}  // namespace

Face<float> multivariate_face() { return {saved_bytes, forward, backward}; }

}  // namespace softdtw
