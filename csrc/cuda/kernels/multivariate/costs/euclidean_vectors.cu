// The kernels of vectors for euclidean costs.
#include "cuda/kernels/multivariate/multivariate.cuh"

namespace softdtw {

using CostType = Euclidean<DeviceMath<float>>;
SOFTDTW_VECTOR_KERNELS(, CostType)

}  // namespace softdtw
