// The kernels of integer log2 for ready-made costs.
#include "cuda/kernels/vector_log2/costs/vector_log2_kernels.cuh"

namespace softdtw {

SOFTDTW_VECTOR_LOG2(, MatrixCost)

}  // namespace softdtw
