// Values of many dimensions from both ends, of Euclidean costs.
#include "many_dims_forward.cuh"

namespace softdtw {

SOFTDTW_MANY_DIMS(, Roots)

}  // namespace softdtw
