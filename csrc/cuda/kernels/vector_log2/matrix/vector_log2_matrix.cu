// The kernels of integer log2 for ready-made costs.
#include "cuda/kernels/vector_log2/costs/vector_log2_kernels.cuh"
#include "matrix_backward.cuh"
#include "matrix_forward.cuh"

namespace softdtw {

template <class Penalty, bool kHasBand = false>
struct MatrixGroups {
  using Forward = MatrixForwardGroup<rows_of_group(1), Penalty, kHasBand>;
  using Backward = MatrixBackwardGroup<rows_of_group(1), Penalty, kHasBand>;
};

template <class F>
cudaError_t with_group(MatrixCost, const Problem<float>& problem, int, F&& f) {
  if (call_of(problem, false).has_band) return f(static_cast<MatrixGroups<Log2Penalty, true>*>(nullptr));
  if (call_of(problem, false).has_penalty) return f(static_cast<MatrixGroups<Log2Penalty>*>(nullptr));
  return f(static_cast<MatrixGroups<NoLog2Penalty>*>(nullptr));
}

SOFTDTW_VECTOR_LOG2(, MatrixCost)

}  // namespace softdtw
