// Values of many dimensions from both ends, of cityblock and huber costs.
#include "many_dims_forward.cuh"

namespace softdtw {

SOFTDTW_MANY_DIMS(, CityblockAndHuber)

}  // namespace softdtw
