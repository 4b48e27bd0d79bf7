// The gradients of vectors for squared Euclidean and euclidean costs.
#include "cuda/kernels/multivariate/multivariate.cuh"

namespace softdtw {

SOFTDTW_VECTOR_BACKWARD(, true, SquaresAndRoots)
SOFTDTW_VECTOR_BACKWARD(, false, Squared)
SOFTDTW_VECTOR_BACKWARD(, false, Roots)

}  // namespace softdtw
