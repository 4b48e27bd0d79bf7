// The kernels of vectors for cityblock and huber costs.
#include "cuda/kernels/multivariate/multivariate.cuh"

namespace softdtw {

SOFTDTW_VECTOR_KERNELS(, true, CityblockAndHuber)
SOFTDTW_VECTOR_KERNELS(, false, CityblockAndHuber)

}  // namespace softdtw
