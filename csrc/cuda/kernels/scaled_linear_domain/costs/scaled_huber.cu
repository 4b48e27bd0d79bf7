// The kernels of the scaled linear domain for huber costs.
#include "cuda/kernels/scaled_linear_domain/scaled_kernels.cuh"

namespace softdtw {

SOFTDTW_SCALED(, VectorCost<HuberVectors>)

}  // namespace softdtw
