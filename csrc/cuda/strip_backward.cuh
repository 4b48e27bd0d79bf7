// One warp goes back over one strip (strip.cuh): every chunk is rebuilt from its snapshot, (3) and (4) run over it in
// reverse, and (5) adds to dx and dy. Strips go from the last to the first, chunks from right to left.
//
// Few dimensions: dx: a lane owns its rows. dy: the sum for a column travels with the wavefront, from lane 31 to lane 0 and
// on to the strip above through memory, so every sum has one fixed order and needs no atomics. Many dimensions (uses_table):
// E goes to a table, and dx and dy come from it as matrix products (series_gradient.cuh).
#pragma once

#include "series_gradient.cuh"
#include "strip_forward.cuh"

namespace softdtw {

constexpr int64_t kTableDims = 32, kSmallTableDims = 16, kSmallTableCells = int64_t{1} << 25;

template <typename T>
bool uses_table(const Problem<T>& problem) {
  if (problem.cost == Cost::kMatrix) return false;
  const bool small = problem.batch * problem.n * problem.m <= kSmallTableCells;
  return problem.dim >= (small ? kSmallTableDims : kTableDims);
}

// Elements of the table, rounded up so that what follows it stays aligned.
template <typename T>
int64_t table_scalars(const Problem<T>& problem) {
  return uses_table(problem) ? (problem.batch * problem.n * problem.m + 31) / 32 * 32 : 0;
}

// Backward: `sweep` goes over the strips with the gradient it is given; with many dimensions it fills a table of E, from
// which the gradients follow.
template <typename T, class Sweep>
cudaError_t run_backward(
    const Problem<T>& problem, const Gradient<T>& gradient, T* table, cudaStream_t stream, Sweep&& sweep) {
  if (!uses_table(problem)) {
    sweep(gradient);
    return cudaGetLastError();
  }
  if (problem.ragged()) {
    const cudaError_t error = cudaMemsetAsync(table, 0, problem.batch * problem.n * problem.m * sizeof(T), stream);
    if (error != cudaSuccess) return error;
  }
  Gradient<T> with_table = gradient;
  with_table.cost = {table, problem.n * problem.m, problem.m, 1};
  sweep(with_table);
  const cudaError_t error = cudaGetLastError();
  return error != cudaSuccess ? error : launch_series_gradients(problem, gradient, table, stream);
}

// E on its way from strip to strip: group g holds what flows up from columns first_column + g kSteps onwards.
template <class S>
struct Flows {
  using T = typename S::Scalar;
  T* values = nullptr;
  T* carries = nullptr;  // (pair, strip, dim, lane): each lane's part of the sums of dy, between chunks, for dim > 1
  int64_t strips = 0, chunks = 0;

  static int64_t scalars(int64_t batch, const Sizes<S>& sizes, int64_t dim) {
    return batch * sizes.strips * (sizes.chunks * S::kSteps + (dim > 1 ? dim * kWarp : 0));
  }
  Flows(T* memory, int64_t batch, const Sizes<S>& sizes)
      : values(memory),
        carries(memory + batch * sizes.strips * sizes.chunks * S::kSteps),
        strips(sizes.strips),
        chunks(sizes.chunks) {}

  __device__ T* group(int64_t pair, int strip, int g) const {
    return values + ((pair * strips + strip) * chunks + g) * S::kSteps;
  }
};

template <class S>
struct BackwardStrip {
  int64_t pair;
  int strip;
  Neighbour producer;  // the strip below
  Progress* own_word = nullptr;
  Progress* far_word = nullptr;
  int round = 0;
};

// E / C, the part of euclidean's dC/dx that differs from cell to cell but not from coordinate to coordinate.
template <class S>
__device__ __forceinline__ void divide_by_costs(
    const Problem<typename S::Scalar>& problem, const Extent& extent, int64_t pair, const Place<S>& place,
    typename S::Scalar (&alignment)[S::kRows][S::kSteps]) {
  using T = typename S::Scalar;
  T costs[S::kRows][S::kSteps];
  load_costs(problem, extent, place, pair, costs);
#pragma unroll
  for (int k = 0; k < S::kRows; ++k)
#pragma unroll
    for (int t = 0; t < S::kSteps; ++t) alignment[k][t] *= derivative_factor(problem.cost, costs[k][t]);
}

// Which columns' sums of dy a chunk takes over from the strip below, and which it leaves for the strip above or for good.
struct Columns {
  int taken_from, taken_to, left_to;
};

// (5) for a chunk: dx += E dC/dx for the lane's rows, dy passed up the lanes. `share` maps x - y to the part of dC/dx that
// depends on the coordinate, `scale` is all the rest. Gradients of series are dimension-major (checks.h): rows lie next to
// each other.
template <class S, class Share>
__device__ __forceinline__ void accumulate_series(
    const SeriesTile<S>& series, const Gradient<typename S::Scalar>& gradient, const Extent& extent, int64_t pair, int lane,
    const Place<S>& place, bool first_visit, const Columns& columns_of, typename S::Scalar scale,
    const typename S::Scalar (&alignment)[S::kRows][S::kSteps], typename S::Scalar& carry, typename S::Scalar* carries,
    Share&& share_of) {
  using T = typename S::Scalar;
  T* const dx = gradient.x.data == nullptr ? nullptr : gradient.x.pair(pair).data + place.row;
  T* const dy = gradient.y.data == nullptr ? nullptr : gradient.y.pair(pair).data + place.column;
  // Counted from the lane's first row or column; none of the columns for lanes that neither take over nor leave.
  const int rows_left = extent.n - place.row;
  const int taken_from = columns_of.taken_from - place.column;
  const unsigned taken = lane == kWarp - 1 ? max(0, columns_of.taken_to - columns_of.taken_from) : 0;
  const int left_to = lane == 0 ? columns_of.left_to - place.column : 0;
  series.template for_each_dim<1>([&](int64_t d, const T(&rows)[S::kRows], const T(&columns)[S::kSteps]) {
    T row_sums[S::kRows] = {}, column_sums[S::kSteps] = {};
#pragma unroll
    for (int t = 0; t < S::kSteps; ++t)
#pragma unroll
      for (int k = 0; k < S::kRows; ++k) {
        const T share = share_of(rows[k] - columns[t]);
        row_sums[k] = DeviceMath<T>::fma(alignment[k][t], share, row_sums[k]);
        column_sums[t] = DeviceMath<T>::fma(alignment[k][t], share, column_sums[t]);
      }
    if (dx != nullptr) {
      T* const line = dx + d * gradient.x.column_stride;
#pragma unroll
      for (int k = 0; k < S::kRows; ++k)
        if (k < rows_left) line[k] = DeviceMath<T>::fma(row_sums[k], scale, first_visit ? T(0) : line[k]);
    }
    if (dy != nullptr) {
      T* const line = dy + d * gradient.y.column_stride;
      T sum = series.dim == 1 ? carry : (first_visit ? T(0) : carries[d * kWarp + lane]);
      T from_below[S::kSteps];
#pragma unroll
      for (int t = 0; t < S::kSteps; ++t)
        from_below[t] = static_cast<unsigned>(t - taken_from) < taken ? __ldcg(line + t) : T(0);
#pragma unroll
      for (int t = S::kSteps - 1; t >= 0; --t) {
        const T from_lane_below = __shfl_down_sync(kAllLanes, sum, 1);
        sum = DeviceMath<T>::fma(column_sums[t], -scale, lane == kWarp - 1 ? from_below[t] : from_lane_below);
        if (t < left_to) line[t] = sum;
      }
      if (series.dim == 1)
        carry = sum;
      else
        carries[d * kWarp + lane] = sum;
    }
  });
}

template <class S>
__device__ __forceinline__ void store_alignment(
    const Gradient<typename S::Scalar>& gradient, const Extent& extent, int64_t pair, const Place<S>& place,
    typename S::Scalar scale, const typename S::Scalar (&alignment)[S::kRows][S::kSteps]) {
  const auto out = gradient.cost.pair(pair);
#pragma unroll
  for (int k = 0; k < S::kRows; ++k)
#pragma unroll
    for (int t = 0; t < S::kSteps; ++t)
      if (place.row + k < extent.n && place.column + t < extent.m && place.holds(extent, k, t))
        out.at(place.row + k, place.column + t) = alignment[k][t] * scale;
}

// Brings a line of device memory into L2, ahead of its use.
constexpr int kSnapshotsAhead = 2;

__device__ __forceinline__ void prefetch(const void* address) { asm volatile("prefetch.global.L2 [%0];" ::"l"(address)); }

template <class S>
__device__ void backward_strip(
    const Problem<typename S::Scalar>& problem, const Gradient<typename S::Scalar>& gradient, const Extent& extent,
    const BackwardStrip<S>& job, const Saved<S>& saved, const Flows<S>& flows) {
  using T = typename S::Scalar;
  const int lane = threadIdx.x;
  const auto recurrence = recurrence_of(problem);
  const Surroundings<S> around(extent, job.strip);
  const Strip<S>& strip = around.strip;
  const int below_groups = around.is_last ? 0 : around.below.groups();
  const Columns columns = {
      around.is_last ? extent.m : around.below.first_column, around.is_last ? 0 : around.below.end_column,
      strip.end_column};
  const int last_chunk = around.is_last ? around.end_chunk : strip.chunks - 1;

  // A pair whose value is not a number has no gradient either.
  const T value = gradient.value[job.pair];
  const T scale = isfinite(value) ? gradient.grad_value[job.pair] : T(NAN);
  const T constant = problem.cost == Cost::kSqEuclidean ? T(2) : T(1);
  T* carries = flows.carries + (job.pair * flows.strips + job.strip) * problem.dim * kWarp;
  const Edge<S> above_edge(saved.edges, job.pair, around.is_first ? 0 : job.strip - 1);
  T carry = 0;
  Flow<S> flow;

  for (int chunk = last_chunk; chunk >= 0; --chunk) {
    const Place<S> place(strip, extent, chunk, lane);
    T costs[S::kRows][S::kSteps];
    const T largest = load_costs(problem, extent, place, job.pair, costs) * recurrence.scale;
    Lane<S> state;
    const T* snapshot = saved.snapshot(job.pair, job.strip, chunk) + lane;
    Lane<S>::each_word(state, [&](int i, T& word) { word = snapshot[i * kWarp]; });
    if (chunk >= kSnapshotsAhead && lane < S::kSnapshot)
      prefetch(saved.snapshot(job.pair, job.strip, chunk - kSnapshotsAhead) + lane * kWarp);

    Group<S> top = no_group<S>();
    const int group = chunk + around.above_offset;
    if (!around.is_first && group < around.above.groups() && lane == 0) above_edge.read(group, top);
    const T above = reference_above(lane, state.reference, top.reference);

    Weights<T> weights[S::kRows][S::kSteps];
    const bool plain = place.in_band && recurrence.penalty.m == T(0) && recurrence.penalty.s == T(1);
    if (__all_sync(kAllLanes, plain && largest < Whole<T>::limit))
      sweep_weights<false>(recurrence, extent, place, lane, top, above, costs, state, weights);
    else
      sweep_weights<true>(recurrence, extent, place, lane, top, above, costs, state, weights);

    T below[S::kSteps];
#pragma unroll
    for (int t = 0; t < S::kSteps; ++t) below[t] = 0;
    // Lane 31's columns start one right of this group of the strip below.
    const int below_group = chunk - S::kSkewChunks - around.below_offset;
    if (lane == kWarp - 1 && below_group >= 0 && below_group < below_groups) {
      job.producer.wait(around.below.chunks - below_group);
      load_group(flows.group(job.pair, job.strip + 1, below_group), below);
    }
    __syncwarp();

    T out[S::kSteps], alignment[S::kRows][S::kSteps];
    if (chunk == around.end_chunk)
      sweep_reversed<true, S>(
          weights, lane, lane == around.end_lane ? around.end_row : -1, around.end_time % S::kSteps, below, flow, out,
          alignment);
    else
      sweep_reversed<false, S>(weights, lane, -1, -1, below, flow, out, alignment);

    if (problem.cost == Cost::kEuclidean) divide_by_costs(problem, extent, job.pair, place, alignment);
    if (gradient.cost.data != nullptr) {
      store_alignment(gradient, extent, job.pair, place, problem.cost == Cost::kMatrix ? scale : constant, alignment);
    } else {
      const SeriesTile<S> series(problem, extent, place, job.pair);
      const auto accumulate = [&](auto share) {
        accumulate_series(
            series, gradient, extent, job.pair, lane, place, chunk == last_chunk, columns, scale * constant, alignment,
            carry, carries, share);
      };
      if (problem.cost == Cost::kCityblock)
        accumulate([](T difference) { return derivative_share(Cost::kCityblock, difference); });
      else
        accumulate([](T difference) { return difference; });
    }

    if (lane == 0) {
      if (!around.is_first) store_group(flows.group(job.pair, job.strip, chunk), out);
      if (job.own_word != nullptr) publish(job.own_word, progress_of(job.round, strip.chunks - chunk));
      if (job.far_word != nullptr) publish(job.far_word, progress_of(0, strip.chunks - chunk));
    }
  }
}

// The answer for lengths out of range, which only the device can see: no number of such a pair is to be trusted.
template <typename T>
__device__ void invalid_backward(const Problem<T>& problem, const Gradient<T>& gradient, int64_t pair) {
  const int64_t thread = threadIdx.y * blockDim.x + threadIdx.x, threads = blockDim.x * blockDim.y;
  const auto fill = [&](const View<T>& out, int64_t rows, int64_t columns) {
    if (out.data == nullptr) return;
    for (int64_t i = thread; i < rows * columns; i += threads) out.pair(pair).at(i / columns, i % columns) = T(NAN);
  };
  fill(gradient.x, problem.n, problem.dim);
  fill(gradient.y, problem.m, problem.dim);
  fill(gradient.cost, problem.n, problem.m);
}

}  // namespace softdtw
