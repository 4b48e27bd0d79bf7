// The kernels of the scaled linear domain for huber costs.
#include "scaled_kernels.cuh"

namespace softdtw {

SOFTDTW_SCALED(, VectorCost<HuberVectors>)

}  // namespace softdtw
