// The kernels of vectors for huber costs.
#include "cuda/kernels/multivariate/multivariate.cuh"

namespace softdtw {

SOFTDTW_VECTOR_KERNELS(, HuberVectors)

}  // namespace softdtw
