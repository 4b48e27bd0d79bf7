// The kernels of short pairs with a band that is wider than a ring's (kernels/banded): those of other costs, and of penalties.
#include "cuda/kernels/linear_domain/short_pairs.cuh"

namespace softdtw {

SOFTDTW_SHORT_PAIRS_OF(, float, AnyBandOptions)

}  // namespace softdtw
