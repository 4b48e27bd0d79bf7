// The kernels of short pairs with a band that is wider than a ring's (kernels/banded): those of squared Euclidean costs.
#include "cuda/kernels/linear_domain/short_pairs.cuh"

namespace softdtw {

SOFTDTW_SHORT_PAIRS_OF(, float, BandOptions)

}  // namespace softdtw
