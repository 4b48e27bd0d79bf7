// What every specialisation offers. No torch header: it gets plain pointers, memory and a stream.
#pragma once

#include <cuda_runtime_api.h>

#include "cuda/scratch.h"
#include "plan.h"

namespace softdtw {

template <typename T>
struct Face {
  int64_t (*saved_bytes)(const Problem<T>&, const Plan&);
  // saved is null where nothing is to be kept for a backward pass.
  cudaError_t (*forward)(const Problem<T>&, const Plan&, T* value, void* saved, Scratch&, cudaStream_t);
  cudaError_t (*backward)(const Problem<T>&, const Plan&, const Gradient<T>&, const void* saved, Scratch&, cudaStream_t);
};

// In the file of the kernel that a function is named after; of T = float and double.
template <typename T>
Face<T> diagonal_face();
template <typename T>
Face<T> stencil_face();  // linear domain, integer log2 and extended range
template <typename T>
Face<T> tiled_face();  // extended range
Face<float> warp_specialised_face();
Face<float> bidirectional_face();
Face<float> few_dims_face();
Face<float> ready_made_face();
Face<float> multivariate_face();

#define SOFTDTW_DEFINE_FACE(name)                     \
  template <typename T>                               \
  Face<T> name() {                                    \
    return {saved_bytes<T>, forward<T>, backward<T>}; \
  }                                                   \
  template Face<float> name<float>();                 \
  template Face<double> name<double>();

template <typename T>
Face<T> face_of(const Plan& plan) {
  if constexpr (sizeof(T) == 4) {
    if (plan.is(Specialization::kWarpSpecialised)) return warp_specialised_face();
    if (plan.is(Specialization::kBidirectional)) return bidirectional_face();
    if (plan.is(Specialization::kFewDims)) return few_dims_face();
    if (plan.is(Specialization::kReadyMade)) return ready_made_face();
    if (plan.is(Specialization::kMultivariate)) return multivariate_face();
  }
  return plan.kernel == Kernel::kDiagonal  ? diagonal_face<T>()
         : plan.kernel == Kernel::kStencil ? stencil_face<T>()
                                           : tiled_face<T>();
}

}  // namespace softdtw
