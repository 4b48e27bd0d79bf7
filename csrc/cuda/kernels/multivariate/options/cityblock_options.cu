// The kernels of vectors for cityblock costs, with a band or a penalty.
#include "cuda/kernels/multivariate/multivariate.cuh"

namespace softdtw {

SOFTDTW_VECTOR_KERNELS(, CityblockVectors, true)

}  // namespace softdtw
