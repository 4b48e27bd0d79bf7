// The kernels of short pairs for squared Euclidean costs with a penalty.
#include "cuda/kernels/linear_domain/short_pairs.cuh"

namespace softdtw {

using Options = ShortPairOptions<SquaredDifference, true>;
SOFTDTW_SHORT_PAIRS(, Options)

}  // namespace softdtw
