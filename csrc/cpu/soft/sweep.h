// The sweep of a strip by anti-diagonals, (1) and (2) with entries s 2^-m whose m is a whole number: only the fraction of a
// cost needs an exponential, every other power of two is exact, and no logarithm is taken.

#include "cpu/soft/costs/costs.h"

#include "cpu/soft/shares.h"

template <typename T>
struct Sweep {
  static constexpr int kVectors = kRows / kWidth<T>;
  using V = Vec<T>;

  // Entries of the last diagonal, and what was above each of them: the diagonal predecessors of the next. m is relative to
  // `reference`, which follows the smallest m, so that no digit is lost to the size of R.
  V m[kVectors], s[kVectors], above_m[kVectors], above_s[kVectors];
  double reference;
  double least_lost;     // of exactness.h
  const int64_t* above;  // columns of the row above the strip that may be read; null: all
  int64_t seen, lead;    // what this word said last; how much more of it to wait for
  V penalty_m, penalty_s;

  // The row above the strip for the steps of a block, and the strip's own last row.
  alignas(64) T top_m[kSteps], top_s[kSteps], bottom_m[kSteps], bottom_s[kSteps];

  void start(const Pair<T>& pair) {
    for (int k = 0; k < kVectors; ++k) {
      m[k] = above_m[k] = splat<T>(Unreachable<T>::value);
      s[k] = above_s[k] = splat<T>(1);
    }
    reference = 0;
    least_lost = kNothingLost;
    above = nullptr;
    for (int64_t i = 0; i < kSteps; ++i) bottom_m[i] = 0;
    alignas(64) T split_m[kRows], split_r[kRows];
    alignas(64) double cost[kRows];
    for (int64_t i = 0; i < kRows; ++i) cost[i] = pair.penalty;
    split_wide_costs(cost, pair.scale, {0, kRows}, split_m, split_r);
    penalty_m = splat<T>(split_m[0]);
    penalty_s = power_of_minus(splat<T>(split_r[0]));
  }

  // `count` steps; the weights of a step are kRows shares of the left neighbours, of the upper ones, of the diagonal ones.
  template <bool WithPenalty, bool WithWeights, typename Quarters>
  void steps(Quarters quarters, const CostBlock<T>& cost, int64_t count, T* weights) {
    const auto first = quarters.template first<kVectors>();
    const auto last = quarters.template last<kVectors>();
    const V infinite = splat<T>(Unreachable<T>::value);
    // Copies, because the compiler cannot know that the stores below leave the members alone.
    V now_m[kVectors], now_s[kVectors], before_m[kVectors], before_s[kVectors];
    ascending<0, kVectors>([&](auto k) SOFTDTW_LAMBDA {
      now_m[k] = m[k], now_s[k] = s[k];
      before_m[k] = above_m[k], before_s[k] = above_s[k];
    });
    for (int64_t i = 0; i < count; ++i) {
      descending(first, last, [&](auto k) SOFTDTW_LAMBDA {
        constexpr int kLanes = kWidth<T>;
        const V left_m = now_m[k], left_s = now_s[k], diag_m = before_m[k], diag_s = before_s[k];
        const V up_m = Neighbour<T>::from_before(k > 0 ? now_m[k > 0 ? k - 1 : 0] : splat(top_m[i]), left_m);
        const V up_s = Neighbour<T>::from_before(k > 0 ? now_s[k > 0 ? k - 1 : 0] : splat(top_s[i]), left_s);
        const V sides = minimum(left_m, up_m);
        const V stepped = WithPenalty ? sides + penalty_m : sides;
        const V sum_m = minimum(stepped, diag_m);
        // sum_m - penalty_m, but never above `sides`, even where m is rounded: s must not overflow.
        const V target = WithPenalty ? sides + (sum_m - stepped) : sum_m;
        const V left = times_power(left_s, target - left_m), up = times_power(up_s, target - up_m);
        const V diag = times_power(diag_s, sum_m - diag_m);
        const V sum = WithPenalty ? (left + up) * penalty_s + diag : (left + diag) + up;
        if (WithWeights) {
          const V inverse = rough_reciprocal<T>(sum), of_side = WithPenalty ? inverse * penalty_s : inverse;
          const Shares<V> shares = whole_shares(left * of_side, up * of_side, diag * inverse);
          store(weights + k * kLanes, shares.left);
          store(weights + kRows + k * kLanes, shares.up);
          store(weights + 2 * kRows + k * kLanes, shares.diagonal);
        }
        before_m[k] = up_m;
        before_s[k] = up_s;
        now_m[k] = sum_m + load(cost.m[i] + k * kLanes);
        now_s[k] = sum * power_of_minus(load(cost.r[i] + k * kLanes));
      });
      bottom_m[i] = now_m[kVectors - 1][kWidth<T> - 1];
      bottom_s[i] = now_s[kVectors - 1][kWidth<T> - 1];
      if (WithWeights) weights += 3 * kRows;
    }
    // Both diagonals: where nothing is reachable m cannot take up the growth of s.
    ascending(first, last, [&](auto k) SOFTDTW_LAMBDA {
      now_m[k] = minimum(now_m[k], infinite);  // what cannot be reached has grown, by kSteps costs at most
      before_m[k] = minimum(before_m[k], infinite);
      normalise<T>(now_m[k], now_s[k]);
      normalise<T>(before_m[k], before_s[k]);
      m[k] = now_m[k], s[k] = now_s[k];
      above_m[k] = before_m[k], above_s[k] = before_s[k];
    });
    if constexpr (sizeof(T) < sizeof(double) && !WithWeights) note_lost(count);
  }

  template <bool WithPenalty, bool WithWeights>
  void steps(const Live& live, const CostBlock<T>& cost, int64_t count, T* weights) {
    with_live<T>(live, [&](auto quarters) { steps<WithPenalty, WithWeights>(quarters, cost, count, weights); });
  }

  // After a block: see exactness.h. Unreachable cells are not lost.
  void note_lost(int64_t count) {
    const V limit = splat<T>(kExactLimit), far = splat<T>(far_away<T>()), zero = {};
    V largest = zero;
    for (int k = 0; k < kVectors; ++k) {
      largest = maximum(m[k] < far ? m[k] : zero, largest);
      largest = maximum(above_m[k] < far ? above_m[k] : zero, largest);
    }
    for (int64_t i = 0; i < kSteps; i += kWidth<T>) {
      const V bottom = load(bottom_m + i);
      largest = maximum(bottom < far ? bottom : zero, largest);
    }
    if (highest<T>(largest) < limit[0]) return;
    const auto see = [&](T entry) {
      const double absolute = double(entry) + reference;
      if (entry >= limit[0] && entry < far[0] && absolute < least_lost) least_lost = absolute;
    };
    for (int k = 0; k < kVectors; ++k)
      for (int lane = 0; lane < kWidth<T>; ++lane) see(m[k][lane]), see(above_m[k][lane]);
    for (int64_t i = 0; i < count; ++i) see(bottom_m[i]);
  }

  // Makes sure that the columns of the row above before `end` may be read. Whoever has to wait waits for a few blocks more, so
  // that neither the word nor the row bounces between two cores at every block.
  void follow(const Table<T>& table, int64_t row, int64_t end, int64_t limit) {
    if (seen < end) seen = wait_for(above, end + lead < limit ? end + lead : limit);
    const int64_t ahead = end + kLead / 4;
    if (ahead + kSteps > seen || ahead + kSteps > limit) return;
    prefetch(table.edge_m + row + ahead, table.edge_m + row + ahead + kSteps);
    prefetch(table.edge_s + row + ahead, table.edge_s + row + ahead + kSteps);
  }

  // Entries of the row above the strip at `count` columns from `column` on, in absolute terms. Column -1 is the border of (1).
  void entries_above(
      const Pair<T>& pair, const Table<T>& table, const Strip& strip, int64_t column, int64_t count, double* to_m,
      T* to_s) {
    int64_t limit = strip.row + pair.high;  // beyond the band of the row above
    if (limit > pair.m) limit = pair.m;
    if (strip.row == 0) limit = 0;
    const int64_t begin = column < 0 ? -column : 0;
    const int64_t end = limit - column < count ? limit - column : count;
    const int64_t at = (strip.row / kRows - 1) * table.edge_stride + column;
    if (above && begin < end) follow(table, at - column, column + end, limit);
    if (count == kSteps && begin == 0 && end == kSteps) {  // a copy of known size is a few moves
      __builtin_memcpy(to_m, table.edge_m + at, kSteps * sizeof(double));
      __builtin_memcpy(to_s, table.edge_s + at, kSteps * sizeof(T));
      return;
    }
    for (int64_t i = 0; i < count; ++i) to_m[i] = double(Unreachable<T>::value), to_s[i] = T(1);
    for (int64_t i = begin; i < end; ++i) to_m[i] = table.edge_m[at + i], to_s[i] = table.edge_s[at + i];
    if (strip.row == 0 && column == -1) to_m[0] = 0;
  }

  static T relative(double m, double reference) { return m < far_away<T>() ? T(m - reference) : Unreachable<T>::value; }

  void enter_strip(const Pair<T>& pair, const Table<T>& table, const Strip& strip, const int64_t* progress_above) {
    start(pair);
    above = progress_above;
    seen = kNone;
    lead = (strip.last - strip.first) / 8;
    if (lead > kLead) lead = kLead;
    double corner_m;
    T corner_s;
    entries_above(pair, table, strip, strip.first - 1, 1, &corner_m, &corner_s);
    reference = corner_m < far_away<T>() ? corner_m : 0;
    above_m[0][0] = relative(corner_m, reference);
    above_s[0][0] = corner_s;
  }

  // Before a block: fetch the row above and move the reference.
  void enter_block(const Pair<T>& pair, const Table<T>& table, const Strip& strip, int64_t step) {
    alignas(64) double top[kSteps];
    entries_above(pair, table, strip, step, kSteps, top, top_s);
    // Both diagonals: a match between two outliers may make the earlier one the smaller.
    V smallest = minimum(m[0], above_m[0]);
    for (int k = 1; k < kVectors; ++k) smallest = minimum(minimum(m[k], above_m[k]), smallest);
    double least = double(lowest<T>(smallest)) + reference;
    Vec<double> least_top = load(top);
    for (int64_t i = kWidth<double>; i < kSteps; i += kWidth<double>) least_top = minimum(load(top + i), least_top);
    const double from_top = lowest<double>(least_top);
    if (from_top < least) least = from_top;
    if (least < far_away<T>()) {
      const T shift = T(least - reference);
      for (int k = 0; k < kVectors; ++k) {
        m[k] -= shift;
        above_m[k] -= shift;
      }
      reference = least;  // where the shift was rounded, which no exact entry needs, the row above is still exact
    }
    const Vec<double> far = splat<double>(far_away<T>()), infinite = splat<double>(Unreachable<T>::value);
    for (int64_t i = 0; i < kSteps; i += kWidth<double>) {
      const Vec<double> absolute = load(top + i);
      store(top + i, absolute < far ? absolute - reference : infinite);
    }
    for (int64_t i = 0; i < kSteps; ++i) top_m[i] = T(top[i]);
  }

  // After a block: hand the last row to the strip below.
  void leave_block(const Pair<T>& pair, const Table<T>& table, const Strip& strip, int64_t step, int64_t count) const {
    if (strip.row + kRows >= pair.n) return;
    const int64_t column = step - (kRows - 1), at = strip.row / kRows * table.edge_stride + column;
    const int64_t begin = column < 0 ? -column : 0, end = pair.m - column < count ? pair.m - column : count;
    const Vec<double> far = splat<double>(far_away<T>()), infinite = splat<double>(Unreachable<T>::value);
    alignas(64) double absolute[kSteps];
    for (int64_t i = 0; i < kSteps; ++i) absolute[i] = double(bottom_m[i]);
    for (int64_t i = 0; i < kSteps; i += kWidth<double>) {
      const Vec<double> relative = load(absolute + i);
      store(absolute + i, relative < far ? relative + reference : infinite);
    }
    if (begin == 0 && end == kSteps) {  // a copy of known size is a few moves
      __builtin_memcpy(table.edge_m + at, absolute, kSteps * sizeof(double));
      __builtin_memcpy(table.edge_s + at, bottom_s, kSteps * sizeof(T));
      return;
    }
    for (int64_t i = begin; i < end; ++i) {
      table.edge_m[at + i] = absolute[i];
      table.edge_s[at + i] = bottom_s[i];
    }
  }

  // R / (gamma ln 2) of a row's last cell.
  double total(int64_t row) const {
    const double last_m = m[row / kWidth<T>][row % kWidth<T>], last_s = s[row / kWidth<T>][row % kWidth<T>];
    if (last_s == last_s && reference + last_m >= far_away<T>()) return __builtin_inf();
    return reference + (last_m - __builtin_log2(last_s));
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
