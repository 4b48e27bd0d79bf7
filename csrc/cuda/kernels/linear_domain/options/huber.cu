// The kernels of short pairs for huber costs.
#include "cuda/kernels/linear_domain/short_pairs.cuh"

namespace softdtw {

using Options = ShortPairOptions<HuberDifference, true>;
SOFTDTW_SHORT_PAIRS(, Options)

}  // namespace softdtw
