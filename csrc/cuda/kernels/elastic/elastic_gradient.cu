// (13): from the masses of cells (elastic_masses.cuh) to gradients. Sums are of float64.
//
// Threads to work: of series, times and gaps one for each row of x and each of y, which walks the cells of its row or column of the
// table; a block per pair for what a pair has one number of; and a thread for each of the ready-made costs.
#include "cuda/hardware/launch.cuh"
#include "elastic_kernels.h"
#include "elastic_masses.cuh"

namespace softdtw {
namespace {

constexpr int kElasticThreads = 128;

// One pair's series, and what a measure makes of the masses of a cell.
template <class Type, class Masses, typename T>
class ElasticSums {
 public:
  __device__ ElasticSums(
      const ElasticProblem<T>& problem, const typename Masses::Saved& saved, int64_t pair, const Extent& extent)
      : problem_(problem),
        extent_(extent),
        masses_(saved, pair, extent),
        cells_(problem, pair),
        x_(problem.x.pair(pair)),
        y_(problem.y.pair(pair)),
        parameter_(problem.parameter_of(pair)) {}

  // How often the distance between the vectors of a cell counts. Cells of the table; vectors are counted from 0.
  __device__ double of_distance(int i, int j) const {
    if (cells_.counts()) return 0;
    if (is<Weighted>()) return all(i, j) * Weighted<T>::weight(i - j, parameter_, longest());
    return is<Twed>() ? masses_.diagonal(i, j) + masses_.diagonal(i + 1, j + 1) : masses_.diagonal(i, j);
  }
  // Of a row of x (kForX) or of y: f(i, j) for its cells.
  template <bool kForX, class F>
  __device__ void for_each(int own, F&& f) const {
    const Span others = kForX ? masses_.columns(own) : masses_.rows(own);
    for (int other = others.first; other <= others.last; ++other) f(kForX ? own : other, kForX ? other : own);
  }

  // d value / d x or y, of coordinates d to d + kDims - 1.
  static constexpr int kDims = 4;
  template <bool kForX>
  __device__ void of_vector(int own, int64_t d0, double (&sums)[kDims]) const {
    using Math = DeviceMath<T>;
    for_each<kForX>(own, [&](int i, int j) {
      const int row = i - 1, column = j - 1;
      const double mass = of_distance(i, j);
      if (is<Msm>()) sums[0] += of_gaps<kForX>(i, j);
      if (mass == 0) return;
      double factor = mass * factor_of(problem_.cost);
      if (is_over_cost(problem_.cost)) {
        const double distance = cells_.distance(row, column);
        factor = distance > 0 ? factor / distance : 0;
      }
      for (int k = 0; k < kDims; ++k)
        if (d0 + k < problem_.dim)
          sums[k] += factor *
                     static_cast<double>(slope_of<Math>(problem_.cost, x_.at(row, d0 + k) - y_.at(column, d0 + k))) *
                     (kForX ? 1 : -1);
    });
  }
  // d value / d times, of kTwed.
  template <bool kForX>
  __device__ double of_time(int own) const {
    double sum = 0;
    for_each<kForX>(own, [&](int i, int j) {
      const T between = cells_.between_times(i - 1, j - 1);
      if (between != T(0)) sum += (between > T(0)) == kForX ? of_distance(i, j) : -of_distance(i, j);
    });
    return sum;
  }
  // d value / d gap costs.
  template <bool kForX>
  __device__ double of_gap(int own) const {
    double sum = 1;
    for_each<kForX>(own, [&](int i, int j) { sum -= masses_.diagonal(i, j); });
    return sum;
  }
  // Of row i of the table: what its steps cost, and d value / d parameter.
  struct OfPair {
    double cost = 0, parameter = 0;
  };
  __device__ void add_row(const StepsInto<Type, T>& steps, int i, OfPair& sums) const {
    const auto add = [](double mass, T cost, double& sum) { sum += mass > 0 ? mass * static_cast<double>(cost) : 0; };
    if (i == 0) {
      if (problem_.sum_border)
        for (int j = 1; j <= min(extent_.m, extent_.high); ++j) add(masses_.left(0, j), steps(0, j).left, sums.cost);
      return;
    }
    if (problem_.sum_border) add(masses_.up(i, 0), steps(i, 0).up, sums.cost);
    for_each<true>(i, [&](int row, int j) {
      const double diagonal = masses_.diagonal(row, j), up = masses_.up(row, j), left = masses_.left(row, j);
      if (diagonal == 0 && up == 0 && left == 0) return;
      const StepCosts<T> costs = steps(row, j);
      add(diagonal, costs.diagonal, sums.cost);
      add(up, costs.up, sums.cost);
      add(left, costs.left, sums.cost);
      if constexpr (!std::is_same_v<Type, Ready>) {
        if (is<Msm>()) sums.parameter += up + left;
        if (is<Weighted>())
          sums.parameter += (diagonal + up + left) * Weighted<T>::slope(row - j, parameter_, longest()) *
                            static_cast<double>(cells_.distance(row - 1, j - 1));
      }
    });
  }
  template <template <typename> class Other>
  __device__ bool is() const {
    return cells_.template is<Other>();
  }
  __device__ bool has_slopes() const { return !cells_.counts(); }

 private:
  __device__ int64_t longest() const { return max(extent_.n, extent_.m); }
  __device__ double all(int i, int j) const { return masses_.diagonal(i, j) + masses_.up(i, j) + masses_.left(i, j); }

  // Of the steps up and left whose costs depend on x_i (kForX) or on y_j.
  template <bool kForX>
  __device__ double of_gaps(int i, int j) const {
    const auto x = [&](int row) { return x_.at(row - 1, 0); };
    const auto y = [&](int column) { return y_.at(column - 1, 0); };
    const double up = masses_.up(i, j), left = masses_.left(i, j);
    const double onward = kForX ? masses_.up(i + 1, j) : masses_.left(i, j + 1);
    double sum = 0;
    if (up > 0 && i > 1) {
      const auto slopes = Msm<T>::slopes(x(i), x(i - 1), y(j));
      sum += up * static_cast<double>(kForX ? slopes.v : slopes.b);
    }
    if (left > 0 && j > 1) {
      const auto slopes = Msm<T>::slopes(y(j), y(j - 1), x(i));
      sum += left * static_cast<double>(kForX ? slopes.b : slopes.v);
    }
    if (onward > 0)
      sum += onward *
             static_cast<double>(kForX ? Msm<T>::slopes(x(i + 1), x(i), y(j)).a : Msm<T>::slopes(y(j + 1), y(j), x(i)).a);
    return sum;
  }

  const ElasticProblem<T>& problem_;
  const Extent extent_;
  const Masses masses_;
  const ElasticCells<Type, DeviceMath<T>, T> cells_;
  const View<const T> x_, y_;
  const double parameter_;
};

// Type: of Measures, or AnyMeasure.
template <bool kForX, class Type, class Masses, typename T>
__global__ void __launch_bounds__(kElasticThreads) elastic_series_gradient(
    const __grid_constant__ ElasticProblem<T> problem, const __grid_constant__ ElasticGradient<T> gradient,
    const __grid_constant__ typename Masses::Saved saved) {
  const int64_t length = kForX ? problem.n : problem.m, blocks = (length + kElasticThreads - 1) / kElasticThreads;
  const int64_t pair = blockIdx.x / blocks, index = blockIdx.x % blocks * kElasticThreads + threadIdx.x;
  if (index >= length) return;
  const Extent extent = problem.extent(pair);
  if (extent.valid() && index >= (kForX ? extent.n : extent.m)) return;
  const View<T> out = kForX ? gradient.x : gradient.y;
  T* const times = kForX ? gradient.x_times : gradient.y_times;
  T* const gaps = kForX ? gradient.x_gaps : gradient.y_gaps;
  if (!extent.valid() || !isfinite(gradient.value[pair])) {
    const T with = gradient.without_value(pair);
    if (out.data != nullptr)
      for (int64_t d = 0; d < problem.dim; ++d) out.pair(pair).at(index, d) = with;
    if (times != nullptr) times[pair * length + index] = with;
    if (gaps != nullptr) gaps[pair * length + index] = with;
    return;
  }
  const ElasticSums<Type, Masses, T> sums(problem, saved, pair, extent);
  const int own = static_cast<int>(index) + 1;
  const double arriving = gradient.arriving(pair);
  if (out.data != nullptr && sums.has_slopes()) {
    constexpr int kDims = decltype(sums)::kDims;
    for (int64_t d0 = 0; d0 < problem.dim; d0 += kDims) {
      double of_vector[kDims] = {};
      sums.template of_vector<kForX>(own, d0, of_vector);
      for (int k = 0; k < kDims; ++k)
        if (d0 + k < problem.dim) out.pair(pair).at(index, d0 + k) = static_cast<T>(of_vector[k] * arriving);
    }
  }
  const bool is_twed = sums.template is<Twed>();
  if (is_twed && times != nullptr && problem.x_times.data != nullptr)
    times[pair * length + index] = static_cast<T>(sums.template of_time<kForX>(own) * arriving);
  if ((is_twed || sums.template is<Edit>()) && gaps != nullptr)
    gaps[pair * length + index] = static_cast<T>(sums.template of_gap<kForX>(own) * arriving);
}

// The sum over a block's threads, for the first of them.
__device__ double sum_of_block(double own) {
  __shared__ double of_warps[kElasticThreads / kWarp];
  for (int distance = kWarp / 2; distance > 0; distance /= 2) own += __shfl_xor_sync(kAllLanes, own, distance);
  __syncthreads();
  if (threadIdx.x % kWarp == 0) of_warps[threadIdx.x / kWarp] = own;
  __syncthreads();
  double sum = 0;
  for (int i = 0; i < kElasticThreads / kWarp; ++i) sum += of_warps[i];
  return sum;
}

template <class Type, class Masses, typename T>
__global__ void __launch_bounds__(kElasticThreads) elastic_pair_gradient(
    const __grid_constant__ ElasticProblem<T> problem, const __grid_constant__ ElasticGradient<T> gradient,
    const __grid_constant__ typename Masses::Saved saved) {
  const int64_t pair = blockIdx.x;
  const Extent extent = problem.extent(pair);
  if (!extent.valid() || !isfinite(gradient.value[pair])) {
    if (threadIdx.x == 0 && gradient.parameter != nullptr) gradient.parameter[pair] = gradient.without_value(pair);
    if (threadIdx.x == 0 && gradient.gamma != nullptr) gradient.gamma[pair] = gradient.without_value(pair);
    return;
  }
  const ElasticSums<Type, Masses, T> sums(problem, saved, pair, extent);
  const StepsInto<Type, T> steps(problem, pair);
  typename ElasticSums<Type, Masses, T>::OfPair own;
  for (int i = threadIdx.x; i <= extent.n; i += kElasticThreads) sums.add_row(steps, i, own);
  const double cost = sum_of_block(own.cost), parameter = sum_of_block(own.parameter), arriving = gradient.arriving(pair);
  if (threadIdx.x > 0) return;
  if (gradient.parameter != nullptr) gradient.parameter[pair] = static_cast<T>(parameter * arriving);
  if (gradient.gamma != nullptr && !problem.is_hard())
    gradient.gamma[pair] =
        static_cast<T>((static_cast<double>(gradient.value[pair]) - cost) / problem.gamma_of(pair) * arriving);
}

// D, U and L themselves; those of a summed border stand beside their first column and row.
template <class Masses, typename T>
__global__ void __launch_bounds__(kElasticThreads) elastic_cost_gradient(
    const __grid_constant__ ElasticProblem<T> problem, const __grid_constant__ ElasticGradient<T> gradient,
    const __grid_constant__ typename Masses::Saved saved) {
  const int64_t size = problem.n * problem.m, total = problem.batch * size;
  const int64_t stride = static_cast<int64_t>(gridDim.x) * blockDim.x;
  for (int64_t at = static_cast<int64_t>(blockIdx.x) * blockDim.x + threadIdx.x; at < total; at += stride) {
    const int64_t pair = at / size;
    const int i = static_cast<int>(at % size / problem.m) + 1, j = static_cast<int>(at % problem.m) + 1;
    const Extent extent = problem.extent(pair);
    const auto put = [&](T diagonal, T up, T left) {
      gradient.diagonal.pair(pair).at(i - 1, j - 1) = diagonal;
      gradient.up.pair(pair).at(i - 1, j - 1) = up;
      gradient.left.pair(pair).at(i - 1, j - 1) = left;
    };
    if (extent.valid() && (i > extent.n || j > extent.m)) continue;
    if (!extent.valid() || !isfinite(gradient.value[pair])) {
      const T with = gradient.without_value(pair);
      if (!extent.valid() || extent.in_band(i, j)) put(with, with, with);
      continue;
    }
    const Masses masses(saved, pair, extent);
    const double up = masses.up(i, j) + (j == 1 && problem.sum_border ? masses.up(i, 0) : 0);
    const double left = masses.left(i, j) + (i == 1 && problem.sum_border ? masses.left(0, j) : 0);
    const double arriving = gradient.arriving(pair);
    put(static_cast<T>(masses.diagonal(i, j) * arriving), static_cast<T>(up * arriving), static_cast<T>(left * arriving));
  }
}

}  // namespace

template <class Masses, typename T>
cudaError_t elastic_gradient(
    const ElasticProblem<T>& problem, const ElasticGradient<T>& gradient, const typename Masses::Saved& saved,
    cudaStream_t stream) {
  cudaError_t error = cudaSuccess;
  const auto run = [&](auto kernel, int64_t blocks) {
    if (error == cudaSuccess) error = launch_kernel(kernel, blocks, kElasticThreads, 0, stream, problem, gradient, saved);
  };
  const auto blocks = [](int64_t threads) { return (threads + kElasticThreads - 1) / kElasticThreads; };
  with_type(problem, [&](auto type) {
    using Type = decltype(type);
    if constexpr (std::is_same_v<Type, Ready>) {
      const int64_t most = int64_t{1} << 20, wanted = blocks(problem.batch * problem.n * problem.m);
      run(elastic_cost_gradient<Masses, T>, wanted < most ? wanted : most);
    } else {
      const auto of_series = [&](auto own) {
        using Own = decltype(own);
        if (gradient.x.data != nullptr || gradient.x_times != nullptr || gradient.x_gaps != nullptr)
          run(elastic_series_gradient<true, Own, Masses, T>, problem.batch * blocks(problem.n));
        if (gradient.y.data != nullptr || gradient.y_times != nullptr || gradient.y_gaps != nullptr)
          run(elastic_series_gradient<false, Own, Masses, T>, problem.batch * blocks(problem.m));
      };
      // Those of soft measures, from a table, need not be fast.
      if constexpr (std::is_same_v<Masses, ElasticPath>)
        with_measure<T>(problem.measure, of_series);
      else
        of_series(type);
    }
    if (gradient.parameter != nullptr || gradient.gamma != nullptr)
      run(elastic_pair_gradient<Type, Masses, T>, problem.batch);
  });
  return error;
}

template <typename T>
cudaError_t elastic_path_backward(
    const ElasticProblem<T>& problem, const ElasticGradient<T>& gradient, const Span* spans, cudaStream_t stream) {
  return elastic_gradient<ElasticPath>(problem, gradient, {spans, problem.n}, stream);
}

#define SOFTDTW_INSTANTIATE(T)                                                                            \
  template cudaError_t elastic_gradient<ElasticShares<T>>(                                                \
      const ElasticProblem<T>&, const ElasticGradient<T>&, const ElasticShares<T>::Saved&, cudaStream_t); \
  template cudaError_t elastic_path_backward<T>(                                                          \
      const ElasticProblem<T>&, const ElasticGradient<T>&, const Span*, cudaStream_t);
SOFTDTW_INSTANTIATE(float)
SOFTDTW_INSTANTIATE(double)

}  // namespace softdtw
