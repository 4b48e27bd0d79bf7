// Values of many dimensions from both ends, of squared Euclidean costs.
#include "many_dims_forward.cuh"

namespace softdtw {

SOFTDTW_MANY_DIMS(, Squared)

}  // namespace softdtw
