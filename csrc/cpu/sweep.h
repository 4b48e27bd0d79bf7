// The sweep of a strip by anti-diagonals, (1) and (2) with entries s 2^-m whose m is a whole number: only the fraction of a
// cost needs an exponential, every other power of two is exact, and no logarithm is taken.

#include "costs.h"

template <typename T>
struct Sweep {
  static constexpr int kVectors = kRows / kWidth<T>;
  using V = Vec<T>;

  // Entries of the last diagonal, and what was above each of them: the diagonal predecessors of the next. m is relative to
  // `reference`, which follows the smallest m, so that no digit is lost to the size of R.
  V m[kVectors], s[kVectors], above_m[kVectors], above_s[kVectors];
  double reference;
  V penalty_m, penalty_s;

  // The row above the strip for the steps of a block, and the strip's own last row.
  alignas(64) T top_m[kSteps], top_s[kSteps], bottom_m[kSteps], bottom_s[kSteps];

  void start(const Pair<T>& pair) {
    for (int k = 0; k < kVectors; ++k) {
      m[k] = above_m[k] = splat<T>(Unreachable<T>::value);
      s[k] = above_s[k] = splat<T>(1);
    }
    reference = 0;
    alignas(64) T split_m[kRows], split_r[kRows];
    alignas(64) double cost[kRows];
    for (int64_t i = 0; i < kRows; ++i) cost[i] = pair.penalty;
    split_costs<T, double>(cost, pair.scale, split_m, split_r);
    penalty_m = splat<T>(split_m[0]);
    penalty_s = power_of_minus(splat<T>(split_r[0]));
  }

  template <bool WithPenalty, bool WithWeights>
  SOFTDTW_INLINE void step(int64_t i, const CostBlock<T>& cost, T* weights) {
    const V infinite = splat<T>(Unreachable<T>::value);
#pragma GCC unroll 4
    for (int k = kVectors - 1; k >= 0; --k) {
      const V up_m = Neighbour<T>::from_before(k > 0 ? m[k - 1] : splat(top_m[i]), m[k]);
      const V up_s = Neighbour<T>::from_before(k > 0 ? s[k - 1] : splat(top_s[i]), s[k]);
      const V w = power_of_minus(load(cost.r[i] + k * kWidth<T>));
      V sides_m = minimum(m[k], up_m), sum_m, up, left, diag;
      if (WithPenalty) {
        sum_m = minimum(sides_m + penalty_m, above_m[k]);
        left = times_power(s[k], (sum_m - m[k]) - penalty_m) * penalty_s;
        up = times_power(up_s, (sum_m - up_m) - penalty_m) * penalty_s;
      } else {
        sum_m = minimum(sides_m, above_m[k]);
        left = times_power(s[k], sum_m - m[k]);
        up = times_power(up_s, sum_m - up_m);
      }
      diag = times_power(above_s[k], sum_m - above_m[k]);
      const V sum = (left + diag) + up;
      if (WithWeights) {
        const V inverse = T(1) / sum;
        store(weights + k * kWidth<T>, left * inverse);
        store(weights + kRows + k * kWidth<T>, up * inverse);
        store(weights + 2 * kRows + k * kWidth<T>, diag * inverse);
      }
      above_m[k] = up_m;
      above_s[k] = up_s;
      m[k] = minimum(sum_m + load(cost.m[i] + k * kWidth<T>), infinite);
      s[k] = sum * w;
    }
    bottom_m[i] = m[kVectors - 1][kWidth<T> - 1];
    bottom_s[i] = s[kVectors - 1][kWidth<T> - 1];
  }

  template <bool WithPenalty, bool WithWeights>
  void steps(const CostBlock<T>& cost, int64_t count, T* weights) {
    for (int64_t i = 0; i < count; ++i) {
      step<WithPenalty, WithWeights>(i, cost, weights);
      if (WithWeights) weights += 3 * kRows;
    }
    // Both diagonals: where nothing is reachable m cannot take up the growth of s.
    for (int k = 0; k < kVectors; ++k) {
      normalise<T>(m[k], s[k]);
      normalise<T>(above_m[k], above_s[k]);
    }
  }

  // The entry of the row above the strip at a column, in absolute terms. Column -1 is the border of (1).
  void entry_above(const Pair<T>& pair, const Table<T>& table, const Strip& strip, int64_t column, double& m, T& s) const {
    const bool corner = strip.row == 0 && column == -1;
    const bool inside = strip.row > 0 && column >= 0 && column < pair.m && column - (strip.row - 1) <= pair.high;
    const int64_t at = (strip.row / kRows - 1) * table.edge_stride + column;
    m = corner ? 0 : inside ? table.edge_m[at] : double(Unreachable<T>::value);
    s = inside ? table.edge_s[at] : T(1);
  }

  static T relative(double m, double reference) { return m < far_away<T>() ? T(m - reference) : Unreachable<T>::value; }

  void enter_strip(const Pair<T>& pair, const Table<T>& table, const Strip& strip) {
    start(pair);
    double corner_m;
    T corner_s;
    entry_above(pair, table, strip, strip.first - 1, corner_m, corner_s);
    reference = corner_m < far_away<T>() ? corner_m : 0;
    above_m[0][0] = relative(corner_m, reference);
    above_s[0][0] = corner_s;
  }

  // Before a block: fetch the row above and move the reference.
  void enter_block(const Pair<T>& pair, const Table<T>& table, const Strip& strip, int64_t step, int64_t count) {
    double top[kSteps], least = Unreachable<T>::value;
    for (int64_t i = 0; i < count; ++i) {
      entry_above(pair, table, strip, step + i, top[i], top_s[i]);
      least = top[i] < least ? top[i] : least;
    }
    V smallest = m[0];
    for (int k = 1; k < kVectors; ++k) smallest = minimum(m[k], smallest);
    for (int lane = 0; lane < kWidth<T>; ++lane) {
      const double absolute = double(smallest[lane]) + reference;
      least = absolute < least ? absolute : least;
    }
    if (least < far_away<T>()) {
      const V shift = splat(T(least - reference));
      for (int k = 0; k < kVectors; ++k) {
        m[k] -= shift;
        above_m[k] -= shift;
      }
      reference += double(T(least - reference));
    }
    for (int64_t i = 0; i < count; ++i) top_m[i] = relative(top[i], reference);
  }

  // After a block: hand the last row to the strip below.
  void leave_block(const Pair<T>& pair, const Table<T>& table, const Strip& strip, int64_t step, int64_t count) const {
    if (strip.row + kRows >= pair.n) return;
    const int64_t at = strip.row / kRows * table.edge_stride + step - (kRows - 1);
    for (int64_t i = 0; i < count; ++i) {
      const int64_t column = step + i - (kRows - 1);
      if (column < 0 || column >= pair.m) continue;
      const bool reached = bottom_m[i] < far_away<T>();
      table.edge_m[at + i] = reached ? double(bottom_m[i]) + reference : double(Unreachable<T>::value);
      table.edge_s[at + i] = bottom_s[i];
    }
  }

  void take_snapshot(double& to_reference, T* to) const {
    to_reference = reference;
    for (int k = 0; k < kVectors; ++k) {
      store(to + k * kWidth<T>, m[k]);
      store(to + kRows + k * kWidth<T>, s[k]);
      store(to + 2 * kRows + k * kWidth<T>, above_m[k]);
      store(to + 3 * kRows + k * kWidth<T>, above_s[k]);
    }
  }

  void resume(const Pair<T>& pair, double from_reference, const T* from) {
    start(pair);
    reference = from_reference;
    for (int k = 0; k < kVectors; ++k) {
      m[k] = load(from + k * kWidth<T>);
      s[k] = load(from + kRows + k * kWidth<T>);
      above_m[k] = load(from + 2 * kRows + k * kWidth<T>);
      above_s[k] = load(from + 3 * kRows + k * kWidth<T>);
    }
  }
};
