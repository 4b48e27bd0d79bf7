// Weighted DTW by soft strips.
#include "cuda/kernels/elastic/soft/soft_launch.cuh"

namespace softdtw {

SOFTDTW_INSTANTIATE_SOFT_FORWARD(SoftWeighted, float)
SOFTDTW_INSTANTIATE_SOFT_BACKWARD(SoftWeighted, false, float)
SOFTDTW_INSTANTIATE_SOFT_BACKWARD(SoftWeighted, true, float)
SOFTDTW_INSTANTIATE_SOFT_FORWARD(SoftWeighted, double)
SOFTDTW_INSTANTIATE_SOFT_BACKWARD(SoftWeighted, false, double)
SOFTDTW_INSTANTIATE_SOFT_BACKWARD(SoftWeighted, true, double)

}  // namespace softdtw
