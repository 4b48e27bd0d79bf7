// The kernels of the integer log2 of vectors for euclidean costs.
#include "vector_log2_kernels.cuh"

namespace softdtw {

SOFTDTW_VECTOR_LOG2(, VectorCost<EuclideanVectors>)

}  // namespace softdtw
