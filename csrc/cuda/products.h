// Squared Euclidean costs of float32 series of more than one dimension: what stencil and tiled hand on to product.cu.
#pragma once

#include "variant.h"

namespace softdtw {

// Mirrored in torchsoftdtw/selection.py.
constexpr int64_t kProductDims = 2;

inline bool by_products(Cost cost, int64_t dim) {
  return cost == Cost::kSqEuclidean && dim >= kProductDims && dim < int64_t{1} << 30;
}
inline bool by_products(const Problem<float>& problem) { return by_products(problem.cost, problem.dim); }

struct Products {
  static int64_t saved_bytes(const Problem<float>& problem);
  static int64_t forward_scratch_bytes(const Problem<float>& problem, bool save);
  static int64_t backward_scratch_bytes(const Problem<float>& problem);
  static cudaError_t forward(const Problem<float>& problem, float* value, void* saved, void* scratch, cudaStream_t stream);
  static cudaError_t backward(
      const Problem<float>& problem, const Gradient<float>& gradient, const void* saved, void* scratch, cudaStream_t stream);
};

}  // namespace softdtw
