// The edges of strips in forward between pipelines in shared memory (pipeline.cuh) and global memory, where other blocks read them.
#pragma once

#include "async_prefetch.cuh"
#include "cuda/hardware/pipeline.cuh"
#include "cuda/numbers/extended_range.cuh"

namespace softdtw {

template <class S>
using EdgePipeline = Pipeline<EdgeSlot<S>>;

// A group between the pipeline's slot, or the lane that has read it, and global memory.
template <class S>
__device__ __forceinline__ void copy_in(const Edge<S>& edge, int group, EdgeSlot<S>& slot) {
  ExtendedTop<S> top;
  top.read(edge, group, false);
#pragma unroll
  for (int t = 0; t < S::kSteps; ++t) ExtendedTop<S>::write(slot.entries, t, Entry<typename S::Scalar>{top.m[t], top.s[t]});
  slot.reference = top.reference;
}
template <class S>
__device__ __forceinline__ void copy_out(const ExtendedTop<S>& top, const Edge<S>& edge, int group) {
  store_group(edge.group(group), top.m);
  store_group(edge.group(group) + S::kSteps, top.s);
  edge.references[group] = top.reference;
}

// By a warp of a block whose first strip is `first`, and of one whose last strip is `last`: the edge between it and the block
// before, or behind.
template <class S>
__device__ __forceinline__ void carry_edge_in(
    const Edges<S>& edges, const Extent& extent, int64_t pair, int first, EdgePipeline<S>& pipeline,
    const Progress* progress, int lane) {
  const Strip<S> above(extent, first - 1);
  const Edge<S> edge = edges.of(pair, first - 1, above);
  carry_in(pipeline, above.groups(), progress, lane, [&](int group, EdgeSlot<S>& to) { copy_in(edge, group, to); });
}
template <class S>
__device__ __forceinline__ void carry_edge_out(
    const Edges<S>& edges, const Extent& extent, int64_t pair, int last, EdgePipeline<S>& pipeline, Progress* progress,
    int lane) {
  const Strip<S> strip(extent, last);
  const Edge<S> edge = edges.of(pair, last, strip);
  carry_out(pipeline, strip.groups(), progress, lane, [&](const EdgeSlot<S>& from, int group) {
    ExtendedTop<S> top;
    top.read(from);
    copy_out(top, edge, group);
  });
}

}  // namespace softdtw
