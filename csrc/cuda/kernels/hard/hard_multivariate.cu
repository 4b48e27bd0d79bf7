// Hard DTW, (9), with costs that other warps compute as matrix products (multivariate_block.cuh). The strips' sweeps are those of
// hard_strip.cuh, and hand edges to each other through pipelines.
#include "hard_multivariate.h"

#include "cuda/costs/multivariate_tile.cuh"
#include "cuda/kernels/multivariate/multivariate_block.cuh"
#include "hard_strip.cuh"

namespace softdtw {
namespace {

using S = MultivariateShape;

// A tile of hard_tile.cuh, whose costs come from a pipeline.
template <class Costs>
struct HardMultivariateTile : MultivariateTile<Costs, false> {
  using Memory = Costs;
  struct Column {
    const HardMultivariateTile& tile;
    const int t;
    __device__ __forceinline__ float add(int k, float best) const { return best + tile.cost(k, t); }
  };

  __device__ HardMultivariateTile(
      const Problem<float>&, const Extent&, const Strip<S>& strip, int64_t /* pair */, int lane, Memory& costs)
      : MultivariateTile<Costs, false>(strip, lane, costs) {}
  __device__ __forceinline__ Column costs_of(int t) const { return {*this, t}; }
};

// What multivariate_forward() asks of a kind of DTW.
template <bool kPath>
struct HardMultivariateSweep {
  using Edge = HardEdge<S>;
  static constexpr bool kTakesSplitCosts = false;
  bool open_ends;
  float* value;
  HardRows<S> rows;
  StepTable<S> table;
  int* ends;

  __device__ __forceinline__ bool keeps() const { return false; }
  __device__ void spoil(int64_t pair) const {
    if (threadIdx.x == 0 && threadIdx.y == 0) value[pair] = NAN;
  }
  template <class Costs>
  __device__ void sweep(
      const Problem<float>& problem, const Extent& extent, int64_t pair, int index, int, Pipeline<Edge>& above,
      Pipeline<Edge>& below, Costs& costs) const {
    const int lane = threadIdx.x;
    HardSweep<kPath, S, HardMultivariateTile<Costs>> sweep(problem, open_ends, extent, pair, index, lane, costs);
    HardPipelines<S> pipelines{&pinned(above), &pinned(below)};
    pipelines.start(sweep);
    for (int chunk = 0; chunk < sweep.chunks; ++chunk) {
      const Edge* from = above.items;
      Edge* to = below.items;
      pipelines.open(sweep, chunk, from, to);
      sweep.sweep(chunk, *from, *to, table);
      pipelines.close(sweep, chunk, lane);
    }
    pipelines.finish(sweep);
    sweep.finish(value, ends);
  }
  __device__ void carry_edge_in(
      const Extent& extent, int64_t pair, int first, Pipeline<Edge>& pipeline, const Progress* progress, int lane) const {
    rows.carry_edge_in(extent, pair, first, pipeline, progress, lane);
  }
  __device__ void carry_edge_out(
      const Extent& extent, int64_t pair, int last, Pipeline<Edge>& pipeline, Progress* progress, int lane) const {
    rows.carry_edge_out(extent, pair, last, pipeline, progress, lane);
  }
};

// Scratch memory: tickets, edges, ends, steps.
struct Layout {
  int64_t edges, ends, steps, total;

  Layout(const Problem<float>& problem, const Sizes<S>& sizes, bool with_path) {
    const auto padded = [](int64_t bytes) { return (bytes + 255) / 256 * 256; };
    edges = padded(Tickets::bytes(problem.batch, sizes.strips));
    ends = edges + padded(HardRows<S>::bytes(problem.batch, sizes));
    steps = ends + padded(with_path ? problem.batch * sizeof(int) : 0);
    total = steps + (with_path ? StepTable<S>::bytes(problem.batch, sizes) : 0);
  }
};

}  // namespace

int64_t HardMultivariate::scratch_bytes(const Problem<float>& problem, bool with_path) {
  return Layout(problem, Sizes<S>(problem), with_path).total;
}

cudaError_t HardMultivariate::forward(
    const Problem<float>& problem, bool open_ends, float* value, Span* spans, void* scratch, cudaStream_t stream) {
  const Sizes<S> sizes(problem);
  const Layout at(problem, sizes, spans != nullptr);
  char* const memory = static_cast<char*>(scratch);
  const HardRows<S> rows{reinterpret_cast<HardEdge<S>*>(memory + at.edges), sizes.groups};
  if (spans == nullptr)
    return launch_multivariate_forward<false>(
        problem, HardMultivariateSweep<false>{open_ends, value, rows, {}, nullptr}, scratch, stream);
  const StepTable<S> table{reinterpret_cast<unsigned*>(memory + at.steps), sizes.strips, sizes.chunks};
  int* const ends = reinterpret_cast<int*>(memory + at.ends);
  const cudaError_t error = launch_multivariate_forward<false>(
      problem, HardMultivariateSweep<true>{open_ends, value, rows, table, ends}, scratch, stream);
  if (error != cudaSuccess) return error;
  return launch_kernel(hard_path_kernel<S>, problem.batch, kWarp, 0, stream, problem, value, table, ends, spans);
}

}  // namespace softdtw
