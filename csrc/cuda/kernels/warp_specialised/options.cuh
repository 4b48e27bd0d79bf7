// What calls may ask for beside squared differences: another cost of one dimension, a warp penalty, a band. For strips that have
// several warps, where those that split costs do what this takes, and the sweep does not know of it.
#pragma once

#include "core/call.h"
#include "cuda/costs/tile.cuh"
#include "cuda/kernels/linear_domain/options/univariate_cost.cuh"
#include "cuda/numbers/extended_range_state.cuh"

namespace softdtw {

// Which cells of a tile are in the band. Those outside cost so much that no path reaches them, so that chunks at the edges of a band
// need no other sweep. They take no share of E: what a cell hands to them is exactly 0.
template <class S>
class BandOfTile {
  int low;
  unsigned width;  // columns of the band in a row, less 1
  int inside = 0;  // columns from the band's first one in the lane's first row to the lane's first one

 public:
  __device__ explicit BandOfTile(const Extent& extent) : low(extent.low), width(extent.high - extent.low) {}
  __device__ __forceinline__ void look(const Place<S>& place) { inside = place.column - place.row - low; }
  __device__ __forceinline__ bool is_inside(int k, int t) const { return static_cast<unsigned>(inside + t - k) <= width; }
};

// A tile with that.
template <class S, class Tile>
struct InBand : Tile, BandOfTile<S> {
  template <class... Others>
  __device__ InBand(
      const Problem<typename S::Scalar>& problem, const Extent& extent, const Strip<S>& strip, int64_t pair, int lane,
      const Others&... others)
      : Tile(problem, extent, strip, pair, lane, others...), BandOfTile<S>(extent) {}
  __device__ __forceinline__ void use(const Place<S>& place) {
    Tile::use(place);
    this->look(place);
  }
};

// A tile of costs of one dimension with all that.
template <class S, class Tile>
struct WithOptions : InBand<S, Tile> {
  using T = typename S::Scalar;
  using OfDifference = UnivariateCost<T>;
  Cost kind;
  OfDifference of_difference;

  template <class... Others>
  __device__ WithOptions(
      const Problem<T>& problem, const Extent& extent, const Strip<S>& strip, int64_t pair, int lane,
      const Others&... others)
      : InBand<S, Tile>(problem, extent, strip, pair, lane, others...), kind(problem.cost), of_difference(problem.cost) {}
  __device__ __forceinline__ void use(const Place<S>& place) {
    this->reach = of_difference.cost(this->take_columns());
    this->look(place);
  }
  __device__ __forceinline__ T slope(int k, int t) const { return of_difference.slope(this->difference(k, t)); }
  __device__ __forceinline__ T cost(int k, int t) const { return of_difference.cost(this->difference(k, t)); }
  __device__ __forceinline__ double exact_cost(int k, int t) const {
    return UnivariateCost<double>(kind).cost(this->exact_difference(k, t));
  }
};

// Calls f(tiles) for a problem of one dimension, a type whose Of<S, Tile> is what a tile of squared differences becomes: itself without
// any of it, and with a band and a penalty for squared differences alone, of which a cell takes four instructions less.
struct PlainTiles {
  template <class S, class Tile>
  using Of = Tile;
};
struct SquaredTiles {
  template <class S, class Tile>
  using Of = InBand<S, Tile>;
};
struct AnyTiles {
  template <class S, class Tile>
  using Of = WithOptions<S, Tile>;
};
template <typename T, class F>
auto with_tiles(const Problem<T>& problem, F&& f) {
  const Call call = call_of(problem, true);
  if (call.cost != Cost::kSqEuclidean) return f(AnyTiles());
  return call.is_plain() ? f(PlainTiles()) : f(SquaredTiles());
}

// How the warps of a strip see a tile: what its cells cost, split, and whether those outside the band are to cost too much.
template <class S, class Tile>
struct TileOptions {
  using OfStrip = Recurrences<S>;
  static constexpr bool kTakesBands = false;

  __device__ __forceinline__ static Entry<typename S::Scalar> split_cost(
      const OfStrip& recurrences, const Tile& tile, int k, int t) {
    return OfStrip::Plain::split(tile.cost(k, t), recurrences.plain.scale);
  }
  __device__ __forceinline__ static bool is_inside(const Tile&, int, int) { return true; }
};
template <class S, class Tile>
struct TileOptions<S, InBand<S, Tile>> {
  using OfStrip = PenalisedRecurrences<S>;
  static constexpr bool kTakesBands = true;

  template <class Own>
  __device__ __forceinline__ static Entry<typename S::Scalar> split_cost(
      const OfStrip& recurrences, const Own& tile, int k, int t) {
    return recurrences.charged(OfStrip::Plain::split(tile.cost(k, t), recurrences.plain.scale));
  }
  template <class Own>
  __device__ __forceinline__ static bool is_inside(const Own& tile, int k, int t) {
    return tile.is_inside(k, t);
  }
};
template <class S, class Tile>
struct TileOptions<S, WithOptions<S, Tile>> : TileOptions<S, InBand<S, Tile>> {};

// The same for costs that other warps than those of the sweep compute: of cells outside the band infinity, which splits into what no
// path reaches.
template <class S, bool kHasOptions = true>
struct CostOptions {
  using OfStrip = Recurrences<S>;

  __device__ __forceinline__ static Entry<typename S::Scalar> split_cost(
      const OfStrip& recurrences, typename S::Scalar cost) {
    return OfStrip::Plain::split(cost, recurrences.plain.scale);
  }
};
template <class S>
struct CostOptions<S, true> {
  using T = typename S::Scalar;
  using OfStrip = PenalisedRecurrences<S>;

  __device__ __forceinline__ static Entry<T> split_cost(const OfStrip& recurrences, T cost) {
    const Entry<T> own = recurrences.charged(OfStrip::Plain::split(cost, recurrences.plain.scale));
    return cost != T(INFINITY) ? own : Entry<T>{nowhere<S>(), T(1)};
  }
  __device__ __forceinline__ static Entry<T> charged(const OfStrip& recurrences, const Entry<T>& cost) {
    return recurrences.charged(cost);
  }
};

}  // namespace softdtw
