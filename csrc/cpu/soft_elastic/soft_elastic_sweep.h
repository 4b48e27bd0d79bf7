// Sweep::steps (sweep.h) where each of the three steps has a cost of its own. Only a cost that depends on the cell takes an
// exponential there.

template <StepKind kKind, bool kWithFloor, bool kWithShares, typename Quarters, typename T>
SOFTDTW_APART void elastic_steps(
    Quarters quarters, Sweep<T>& sweep, const SoftElastic<T>& pair, const StepBlock<T>& cost, int64_t row, int64_t step,
    int64_t count, T* shares) {
  using V = Vec<T>;
  constexpr int kLanes = kWidth<T>, kVectors = Sweep<T>::kVectors;
  const auto first = quarters.template first<kVectors>();
  const auto last = quarters.template last<kVectors>();
  const V infinite = splat<T>(Unreachable<T>::value);
  V now_m[kVectors], now_s[kVectors], before_m[kVectors], before_s[kVectors];
  ascending<0, kVectors>([&](auto k) SOFTDTW_LAMBDA {
    now_m[k] = sweep.m[k], now_s[k] = sweep.s[k];
    before_m[k] = sweep.above_m[k], before_s[k] = sweep.above_s[k];
  });
  const T *const row_m = pair.up_m + row, *const row_s = pair.up_s + row;
  const int64_t at_y = kRows + pair.table->m - 1 - step;
  for (int64_t i = 0; i < count; ++i) {
    const T *const column_m = pair.left_m + at_y - i, *const column_s = pair.left_s + at_y - i;
    descending(first, last, [&](auto k) SOFTDTW_LAMBDA {
      const int64_t at = k * kLanes;
      V left_m = now_m[k], left_s = now_s[k], diag_m = before_m[k], diag_s = before_s[k];
      V up_m = Neighbour<T>::from_before(k > 0 ? now_m[k > 0 ? k - 1 : 0] : splat(sweep.top_m[i]), left_m);
      V up_s = Neighbour<T>::from_before(k > 0 ? now_s[k > 0 ? k - 1 : 0] : splat(sweep.top_s[i]), left_s);
      before_m[k] = up_m, before_s[k] = up_s;
      diag_m += load(cost.diagonal.m[i] + at), diag_s *= power_of_minus(load(cost.diagonal.r[i] + at));
      if constexpr (kKind == StepKind::kGaps) {
        up_m += load(row_m + at), up_s *= load(row_s + at);
        left_m += load(column_m + at), left_s *= load(column_s + at);
      } else {
        up_m += load(cost.up.m[i] + at), up_s *= power_of_minus(load(cost.up.r[i] + at));
        left_m += load(cost.left.m[i] + at), left_s *= power_of_minus(load(cost.left.r[i] + at));
      }
      const V m = minimum(minimum(left_m, up_m), diag_m);
      const V left = times_power(left_s, m - left_m), up = times_power(up_s, m - up_m);
      const V diag = times_power(diag_s, m - diag_m), sum = (left + up) + diag;
      if constexpr (kWithShares) {
        const V inverse = rough_reciprocal<T>(sum);
        const Shares<V> own = whole_shares(left * inverse, up * inverse, diag * inverse);
        store(shares + at, own.left);
        store(shares + kRows + at, own.up);
        store(shares + 2 * kRows + at, own.diagonal);
      }
      now_m[k] = kWithFloor ? maximum(m, load(cost.floor[i] + at)) : m;
      now_s[k] = sum;
    });
    sweep.bottom_m[i] = now_m[kVectors - 1][kLanes - 1];
    sweep.bottom_s[i] = now_s[kVectors - 1][kLanes - 1];
    if (kWithShares) shares += 3 * kRows;
  }
  ascending(first, last, [&](auto k) SOFTDTW_LAMBDA {  // as in Sweep::steps
    now_m[k] = minimum(now_m[k], infinite);
    before_m[k] = minimum(before_m[k], infinite);
    normalise<T>(now_m[k], now_s[k]);
    normalise<T>(before_m[k], before_s[k]);
    sweep.m[k] = now_m[k], sweep.s[k] = now_s[k];
    sweep.above_m[k] = before_m[k], sweep.above_s[k] = before_s[k];
  });
  if constexpr (sizeof(T) < sizeof(double) && !kWithShares) sweep.note_lost(count);
}

// A block of steps, with its costs.
template <StepKind kKind, bool kWithShares, typename T>
void elastic_block(
    Sweep<T>& sweep, const SoftElastic<T>& pair, const Table<T>& table, const Strip& strip, int64_t step, int64_t count,
    StepBlock<T>& cost, T* shares) {
  const Live live = live_quarters(*pair.table, strip.row, step);
  fill_steps(pair, strip.row, live, step, count, cost);
  sweep.enter_block(*pair.table, table, strip, step);
  if constexpr (kKind == StepKind::kCell) {
    sweep.template steps<false, kWithShares>(live, cost.diagonal, count, shares);
  } else if (live.all() && (kKind == StepKind::kEach || !cost.has_floor)) {
    elastic_steps<kKind, false, kWithShares>(WholeStrip{}, sweep, pair, cost, strip.row, step, count, shares);
  } else {
    with_live<T>(live, [&](auto quarters) {
      constexpr bool kWithFloor = kKind == StepKind::kGaps;
      elastic_steps<kKind, kWithFloor, kWithShares>(quarters, sweep, pair, cost, strip.row, step, count, shares);
    });
  }
}

template <StepKind kKind, typename T>
void soft_elastic_strip(const SoftElastic<T>& pair, const Table<T>& table, StripState* states, int64_t index) {
  Sweep<T> sweep;
  StepBlock<T> cost;
  StripState& own = states[index];
  const Pair<T>& geometry = *pair.table;
  const Strip strip = strip_of(geometry, index * kRows);
  sweep.enter_strip(geometry, table, strip, index > 0 ? &states[index - 1].down : nullptr);
  for (int64_t step = strip.first; step <= strip.last; step += kSteps) {
    if (table.segments && (step == strip.first || step % kSegment == 0)) {
      const int64_t at = index * table.segments + step / kSegment;
      sweep.take_snapshot(table.snapshot_reference[at], table.snapshots + at * 4 * kRows);
    }
    const int64_t count = strip.last - step + 1 < kSteps ? strip.last - step + 1 : kSteps;
    elastic_block<kKind, false>(sweep, pair, table, strip, step, count, cost, static_cast<T*>(nullptr));
    sweep.leave_block(geometry, table, strip, step, count);
    publish(&own.down, step - (kRows - 1) + count);
  }
  own.range = {sweep.least_lost, cost.diagonal.least};
  own.total = strip.row + kRows < geometry.n ? 0 : sweep.total((geometry.n - 1) % kRows);
  publish(&own.down, kAll);
}

template <class F>
void with_kind(Measure measure, const F& f) {
  switch (kind_of(measure)) {
    case StepKind::kCell:
      return f(std::integral_constant<StepKind, StepKind::kCell>{});
    case StepKind::kGaps:
      return f(std::integral_constant<StepKind, StepKind::kGaps>{});
    default:
      return f(std::integral_constant<StepKind, StepKind::kEach>{});
  }
}

template <typename T>
void soft_elastic(const SoftElastic<T>& pair, const Table<T>& table, StripState* states, int64_t strip) {
  with_kind(pair.measure, [&](auto kind) { soft_elastic_strip<decltype(kind)::value>(pair, table, states, strip); });
}
