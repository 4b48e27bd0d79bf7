// The gradients of ready-made costs. What they cost is split in forward by tiled's teams (kernels/warp_specialised/ready_made.cu).
#include "cuda/kernels/multivariate/multivariate.cuh"

namespace softdtw {

SOFTDTW_VECTOR_GRADIENTS(, true, ReadyMade)

}  // namespace softdtw
