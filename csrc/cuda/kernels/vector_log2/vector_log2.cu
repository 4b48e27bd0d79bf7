// Many pairs of two to eight dimensions, and long ones of one, in integer log2 (../integer_log2/integer_log2.cuh).
//
// Threads to work: a pair has 8, 16 or 32 lanes of a warp, a group, and a lane 8 or 12 rows, or 4 of more than four dimensions or with a
// band, whose vectors it holds. So a group has a strip of the table, and goes through the pair's strips in turn: the last row of one waits in device
// memory for the next. As elsewhere a lane is a column behind the lane above it, and 8 steps are a chunk. Groups of a warp do
// the same steps, each with the strip and the chunk that it is at, so pairs of other lengths, and backward those whose E counts
// elsewhere, need not wait for each other.
#include "costs/vector_log2_kernels.cuh"
#include "matrix/matrix_group.cuh"

namespace softdtw {

SOFTDTW_VECTOR_LOG2(extern, VectorCost<SquaredVectors>)
SOFTDTW_VECTOR_LOG2(extern, VectorCost<EuclideanVectors>)
SOFTDTW_VECTOR_LOG2(extern, VectorCost<CityblockVectors>)
SOFTDTW_VECTOR_LOG2(extern, VectorCost<HuberVectors>)
SOFTDTW_VECTOR_LOG2(extern, MatrixCost)

VectorBytes vector_bytes_of_pair(const Problem<float>& problem) {
  const VectorLayout layout(problem.cost == Cost::kMatrix ? turned(problem) : problem, true);
  return {layout.bytes_of_pair(), layout.bytes_of_edge(), layout.bytes_of_flow()};
}

cudaError_t launch_vector_forward(
    const Problem<float>& problem, bool keeps, float* value, char* memory, int64_t stride, PairStatus* statuses,
    cudaStream_t stream) {
  if (problem.cost == Cost::kMatrix)
    return vector_forward_of<MatrixCost>(turned(problem), keeps, value, memory, stride, statuses, stream);
  return with_cost<VectorCosts>(problem.cost, [&](auto type) {
    return vector_forward_of<decltype(type)>(problem, keeps, value, memory, stride, statuses, stream);
  });
}

cudaError_t launch_vector_backward(
    const Problem<float>& problem, const Gradient<float>& gradient, char* saved, int64_t stride, char* flows,
    const PairStatus* statuses, cudaStream_t stream) {
  if (problem.cost == Cost::kMatrix)
    return vector_backward_of<MatrixCost>(turned(problem), turned(gradient), saved, stride, flows, statuses, stream);
  return with_cost<VectorCosts>(problem.cost, [&](auto type) {
    return vector_backward_of<decltype(type)>(problem, gradient, saved, stride, flows, statuses, stream);
  });
}

}  // namespace softdtw
