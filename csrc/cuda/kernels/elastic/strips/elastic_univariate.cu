// Hard elastic measures of one dimension by strips.
#include "cuda/hardware/device.h"
#include "cuda/kernels/elastic/elastic_kernels.h"
#include "cuda/select/hard.h"
#include "elastic_univariate.cuh"

namespace softdtw {

template <typename T>
bool has_elastic_univariate(const ElasticProblem<T>& problem) {
  if (problem.measure == Measure::kMatrix || problem.dim != 1) return false;
  if (problem.measure == Measure::kWeighted) return problem.cost == Cost::kSqEuclidean;
  return problem.cost == Cost::kCityblock;
}

template <typename T>
cudaError_t elastic_univariate_forward(
    const ElasticProblem<T>& problem, T* value, Span* spans, Scratch& scratch, cudaStream_t stream) {
  constexpr int kRows = sizeof(T) == 4 ? kElasticRows : 2;
  int width_of_others = 0;
  if constexpr (sizeof(T) == 4) {
    const Call call = call_of(problem, spans != nullptr);
    const HardRing ring = elastic_ring_of(call, problem.sum_border, current_device());
    if (ring.of_side.rows > 0) {
      const cudaError_t error = elastic_ring_forward(problem, ring, value, spans, scratch, stream);
      if (error != cudaSuccess || !call.is_ragged) return error;
      width_of_others = static_cast<int>(ring.of_side.width());
    }
    const int rows = elastic_rows(call, current_device());
    if (rows != kElasticRows) return elastic_tall_forward(problem, rows, width_of_others, value, spans, scratch, stream);
  }
  if (spans != nullptr)
    return launch_univariate<T, kRows, true, true>(problem, width_of_others, value, spans, scratch, stream);
  return launch_univariate<T, kRows, false, true>(problem, width_of_others, value, spans, scratch, stream);
}

#define SOFTDTW_INSTANTIATE(T)                                       \
  template bool has_elastic_univariate<T>(const ElasticProblem<T>&); \
  template cudaError_t elastic_univariate_forward<T>(const ElasticProblem<T>&, T*, Span*, Scratch&, cudaStream_t);
SOFTDTW_INSTANTIATE(float)
SOFTDTW_INSTANTIATE(double)

}  // namespace softdtw
