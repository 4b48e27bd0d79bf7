// (11) in the extended range: a cell whose three steps have costs of their own, split.
#pragma once

#include "measures/soft_tile.cuh"

namespace softdtw {

// R: one of SoftDtw's.
template <class R>
struct SoftCell {
  using Cell = typename R::Cell;
  using T = decltype(Cell::s);

  __device__ __forceinline__ static Cell after(const Cell& from, const Cell& cost) {
    return {from.m + cost.m, from.s * cost.s};
  }
  // left and diag come from the previous column, so their sum is off the chain that runs down the rows.
  __device__ __forceinline__ static Cell of(const Cell& diag, const Cell& up, const Cell& left, const Steps<Cell>& costs) {
    return R::add(R::add(after(left, costs.left), after(diag, costs.diagonal)), after(up, costs.up));
  }
  // And the shares of (12) that the steps up and left have.
  __device__ __forceinline__ static Cell of(
      const R& recurrence, const Cell& diag, const Cell& up, const Cell& left, const Steps<Cell>& costs,
      Weights<T>& weights) {
    const Cell none = {-0.0f, 1};  // to which adding is no instruction
    return recurrence.cell(after(diag, costs.diagonal), after(up, costs.up), after(left, costs.left), none, weights);
  }
};

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
    if (problem.sum_border)
      border = reinterpret_cast<double*>(static_cast<char*>(memory) + bytes_of_strips(problem));
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
    const Extent& extent, const Place<S>& place, const Recurrences<S>& recurrences, const Tile& tile,
    SoftBorder<S>& border, ExtendedTop<S>& top) {
  if constexpr (kMayHaveBorder<Tile>)
    border.put(extent, place, recurrences.general.scale, top, [&](int t) { return tile.gaps.of_column(t); });
}

}  // namespace softdtw
