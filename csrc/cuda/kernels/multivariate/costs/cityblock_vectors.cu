// The kernels of vectors for cityblock costs.
#include "cuda/kernels/multivariate/multivariate.cuh"

namespace softdtw {

using CostType = Cityblock<DeviceMath<float>>;
SOFTDTW_VECTOR_KERNELS(, CostType)

}  // namespace softdtw
