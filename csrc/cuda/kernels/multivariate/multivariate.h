// Squared Euclidean costs of float32 series of more than one dimension: what stencil and tiled hand on to multivariate.cu, and
// what they sweep forward vector by vector.
#pragma once

#include <cstdint>

#include "cuda/select/variant.h"

namespace softdtw {

// From so many dimensions on: with many short pairs, which are stencil's, the sweep's own costs stay faster for longer.
// Mirrored in torchsoftdtw/_kernels/selection.py.
constexpr int64_t kStencilProductDims = 16, kTiledProductDims = 2;

// Up to so many dimensions a lane of multivariate.cu, or of tiled's teams, can hold the vectors of its rows.
constexpr int kFewDims = 8;

// Up to so many dimensions stencil's forward pass computes costs from vectors that lanes hold (few_dims_tile.cuh), by rows a lane,
// where no more than one number of four is padding.
constexpr int few_dims(int64_t rows) { return rows == 2 ? 8 : 4; }

inline bool is_few(Cost cost, int64_t dim, int64_t rows) {
  return cost == Cost::kSqEuclidean && dim <= few_dims(rows) && (dim % 4 == 0 || dim % 4 == 3);
}

inline bool by_products(Cost cost, int64_t dim, int64_t least) {
  return cost == Cost::kSqEuclidean && dim >= least && dim < int64_t{1} << 30;
}

// Whether vectors can be read four numbers at a time.
inline bool reads_fours(const View<const float>& series, int64_t dim) {
  return reinterpret_cast<uintptr_t>(series.data) % 16 == 0 && series.row_stride % 4 == 0 && series.batch_stride % 4 == 0 &&
         dim % 4 == 0;
}

inline bool reads_fours(const Problem<float>& problem) {
  return reads_fours(problem.x, problem.dim) && reads_fours(problem.y, problem.dim);
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
