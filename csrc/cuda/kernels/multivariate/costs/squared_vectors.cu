// The kernels of vectors of many dimensions for squared Euclidean costs.
#include "cuda/kernels/multivariate/multivariate.cuh"

namespace softdtw {

SOFTDTW_VECTOR_KERNELS(, false, Squared)

}  // namespace softdtw
