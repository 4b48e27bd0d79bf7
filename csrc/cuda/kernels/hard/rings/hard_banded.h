// Rings of lanes (hard_banded.cu) as hard.cu calls them.
#pragma once

#include <cuda_runtime_api.h>

#include "core/problem.h"
#include "cuda/select/hard.h"

namespace softdtw {

// Values of series of one dimension, but for pairs whose band is wider than the ring.
cudaError_t hard_ring_forward(const Problem<float>& problem, const HardRing& ring, float* value, cudaStream_t stream);

}  // namespace softdtw
