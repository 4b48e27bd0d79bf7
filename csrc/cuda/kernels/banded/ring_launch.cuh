// Launches of rings (ring_band.cuh): a block is a warp, and has its pairs.
#pragma once

#include "cuda/hardware/launch.cuh"
#include "ring_band.cuh"

namespace softdtw {

inline RingLayout ring_layout_of(const Problem<float>& problem) {
  const RingLayout layout(static_cast<int>(problem.n), static_cast<int>(problem.m), ring_of(call_of(problem, false)));
  return problem.dim > 1 ? layout.without_series() : layout;
}
__device__ __forceinline__ int64_t first_pair_of_block(const RingLayout& layout) {
  return int64_t{blockIdx.x} * (kWarp / layout.lanes);
}

// Calls f with the rows of a lane, as the type of a number.
template <class F>
cudaError_t with_ring_rows(int rows, F&& f) {
  if (rows == 4) return f(std::integral_constant<int, 4>());
  return rows == 6 ? f(std::integral_constant<int, 6>()) : f(std::integral_constant<int, 8>());
}
// `bytes`: of shared memory, beside the series.
template <class Kernel, class... Arguments>
cudaError_t launch_rings(
    Kernel kernel, const Problem<float>& problem, const RingLayout& layout, size_t bytes, cudaStream_t stream,
    const Arguments&... arguments) {
  const size_t bytes_of_series = layout.pairs() * layout.floats_of_pair() * sizeof(float);
  return launch_kernel(
      kernel, ceil_div(problem.batch, layout.pairs()), kWarp, bytes + bytes_of_series, stream, arguments...);
}

}  // namespace softdtw
