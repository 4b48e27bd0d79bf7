// The edit distance with real penalties by soft strips.
#include "cuda/kernels/elastic/soft/soft_launch.cuh"

namespace softdtw {

SOFTDTW_INSTANTIATE_SOFT_FORWARD(SoftEdit, float)
SOFTDTW_INSTANTIATE_SOFT_BACKWARD(SoftEdit, false, float)
SOFTDTW_INSTANTIATE_SOFT_BACKWARD(SoftEdit, true, float)
SOFTDTW_INSTANTIATE_SOFT_FORWARD(SoftEdit, double)
SOFTDTW_INSTANTIATE_SOFT_BACKWARD(SoftEdit, false, double)
SOFTDTW_INSTANTIATE_SOFT_BACKWARD(SoftEdit, true, double)

}  // namespace softdtw
