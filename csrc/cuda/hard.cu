// Hard DTW, (9), by strips that are swept on the chip (hard_strip.cuh), for one pair or many.
//
// Threads to work: a block of W warps takes a ticket, which stands for a group of consecutive strips of one pair; its warps
// take the strips of the group in turn and run as a pipeline, as in stencil.cu. With many pairs, or short ones, a group is a
// whole pair. Otherwise a group has W strips and a pair many blocks, which hand edges to each other through global memory as
// in tiled.cu: ticket order is top strips first, and a block waits only for earlier tickets, which have started.
//
// A path is walked by one warp per pair, a gradient has a thread for every row of x and of y.
#include <algorithm>
#include <type_traits>

#include "hard.h"
#include "hard_strip.cuh"
#include "strip_variant.h"

namespace softdtw {
namespace {

constexpr int kHardWarps = 8, kPairWarps = 4;
constexpr int kGradientThreads = 128;
constexpr int64_t kManyPairs = 512;  // from which a block sweeps a pair of any length

// Zeroed before a launch with several groups a pair.
struct HardTickets {
  Progress* words;  // (pair, group): chunks done by the group's last strip
  unsigned* next;
};

// kIsAhead: a pair has several groups.
template <bool kPath, bool kIsAhead, class S, class Tile>
__global__ void __launch_bounds__(kWarp* kHardWarps, sizeof(typename S::Scalar) == 4 && !kIsAhead ? 3 : 2)
    hard_forward_kernel(
        const __grid_constant__ Problem<typename S::Scalar> problem, bool open_ends, typename S::Scalar* value,
        Edges<S> edges, StepTable<S> table, int* ends, HardTickets tickets, int groups) {
  __shared__ Progress words[kHardWarps];
  __shared__ HardSlot<S> slots[kHardWarps][2];
  __shared__ unsigned shared_ticket;
  const int warp = threadIdx.y, warps = blockDim.y;
  if (threadIdx.x == 0) words[warp] = 0;
  if (groups > 1 && threadIdx.x == 0 && warp == 0) shared_ticket = atomicAdd(tickets.next, 1u);
  __syncthreads();
  const unsigned ticket = groups > 1 ? shared_ticket : blockIdx.x;
  const int64_t pair = ticket % problem.batch;
  const int group = static_cast<int>(ticket / problem.batch);
  const Extent extent = problem.extent(pair);
  if (!extent.valid()) {
    if (group == 0 && threadIdx.x == 0 && warp == 0) value[pair] = NAN;
    return;
  }
  const int strips = strips_of<S>(extent);
  const int first = groups > 1 ? group * warps : 0, last = groups > 1 ? min(strips, first + warps) : strips;
  Progress* const pair_words = tickets.words + pair * groups;
  for (int strip = first + warp, round = 0; strip < last; strip += warps, ++round) {
    ForwardStrip<S> job;
    job.pair = pair;
    job.strip = strip;
    job.round = round;
    job.edges = edges;
    if (warps > 1) job.own_word = &words[warp];
    if (groups > 1 && warp == warps - 1) job.far_word = pair_words + group;
    if (strip > first && warps > 1)
      job.producer = {&words[(warp + warps - 1) % warps], nullptr, round - (warp == 0)};
    else if (strip > 0 && strip == first)
      job.producer = {nullptr, pair_words + group - 1};
    hard_forward_strip<kPath, kIsAhead, S, Tile>(problem, open_ends, extent, job, slots[warp], table, value, ends);
  }
}

template <class S>
__global__ void __launch_bounds__(kWarp) hard_path_kernel(
    const __grid_constant__ Problem<typename S::Scalar> problem, const typename S::Scalar* value, StepTable<S> table,
    const int* ends, Span* spans) {
  const int64_t pair = blockIdx.x;
  const Extent extent = problem.extent(pair);
  const bool exists = extent.valid() && isfinite(value[pair]);
  const int m = static_cast<int>(problem.m), lane = threadIdx.x;
  spans += pair * problem.n;
  for (int row = (exists ? extent.n : 0) + lane; row < problem.n; row += kWarp) spans[row] = {m, m - 1};
  if (!exists) return;
  PathWalk<S> walk(extent, table, pair, lane);
  walk_back(
      extent.n, ends[pair], [&](int row, int column) { return walk.step(row, column); },
      [&](int row, Span span) {
        if (lane == 0) spans[row] = span;
      });
}

// Blocks of kGradientThreads per pair, along y the pairs.
template <bool kForX, typename T>
__global__ void __launch_bounds__(kGradientThreads)
    hard_series_gradient(const __grid_constant__ Problem<T> problem, const __grid_constant__ HardGradient<T> gradient) {
  const int64_t length = kForX ? problem.n : problem.m, blocks = (length + kGradientThreads - 1) / kGradientThreads;
  const int64_t index = blockIdx.x % blocks * kGradientThreads + threadIdx.x;
  if (index < length) path_gradient<kForX>(problem, gradient, blockIdx.x / blocks, static_cast<int>(index));
}

template <typename T>
__global__ void __launch_bounds__(kGradientThreads)
    hard_cost_gradient(const __grid_constant__ Problem<T> problem, const __grid_constant__ HardGradient<T> gradient) {
  const int64_t rows = problem.batch * problem.n;
  for (int64_t i = blockIdx.x; i < rows; i += gridDim.x)
    path_gradient_of_cost(problem, gradient, i / problem.n, static_cast<int>(i % problem.n), threadIdx.x, kGradientThreads);
}

template <typename T>
int rows_for(const Problem<T>& problem) {
  if (std::is_same_v<T, double> || problem.n <= 2 * kWarp) return 2;
  return problem.batch * ((problem.n + 4 * kWarp - 1) / (4 * kWarp)) >= kManyPairs ? 4 : 2;
}

template <class S>
struct Hard {
  using T = typename S::Scalar;

  static bool has_groups(const Problem<T>& problem, const Sizes<S>& sizes) {
    return problem.batch < kManyPairs && sizes.strips > kPairWarps;
  }
  static int64_t groups_of(const Problem<T>& problem, const Sizes<S>& sizes) {
    return has_groups(problem, sizes) ? (sizes.strips + kHardWarps - 1) / kHardWarps : 1;
  }
  static int warps_for(const Problem<T>& problem, const Sizes<S>& sizes) {
    if (has_groups(problem, sizes)) return kHardWarps;
    const int64_t wanted = problem.batch >= 2048 ? 1 : problem.batch >= 1024 ? 2 : kPairWarps;
    return static_cast<int>(std::min(sizes.strips, wanted));
  }

  // Scratch memory: tickets, edges, ends, steps.
  struct Layout {
    int64_t tickets, edges, ends, steps, total;
  };
  static Layout layout(const Problem<T>& problem, const Sizes<S>& sizes, bool with_path) {
    const auto padded = [](int64_t bytes) { return (bytes + 255) / 256 * 256; };
    Layout at;
    at.tickets = 0;
    at.edges = padded((problem.batch * groups_of(problem, sizes) + 1) * sizeof(Progress));
    at.ends = at.edges + padded(Edges<S>::bytes_of_rows(problem.batch, sizes.groups));
    at.steps = at.ends + padded(with_path ? problem.batch * sizeof(int) : 0);
    at.total = at.steps + (with_path ? StepTable<S>::bytes(problem.batch, sizes) : 0);
    return at;
  }

  template <bool kPath, class Tile>
  static cudaError_t launch(
      const Problem<T>& problem, bool open_ends, T* value, Span* spans, char* scratch, cudaStream_t stream) {
    const Sizes<S> sizes(problem);
    const Layout at = layout(problem, sizes, kPath);
    const int64_t groups = groups_of(problem, sizes), blocks = groups * problem.batch;
    if (blocks > INT32_MAX) return cudaErrorInvalidConfiguration;
    HardTickets tickets;
    tickets.words = reinterpret_cast<Progress*>(scratch);
    tickets.next = reinterpret_cast<unsigned*>(tickets.words + problem.batch * groups);
    if (groups > 1) {
      const cudaError_t error = cudaMemsetAsync(scratch, 0, at.edges, stream);
      if (error != cudaSuccess) return error;
    }
    const auto edges = Edges<S>::rows(scratch + at.edges, sizes.groups);
    StepTable<S> table;
    table.words = reinterpret_cast<unsigned*>(scratch + at.steps);
    table.strips = sizes.strips;
    table.chunks = sizes.chunks;
    int* const ends = reinterpret_cast<int*>(scratch + at.ends);
    const auto run = [&](auto kernel) {
      kernel<<<static_cast<unsigned>(blocks), dim3(kWarp, warps_for(problem, sizes)), 0, stream>>>(
          problem, open_ends, value, edges, table, ends, tickets, static_cast<int>(groups));
    };
    if (groups > 1)
      run(hard_forward_kernel<kPath, true, S, Tile>);
    else
      run(hard_forward_kernel<kPath, false, S, Tile>);
    if (kPath)
      hard_path_kernel<S><<<static_cast<unsigned>(problem.batch), kWarp, 0, stream>>>(problem, value, table, ends, spans);
    return cudaGetLastError();
  }

  static cudaError_t forward(
      const Problem<T>& problem, bool open_ends, T* value, Span* spans, char* scratch, cudaStream_t stream) {
    const auto with_tile = [&](auto* tile) {
      using Tile = std::remove_pointer_t<decltype(tile)>;
      return spans != nullptr ? launch<true, Tile>(problem, open_ends, value, spans, scratch, stream)
                              : launch<false, Tile>(problem, open_ends, value, spans, scratch, stream);
    };
    if constexpr (sizeof(T) == 4)
      if (is_univariate(problem)) return with_tile(static_cast<UnivariateTile<S>*>(nullptr));
    return with_tile(static_cast<DenseTile<S>*>(nullptr));
  }
};

}  // namespace

template <typename T>
int64_t hard_scratch_bytes(const Problem<T>& problem, bool with_path) {
  return with_shape<T>(rows_for(problem), [&](auto shape) -> int64_t {
    using S = decltype(shape);
    return Hard<S>::layout(problem, Sizes<S>(problem), with_path).total;
  });
}

template <typename T>
cudaError_t hard_forward(
    const Problem<T>& problem, bool open_ends, T* value, Span* spans, void* scratch, cudaStream_t stream) {
  return with_shape<T>(rows_for(problem), [&](auto shape) {
    return Hard<decltype(shape)>::forward(problem, open_ends, value, spans, static_cast<char*>(scratch), stream);
  });
}

template <typename T>
cudaError_t hard_backward(const Problem<T>& problem, const HardGradient<T>& gradient, cudaStream_t stream) {
  const auto blocks = [&](int64_t length) {
    return static_cast<unsigned>(problem.batch * ((length + kGradientThreads - 1) / kGradientThreads));
  };
  if (gradient.x.data != nullptr)
    hard_series_gradient<true, T><<<blocks(problem.n), kGradientThreads, 0, stream>>>(problem, gradient);
  if (gradient.y.data != nullptr)
    hard_series_gradient<false, T><<<blocks(problem.m), kGradientThreads, 0, stream>>>(problem, gradient);
  if (gradient.cost.data != nullptr) {
    const int64_t rows = std::min(problem.batch * problem.n, int64_t{1} << 20);
    hard_cost_gradient<T><<<static_cast<unsigned>(rows), kGradientThreads, 0, stream>>>(problem, gradient);
  }
  return cudaGetLastError();
}

template int64_t hard_scratch_bytes<float>(const Problem<float>&, bool);
template int64_t hard_scratch_bytes<double>(const Problem<double>&, bool);
template cudaError_t hard_forward<float>(const Problem<float>&, bool, float*, Span*, void*, cudaStream_t);
template cudaError_t hard_forward<double>(const Problem<double>&, bool, double*, Span*, void*, cudaStream_t);
template cudaError_t hard_backward<float>(const Problem<float>&, const HardGradient<float>&, cudaStream_t);
template cudaError_t hard_backward<double>(const Problem<double>&, const HardGradient<double>&, cudaStream_t);

}  // namespace softdtw
