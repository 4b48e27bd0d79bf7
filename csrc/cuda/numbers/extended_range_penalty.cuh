// The warp penalty in the extended range, without an instruction more in a sweep.
//
// A path to cell (i, j), counted from 1, has L cells and so 2 L - (i + j) steps up or left. So (1) with a penalty p is (1) without one
// where every cell costs 2 p more, but for p (i + j): the same for every path, it changes no share of E, and is taken off the
// pair's value. 2 p adds to m and multiplies s as costs do, wherever they are split.
//
// m rises by 2 p a cell then. Where that is more than float32 holds for long, steps pay the penalty themselves, in the general sweep.
#pragma once

#include "extended_range_state.cuh"

namespace softdtw {

template <class S>
struct PenalisedRecurrences : Recurrences<S> {
  using T = typename S::Scalar;
  static constexpr double kMostOfCell = 1 << 15;
  Entry<T> of_cell = {0, 1};

  __device__ PenalisedRecurrences(const Problem<T>& problem, int64_t pair) : Recurrences<S>(problem, pair) {
    const double penalty = 2 * problem.penalty_of(pair) * static_cast<double>(this->plain.scale);
    if (!(penalty <= kMostOfCell)) return;
    const double whole = rint(penalty);
    of_cell = {static_cast<T>(whole), static_cast<T>(exp2(whole - penalty))};
    this->general.penalty = {0, 1};
    this->has_penalty = false;
  }
  template <class Cell>
  __device__ __forceinline__ Cell charged(Cell cell) const {
    return {cell.m + of_cell.m, cell.s * of_cell.s};
  }
  __device__ __forceinline__ T rise(T reach) const { return DeviceMath<T>::fma(reach, this->plain.scale, of_cell.m + 1); }
  __device__ double surplus(int row, int column) const {
    return (of_cell.m - log2(static_cast<double>(of_cell.s))) / 2 * (static_cast<double>(row) + column + 2);
  }
};

}  // namespace softdtw
