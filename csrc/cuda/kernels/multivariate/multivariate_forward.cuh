// The sweep of a strip in forward, by a warp of its own.
#pragma once

#include "cuda/costs/multivariate/multivariate_tile.cuh"
#include "cuda/kernels/warp_specialised/options.cuh"
#include "cuda/kernels/warp_specialised/sweeping_warp.cuh"

namespace softdtw {

// Costs as the sweep reads them, from the pipeline that other warps fill.
template <class Pipeline, bool kHasOptions>
struct CostsOfStrip : MultivariateTile<Pipeline, false> {
  using S = MultivariateShape;
  using Options = CostOptions<S, kHasOptions>;
  using OfStrip = typename Options::OfStrip;
  static constexpr bool kIsAhead = false, kTakesBands = kHasOptions;

  __device__ CostsOfStrip(const Problem<float>&, int64_t, const Strip<S>& strip, int lane, Pipeline& pipeline)
      : MultivariateTile<Pipeline, false>(strip, lane, pipeline) {}
  __device__ __forceinline__ void begin(int) {}
  __device__ __forceinline__ void end(int) {}
  __device__ __forceinline__ void use(const Place<S>& place, int) { MultivariateTile<Pipeline, false>::use(place); }
  __device__ __forceinline__ float rise(const OfStrip& recurrences, const Place<S>&) const {
    return Width<S>::rise_of(recurrences, this->reach, true);
  }
  __device__ __forceinline__ Entry<float> split_cost(const OfStrip& recurrences, int k, int t) const {
    return Options::split_cost(recurrences, this->cost(k, t));
  }
  __device__ __forceinline__ const CostsOfStrip& tile(const Place<S>&) const { return *this; }
};

// The same where they come split.
template <class Pipeline>
class SplitCostsOfMultivariate {
  using S = MultivariateShape;
  using Options = CostOptions<S>;
  Pipeline& pipeline;
  int chunk = 0;  // the next one
  ChunkInPipeline<Pipeline> cells;
  const double scale;

 public:
  using OfStrip = typename Options::OfStrip;
  static constexpr bool kIsAhead = true, kTakesBands = true, kUnivariate = false;
  float reach = 0;  // for the general sweep

  __device__ SplitCostsOfMultivariate(
      const Problem<float>& problem, int64_t pair, const Strip<S>&, int lane, Pipeline& pipeline_)
      : pipeline(pinned(pipeline_)), cells(0, lane), scale(Recurrences<S>(problem, pair).general.scale) {}
  __device__ __forceinline__ void begin(int) {}
  __device__ __forceinline__ void end(int) {}
  __device__ __forceinline__ void use(const Place<S>&, int) {
    if (chunk > 0) cells.forth();
    const int batch = chunk / kBatchGroups;
    if (chunk % kBatchGroups == 0) {
      if (chunk > 0) pipeline.released[Pipeline::slot(batch - 1)].arrive();
      pipeline.filled[Pipeline::slot(batch)].wait(batch / Pipeline::kBatches);
    }
    ++chunk;
  }
  __device__ __forceinline__ float rise(const OfStrip& recurrences, const Place<S>&) const {
    return Width<S>::rise_of(recurrences, reach_of_chunk(), true);
  }
  __device__ __forceinline__ Entry<float> split_cost(const OfStrip& recurrences, int k, int t) const {
    const auto two = cells.two_rows(pipeline, t);
    return Options::charged(recurrences, k == 0 ? two.x : two.y);
  }
  __device__ __forceinline__ const SplitCostsOfMultivariate& tile(const Place<S>&) {
    reach = reach_of_chunk();
    return *this;
  }
  // For the general sweep.
  __device__ __forceinline__ Entry<float, double> cost(int k, int t) const {
    const auto two = cells.two_rows(pipeline, t);
    const Entry<float> split_cost = k == 0 ? two.x : two.y;
    return split_cost.s != 0 ? Entry<float, double>{split_cost.m, split_cost.s}
                             : Recurrences<S>::General::split(split_cost.m, scale);
  }

 private:
  __device__ __forceinline__ float reach_of_chunk() const {
    return greater(pipeline.reach_of(cells.column(0)), pipeline.reach_of(cells.column(S::kSteps - 1)));
  }
};

template <class Pipeline, bool kHasOptions>
using CostsInPipeline =
    std::conditional_t<Pipeline::kIsSplit, SplitCostsOfMultivariate<Pipeline>, CostsOfStrip<Pipeline, kHasOptions>>;

// `files`: the edge above is to be kept, and nobody has written it yet.
template <bool kHasOptions, class Pipeline>
__device__ void multivariate_sweep(
    const Problem<float>& problem, const Extent& extent, int64_t pair, int index, const Saved<MultivariateShape>& saved,
    bool files, EdgePipeline<MultivariateShape>& above_edges, EdgePipeline<MultivariateShape>& below_edges,
    Pipeline& pipeline, float* value) {
  const Surroundings<MultivariateShape> around(extent, index);
  CostsInPipeline<Pipeline, kHasOptions> costs(problem, pair, around.strip, threadIdx.x, pipeline);
  const int chunks = chunks_of<false>(around, saved.memory != nullptr);
  sweep_strip(problem, extent, around, pair, index, chunks, saved, files, above_edges, below_edges, costs, value);
}

}  // namespace softdtw
