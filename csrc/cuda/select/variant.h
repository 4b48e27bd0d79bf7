// What a kernel variant offers to the backend. No torch header: a variant gets plain pointers and a stream.
#pragma once

#include <cuda_runtime_api.h>

#include "core/problem.h"

namespace softdtw {

template <typename T>
struct Variant {
  const char* name;
  int64_t product_dims = INT64_MAX;  // from so many dimensions on, squared Euclidean costs are multivariate.cu's
  bool has_few_dims = false;         // whether forward reads few of them vector by vector (few_dims_tile.cuh)
  bool (*supports_rows)(int rows_per_thread);
  int64_t (*saved_bytes)(const Problem<T>&, int rows_per_thread);
  int64_t (*forward_scratch_bytes)(const Problem<T>&, int rows_per_thread, bool save);
  int64_t (*backward_scratch_bytes)(const Problem<T>&, int rows_per_thread);
  // saved is null where nothing is to be kept for a backward pass.
  cudaError_t (*forward)(const Problem<T>&, int rows_per_thread, T* value, void* saved, void* scratch, cudaStream_t);
  cudaError_t (*backward)(
      const Problem<T>&, int rows_per_thread, const Gradient<T>&, const void* saved, void* scratch, cudaStream_t);
};

template <typename T>
Variant<T> diagonal_variant();
template <typename T>
Variant<T> stencil_variant();
template <typename T>
Variant<T> tiled_variant();

}  // namespace softdtw
