// Hard DTW, (9), of many dimensions, with costs that other warps compute (multivariate_block.cuh). The strips' sweeps are those of
// hard_strip.cuh, and hand edges to each other through pipelines.
#include "cuda/costs/multivariate/multivariate_tile.cuh"
#include "cuda/kernels/multivariate/multivariate_block.cuh"
#include "hard.h"
#include "hard_strip.cuh"
#include "hard_tile.cuh"

namespace softdtw {
namespace {

using S = MultivariateShape;

// A tile of hard_tile.cuh, whose costs come from a pipeline.
template <class Costs>
struct HardMultivariateTile : MultivariateTile<Costs, false>, KnowsBand {
  using Memory = Costs;

  __device__ HardMultivariateTile(
      const Problem<float>&, const Extent&, const Strip<S>& strip, int64_t /* pair */, int lane, Memory& costs)
      : MultivariateTile<Costs, false>(strip, lane, costs) {}
  __device__ __forceinline__ HardColumn<HardMultivariateTile> costs_of(int t) const { return {*this, t}; }
};

// What multivariate_forward() asks of a kind of DTW.
template <bool kPath, class CostType_>
struct HardMultivariateSweep {
  using CostType = CostType_;
  using Edge = HardEdge<S>;
  static constexpr bool kTakesSplitCosts = false;
  HardRows<S> edges;
  bool open_ends;
  float* value;
  StepTable<S> table;
  int* ends;

  __device__ __forceinline__ bool keeps() const { return false; }
  __device__ void spoil(int64_t pair) const {
    if (threadIdx.x == 0 && threadIdx.y == 0) value[pair] = NAN;
  }
  template <bool, class Costs>
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
};

}  // namespace

cudaError_t hard_multivariate_forward(
    const Problem<float>& problem, bool open_ends, float* value, Span* spans, Scratch& scratch, cudaStream_t stream) {
  const HardMemory<S> memory(problem, Sizes<S>(problem).strips, spans != nullptr, scratch);
  const auto sweep = [&](auto with_path) {
    return with_cost<CostsOfMany>(problem.cost, [&](auto type) {
      using Sweep = HardMultivariateSweep<with_path(), decltype(type)>;
      return launch_multivariate_forward<false>(
          problem, Sweep{memory.rows, open_ends, value, memory.table, memory.ends}, memory.tickets, stream);
    });
  };
  if (spans == nullptr) return sweep(std::false_type());
  const cudaError_t error = sweep(std::true_type());
  return error != cudaSuccess ? error : launch_hard_path(problem, value, memory, spans, stream);
}

}  // namespace softdtw
