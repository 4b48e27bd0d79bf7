// Time warp edit distance by soft strips.
#include "cuda/kernels/elastic/soft/soft_launch.cuh"

namespace softdtw {

SOFTDTW_INSTANTIATE_SOFT_FORWARD(SoftTwed, float)
SOFTDTW_INSTANTIATE_SOFT_BACKWARD(SoftTwed, false, float)
SOFTDTW_INSTANTIATE_SOFT_BACKWARD(SoftTwed, true, float)
SOFTDTW_INSTANTIATE_SOFT_FORWARD(SoftTwed, double)
SOFTDTW_INSTANTIATE_SOFT_BACKWARD(SoftTwed, false, double)
SOFTDTW_INSTANTIATE_SOFT_BACKWARD(SoftTwed, true, double)

}  // namespace softdtw
