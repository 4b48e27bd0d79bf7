// The kernels of the scaled linear domain for euclidean costs.
#include "scaled_kernels.cuh"

namespace softdtw {

SOFTDTW_SCALED(, VectorCost<EuclideanVectors>)

}  // namespace softdtw
