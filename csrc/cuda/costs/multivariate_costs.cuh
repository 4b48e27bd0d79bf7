// Squared distances for a strip, a batch of columns at a time, by the strip's cost warps. On what they say of cells outside the
// table nothing depends.
#pragma once

#include <type_traits>

#include "multivariate_costs_few.cuh"
#include "multivariate_costs_many.cuh"

namespace softdtw {

template <bool kFew, bool kFours, class Pipeline>
using StripCosts = std::conditional_t<kFew, FewCosts<kFours, Pipeline>, ManyCosts<kFours, Pipeline>>;

}  // namespace softdtw
