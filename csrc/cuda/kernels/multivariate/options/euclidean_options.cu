// The kernels of vectors for Euclidean costs, with a band or a penalty.
#include "cuda/kernels/multivariate/multivariate.cuh"

namespace softdtw {

SOFTDTW_VECTOR_KERNELS(, EuclideanVectors, true)

}  // namespace softdtw
