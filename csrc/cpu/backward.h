// Backward: the strips from the last to the first, the segments of each from the last to the first. A segment is swept again
// from its snapshot, now keeping the shares in which a cell hands its E to its predecessors (normalised weights, they sum to
// 1, so 0 <= E <= 1), then swept in reverse.

#include "gradient.h"

// The reverse sweep. E[i,j] comes from the right neighbour, and from the row below by way of its up and diagonal shares.
template <typename T>
struct Reverse {
  static constexpr int kVectors = kRows / kWidth<T>;
  using V = Vec<T>;
  V left[kVectors], up[kVectors], diag[kVectors];  // shares waiting for the next step, and those waiting one step more

  void start() {
    for (int k = 0; k < kVectors; ++k) left[k] = up[k] = diag[k] = V{};
  }

  SOFTDTW_INLINE void step(T incoming, T* weights) {
#pragma GCC unroll 4
    for (int k = 0; k < kVectors; ++k) {
      T* const own = weights + k * kWidth<T>;
      const V e = left[k] + Neighbour<T>::from_after(up[k], k + 1 < kVectors ? up[k + 1 < kVectors ? k + 1 : k] : splat(incoming));
      left[k] = e * load(own);
      up[k] = e * load(own + kRows) + diag[k];
      diag[k] = e * load(own + 2 * kRows);
      store(own, e);
    }
  }

  // Steps last, last - 1, ..., first. The row below the strip leaves its shares in `incoming`, the strip puts its own there.
  void steps(const Pair<T>& pair, T* incoming, T* weights, int64_t first, int64_t last) {
    for (int64_t t = last; t >= first; --t) {
      const int64_t below = t - (kRows - 1);
      step(below >= 0 ? incoming[below] : T(0), weights + (t - first) * 3 * kRows);
      if (t < pair.m) incoming[t] = up[0][0];
    }
  }
};

template <typename T, bool WithPenalty>
void recompute(
    Sweep<T>& sweep, const Pair<T>& pair, const Table<T>& table, const Strip& strip, int64_t first, int64_t last, T* weights) {
  CostBlock<T> cost;
  const int64_t at = strip.row / kRows * table.segments + first / kSegment;
  sweep.resume(pair, table.snapshot_reference[at], table.snapshots + at * 4 * kRows);
  for (int64_t step = first; step <= last; step += kSteps) {
    const int64_t count = last - step + 1 < kSteps ? last - step + 1 : kSteps;
    fill_costs(pair, strip.row, step, count, cost);
    sweep.enter_block(pair, table, strip, step, count);
    sweep.template steps<WithPenalty, true>(cost, count, weights + (step - first) * 3 * kRows);
  }
}

template <typename T>
void backward(const Pair<T>& pair, const Table<T>& table, const Scratch<T>& scratch) {
  Sweep<T> sweep;
  Reverse<T> reverse;
  for (int64_t t = 0; t < pair.m; ++t) scratch.incoming[t] = 0;
  const int64_t last_row = (pair.n - 1) / kRows * kRows;
  for (int64_t row = last_row; row >= 0; row -= kRows) {
    const Strip strip = strip_of(pair, row);
    reverse.start();
    if (row == last_row) reverse.left[(pair.n - 1 - row) / kWidth<T>][(pair.n - 1 - row) % kWidth<T>] = 1;  // E[N,M] = 1
    int64_t last = strip.last;
    while (last >= strip.first) {
      const int64_t boundary = last / kSegment * kSegment, first = boundary > strip.first ? boundary : strip.first;
      if (pair.penalty > 0)
        recompute<T, true>(sweep, pair, table, strip, first, last, scratch.weights);
      else
        recompute<T, false>(sweep, pair, table, strip, first, last, scratch.weights);
      reverse.steps(pair, scratch.incoming, scratch.weights, first, last);
      add_gradient(pair, scratch, row, first, last);
      last = first - 1;
    }
    if (strip.first > 0) scratch.incoming[strip.first - 1] = reverse.diag[0][0];
  }
}
