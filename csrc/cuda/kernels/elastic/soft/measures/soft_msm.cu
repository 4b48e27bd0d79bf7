// Move-split-merge by soft strips.
#include "cuda/kernels/elastic/soft/soft_launch.cuh"

namespace softdtw {

SOFTDTW_INSTANTIATE_SOFT_FORWARD(SoftMsm, float)
SOFTDTW_INSTANTIATE_SOFT_BACKWARD(SoftMsm, false, float)
SOFTDTW_INSTANTIATE_SOFT_BACKWARD(SoftMsm, true, float)
SOFTDTW_INSTANTIATE_SOFT_FORWARD(SoftMsm, double)
SOFTDTW_INSTANTIATE_SOFT_BACKWARD(SoftMsm, false, double)
SOFTDTW_INSTANTIATE_SOFT_BACKWARD(SoftMsm, true, double)

}  // namespace softdtw
