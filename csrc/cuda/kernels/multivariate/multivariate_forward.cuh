// The sweep of a strip in forward, by a warp of its own.
#pragma once

#include "cuda/costs/multivariate_tile.cuh"
#include "cuda/kernels/warp_specialised/sweeping_warp.cuh"

namespace softdtw {

// Costs as the sweep reads them, from the ring that other warps fill.
template <class Ring>
struct CostsOfStrip : ProductTile<Ring, false> {
  using S = ProductShape;
  static constexpr bool kIsAhead = false;

  __device__ CostsOfStrip(const Problem<float>&, int64_t, const Strip<S>& strip, int lane, Ring& ring)
      : ProductTile<Ring, false>(strip, lane, ring) {}
  __device__ __forceinline__ void begin(int) {}
  __device__ __forceinline__ void end(int) {}
  __device__ __forceinline__ void use(const Place<S>& place, int) { ProductTile<Ring, false>::use(place); }
  __device__ __forceinline__ float rise(const Recurrences<S>& recurrences, const Place<S>&) const {
    return Width<S>::rise_of(recurrences, this->reach, true);
  }
  __device__ __forceinline__ Entry<float> price(const Recurrences<S>& recurrences, int k, int t) const {
    return recurrences.plain.split(this->cost(k, t), recurrences.plain.scale);
  }
  __device__ __forceinline__ const CostsOfStrip& tile(const Place<S>&) const { return *this; }
};

// The same where they come priced.
template <class Ring>
class PricesOfProducts {
  using S = ProductShape;
  Ring& ring;
  int chunk = 0;  // the next one
  ChunkInRing<Ring> cells;
  const double scale;

 public:
  static constexpr bool kIsAhead = true;

  __device__ PricesOfProducts(const Problem<float>& problem, int64_t pair, const Strip<S>&, int lane, Ring& ring_)
      : ring(pinned(ring_)), cells(0, lane), scale(Recurrences<S>(problem, pair).general.scale) {}
  __device__ __forceinline__ void begin(int) {}
  __device__ __forceinline__ void end(int) {}
  __device__ __forceinline__ void use(const Place<S>&, int) {
    if (chunk > 0) cells.forth();
    const int batch = chunk / kBatchGroups;
    if (chunk % kBatchGroups == 0) {
      if (chunk > 0) ring.released[Ring::slot(batch - 1)].arrive();
      ring.filled[Ring::slot(batch)].wait(batch / Ring::kBatches);
    }
    ++chunk;
  }
  __device__ __forceinline__ float rise(const Recurrences<S>& recurrences, const Place<S>&) const {
    const float reach = greater(ring.reach_of(cells.column(0)), ring.reach_of(cells.column(S::kSteps - 1)));
    return Width<S>::rise_of(recurrences, reach, true);
  }
  __device__ __forceinline__ Entry<float> price(const Recurrences<S>&, int k, int t) const {
    const auto two = cells.two_rows(ring, t);
    return k == 0 ? two.x : two.y;
  }
  __device__ __forceinline__ const PricesOfProducts& tile(const Place<S>&) const { return *this; }
  // For the general sweep.
  __device__ __forceinline__ Entry<float, double> cost(int k, int t) const {
    const auto two = cells.two_rows(ring, t);
    const Entry<float> price = k == 0 ? two.x : two.y;
    return price.s != 0 ? Entry<float, double>{price.m, price.s} : Recurrences<S>::General::split(price.m, scale);
  }
};

// `files`: the edge above is to be kept, and nobody has written it yet.
template <class Ring>
__device__ void product_sweep(
    const Problem<float>& problem, const Extent& extent, int64_t pair, int index, const Saved<ProductShape>& saved,
    bool files, EdgeRing<ProductShape>& above_edges, EdgeRing<ProductShape>& below_edges, Ring& ring, float* value) {
  const Surroundings<ProductShape> around(extent, index);
  std::conditional_t<Ring::kIsPriced, PricesOfProducts<Ring>, CostsOfStrip<Ring>> costs(
      problem, pair, around.strip, threadIdx.x, ring);
  const int chunks = chunks_of<false>(around, saved.memory != nullptr);
  sweep_strip(problem, extent, around, pair, index, chunks, saved, files, above_edges, below_edges, costs, value);
}

}  // namespace softdtw
