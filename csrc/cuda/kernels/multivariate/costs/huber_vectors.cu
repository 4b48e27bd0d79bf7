// The kernels of vectors for huber costs.
#include "cuda/kernels/multivariate/multivariate.cuh"

namespace softdtw {

using CostType = Huber<DeviceMath<float>>;
SOFTDTW_VECTOR_KERNELS(, CostType)

}  // namespace softdtw
