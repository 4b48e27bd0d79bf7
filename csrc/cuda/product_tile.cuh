// The sweep's side of a channel (product_channel.cuh): a tile of costs that the product warp has computed, and a sink that
// hands it E.
#pragma once

#include "product_channel.cuh"

namespace softdtw {

// The cells of a lane's chunk in the ring.
struct RingChunk {
  using S = ProductShape;
  int chunk, first, row;  // the lane's first column in the ring, and its first row in the strip

  __device__ __forceinline__ RingChunk(const Channel& channel, const Place<S>& place, int lane)
      : chunk((place.column + lane - channel.first_column) / S::kSteps), row(lane * S::kRows) {
    first = chunk % (kRingColumns / S::kSteps) * S::kSteps - lane;
    if (first < 0) first += kRingColumns;
  }
  __device__ __forceinline__ int column(int t) const {
    return first + t < kRingColumns ? first + t : first + t - kRingColumns;
  }
};

template <bool kBackward>
struct ProductTile {
  using S = ProductShape;
  using T = float;
  static constexpr bool kUnivariate = false;
  Channel& channel;
  const int lane;
  int top = 0, awaited = 0;  // the first batch to be filled, and the next one to wait for
  float costs[S::kRows][S::kSteps], reach = 0;

  __device__ ProductTile(
      const Problem<float>&, const Extent& extent, const Strip<S>& strip, int64_t /* pair */, int lane_, float)
      : channel(own_channel<kBackward>()), lane(lane_) {
    if (lane == 0) channel.first_column = strip.first_column;
    __syncwarp();
    if (kBackward) {
      const Surroundings<S> around(extent, strip.first_row / S::kStripRows);
      top = awaited = (chunks_of<true>(around, true) - 1) / kBatchGroups;
    }
  }
  __device__ __forceinline__ void fetch(const Place<S>&) {}
  __device__ __forceinline__ void use(const Place<S>& place) {
    const RingChunk cells(channel, place, lane);
    if (kBackward) {
      for (; awaited >= (cells.chunk - S::kSkewChunks) >> 1; --awaited)
        channel.filled[Channel::slot(awaited)].wait((top - awaited) / kBatches);
    } else {
      for (; awaited <= cells.chunk / kBatchGroups; ++awaited)
        channel.filled[Channel::slot(awaited)].wait(awaited / kBatches);
    }
#pragma unroll
    for (int t = 0; t < S::kSteps; ++t) {
      const float2 two = channel.two_rows(cells.row, cells.column(t));
      costs[0][t] = two.x;
      costs[1][t] = two.y;
    }
    reach = greater(channel.reach[cells.column(0) / S::kSteps], channel.reach[cells.column(S::kSteps - 1) / S::kSteps]);
    if (!kBackward && cells.chunk % kBatchGroups == kBatchGroups - 1)
      channel.swept[Channel::slot(cells.chunk / kBatchGroups)].arrive();
  }
  __device__ __forceinline__ float cost(int k, int t) const { return costs[k][t]; }
};

struct ProductSink {
  using S = ProductShape;
  Channel& channel;
  const int lane;
  float alignment[S::kRows][S::kSteps];

  __device__ ProductSink(
      const Problem<float>&, const Gradient<float>&, const Extent&, int64_t, int lane_, const Columns&, float, float*)
      : channel(own_channel<true>()), lane(lane_) {}
  __device__ __forceinline__ void begin(const Place<S>&) {}
  template <class Tile>
  __device__ __forceinline__ void cell(const Tile&, int k, int t, float e) {
    alignment[k][t] = e;
  }
  __device__ __forceinline__ void step(int) {}
  __device__ __forceinline__ void end(const Place<S>& place, bool) {
    const RingChunk cells(channel, place, lane);
#pragma unroll
    for (int t = 0; t < S::kSteps; ++t)
      channel.two_rows(cells.row, cells.column(t)) = make_float2(alignment[0][t], alignment[1][t]);
    if (cells.chunk % kBatchGroups == 0) channel.swept[Channel::slot(cells.chunk / kBatchGroups)].arrive();
  }
  __device__ __forceinline__ void finish(const Strip<S>&, const Extent&) {}
};

template <>
struct SinkFor<ProductShape, ProductTile<true>> {
  using type = ProductSink;
};

}  // namespace softdtw
