// Rings of lanes (hard_banded.cu) as hard.cu calls them.
#pragma once

#include <cuda_runtime_api.h>

#include "core/hard_path.h"
#include "cuda/scratch.h"
#include "cuda/select/hard.h"

namespace softdtw {

// All pairs but those whose band is wider than the ring, of which nothing is written. spans: null where no path is wanted, or where the
// ring has two sides.
cudaError_t hard_ring_forward(
    const Problem<float>& problem, const HardRing& ring, float* value, Span* spans, Scratch& scratch, cudaStream_t stream);
// Of several dimensions.
cudaError_t hard_ring_forward_of_vectors(
    const Problem<float>& problem, const HardRing& ring, float* value, Span* spans, Scratch& scratch, cudaStream_t stream);
// The same of few pairs, where ring.cost_blocks > 0.
cudaError_t hard_cost_ring_forward(
    const Problem<float>& problem, const HardRing& ring, float* value, Span* spans, Scratch& scratch, cudaStream_t stream);

}  // namespace softdtw
