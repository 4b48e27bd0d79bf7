// Forward: strip after strip, keeping the edges between them and, for backward, snapshots.

template <typename T, bool WithPenalty>
T forward_with(const Pair<T>& pair, const Table<T>& table) {
  Sweep<T> sweep;
  CostBlock<T> cost;
  Strip strip{};
  for (int64_t row = 0; row < pair.n; row += kRows) {
    strip = strip_of(pair, row);
    sweep.enter_strip(pair, table, strip);
    for (int64_t step = strip.first; step <= strip.last; step += kSteps) {
      if (table.segments && (step == strip.first || step % kSegment == 0)) {
        const int64_t at = row / kRows * table.segments + step / kSegment;
        sweep.take_snapshot(table.snapshot_reference[at], table.snapshots + at * 4 * kRows);
      }
      const int64_t count = strip.last - step + 1 < kSteps ? strip.last - step + 1 : kSteps;
      fill_costs(pair, row, step, count, cost);
      sweep.enter_block(pair, table, strip, step);
      sweep.template steps<WithPenalty, false>(cost, count, nullptr);
      sweep.leave_block(pair, table, strip, step, count);
    }
  }
  const int64_t lane = pair.n - 1 - strip.row;
  const double m = sweep.m[lane / kWidth<T>][lane % kWidth<T>], s = sweep.s[lane / kWidth<T>][lane % kWidth<T>];
  if (s == s && sweep.reference + m >= far_away<T>()) return T(__builtin_inf());
  return T((sweep.reference + (m - __builtin_log2(s))) / pair.scale);
}

template <typename T>
T forward(const Pair<T>& pair, const Table<T>& table) {
  return pair.penalty > 0 ? forward_with<T, true>(pair, table) : forward_with<T, false>(pair, table);
}
