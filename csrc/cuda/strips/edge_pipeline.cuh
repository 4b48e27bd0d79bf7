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

// An edge of so many groups, by a warp: from the block before, and to the block behind.
template <class S>
__device__ __forceinline__ void carry_groups_in(
    const Edge<S>& edge, int groups, EdgePipeline<S>& pipeline, const Progress* progress, int lane) {
  carry_in(pipeline, groups, progress, lane, [&](int group, EdgeSlot<S>& to) { copy_in(edge, group, to); });
}
template <class S>
__device__ __forceinline__ void carry_groups_out(
    const Edge<S>& edge, int groups, EdgePipeline<S>& pipeline, Progress* progress, int lane) {
  carry_out(pipeline, groups, progress, lane, [&](const EdgeSlot<S>& from, int group) {
    ExtendedTop<S> top;
    top.read(from);
    copy_out(top, edge, group);
  });
}

// By a warp of a block whose first strip is `first`, and of one whose last strip is `last`: the edge between it and the block
// before, or behind.
template <class S>
__device__ __forceinline__ void carry_edge_in(
    const Edges<S>& edges, const Extent& extent, int64_t pair, int first, EdgePipeline<S>& pipeline,
    const Progress* progress, int lane) {
  const Strip<S> above(extent, first - 1);
  carry_groups_in(edges.of(pair, first - 1, above), above.groups(), pipeline, progress, lane);
}
template <class S>
__device__ __forceinline__ void carry_edge_out(
    const Edges<S>& edges, const Extent& extent, int64_t pair, int last, EdgePipeline<S>& pipeline, Progress* progress,
    int lane) {
  const Strip<S> strip(extent, last);
  carry_groups_out(edges.of(pair, last, strip), strip.groups(), pipeline, progress, lane);
}

}  // namespace softdtw
