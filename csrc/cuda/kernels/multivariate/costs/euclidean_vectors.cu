// The kernels of vectors of many dimensions for euclidean costs.
#include "cuda/kernels/multivariate/multivariate.cuh"

namespace softdtw {

SOFTDTW_VECTOR_KERNELS(, false, Roots)

}  // namespace softdtw
