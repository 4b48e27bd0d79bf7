// The kernels of the scaled linear domain for cityblock costs.
#include "cuda/kernels/scaled_linear_domain/scaled_kernels.cuh"

namespace softdtw {

SOFTDTW_SCALED(, VectorCost<CityblockVectors>)

}  // namespace softdtw
