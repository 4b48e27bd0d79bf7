// What flows back through a chunk in integer log2 (integer_log2.cuh): shares of E in shared memory, E itself, and sums of gradients.
#pragma once

#include "integer_log2.cuh"

namespace softdtw {

// A chunk's shares, of short pairs but for those of its last column, a lane's own. Dynamic shared memory, with the windows behind it.
template <int kRows, int kSteps = ShortPairLayout::kSteps - 1>
struct Log2Table {
  float4 shares[kSteps][kRows / 2][kWarp];  // of two rows: up, left

  __device__ __forceinline__ void store(int t, const Weights<float> (&weights)[kRows]) {
#pragma unroll
    for (int k = 0; k < kRows; k += 2)
      shares[t][k / 2][threadIdx.x] = make_float4(weights[k].up, weights[k].left, weights[k + 1].up, weights[k + 1].left);
  }
  __device__ __forceinline__ void load(int t, Weights<float> (&weights)[kRows]) const {
#pragma unroll
    for (int k = 0; k < kRows; k += 2) {
      const float4 two = shares[t][k / 2][threadIdx.x];
      weights[k] = {two.x, two.y};
      weights[k + 1] = {two.z, two.w};
    }
  }
};

// e times the slope of row k's cost at a column, to the sums of both.
template <class Pair>
__device__ __forceinline__ void add_slopes(const Pair& pair, int k, float y, float e, float& row, float& sum) {
  const float slope = pair.cost.slope(pair.x[k] - y);
  row = DeviceMath<float>::fma(e, slope, row);
  sum = DeviceMath<float>::fma(e, slope, sum);
}
template <class Group, class Column = typename Group::Column>
__device__ __forceinline__ void add_slopes(const Group& group, int k, const Column& y, float e, Column& row, Column& sum) {
  group.add_slopes(k, y, e, row, sum);
}

// A lane between two columns of the reversed sweep: shares of E on their way. Sum: a number, or a vector.
template <int kRows, class Sum = float>
struct Log2Flow {
  float left[kRows] = {};  // to the rows at the coming column
  float diag[kRows] = {};  // to the rows above them, there
  float handed = 0;        // from the lane's first row to the lane above, at the column it has just left
  Sum rows[kRows] = {};    // sums of E times the slope of the cost
  Sum column = {};         // of the column it has just left and all rows below

  // A column, with y there. `end_row`: where it is the pair's last column, the lane's row of its last cell, whose E is 1;
  // otherwise -1. kMayEnter: the lane may have left the table, and no cell may have an E.
  template <bool kMayEnter, class Pair>
  __device__ __forceinline__ void step(
      const Pair& pair, const Sum& y, const Weights<float> (&weights)[kRows], bool has_entered, int end_row) {
    float from_below = pair.from_below(handed);
    Sum sum = pair.from_below(column);
#pragma unroll
    for (int k = kRows - 1; k >= 0; --k) {
      float e = left[k] + from_below;
      if (kMayEnter && k == end_row) e = 1;
      if (kMayEnter && !has_entered) e = 0;
      from_below = pass_on(pair, k, y, weights[k], e, sum);
    }
    handed = from_below;
    column = sum;
  }
  // From row k, whose E is e: the shares of its predecessors, and its gradient. Returns what the row above gets.
  template <class Pair>
  __device__ __forceinline__ float pass_on(
      const Pair& pair, int k, const Sum& y, const Weights<float>& weights, float e, Sum& sum) {
    const Weights<float> share = weights;
    left[k] = share.left * e;
    const float to_row_above = DeviceMath<float>::fma(share.up, e, diag[k]);
    diag[k] = (1.0f - share.up - share.left) * e;
    add_slopes(pair, k, y, e, rows[k], sum);
    return to_row_above;
  }
  // E that is still to flow on from the lane.
  __device__ __forceinline__ float left_behind() const {
    float sum = handed;
#pragma unroll
    for (int k = 0; k < kRows; ++k) sum += left[k] + diag[k];
    return sum;
  }
};

// At the table's edges no share, however small, may go where there is no cell.
template <bool kMayEnter, int kRows, class Pair>
__device__ __forceinline__ void log2_edges_of_table(const Pair& pair, int column, Weights<float> (&weights)[kRows]) {
  if (kMayEnter && column == 0)
#pragma unroll
    for (int k = 0; k < kRows; ++k) weights[k] = {1, 0};
  if (pair.is_top_lane()) weights[0] = {0, 1};
}

}  // namespace softdtw
