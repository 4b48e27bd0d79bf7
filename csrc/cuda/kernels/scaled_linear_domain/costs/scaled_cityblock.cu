// The kernels of the scaled linear domain for cityblock costs.
#include "scaled_kernels.cuh"

namespace softdtw {

SOFTDTW_SCALED(, VectorCost<CityblockVectors>)

}  // namespace softdtw
