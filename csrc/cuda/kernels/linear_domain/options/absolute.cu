// The kernels of short pairs for cityblock costs, which euclidean ones of one dimension are.
#include "cuda/kernels/linear_domain/short_pairs.cuh"

namespace softdtw {

using Options = ShortPairOptions<AbsoluteDifference, true>;
SOFTDTW_SHORT_PAIRS(, Options)

}  // namespace softdtw
