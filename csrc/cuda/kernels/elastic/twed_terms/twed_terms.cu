// (14) of core/twed_terms.h: a block for a series, or for a chunk of one where nothing is asked of the whole. A vector is read by
// neighbouring lanes where its numbers are neighbours in memory, up to four numbers by each; else by one, whose neighbours have the
// vectors beside it.
#include <algorithm>

#include "cuda/hardware/assembly.cuh"
#include "cuda/hardware/launch.cuh"
#include "twed_terms_kernels.h"

namespace softdtw {
namespace {

constexpr int kWarp = 32, kMostThreads = 1024;  // of a block
constexpr int kFewThreads = 64;                 // once they fill the device: what a block does once costs less of it
constexpr int kThreadsOfProcessor = 2048;
constexpr int kRowsOfThread = 8;  // of a chunk

// 2^shift lanes of a warp.
struct Neighbours {
  int shift;
  __device__ int lane() const { return threadIdx.x & (lanes() - 1); }
  __device__ int lanes() const { return 1 << shift; }
  template <class F>
  __device__ void for_each(int64_t count, const F& f) const {
    const int64_t turns = (count - lane() + lanes() - 1) >> shift;
    for (int64_t turn = 0; turn < turns; ++turn) f(lane() + (turn << shift));
  }
  template <typename T>
  __device__ T sum(T own) const {
    for (int distance = lanes() / 2; distance > 0; distance /= 2) own += __shfl_xor_sync(kAllLanes, own, distance);
    return own;
  }
};

struct Shape {
  int threads;
  Neighbours x, y;
  int64_t chunk, chunks;  // of rows
};

// f(i) for the rows of this block's chunk, i by all lanes of a group at once; beyond the series, too.
template <class F>
__device__ void for_each_row(const Shape& shape, const Neighbours& group, int64_t length, F&& f) {
  const int64_t begin = blockIdx.y * shape.chunk, end = min(begin + shape.chunk, length);
  const int step = blockDim.x >> group.shift;
  for (int64_t first = begin; first < end; first += step) {
    const int64_t i = first + (threadIdx.x >> group.shift);
    f(i < end ? i : INT64_MAX / 2);
  }
}

__device__ bool any_of_block(bool own) {
  __shared__ bool parts[kMostThreads / kWarp];
  const bool any = __any_sync(kAllLanes, own);
  if (threadIdx.x % kWarp == 0) parts[threadIdx.x / kWarp] = any;
  __syncthreads();
  bool all = false;
  for (int warp = 0; warp < blockDim.x / kWarp; ++warp) all |= parts[warp];
  return all;
}

// Over all threads of a block.
__device__ double sum_of_block(double own) {
  __shared__ double sums[kMostThreads / kWarp];
  own = Neighbours{5}.sum(own);
  if (threadIdx.x % kWarp == 0) sums[threadIdx.x / kWarp] = own;
  __syncthreads();
  double sum = 0;
  for (int warp = 0; warp < blockDim.x / kWarp; ++warp) sum += sums[warp];
  __syncthreads();
  return sum;
}

template <typename T>
__global__ void twed_terms_kernel(
    const __grid_constant__ TwedTerms<T> terms, const __grid_constant__ TwedTermsOut<T> out,
    const __grid_constant__ Shape shape) {
  const bool is_y = blockIdx.x >= terms.x.count;
  const int64_t b = is_y ? blockIdx.x - terms.x.count : blockIdx.x;
  const TwedSeries<T> own(terms, is_y, b);
  const NumbersView<T>& all_times = is_y ? out.y_times : out.x_times;
  const NumbersView<T> gaps = (is_y ? out.y_gaps : out.x_gaps).of(b), times = all_times.of(b);
  const bool writes_times = times.data != nullptr && (all_times.batch_stride != 0 || b == 0);
  const Neighbours group = is_y ? shape.y : shape.x;
  const int64_t length = is_y ? terms.y.length : terms.x.length;

  bool decreases = false;
  for_each_row(shape, group, length, [&](int64_t i) {
    const bool is_there = i < own.length(), has_gap = is_there && i > 0;
    const T distance = own.distance(group, i, has_gap);
    if (group.lane() != 0 || i >= length) return;
    const auto own_times = is_there ? own.times(i) : typename TwedSeries<T>::Times{};
    decreases |= own_times.decreases;
    gaps.at(i) = has_gap ? own.gap(own_times, distance) : T(0);
    if (writes_times) times.at(i) = own_times.own;
  });
  if (!terms.has_given() || !any_of_block(decreases)) return;
  for (int64_t i = threadIdx.x; i < own.length(); i += blockDim.x) {
    if (i > 0) gaps.at(i) = T(NAN);
    if (writes_times) times.at(i) = T(NAN);
  }
}

template <typename T>
__global__ void twed_terms_gradient_kernel(
    const __grid_constant__ TwedTerms<T> terms, const __grid_constant__ TwedTermsGradient<T> gradient,
    const __grid_constant__ Shape shape) {
  const bool is_y = blockIdx.x >= terms.x.count;
  const int64_t b = is_y ? blockIdx.x - terms.x.count : blockIdx.x;
  const TwedSeries<T> own(terms, is_y, b);
  const View<T> vectors = (is_y ? gradient.y : gradient.x).pair(b);
  const NumbersView<T> times = (is_y ? gradient.y_times : gradient.x_times).of(b);
  const NumbersView<const T>& from_times = is_y ? gradient.from_y_times : gradient.from_x_times;
  const NumbersView<const T>& from_gaps = is_y ? gradient.from_y_gaps : gradient.from_x_gaps;
  const Neighbours group = is_y ? shape.y : shape.x;
  const int64_t length = is_y ? terms.y.length : terms.x.length;

  double of_nu = 0, of_lmbda = 0;
  for_each_row(shape, group, length, [&](int64_t i) {
    const auto around = own.around(from_gaps, i);
    const bool is_first = group.lane() == 0 && i < length, is_there = i < own.length();
    if (is_first) of_lmbda += around.before;
    if (is_first && (times.data != nullptr || gradient.nus != nullptr)) {
      const T of_time = is_there ? own.of_time(from_times, around, i) : T(0);
      if (is_there) of_nu += static_cast<double>(of_time) * static_cast<double>(own.place(i));
      if (times.data != nullptr) times.at(i) = of_time * T(own.nu());
    }
    if (vectors.data != nullptr) own.of_vector(group, around, i, [&](int64_t d, T number) { vectors.at(i, d) = number; });
  });
  if (gradient.nus != nullptr) {
    of_nu = sum_of_block(of_nu);
    if (threadIdx.x == 0) gradient.nus[blockIdx.x] = of_nu;
  }
  if (gradient.lmbdas != nullptr) {
    of_lmbda = sum_of_block(of_lmbda);
    if (threadIdx.x == 0) gradient.lmbdas[blockIdx.x] = of_lmbda;
  }
}

// is_whole: a block has to see the whole of a series.
template <typename T>
Shape shape_of(const TwedTerms<T>& terms, bool is_whole) {
  const auto neighbours_of = [&](const View<const T>& series) {
    Neighbours group{0};
    while (series.column_stride <= series.row_stride && 1 << group.shift < kWarp && 4 << group.shift < terms.dim)
      ++group.shift;
    return group;
  };
  Shape shape;
  shape.x = neighbours_of(terms.x.series);
  shape.y = neighbours_of(terms.y.series);
  const int lanes = 1 << std::max(shape.x.shift, shape.y.shift);
  const int64_t useful = (terms.longest() * lanes + kWarp - 1) / kWarp * kWarp;
  const int64_t each =
      is_whole ? int64_t(current_device().processors) * kThreadsOfProcessor / std::max<int64_t>(terms.rows(), 1) : 0;
  const int64_t filling = std::clamp<int64_t>(each / kWarp * kWarp, kFewThreads, kMostThreads);
  shape.threads = static_cast<int>(std::min(useful, filling));
  shape.chunk = terms.longest();
  if (!is_whole)
    shape.chunk =
        std::max<int64_t>(shape.threads / lanes * kRowsOfThread, (terms.longest() + Blocks::kMostY - 1) / Blocks::kMostY);
  shape.chunks = (terms.longest() + shape.chunk - 1) / shape.chunk;
  return shape;
}

}  // namespace

template <typename T>
cudaError_t twed_terms_forward(const TwedTerms<T>& terms, const TwedTermsOut<T>& out, cudaStream_t stream) {
  const Shape shape = shape_of(terms, terms.has_given());
  return launch_kernel(
      twed_terms_kernel<T>, Blocks(terms.rows(), shape.chunks), shape.threads, 0, stream, terms, out, shape);
}

template <typename T>
cudaError_t twed_terms_backward(const TwedTerms<T>& terms, const TwedTermsGradient<T>& gradient, cudaStream_t stream) {
  const Shape shape = shape_of(terms, gradient.nus != nullptr || gradient.lmbdas != nullptr);
  return launch_kernel(
      twed_terms_gradient_kernel<T>, Blocks(terms.rows(), shape.chunks), shape.threads, 0, stream, terms, gradient, shape);
}

template cudaError_t twed_terms_forward<float>(const TwedTerms<float>&, const TwedTermsOut<float>&, cudaStream_t);
template cudaError_t twed_terms_forward<double>(const TwedTerms<double>&, const TwedTermsOut<double>&, cudaStream_t);
template cudaError_t twed_terms_backward<float>(const TwedTerms<float>&, const TwedTermsGradient<float>&, cudaStream_t);
template cudaError_t twed_terms_backward<double>(const TwedTerms<double>&, const TwedTermsGradient<double>&, cudaStream_t);

}  // namespace softdtw
