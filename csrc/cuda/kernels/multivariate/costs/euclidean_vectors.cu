// The kernels of vectors for euclidean costs.
#include "cuda/kernels/multivariate/multivariate.cuh"

namespace softdtw {

SOFTDTW_VECTOR_KERNELS(, EuclideanVectors)

}  // namespace softdtw
