// Backward of one strip: its segments from the last to the first. A segment is swept again from its snapshot, now keeping the
// shares in which a cell hands its E to its predecessors (normalised weights, they sum to 1, so 0 <= E <= 1), then swept in
// reverse.

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

  // Steps last, last - 1, ..., first. The row below the strip leaves its shares in `incoming`, the strip puts its own there.
  // E goes to `gradient`, or takes the place of the first weight, which `weights` has of the last step; of what is dead there
  // is none.
  template <bool StoreE, typename Quarters, typename Sink>
  SOFTDTW_INLINE void steps(
      const Pair<T>& pair, const Scratch<T>& scratch, T* weights, int64_t first, int64_t last, Sink& gradient) {
    constexpr int kFirst = Quarters::template first<kVectors>, kLast = Quarters::template last<kVectors>;
    V from_right[kVectors], from_below[kVectors], from_corner[kVectors];  // copies, as in Sweep::steps
    ascending<0, kVectors>(
        [&](auto k) SOFTDTW_LAMBDA { from_right[k] = left[k], from_below[k] = up[k], from_corner[k] = diag[k]; });
    for (int64_t t = last; t >= first; --t, weights -= 3 * kRows) {
      const int64_t below = t - (kRows - 1);
      const T incoming = below >= 0 ? scratch.incoming[below] : T(0);
      ascending<kFirst, kLast>([&](auto k) SOFTDTW_LAMBDA {
        T* const own = weights + k * kWidth<T>;
        const V next = k + 1 < kVectors ? from_below[k + 1 < kVectors ? k + 1 : 0] : splat(incoming);
        const V e = from_right[k] + Neighbour<T>::from_after(from_below[k], next);
        from_right[k] = e * load(own);
        from_below[k] = e * load(own + kRows) + from_corner[k];
        from_corner[k] = e * load(own + 2 * kRows);
        if (StoreE) store(own, e);
        gradient.add(k, t, e);
      });
      if constexpr (kLast < kVectors) {  // what the first column handed to the left of the table and to the row above
        from_below[kLast] = from_corner[kLast];
        from_corner[kLast] = V{};
        gradient.leave_vector(kLast);
      }
      gradient.leave_step(Constant<kFirst>{}, t);
      if (t < pair.m) scratch.incoming[t] = from_below[0][0];
    }
    ascending<0, kVectors>(
        [&](auto k) SOFTDTW_LAMBDA { left[k] = from_right[k], up[k] = from_below[k], diag[k] = from_corner[k]; });
  }

  template <bool StoreE, typename Sink>
  void runs(const Pair<T>& pair, const Scratch<T>& scratch, int64_t row, int64_t first, int64_t last, Sink& gradient) {
    with_runs(pair, row, first, last, [&](auto quarters, int64_t begin, int64_t end) {
      steps<StoreE, decltype(quarters)>(pair, scratch, scratch.weights + (end - first) * 3 * kRows, begin, end, gradient);
    });
  }

  void segment(const Pair<T>& pair, const Scratch<T>& scratch, int64_t row, int64_t first, int64_t last) {
    if (pair.cost != Cost::kMatrix && pair.dim == 1)
      return with_sum<Costs<VectorMath<T>>>(pair.cost, [&](auto sum) {
        SeriesGradient<decltype(sum), T> gradient;
        gradient.start(pair, scratch, row, 0);
        runs<false>(pair, scratch, row, first, last, gradient);
        gradient.finish(first);
      });
    NoGradient none;
    runs<true>(pair, scratch, row, first, last, none);
    T* const e = scratch.weights;
    if (pair.cost == Cost::kMatrix) {
      const AnyView& dcost = scratch.dcost;
      if (dcost.narrow.data) return write_cost_gradient(pair, dcost.narrow, scratch.factor, row, first, last, e);
      return write_cost_gradient(pair, dcost.wide, scratch.factor, row, first, last, e);
    }
    with_cost<Costs<VectorMath<T>>>(pair.cost, [&](auto type) {
      if constexpr (type.kOverCost) divide_by_costs(type, pair, row, first, last, e);
      add_series_gradient(typename decltype(type)::Sum{}, pair, scratch, row, first, last, e);
    });
  }
};

template <typename T, bool WithPenalty>
void recompute(
    Sweep<T>& sweep, const Pair<T>& pair, const Table<T>& table, const Strip& strip, int64_t first, int64_t last,
    T* weights) {
  CostBlock<T> cost;
  const int64_t at = strip.row / kRows * table.segments + first / kSegment;
  sweep.resume(pair, table.snapshot_reference[at], table.snapshots + at * 4 * kRows);
  for (int64_t step = first; step <= last; step += kSteps) {
    const int64_t count = last - step + 1 < kSteps ? last - step + 1 : kSteps;
    const Live live = live_quarters(pair, strip.row, step);
    fill_costs(pair, strip.row, live, step, count, cost);
    sweep.enter_block(pair, table, strip, step);
    sweep.template steps<WithPenalty, true>(live, cost, count, weights + (step - first) * 3 * kRows);
  }
}

template <typename T>
void backward(const Pair<T>& pair, const Table<T>& table, const Scratch<T>& scratch, StripState* states, int64_t index) {
  Sweep<T> sweep;
  Reverse<T> reverse;
  const Strip strip = strip_of(pair, index * kRows);
  const bool lowest_strip = strip.row + kRows >= pair.n;
  reverse.start();
  if (lowest_strip) reverse.left[(pair.n - 1 - strip.row) / kWidth<T>][(pair.n - 1) % kWidth<T>] = 1;  // E[N,M] = 1
  wait_for(&states[index].down, kAll);
  int64_t last = strip.last;
  while (last >= strip.first) {
    const int64_t boundary = last / kSegment * kSegment, first = boundary > strip.first ? boundary : strip.first;
    if (pair.penalty > 0)
      recompute<T, true>(sweep, pair, table, strip, first, last, scratch.weights);
    else
      recompute<T, false>(sweep, pair, table, strip, first, last, scratch.weights);
    // In parts, so that the strip above can follow closely: it takes E of this strip's row at steps kRows - 1 earlier.
    Scratch<T> part = scratch;
    for (int64_t part_last = last; part_last >= first;) {
      const int64_t cut = part_last / kPart * kPart, part_first = cut > first ? cut : first;
      part.weights = scratch.weights + (part_first - first) * 3 * kRows;
      if (!lowest_strip) wait_for(&states[index + 1].up, kRows - 1 - part_first);
      reverse.segment(pair, part, strip.row, part_first, part_last);
      publish(&states[index].up, -part_first);
      part_last = part_first - 1;
    }
    last = first - 1;
  }
  if (strip.first > 0) scratch.incoming[strip.first - 1] = reverse.diag[0][0];
  publish(&states[index].up, kAll);
}
