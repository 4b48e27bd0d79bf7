// Vectors of length 1 (core/unit_vectors.h), in one kernel each way: by PyTorch's own kernels they took a third of the time of a
// short problem with cosine costs.
//
// Threads to work: a vector has 1 to 32 neighbouring lanes of a warp, so neighbours read neighbours. They meet once, in a sum by shuffles.
// More than eight lanes have eight numbers each, or more: with fewer, the square roots, which all lanes compute, in float64, took most of the
// time.
#include "cuda/hardware/assembly.cuh"
#include "cuda/hardware/launch.cuh"
#include "unit_vectors.h"

namespace softdtw {
namespace {

constexpr int kThreads = 256;

// Where a lane is, and what it and the other lanes of its vector add up.
struct LanesOfVector {
  const int lanes, lane;
  const int64_t vector;

  __device__ explicit LanesOfVector(int lanes_)
      : lanes(lanes_),
        lane(static_cast<int>(threadIdx.x) & (lanes_ - 1)),
        vector((int64_t{blockIdx.x} * kThreads + threadIdx.x) / lanes_) {}

  // All lanes of a warp have to come here.
  __device__ double sum(double own) const {
    for (int step = lanes / 2; step > 0; step /= 2) own += __shfl_xor_sync(~0u, own, step);
    return own;
  }
};

__global__ void __launch_bounds__(kThreads)
    unit_vectors_kernel(const Vectors vectors, int lanes, float* unit, double* inverse) {
  const LanesOfVector own(lanes);
  const bool is_there = own.vector < vectors.count;
  const float* const numbers = vectors.numbers + own.vector * vectors.dim;
  double squares = 0;
  if (is_there)
    for (int64_t d = own.lane; d < vectors.dim; d += lanes) squares = fma(double(numbers[d]), double(numbers[d]), squares);
  squares = own.sum(squares);
  if (!is_there) return;
  const double over_length = inverse_length(squares);
  for (int64_t d = own.lane; d < vectors.width; d += lanes)
    unit[own.vector * vectors.width + d] = unit_number(vectors, numbers, d, over_length);
  if (own.lane == 0) inverse[own.vector] = over_length;
}

__global__ void __launch_bounds__(kThreads) unit_vectors_backward_kernel(
    const Vectors vectors, int lanes, const float* grad_unit, const double* inverse, float* grad) {
  const LanesOfVector own(lanes);
  const bool is_there = own.vector < vectors.count;
  const float *const unit = vectors.numbers + own.vector * vectors.width, *const gradient =
                                                                              grad_unit + own.vector * vectors.width;
  double along = 0;
  if (is_there)
    for (int64_t d = own.lane; d < vectors.dim; d += lanes) along = fma(double(unit[d]), double(gradient[d]), along);
  along = own.sum(along);
  if (!is_there) return;
  const double over_length = inverse[own.vector];
  for (int64_t d = own.lane; d < vectors.dim; d += lanes)
    grad[own.vector * vectors.dim + d] = across(gradient[d], unit[d], along, over_length);
}

int lanes_of(const Vectors& vectors) {
  int lanes = 1;
  while (lanes < kWarp && (lanes < 8 ? lanes : 8 * lanes) < vectors.dim) lanes *= 2;
  return lanes;
}

int64_t blocks_of(const Vectors& vectors, int lanes) { return (vectors.count * lanes + kThreads - 1) / kThreads; }

}  // namespace

cudaError_t unit_vectors(const Vectors& vectors, float* unit, double* inverse, cudaStream_t stream) {
  const int lanes = lanes_of(vectors);
  return launch_kernel(
      unit_vectors_kernel, blocks_of(vectors, lanes), dim3(kThreads), 0, stream, vectors, lanes, unit, inverse);
}

cudaError_t unit_vectors_backward(
    const Vectors& vectors, const float* grad_unit, const double* inverse, float* grad, cudaStream_t stream) {
  const int lanes = lanes_of(vectors);
  return launch_kernel(
      unit_vectors_backward_kernel, blocks_of(vectors, lanes), dim3(kThreads), 0, stream, vectors, lanes, grad_unit,
      inverse, grad);
}

}  // namespace softdtw
