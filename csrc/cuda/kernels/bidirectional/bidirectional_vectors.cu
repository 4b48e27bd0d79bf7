// Values of few pairs of float32 series of several dimensions, swept from both ends of the table at once (bidirectional.cuh): the kernels of
// two to eight, and who takes more (many_dims).
#include "bidirectional_forward.cuh"
#include "many_dims/many_dims.h"

namespace softdtw {

SOFTDTW_MANY_DIMS(extern, Squared)
SOFTDTW_MANY_DIMS(extern, Roots)
SOFTDTW_MANY_DIMS(extern, CityblockAndHuber)

namespace {

using S = BidirectionalShape;

// Of vectors of up to 4 kGroups numbers. Of calls without a band and a penalty, too: it is not the sweep that asks for these.
template <int kGroups, class CostType>
using Launches = ForwardLaunches<InBand<S, FewTile<S, kGroups, false, CostType>>>;

}  // namespace

cudaError_t bidirectional_vectors(const Problem<float>& problem, float* value, Scratch& scratch, cudaStream_t stream) {
  if (problem.dim > kFewDims)
    return with_cost<CostsOfMany>(
        problem.cost, [&](auto type) { return forward_of_many_dims<decltype(type)>(problem, value, scratch, stream); });
  return with_squared_or_not(problem.cost, [&](auto type) {
    using CostType = decltype(type);
    return problem.dim <= 4 ? Launches<1, CostType>::forward(problem, value, nullptr, scratch, stream)
                            : Launches<2, CostType>::forward(problem, value, nullptr, scratch, stream);
  });
}

}  // namespace softdtw
