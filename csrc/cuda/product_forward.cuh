// The sweep of a strip in forward, by a warp of its own.
#pragma once

#include "forward_sweep.cuh"
#include "product_tile.cuh"

namespace softdtw {

// Costs as the sweep reads them, from the ring that other warps fill.
template <class Channel>
struct CostsOfStrip : ProductTile<Channel, false> {
  using S = ProductShape;
  static constexpr bool kIsAhead = false;
  using ProductTile<Channel, false>::ProductTile;

  __device__ __forceinline__ void begin(int) {}
  __device__ __forceinline__ void end(int) {}
  __device__ __forceinline__ void use(const Place<S>& place, int) { ProductTile<Channel, false>::use(place); }
  __device__ __forceinline__ float rise(const Recurrences<S>& recurrences, const Place<S>&) const {
    return Width<S>::rise_of(recurrences, this->reach, true);
  }
  __device__ __forceinline__ Entry<float> price(const Recurrences<S>& recurrences, int k, int t) const {
    return recurrences.plain.split(this->cost(k, t), recurrences.plain.scale);
  }
  __device__ __forceinline__ const CostsOfStrip& tile(const Place<S>&) const { return *this; }
};

// `files`: the edge above is to be kept, and nobody has written it yet.
template <class Channel>
__device__ void product_sweep(
    const Problem<float>& problem, const Extent& extent, int64_t pair, int index, const Saved<ProductShape>& saved,
    bool files, EdgeRing<ProductShape>& above_edges, EdgeRing<ProductShape>& below_edges, float* value) {
  const Surroundings<ProductShape> around(extent, index);
  CostsOfStrip<Channel> costs(problem, extent, around.strip, pair, threadIdx.x);
  const int chunks = chunks_of<false>(around, saved.memory != nullptr);
  sweep_strip(problem, extent, around, pair, index, chunks, saved, files, above_edges, below_edges, costs, value);
}

}  // namespace softdtw
