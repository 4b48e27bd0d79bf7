// Gradients of hard elastic measures along the best path.
#include "elastic_gradient.cuh"
#include "elastic_kernels.h"

namespace softdtw {

template <typename T>
cudaError_t elastic_path_backward(
    const ElasticProblem<T>& problem, const ElasticGradient<T>& gradient, const Span* spans, cudaStream_t stream) {
  return elastic_gradient<ElasticPath>(problem, gradient, {spans, problem.n}, stream);
}

template cudaError_t elastic_path_backward<float>(
    const ElasticProblem<float>&, const ElasticGradient<float>&, const Span*, cudaStream_t);
template cudaError_t elastic_path_backward<double>(
    const ElasticProblem<double>&, const ElasticGradient<double>&, const Span*, cudaStream_t);

}  // namespace softdtw
