// The linear engine's sweeps over a chunk (linear.cuh): of numbers in their rows' units, and of numbers with exponents of their own.
#pragma once

#include "linear_costs.cuh"
#include "linear_lane.cuh"

namespace softdtw {

// (2) over a chunk. Lane 0 finds the edge above in the stage. `visit(t, bottom)` returns what sees the cells of a column, as
// cell(k, a), of which `bottom` is the entry of the lane's last row before it; `after(t)` is called after a column. Columns left
// of step `first` are left of the table: nothing reaches them.
template <int kUnroll, class S, typename Number, bool kMayBeFar, class Columns, class Visit, class After>
__device__ __forceinline__ void sweep_linear(
    const Columns& columns, const Factors<S, Number, kMayBeFar>& factors, int first, LinearLane<S, Number>& state,
    Lowest<Number>& lowest, Visit&& visit, After&& after) {
#pragma unroll(kUnroll)
  for (int t = 0; t < S::kSteps; ++t) {
    const Number bottom = state.left[S::kRows - 1];
    Number up = shuffle_up(bottom);
    if (columns.lane == 0) up = columns.stage.template entry<Number>(t);
    const auto column = columns.column(t);
    auto cell = visit(t, bottom);
    Number diag = state.diag;
    state.diag = up;
#pragma unroll
    for (int k = 0; k < S::kRows; ++k) {
      const Number left = state.left[k];
      // left and diag come from the column before, so their sum is off the chain that runs down the rows.
      const Number s = DeviceMath<Number>::fma(factors.row[k], up, DeviceMath<Number>::fma(factors.row[k], diag, left));
      state.left[k] = up = column.template weight<Number>(k) * s;
      if (!kMayBeFar || t >= first) lowest.meet(up);
      cell(k, up);
      diag = left;
    }
    after(t);
  }
}

// The careful sweep, of a lane's rows and the row above them. `visit(t, bottom)` returns what sees the cells of a column, as
// cell(k, a). Cells left of the table are 0: nothing reaches them.
template <class S, class Columns, class Visit>
__device__ __forceinline__ void sweep_linear_carefully(
    const Columns& columns, Wide (&lefts)[S::kRows], Wide& corner, Visit&& visit) {
#pragma unroll 1
  for (int t = 0; t < S::kSteps; ++t) {
    const Wide bottom = lefts[S::kRows - 1];
    Wide up = shuffle_up(bottom);
    if (columns.lane == 0) up = Wide::of(columns.stage.wide[t], columns.stage.units[t]);
    const auto column = columns.column(t);
    auto cell = visit(t, bottom);
    Wide diag = corner;
    corner = up;
#pragma unroll
    for (int k = 0; k < S::kRows; ++k) {
      const Wide left = lefts[k];
      lefts[k] = up = (left + diag + up).times(column.careful_weight(k));
      cell(k, up);
      diag = left;
    }
  }
}

// (3), (4) over a chunk that sweep_linear has computed. Lane 31 finds in the stage what the strip below hands to it, for columns
// one left of lane 31's. `below`: the factor of the row below the lane's. `visit(t, column)` returns a visitor of a column, which
// knows a(k) of its cells, takes E in cell(k, e), and whose end() is called after it; `hand(t, r)` gets r of the lane's first row.
// The pair's last cell, where E is 1, may be here if kMayBeFar, as the lane's cell (end_row, end_step).
template <int kUnroll, class S, typename Number, bool kMayBeFar, class Columns, class Visit, class Hand>
__device__ __forceinline__ void sweep_linear_reversed(
    const Columns& columns, const Factors<S, Number, kMayBeFar>& factors, Number below, int end_row, int end_step,
    LinearFlow<S, Number>& flow, Visit&& visit, Hand&& hand) {
#pragma unroll(kUnroll)
  for (int t = S::kSteps - 1; t >= 0; --t) {
    Number down = shuffle_down(flow.right[0]);
    if (columns.lane == kWarp - 1) {
      down = flow.next;
      flow.next = columns.stage.template entry<Number>(t);
    }
    const auto column = columns.column(t);
    auto visitor = visit(t, column);
    Number diag = flow.diag;
    flow.diag = down;
#pragma unroll
    for (int k = S::kRows - 1; k >= 0; --k) {
      const Number right = flow.right[k], factor = k + 1 < S::kRows ? factors.row[(k + 1) % S::kRows] : below;
      const Number a = visitor.template a<Number>(k);
      Number v = DeviceMath<Number>::fma(factor, down, DeviceMath<Number>::fma(factor, diag, right));
      if (kMayBeFar && k == end_row && t == end_step) v = 1 / a;
      flow.right[k] = down = column.template weight<Number>(k) * v;
      visitor.cell(k, a * v);
      diag = right;
    }
    visitor.end();
    hand(t, flow.right[0]);
  }
}

// The same over any chunk, with exponents of their own: the visitor's careful_a(k) is wide, and so is what `hand` gets.
template <class S, class Columns, class Visit, class Hand>
__device__ __forceinline__ void sweep_linear_reversed_carefully(
    const Columns& columns, int first_column, int end_row, int end_step, LinearFlow<S>& flow, Visit&& visit, Hand&& hand) {
  Wide rights[S::kRows], corner = Wide::of(flow.diag, -flow.below), next = Wide::of(flow.next, -flow.below);
#pragma unroll
  for (int k = 0; k < S::kRows; ++k) rights[k] = flow.row(k);
#pragma unroll 1
  for (int t = S::kSteps - 1; t >= 0; --t) {
    Wide down = shuffle_down(rights[0]);
    if (columns.lane == kWarp - 1) {
      down = next;
      next = Wide::of(columns.stage.wide[t], columns.stage.units[t]);
    }
    const auto column = columns.column(t);
    auto visitor = visit(t, column);
    Wide diag = corner;
    corner = down;
#pragma unroll
    for (int k = S::kRows - 1; k >= 0; --k) {
      const Wide right = rights[k], a = visitor.careful_a(k);
      Wide v = right + down + diag;
      if (k == end_row && t == end_step) v = Wide::of(1 / a.a, -a.e);
      if (first_column + t < 0) v = Wide();
      visitor.cell(k, a.times(v).in_unit(0));
      rights[k] = down = v.times(column.careful_weight(k));
      diag = right;
    }
    visitor.end();
    hand(t, rights[0]);
  }
  flow.take(rights, corner, next);
}

}  // namespace softdtw
