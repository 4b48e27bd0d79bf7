// Edr and Lcss, whose gradients to series are 0, by soft strips.
#include "cuda/kernels/elastic/soft/soft_launch.cuh"

namespace softdtw {

SOFTDTW_INSTANTIATE_SOFT_FORWARD(SoftThreshold, float)
SOFTDTW_INSTANTIATE_SOFT_BACKWARD(SoftThreshold, true, float)
SOFTDTW_INSTANTIATE_SOFT_FORWARD(SoftThreshold, double)
SOFTDTW_INSTANTIATE_SOFT_BACKWARD(SoftThreshold, true, double)

}  // namespace softdtw
