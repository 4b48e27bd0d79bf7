// Hard elastic measures of many pairs of one dimension in float32 by taller strips, all of a pair in one block.
#include "cuda/kernels/elastic/elastic_kernels.h"
#include "cuda/select/hard.h"
#include "elastic_univariate.cuh"

namespace softdtw {

cudaError_t elastic_tall_forward(
    const ElasticProblem<float>& problem, int rows, int width_of_others, float* value, Span* spans, Scratch& scratch,
    cudaStream_t stream) {
  if (spans != nullptr)
    return launch_univariate<float, kElasticTallRows, true, false>(problem, width_of_others, value, spans, scratch, stream);
  if (rows == kElasticTallRows)
    return launch_univariate<float, kElasticTallRows, false, false>(
        problem, width_of_others, value, spans, scratch, stream);
  return launch_univariate<float, kElasticTallestRows, false, false>(
      problem, width_of_others, value, spans, scratch, stream);
}

}  // namespace softdtw
