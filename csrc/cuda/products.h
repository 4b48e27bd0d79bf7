// Squared Euclidean costs of float32 series of more than one dimension: what stencil and tiled hand on to product.cu.
#pragma once

#include "variant.h"

namespace softdtw {

// From so many dimensions on: with many short pairs, which are stencil's, the sweep's own costs stay faster for longer.
// Mirrored in torchsoftdtw/selection.py.
constexpr int64_t kStencilProductDims = 16, kTiledProductDims = 2;

inline bool by_products(Cost cost, int64_t dim, int64_t least) {
  return cost == Cost::kSqEuclidean && dim >= least && dim < int64_t{1} << 30;
}

struct Products {
  static int64_t saved_bytes(const Problem<float>& problem);
  static int64_t forward_scratch_bytes(const Problem<float>& problem, bool save);
  static int64_t backward_scratch_bytes(const Problem<float>& problem);
  static cudaError_t forward(const Problem<float>& problem, float* value, void* saved, void* scratch, cudaStream_t stream);
  static cudaError_t backward(
      const Problem<float>& problem, const Gradient<float>& gradient, const void* saved, void* scratch,
      cudaStream_t stream);
};

}  // namespace softdtw
