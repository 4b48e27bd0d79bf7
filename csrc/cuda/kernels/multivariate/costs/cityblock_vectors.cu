// The kernels of vectors for cityblock costs.
#include "cuda/kernels/multivariate/multivariate.cuh"

namespace softdtw {

SOFTDTW_VECTOR_KERNELS(, CityblockVectors)

}  // namespace softdtw
