// Values of few pairs of float32 series of two to eight dimensions, swept from both ends of the table at once (bidirectional.cuh).
#include "bidirectional_forward.cuh"

namespace softdtw {
namespace {

using S = BidirectionalShape;

// Of vectors of up to 4 kGroups numbers. Of calls without a band and a penalty, too: it is not the sweep that asks for these.
template <int kGroups, class CostType>
using Launches = ForwardLaunches<InBand<S, FewTile<S, kGroups, false, CostType>>>;

}  // namespace

cudaError_t bidirectional_vectors(const Problem<float>& problem, float* value, Scratch& scratch, cudaStream_t stream) {
  return with_squared_or_not(problem.cost, [&](auto type) {
    using CostType = decltype(type);
    return problem.dim <= 4 ? Launches<1, CostType>::forward(problem, value, nullptr, scratch, stream)
                            : Launches<2, CostType>::forward(problem, value, nullptr, scratch, stream);
  });
}

}  // namespace softdtw
