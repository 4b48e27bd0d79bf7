// The kernels of the integer log2 of vectors for huber costs.
#include "vector_log2_kernels.cuh"

namespace softdtw {

SOFTDTW_VECTOR_LOG2(, VectorCost<HuberVectors>)

}  // namespace softdtw
