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
  V passed[kVectors];                              // what of `up` has waited, for sinks that take it

  void start() {
    for (int k = 0; k < kVectors; ++k) left[k] = up[k] = diag[k] = passed[k] = V{};
  }

  // Steps last, last - 1, ..., first. The row below the strip leaves its shares in `incoming`, the strip puts its own there.
  // `weights` has the shares of the last step; of what is dead there are none.
  template <typename Quarters, typename Sink>
  SOFTDTW_INLINE void steps(
      Quarters quarters, const Pair<T>& pair, const Scratch<T>& scratch, T* weights, int64_t first, int64_t last,
      Sink& sink) {
    const auto begin = quarters.template first<kVectors>();
    const auto end = quarters.template last<kVectors>();
    constexpr bool kTakesNext = Sink::kTakesNext;
    V from_right[kVectors], from_below[kVectors], from_corner[kVectors], by_corner[kVectors];  // copies, as in Sweep::steps
    ascending<0, kVectors>([&](auto k) SOFTDTW_LAMBDA {
      from_right[k] = left[k], from_below[k] = up[k], from_corner[k] = diag[k];
      if (kTakesNext) by_corner[k] = passed[k];
    });
    for (int64_t t = last; t >= first; --t, weights -= 3 * kRows) {
      const int64_t below = t - (kRows - 1);
      const T incoming = below >= 0 ? scratch.incoming[below] : T(0);
      const T incoming_diagonal = kTakesNext && below >= 0 ? scratch.incoming_diagonal[below] : T(0);
      ascending(begin, end, [&](auto k) SOFTDTW_LAMBDA {
        T* const own = weights + k * kWidth<T>;
        const auto after = [&](const V* flow, T last_of_all) SOFTDTW_LAMBDA {
          const V next = k + 1 < kVectors ? flow[k + 1 < kVectors ? k + 1 : 0] : splat(last_of_all);
          return Neighbour<T>::from_after(flow[k], next);
        };
        Masses<V> masses;
        masses.all = from_right[k] + after(from_below, incoming);
        if (kTakesNext) masses.next = after(by_corner, incoming_diagonal);
        masses.left = masses.all * load(own);
        masses.up = masses.all * load(own + kRows);
        masses.diagonal = masses.all * load(own + 2 * kRows);
        from_right[k] = masses.left;
        from_below[k] = masses.up + from_corner[k];
        if (kTakesNext) by_corner[k] = from_corner[k];
        from_corner[k] = masses.diagonal;
        sink.take(k, t, masses, own);
      });
      if (end < kVectors) {  // what the first column handed to the left of the table and to the row above
        const int k = end < kVectors ? int(end) : 0;
        from_below[k] = from_corner[k];
        if (kTakesNext) by_corner[k] = from_corner[k];
        from_corner[k] = V{};
        sink.leave_vector(k);
      }
      sink.leave_step(begin, t);
      if (t < pair.m) {
        scratch.incoming[t] = from_below[0][0];
        if (kTakesNext) scratch.incoming_diagonal[t] = by_corner[0][0];
      }
    }
    ascending<0, kVectors>([&](auto k) SOFTDTW_LAMBDA {
      left[k] = from_right[k], up[k] = from_below[k], diag[k] = from_corner[k];
      if (kTakesNext) passed[k] = by_corner[k];
    });
  }

  // A part of a strip, of which scratch.weights has the shares.
  template <typename Sink>
  void runs(const Pair<T>& pair, const Scratch<T>& scratch, int64_t row, int64_t first, int64_t last, Sink& sink) {
    with_runs(pair, row, first, last, [&](auto quarters, int64_t begin, int64_t end) {
      steps(quarters, pair, scratch, scratch.weights + (end - first) * 3 * kRows, begin, end, sink);
    });
    sink.finish(first);
  }
};

// A strip in reverse. sweep_again(first, last) sweeps a segment again, and leaves its shares in scratch.weights; go_back(part,
// first, last) goes back over a part of it with `reverse`, part.weights being the shares of that.
template <typename T, class Again, class Back>
void reverse_strip(
    const Pair<T>& pair, const Scratch<T>& scratch, StripState* states, const Strip& strip, Reverse<T>& reverse,
    const Again& sweep_again, const Back& go_back) {
  const int64_t index = strip.row / kRows;
  const bool lowest_strip = strip.row + kRows >= pair.n;
  reverse.start();
  if (lowest_strip) reverse.left[(pair.n - 1 - strip.row) / kWidth<T>][(pair.n - 1) % kWidth<T>] = 1;  // E[N,M] = 1
  wait_for(&states[index].down, kAll);
  int64_t last = strip.last;
  while (last >= strip.first) {
    const int64_t boundary = last / kSegment * kSegment, first = boundary > strip.first ? boundary : strip.first;
    sweep_again(first, last);
    // In parts, so that the strip above can follow closely: it takes E of this strip's row at steps kRows - 1 earlier.
    Scratch<T> part = scratch;
    for (int64_t part_last = last; part_last >= first;) {
      const int64_t cut = part_last / kPart * kPart, part_first = cut > first ? cut : first;
      part.weights = scratch.weights + (part_first - first) * 3 * kRows;
      if (!lowest_strip) wait_for(&states[index + 1].up, kRows - 1 - part_first);
      go_back(part, part_first, part_last);
      publish(&states[index].up, -part_first);
      part_last = part_first - 1;
    }
    last = first - 1;
  }
  if (strip.first > 0) {
    scratch.incoming[strip.first - 1] = reverse.diag[0][0];
    if (scratch.incoming_diagonal) scratch.incoming_diagonal[strip.first - 1] = reverse.diag[0][0];
  }
  publish(&states[index].up, kAll);
}

// The sweep as it was where a segment starts.
template <typename T>
void resume_segment(Sweep<T>& sweep, const Pair<T>& pair, const Table<T>& table, const Strip& strip, int64_t first) {
  const int64_t at = strip.row / kRows * table.segments + first / kSegment;
  sweep.resume(pair, table.snapshot_reference[at], table.snapshots + at * 4 * kRows);
}

template <typename T, bool WithPenalty>
void recompute(
    Sweep<T>& sweep, const Pair<T>& pair, const Table<T>& table, const Strip& strip, int64_t first, int64_t last,
    T* weights) {
  CostBlock<T> cost;
  resume_segment(sweep, pair, table, strip, first);
  for (int64_t step = first; step <= last; step += kSteps) {
    const int64_t count = last - step + 1 < kSteps ? last - step + 1 : kSteps;
    const Live live = live_quarters(pair, strip.row, step);
    sweep.enter_block(pair, table, strip, step);
    fill_costs(pair, strip.row, live, step, count, cost);
    sweep.template steps<WithPenalty, true>(live, cost, count, weights + (step - first) * 3 * kRows);
  }
}

// The gradient of a part.
template <typename T>
void add_gradient(
    const Pair<T>& pair, const Scratch<T>& scratch, int64_t row, int64_t first, int64_t last, Reverse<T>& reverse) {
  if (pair.cost != Cost::kMatrix && pair.dim == 1)
    return with_sum<Costs<VectorMath<T>>>(pair.cost, [&](auto sum) {
      SeriesGradient<decltype(sum), T> gradient;
      gradient.start(pair, scratch, row, 0);
      reverse.runs(pair, scratch, row, first, last, gradient);
    });
  StoredE stored;
  reverse.runs(pair, scratch, row, first, last, stored);
  T* const e = scratch.weights;
  if (pair.cost == Cost::kMatrix) {
    const AnyView& dcost = scratch.dcost;
    if (dcost.narrow.data) return write_cost_gradient(pair, dcost.narrow, scratch.factor, row, first, last, e);
    return write_cost_gradient(pair, dcost.wide, scratch.factor, row, first, last, e);
  }
  add_gradient_of_costs(pair, scratch, row, first, last, e);
}

template <typename T>
void backward(const Pair<T>& pair, const Table<T>& table, const Scratch<T>& scratch, StripState* states, int64_t index) {
  Sweep<T> sweep;
  Reverse<T> reverse;
  const Strip strip = strip_of(pair, index * kRows);
  reverse_strip(
      pair, scratch, states, strip, reverse,
      [&](int64_t first, int64_t last) {
        if (pair.penalty > 0)
          recompute<T, true>(sweep, pair, table, strip, first, last, scratch.weights);
        else
          recompute<T, false>(sweep, pair, table, strip, first, last, scratch.weights);
      },
      [&](const Scratch<T>& part, int64_t first, int64_t last) {
        add_gradient(pair, part, strip.row, first, last, reverse);
      });
}
