// Forward of one strip: block after block, keeping its last row and, for backward, snapshots.

template <typename T, bool WithPenalty>
void forward_strip(const Pair<T>& pair, const Table<T>& table, StripState* states, int64_t index) {
  Sweep<T> sweep;
  CostBlock<T> cost;
  StripState& own = states[index];
  const Strip strip = strip_of(pair, index * kRows);
  sweep.enter_strip(pair, table, strip, index > 0 ? &states[index - 1].down : nullptr);
  for (int64_t step = strip.first; step <= strip.last; step += kSteps) {
    if (table.segments && (step == strip.first || step % kSegment == 0)) {
      const int64_t at = index * table.segments + step / kSegment;
      sweep.take_snapshot(table.snapshot_reference[at], table.snapshots + at * 4 * kRows);
    }
    const int64_t count = strip.last - step + 1 < kSteps ? strip.last - step + 1 : kSteps;
    const Live live = live_quarters(pair, strip.row, step);
    sweep.enter_block(pair, table, strip, step);
    fill_costs(pair, strip.row, live, step, count, cost);
    sweep.template steps<WithPenalty, false>(live, cost, count, nullptr);
    sweep.leave_block(pair, table, strip, step, count);
    publish(&own.down, step - (kRows - 1) + count);
  }
  own.range = {sweep.least_lost, cost.least};
  own.total = strip.row + kRows < pair.n ? 0 : sweep.total((pair.n - 1) % kRows);
  publish(&own.down, kAll);
}

template <typename T>
void forward(const Pair<T>& pair, const Table<T>& table, StripState* states, int64_t strip) {
  if (pair.penalty > 0)
    forward_strip<T, true>(pair, table, states, strip);
  else
    forward_strip<T, false>(pair, table, states, strip);
}
