// Values of series of many dimensions from both ends, by what they cost: a file for each.
#pragma once

#include <cuda_runtime_api.h>

#include "core/problem.h"
#include "cuda/kernels/multivariate/costs/vector_cost.cuh"
#include "cuda/scratch.h"

namespace softdtw {

template <class CostType>
cudaError_t forward_of_many_dims(const Problem<float>& problem, float* value, Scratch& scratch, cudaStream_t stream);

#define SOFTDTW_MANY_DIMS(prefix, CostType) \
  prefix template cudaError_t forward_of_many_dims<CostType>(const Problem<float>&, float*, Scratch&, cudaStream_t);

}  // namespace softdtw
