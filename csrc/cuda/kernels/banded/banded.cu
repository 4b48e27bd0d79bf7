// The band of many pairs of one dimension, in the linear domain (linear_domain.cuh): lanes in a ring, which cells outside do not
// delay.
//
// A pair's rows come in blocks of K, rows b K to b K + K - 1 being block b. Of W columns of a row's band the first is row + low.
// L lanes of a warp, 4 to 32, have a pair: block b is lane b mod L's, and in step u it is at column j = u + low - 1 - b, so
// that it enters at step b (K + 1), one column before its first: there it sees the row above. With
//     s = j - b K - low = u - 1 - b (K + 1)
// row k of it is in the band where k <= s < k + W, and the block has left it at s = W + K - 1. So L (K + 1) > W + K steps later
// its lane can take block b + L. Every K + 1 steps, a group, one lane of the ring takes its next block.
//
// What is outside the band adds nothing, without a look at most of it. Forward, a row that is not in it yet comes from garbage
// and goes down into rows that are not in it either: it is to be 0 as the row's `left` when it enters (k = s), and the last
// row's as the next block's `up`. A row that leaves the band has zeros above and to the upper left; its `left` alone is to be 0.
// So one selection a cell does, of `left` where k < s < k + W. Backward is its mirror image, of V where k <= s < k + W - 1.
// Cells beyond the table's ends are garbage from which no path comes back; those before its first cell are 0.
//
// A selection replaces the upper word of a float64 alone. What is left, 2^-1042, comes in at some 3 n places of a pair: 2^-1030
// against a last entry of 2^-1000 or more, and times B or A of at most 2^1000 less than 2^-30 of E.
//
// forward -> banded_forward.cuh, backward -> banded_backward.cuh, both by ring.cuh, select/blocks.h has the choice of K and L.
#include "banded.h"

#include "banded_backward.cuh"
#include "cuda/hardware/launch.cuh"

namespace softdtw {
namespace {

extern __shared__ int4 ring_memory[];

__device__ __forceinline__ int64_t first_pair_of_block(const RingLayout& layout) {
  return int64_t{blockIdx.x} * (kWarp / layout.lanes);
}

template <int kRows>
__global__ void __launch_bounds__(kWarp, 16) banded_forward_kernel(
    const __grid_constant__ Problem<float> problem, const __grid_constant__ RingLayout layout, float* value, char* saved,
    int64_t stride, PairStatus* statuses) {
  const int64_t first_pair = first_pair_of_block(layout);
  const bool taken =
      banded_forward<kRows>(problem, layout, first_pair, reinterpret_cast<float*>(ring_memory), value, saved, stride);
  const int64_t pair = first_pair + threadIdx.x / layout.lanes;
  if (threadIdx.x % layout.lanes == 0 && pair < problem.batch)
    statuses[pair] = taken ? PairStatus::kLinearDomain : PairStatus::kGivenUp;
}

template <int kRows>
__global__ void __launch_bounds__(kWarp, 16) banded_backward_kernel(
    const __grid_constant__ Problem<float> problem, const __grid_constant__ Gradient<float> gradient,
    const __grid_constant__ RingLayout layout, const char* saved, int64_t stride, const PairStatus* statuses) {
  banded_backward<kRows>(
      problem, gradient, layout, first_pair_of_block(layout), reinterpret_cast<char*>(ring_memory), saved, stride, statuses);
}

// Calls f with the rows of a lane, as the type of a number.
template <class F>
cudaError_t with_rows(int rows, F&& f) {
  return rows == 4 ? f(std::integral_constant<int, 4>()) : f(std::integral_constant<int, 8>());
}

template <class Kernel, class... Arguments>
cudaError_t launch(
    Kernel kernel, const Problem<float>& problem, const RingLayout& layout, size_t bytes, cudaStream_t stream,
    const Arguments&... arguments) {
  return launch_kernel(kernel, ceil_div(problem.batch, layout.pairs()), kWarp, bytes, stream, arguments...);
}

}  // namespace

int64_t banded_bytes_of_pair(const Problem<float>& problem) { return RingLayout(problem).bytes_of_pair(); }

cudaError_t launch_banded_forward(
    const Problem<float>& problem, float* value, char* saved, int64_t stride, PairStatus* statuses, cudaStream_t stream) {
  const RingLayout layout(problem);
  return with_rows(layout.rows, [&](auto rows) {
    return launch(
        banded_forward_kernel<rows()>, problem, layout, layout.pairs() * layout.floats_of_pair() * sizeof(float), stream,
        problem, layout, value, saved, stride, statuses);
  });
}

cudaError_t launch_banded_backward(
    const Problem<float>& problem, const Gradient<float>& gradient, const char* saved, int64_t stride,
    const PairStatus* statuses, cudaStream_t stream) {
  const RingLayout layout(problem);
  return with_rows(layout.rows, [&](auto rows) {
    return launch(
        banded_backward_kernel<rows()>, problem, layout, sizeof(RingTable<rows()>), stream, problem, gradient, layout, saved,
        stride, statuses);
  });
}

}  // namespace softdtw
