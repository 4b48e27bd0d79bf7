// The kernels (short_pairs.cuh) by what a problem has, and those of squared Euclidean costs without a penalty.
#include "linear_domain.h"

#include "short_pairs.cuh"

namespace softdtw {

using WithPenalty = ShortPairOptions<SquaredDifference, true>;
using OfAbsolute = ShortPairOptions<AbsoluteDifference, true>;
using OfHuber = ShortPairOptions<HuberDifference, true>;
SOFTDTW_SHORT_PAIRS(extern, WithPenalty)
SOFTDTW_SHORT_PAIRS(extern, OfAbsolute)
SOFTDTW_SHORT_PAIRS(extern, OfHuber)
SOFTDTW_SHORT_PAIRS_OF(extern, float, BandOptions)
SOFTDTW_SHORT_PAIRS_OF(extern, float, AnyBandOptions)

template <typename T>
cudaError_t launch_short_pairs_forward(
    const Problem<T>& problem, bool in_linear_domain, T* value, char* saved, int64_t stride, PairStatus* statuses,
    cudaStream_t stream) {
  return with_short_pair_options(problem, [&](auto options) {
    return forward_of_short_pairs<decltype(options)>(problem, in_linear_domain, value, saved, stride, statuses, stream);
  });
}

template <typename T>
cudaError_t launch_short_pairs_backward(
    const Problem<T>& problem, bool in_linear_domain, const Gradient<T>& gradient, const char* saved, int64_t stride,
    PairStatus* statuses, cudaStream_t stream) {
  return with_short_pair_options(problem, [&](auto options) {
    return backward_of_short_pairs<decltype(options)>(problem, in_linear_domain, gradient, saved, stride, statuses, stream);
  });
}

template cudaError_t launch_short_pairs_forward(
    const Problem<float>&, bool, float*, char*, int64_t, PairStatus*, cudaStream_t);
template cudaError_t launch_short_pairs_forward(
    const Problem<double>&, bool, double*, char*, int64_t, PairStatus*, cudaStream_t);
template cudaError_t launch_short_pairs_backward(
    const Problem<float>&, bool, const Gradient<float>&, const char*, int64_t, PairStatus*, cudaStream_t);
template cudaError_t launch_short_pairs_backward(
    const Problem<double>&, bool, const Gradient<double>&, const char*, int64_t, PairStatus*, cudaStream_t);

}  // namespace softdtw
