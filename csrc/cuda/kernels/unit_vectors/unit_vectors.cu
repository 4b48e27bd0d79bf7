// Vectors of length 1 (core/unit_vectors.h), those of x and y in one kernel each way: by PyTorch's own kernels they took a third of the
// time of a short problem with cosine costs.
//
// Threads to work: a vector has 1 to 32 neighbouring lanes of a warp, so neighbours read neighbours. They meet once, in a sum by shuffles.
// More than eight lanes have eight numbers each, or more: with fewer, the square roots, which all lanes compute, in float64, took most of the
// time. A lane's first eight numbers are loaded all at once; of vectors of up to eight it has one. Blocks of x come first, then those of y.
#include <algorithm>

#include "cuda/hardware/assembly.cuh"
#include "cuda/hardware/launch.cuh"
#include "unit_vectors.h"

namespace softdtw {
namespace {

constexpr int kThreads = 256;

int lanes_of(int64_t dim) {
  int lanes = 1;
  while (lanes < kWarp && (lanes < 8 ? lanes : 8 * lanes) < dim) lanes *= 2;
  return lanes;
}

// Of x and y.
template <class One>
struct Both {
  One one[2];
  int lanes;           // of a vector
  int64_t first_of_y;  // block

  Both(const One& of_x, const One& of_y, const Vectors& x, const Vectors& y)
      : one{of_x, of_y}, lanes(lanes_of(std::max(x.dim, y.dim))), first_of_y(blocks_of(x)) {}
  int64_t blocks_of(const Vectors& vectors) const { return (vectors.count * lanes + kThreads - 1) / kThreads; }
};

// A lane's part of a vector. kHeld: numbers of it that are in registers.
template <int kHeld>
class LanesOfVector {
  const int lanes, first_dims;  // as many as there are of those that may be in registers
  const int64_t dim;

 public:
  const int lane;
  const int64_t vector;
  const bool is_there;

  __device__ LanesOfVector(int lanes_, int64_t block, const Vectors& vectors)
      : lanes(lanes_),
        first_dims(static_cast<int>(min(vectors.dim, int64_t{kHeld} * kWarp))),
        dim(vectors.dim),
        lane(static_cast<int>(threadIdx.x) & (lanes_ - 1)),
        vector((block * kThreads + threadIdx.x) / lanes_),
        is_there(vector < vectors.count) {}

  // All lanes of a warp have to come here.
  __device__ double sum(double own) const {
    for (int step = lanes / 2; step > 0; step /= 2) own += __shfl_xor_sync(~0u, own, step);
    return own;
  }
  // The lane's numbers, or pairs of them: load(d), which are then seen by use(d, number).
  template <class Number>
  struct Held {
    Number numbers[kHeld];
  };
  template <class Load>
  __device__ __forceinline__ auto load(Load&& load) const {
    Held<decltype(load(0))> held;
#pragma unroll
    for (int i = 0; i < kHeld; ++i) {
      const int d = lane + i * lanes;
      held.numbers[i] = is_there && d < first_dims ? load(d) : decltype(load(0)){};
    }
    return held;
  }
  template <class Number, class Load, class Use>
  __device__ __forceinline__ void for_each(const Held<Number>& held, Load&& load, Use&& use) const {
#pragma unroll
    for (int i = 0; i < kHeld; ++i) {
      const int d = lane + i * lanes;
      if (is_there && d < first_dims) use(d, held.numbers[i]);
    }
    if (kHeld > 1 && is_there)
      for (int64_t d = lane + kHeld * lanes; d < dim; d += lanes) use(d, load(d));
  }
};

template <int kHeld>
__global__ void __launch_bounds__(kThreads) unit_vectors_kernel(const __grid_constant__ Both<UnitVectors> both) {
  const bool is_of_y = blockIdx.x >= both.first_of_y;
  const UnitVectors& one = both.one[is_of_y];
  const Vectors& vectors = one.vectors;
  const LanesOfVector<kHeld> own(both.lanes, blockIdx.x - (is_of_y ? both.first_of_y : 0), vectors);
  const float* const numbers = vectors.numbers + own.vector * vectors.dim;
  const auto load = [&](int64_t d) { return numbers[d]; };
  const auto held = own.load(load);
  double squares = 0;
  own.for_each(held, load, [&](int64_t, float number) { squares = fma(double(number), double(number), squares); });
  squares = own.sum(squares);
  if (!own.is_there) return;
  const double inverse = inverse_length(squares);
  float* const unit = one.unit + own.vector * vectors.width;
  own.for_each(held, load, [&](int64_t d, float number) { unit[d] = unit_number(number, inverse); });
  for (int64_t d = vectors.dim + own.lane; d < vectors.width; d += both.lanes) unit[d] = flag_number(vectors, d, inverse);
  if (own.lane == 0) one.inverse[own.vector] = inverse;
}

template <int kHeld>
__global__ void __launch_bounds__(kThreads) unit_vectors_backward_kernel(const __grid_constant__ Both<UnitGradient> both) {
  const bool is_of_y = blockIdx.x >= both.first_of_y;
  const UnitGradient& one = both.one[is_of_y];
  const Vectors& vectors = one.unit;
  const LanesOfVector<kHeld> own(both.lanes, blockIdx.x - (is_of_y ? both.first_of_y : 0), vectors);
  const float* const unit = vectors.numbers + own.vector * vectors.width;
  const float* const gradient = one.grad_unit + own.vector * vectors.width;
  const auto load = [&](int64_t d) { return float2{unit[d], gradient[d]}; };
  const auto held = own.load(load);
  double along = 0;
  own.for_each(held, load, [&](int64_t, float2 numbers) { along = fma(double(numbers.x), double(numbers.y), along); });
  along = own.sum(along);
  if (!own.is_there) return;
  const double inverse = one.inverse[own.vector];
  float* const grad = one.grad + own.vector * vectors.dim;
  own.for_each(held, load, [&](int64_t d, float2 numbers) { grad[d] = across(numbers.y, numbers.x, along, inverse); });
}

// `few`: the kernel where a lane has one number of a vector, `many`: where it may have more.
template <class One>
cudaError_t launch(
    void (*few)(Both<One>), void (*many)(Both<One>), const One& of_x, const One& of_y, const Vectors& x, const Vectors& y,
    cudaStream_t stream) {
  const Both<One> both(of_x, of_y, x, y);
  const bool are_few = std::max(x.dim, y.dim) <= both.lanes;
  return launch_kernel(are_few ? few : many, both.first_of_y + both.blocks_of(y), dim3(kThreads), 0, stream, both);
}

}  // namespace

cudaError_t unit_vectors(const UnitVectors& of_x, const UnitVectors& of_y, cudaStream_t stream) {
  return launch(unit_vectors_kernel<1>, unit_vectors_kernel<8>, of_x, of_y, of_x.vectors, of_y.vectors, stream);
}

cudaError_t unit_vectors_backward(const UnitGradient& to_x, const UnitGradient& to_y, cudaStream_t stream) {
  return launch(unit_vectors_backward_kernel<1>, unit_vectors_backward_kernel<8>, to_x, to_y, to_x.unit, to_y.unit, stream);
}

}  // namespace softdtw
