// The kernels of the scaled linear domain for squared costs.
#include "scaled_kernels.cuh"

namespace softdtw {

SOFTDTW_SCALED(, VectorCost<SquaredVectors>)

}  // namespace softdtw
