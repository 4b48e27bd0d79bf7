// The kernels of vectors for Huber's costs, with a band or a penalty.
#include "cuda/kernels/multivariate/multivariate.cuh"

namespace softdtw {

SOFTDTW_VECTOR_KERNELS(, HuberVectors, true)

}  // namespace softdtw
