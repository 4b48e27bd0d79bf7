// stencil/banded: many pairs of one dimension with a band, in the linear domain (linear_domain.cuh), and those that leave it in integer
// log2 (log2/banded_log2.cu). The lanes of a pair are a ring that goes along the band; cells outside it take no time.
//
// A pair's rows come in blocks of K: block b is rows b K to b K + K - 1. Of the W columns that a row has in the band the first is
// row + low. L lanes of a warp, 4 to 32, have a pair. Block b is lane b mod L's, and in step u it is at column
//     j = u + low - 1 - b,
// one step behind the block above. So it comes in at step b (K + 1), one column before its first one: there it sees the row above.
// With s = j - b K - low = u - 1 - b (K + 1), row k of the block is in the band where
//     k <= s < k + W,                                                                                                    (*)
// and the block has left the band at s = W + K - 1. After L (K + 1) > W + K steps its lane takes block b + L. That leaves a step at
// either end, so that backward is the mirror image. Every K + 1 steps, a group, one lane of each ring has a new block.
//
//     K = 2, L = 3, W = 6     step 0 1 2 3 4 5 6 7 8 9 ...     s of each lane, . where no row is inside
//                       lane 0     . 0 1 2 3 4 5 6 . .         a group is 3 steps: at step 9 lane 0 goes on with block 3
//                       lane 1           . 0 1 2 3 4 ...
//                       lane 2                 . 0 1 ...
//
// (*) depends on r - k alone in the r-th step of a group, so one mask of bits does for a group. A cell outside is made 0 by one
// selection, of the upper word of its float64 (with four rows a lane, of its weight as a whole). What is left of it is below
// 2^-1042, and comes in at some 3 n places of a pair: 2^-1030 against a last entry of 2^-1000 at least, and E is off by less than
// 2^-30 by it. Cells before the table's first one are 0; those behind its last row or column hold finite numbers from which no path
// comes back. All else is proved in linear_domain.cuh, whose sums have fewer terms here.
//
// Forward keeps the series as it has read them, and what the lanes hold every group or two: no cell outside the band costs memory.
//
// ring_band.cuh has where a lane is, ring.cuh and log2/log2_ring.cuh its cells, banded_forward.cuh and ring_backward.cuh the sweeps,
// select/blocks.h the choice of K and L. Of several dimensions: log2/banded_vectors.cu.
#include "banded.h"

#include "banded_backward.cuh"
#include "banded_forward.cuh"
#include "ring_launch.cuh"

namespace softdtw {
namespace {

// Warps of a multiprocessor that registers are given out for.
template <int kRows>
constexpr int kForwardWarps = kRows == 4 ? 20 : 16;
template <int kRows>
constexpr int kBackwardWarps = kRows == 4 ? 16 : 12;

extern __shared__ int4 ring_memory[];

template <int kRows>
__global__ void __launch_bounds__(kWarp, kForwardWarps<kRows>) banded_forward_kernel(
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
__global__ void __launch_bounds__(kWarp, kBackwardWarps<kRows>) banded_backward_kernel(
    const __grid_constant__ Problem<float> problem, const __grid_constant__ Gradient<float> gradient,
    const __grid_constant__ RingLayout layout, const char* saved, int64_t stride, const PairStatus* statuses) {
  banded_backward<kRows>(
      problem, gradient, layout, first_pair_of_block(layout), reinterpret_cast<char*>(ring_memory), saved, stride,
      statuses);
}

}  // namespace

int64_t banded_bytes_of_pair(const Problem<float>& problem) { return ring_layout_of(problem).bytes_of_pair(); }

cudaError_t launch_banded_forward(
    const Problem<float>& problem, float* value, char* saved, int64_t stride, PairStatus* statuses, cudaStream_t stream) {
  if (problem.dim > 1) return launch_banded_vectors_forward(problem, value, saved, stride, statuses, stream);
  const RingLayout layout = ring_layout_of(problem);
  const bool has_linear = has_linear_rings(call_of(problem, false), current_device());
  const cudaError_t error = !has_linear ? cudaSuccess : with_ring_rows(layout.rows, [&](auto rows) {
    return launch_rings(
        banded_forward_kernel<rows()>, problem, layout, 0, stream, problem, layout, value, saved, stride, statuses);
  });
  return error != cudaSuccess ? error : launch_banded_log2_forward(problem, value, saved, stride, statuses, stream);
}

cudaError_t launch_banded_backward(
    const Problem<float>& problem, const Gradient<float>& gradient, const char* saved, int64_t stride,
    const PairStatus* statuses, cudaStream_t stream) {
  if (problem.dim > 1) return launch_banded_vectors_backward(problem, gradient, saved, stride, statuses, stream);
  const RingLayout layout = ring_layout_of(problem);
  const bool has_linear = has_linear_rings(call_of(problem, false), current_device());
  const cudaError_t error = !has_linear ? cudaSuccess : with_ring_rows(layout.rows, [&](auto rows) {
    return launch_rings(
        banded_backward_kernel<rows()>, problem, layout, sizeof(RingTable<rows()>), stream, problem, gradient, layout,
        saved, stride, statuses);
  });
  return error != cudaSuccess ? error : launch_banded_log2_backward(problem, gradient, saved, stride, statuses, stream);
}

}  // namespace softdtw
