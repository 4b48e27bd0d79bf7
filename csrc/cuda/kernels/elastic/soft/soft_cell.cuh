// (11) in the extended range: a cell whose three steps have costs of their own, split.
#pragma once

#include "measures/soft_tile.cuh"

namespace softdtw {

// R: one of SoftDtw's. Of the plain sweep in float32 powers of two come from the bits of m (extended_range.cuh), and the three terms to
// the lowest m at once: the exponential unit has the costs alone left to do.
template <class R>
struct SoftCell {
  using Cell = typename R::Cell;
  using T = decltype(Cell::s);
  static constexpr bool kByBits = kHasFastBits && sizeof(Cell) == 2 * sizeof(float);

  __device__ __forceinline__ static Cell after(const Cell& from, const Cell& cost) {
    return {from.m + cost.m, from.s * cost.s};
  }
  // left and diag come from the previous column, so their sum is off the chain that runs down the rows.
  __device__ __forceinline__ static Cell of(Cell diag, Cell up, Cell left, const Steps<Cell>& costs) {
    left = after(left, costs.left), diag = after(diag, costs.diagonal), up = after(up, costs.up);
    if constexpr (kByBits) {
      const float low = lowest_of(left.m, diag.m, up.m);
      return {low, sum_of(terms_to(low, diag, up, left), diag.s, up.s, left.s)};
    } else {
      return R::add(R::add(left, diag), up);
    }
  }
  // And the shares of (12) that the steps up and left have.
  __device__ __forceinline__ static Cell of(
      const R& recurrence, Cell diag, Cell up, Cell left, const Steps<Cell>& costs, Weights<T>& weights) {
    left = after(left, costs.left), diag = after(diag, costs.diagonal), up = after(up, costs.up);
    if constexpr (kByBits) {
      const float low = lowest_of(left.m, diag.m, up.m);
      return {low, sum_of(terms_to(low, diag, up, left), diag.s, up.s, left.s, weights)};
    } else {
      const Cell none = {-0.0f, 1};  // to which adding is no instruction
      return recurrence.cell(diag, up, left, none, weights);
    }
  }

 private:
  __device__ __forceinline__ static Terms<float> terms_to(
      float low, const Entry<float>& diag, const Entry<float>& up, const Entry<float>& left) {
    return {power_of_difference(low, left.m), power_of_difference(low, diag.m), power_of_difference(low, up.m), 1.0f};
  }
};

// A cell of the plain sweep, where no path comes if it is outside the band.
template <typename T>
__device__ __forceinline__ Entry<T> in_band(const Entry<T>& cell, bool is_inside) {
  return {is_inside ? cell.m : Unreachable<T>::value, cell.s};
}

// What forward saves: snapshots and edges as of soft-DTW, and row 0 of a summed border.
template <class S>
struct SoftSaved {
  using T = typename S::Scalar;
  Saved<S> strips;
  double* border = nullptr;  // (pair, chunk of the first strip): SoftBorder::sum
  int64_t groups = 0;

  static int64_t border_bytes(const ElasticTable<T>& problem) {
    return problem.sum_border ? problem.batch * Sizes<S>(problem.sizes()).groups * static_cast<int64_t>(sizeof(double)) : 0;
  }
  static int64_t bytes_of_strips(const ElasticTable<T>& problem) {
    return (problem.batch * Saved<S>::bytes_of_pair(Sizes<S>(problem.sizes())) + 15) / 16 * 16;
  }
  static int64_t bytes(const ElasticTable<T>& problem) { return bytes_of_strips(problem) + border_bytes(problem); }

  SoftSaved() = default;
  SoftSaved(void* memory, const ElasticTable<T>& problem) {
    if (memory == nullptr) return;
    const Sizes<S> sizes(problem.sizes());
    strips = Saved<S>(memory, sizes, Saved<S>::bytes_of_pair(sizes));
    groups = sizes.groups;
    if (problem.sum_border) border = reinterpret_cast<double*>(static_cast<char*>(memory) + bytes_of_strips(problem));
  }
  __device__ __forceinline__ double& border_at(int64_t pair, int group) const { return border[pair * groups + group]; }
};

// The first strip's row above, in a chunk in which there are columns, of measures that may have one.
template <class Tile, class = void>
constexpr bool kMayHaveBorder = false;
template <class Tile>
constexpr bool kMayHaveBorder<Tile, std::void_t<decltype(std::declval<Tile>().gaps)>> = true;

template <class S, class Tile>
__device__ __forceinline__ void put_border(
    const Extent& extent, const Place<S>& place, const Recurrences<S>& recurrences, const Tile& tile, SoftBorder<S>& border,
    ExtendedTop<S>& top) {
  if constexpr (kMayHaveBorder<Tile>)
    border.put(extent, place, recurrences.general.scale, top, [&](int t) { return tile.gaps.at_column(place.column + t); });
}

}  // namespace softdtw
