// The kernels of vectors for cityblock and huber costs.
#include "cuda/kernels/multivariate/multivariate.cuh"

namespace softdtw {

SOFTDTW_VECTOR_FORWARD(, CityblockAndHuber)
SOFTDTW_VECTOR_BACKWARD(, true, CityblockAndHuber)
SOFTDTW_VECTOR_BACKWARD(, false, CityblockAndHuber)

}  // namespace softdtw
