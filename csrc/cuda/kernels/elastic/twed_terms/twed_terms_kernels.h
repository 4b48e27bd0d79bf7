// What twed charges rows and columns, (14) of core/twed_terms.h, and the gradients of that: twed_terms.cu.
#pragma once

#include <cuda_runtime_api.h>

#include "core/twed_terms.h"

namespace softdtw {

template <typename T>
cudaError_t twed_terms_forward(const TwedTerms<T>& terms, const TwedTermsOut<T>& out, cudaStream_t stream);
template <typename T>
cudaError_t twed_terms_backward(const TwedTerms<T>& terms, const TwedTermsGradient<T>& gradient, cudaStream_t stream);

}  // namespace softdtw
