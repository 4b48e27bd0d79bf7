// Bands of many pairs of two to four dimensions (vector_ring.cuh): the kernels, by cost and rows of a lane.
#include "cuda/kernels/banded/banded.h"
#include "cuda/kernels/banded/ring_launch.cuh"
#include "vector_ring.cuh"

namespace softdtw {
namespace {

// Warps of a multiprocessor that registers are given out for.
constexpr int kForwardWarps = 16, kBackwardWarps = 8;

extern __shared__ int4 vector_ring_memory[];

template <class Pair>
__global__ void __launch_bounds__(kWarp, kForwardWarps) vector_ring_forward_kernel(
    const __grid_constant__ Problem<float> problem, const __grid_constant__ RingLayout layout, float* value, char* saved,
    int64_t stride, PairStatus* statuses) {
  const int64_t own = Pair::number(layout, first_pair_of_block(layout));
  const bool exists = own < problem.batch;
  const bool taken = log2_ring_forward<Pair>(problem, layout, own, exists, nullptr, value, saved, stride);
  if (exists && threadIdx.x % layout.lanes == 0) statuses[own] = taken ? PairStatus::kIntegerLog2 : PairStatus::kGivenUp;
}

template <class Pair>
__global__ void __launch_bounds__(kWarp, kBackwardWarps) vector_ring_backward_kernel(
    const __grid_constant__ Problem<float> problem, const __grid_constant__ Gradient<float> gradient,
    const __grid_constant__ RingLayout layout, const char* saved, int64_t stride, const PairStatus* statuses) {
  using Format = Log2Ring<Pair, typename Pair::Number>;
  using Table = typename Format::Table;
  const int64_t own = Pair::number(layout, first_pair_of_block(layout));
  const bool accepted = own < problem.batch && statuses[own] == PairStatus::kIntegerLog2;
  Table& table = *reinterpret_cast<Table*>(vector_ring_memory);
  ring_gradients<Pair>(
      problem, gradient, layout, own, accepted, nullptr, saved, stride,
      [&](Pair& pair, const int* kept, const auto& out) { ring_backward<Format>(pair, layout, table, kept, out); });
}

// Calls f(layout, null of the type of pairs).
template <class F>
cudaError_t with_pairs(const Problem<float>& problem, F&& f) {
  const RingLayout layout = ring_layout_of(problem);
  return with_squared_or_not(problem.cost, [&](auto type) {
    return with_ring_rows(
        layout.rows, [&](auto rows) { return f(layout, static_cast<VectorRingPair<rows(), decltype(type)>*>(nullptr)); });
  });
}

}  // namespace

cudaError_t launch_banded_vectors_forward(
    const Problem<float>& problem, float* value, char* saved, int64_t stride, PairStatus* statuses, cudaStream_t stream) {
  return with_pairs(problem, [&](const RingLayout& layout, auto pair) {
    return launch_rings(
        vector_ring_forward_kernel<std::remove_pointer_t<decltype(pair)>>, problem, layout, 0, stream, problem, layout,
        value, saved, stride, statuses);
  });
}

cudaError_t launch_banded_vectors_backward(
    const Problem<float>& problem, const Gradient<float>& gradient, const char* saved, int64_t stride,
    const PairStatus* statuses, cudaStream_t stream) {
  return with_pairs(problem, [&](const RingLayout& layout, auto pair) {
    using Pair = std::remove_pointer_t<decltype(pair)>;
    return launch_rings(
        vector_ring_backward_kernel<Pair>, problem, layout, sizeof(typename Log2Ring<Pair, typename Pair::Number>::Table),
        stream, problem, gradient, layout, saved, stride, statuses);
  });
}

}  // namespace softdtw
