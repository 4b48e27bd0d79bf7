// Costs of the steps into the cells of a block, split as those of costs.h.

template <typename T>
struct StepBlock {
  CostBlock<T> diagonal, up, left;     // the last two of kEach
  alignas(64) T floor[kSteps][kRows];  // of kGaps, m of a cell at least; to be heeded where `has_floor`
  bool has_floor = false;
};

SOFTDTW_INLINE Vec<double> load_as(const double* from, double) { return load(from); }
SOFTDTW_INLINE Vec<double> load_as(const float* from, double) { return load_wide(from); }
SOFTDTW_INLINE Vec<float> load_as(const float* from, float) { return load(from); }
SOFTDTW_INLINE void store_as(double* to, Vec<double> v) { store(to, v); }
SOFTDTW_INLINE void store_as(float* to, Vec<double> v) { store_narrow(to, v); }

template <typename T>
void gap_weights(double scale, int64_t count, T* m, T* s) {
  for (int64_t k = 0; k < count; k += kWidth<double>) {
    const Vec<double> scaled = minimum(splat(double(Unreachable<T>::value)), load_as(m + k, 0.0) * scale);
    const Vec<double> part = fraction(scaled);
    store_as(m + k, scaled - part);
    store_as(s + k, power_of_minus(part));
  }
}

// A cost of type W in a sweep of T.
template <typename W, typename T>
SOFTDTW_INLINE void split_step(Vec<W> cost, double scale, T* m, T* r) {
  if constexpr (sizeof(W) > sizeof(T))
    split_wide_cost(cost, scale, m, r);
  else if constexpr (sizeof(T) < sizeof(double))
    split_small_cost<T>(cost, splat(T(scale)), m, r);
  else
    split_cost<T>(cost, splat(scale), m, r);
}

// Distances of a block as with_costs, of one dimension without its copies.
template <typename W, class C, typename T, typename Use>
SOFTDTW_INLINE void with_distances(
    C type, const Pair<T>& pair, int64_t row, const Rows& rows, int64_t step, int64_t steps, const Use& use) {
  if (pair.dim != 1) return with_costs<W>(type, pair, row, rows, step, steps, use);
  const T* const x = pair.x + row;
  const T* const y = pair.y + kRows + pair.m - 1 - step;
  for (int64_t k = rows.begin; k < rows.end; k += kWidth<W>) {
    const Vec<W> own = load_as(x + k, W{});
    for (int64_t i = 0; i < steps; ++i) use(i, k, C::finish(C::share(own - load_as(y - i + k, W{}), Vec<W>{})));
  }
}

// w of the cells from one on whose row less its column is `place`, each a row further down a diagonal.
template <typename W>
SOFTDTW_INLINE const W* weights_at(const ParityWeights<W>& weights, int64_t place) {
  return place % 2 == 0 ? weights.even + place / 2 : weights.odd + (place - 1) / 2;
}

template <typename W>
SOFTDTW_INLINE Vec<W> gap_of(Vec<W> v, Vec<W> a, Vec<W> b) {
  const Vec<W> p = a - v, q = b - v;
  return maximum(maximum(minimum(p, q), -maximum(p, q)), Vec<W>{});
}

template <typename W, typename T>
class StepFiller {
 public:
  StepFiller(const SoftElastic<T>& pair, int64_t row, const Rows& rows, int64_t step, int64_t steps, StepBlock<T>& block)
      : pair_(pair), table_(*pair.table), row_(row), rows_(rows), step_(step), steps_(steps), block_(block) {
    for (int lane = 0; lane < kWidth<W>; ++lane) lanes_[lane] = W(lane);
  }

  void operator()() {
    with_cost<Costs<VectorMath<W>>>(table_.cost, [&](auto type) {
      switch (pair_.measure) {
        case Measure::kEdr:
          return fill(type, [&](int64_t, int64_t, Vec<W> distance) SOFTDTW_LAMBDA {
            return distance < W(pair_.parameter) ? Vec<W>{} : W(1) + (distance - distance);
          });
        case Measure::kLcss:
          return fill(type, [&](int64_t, int64_t, Vec<W> distance) SOFTDTW_LAMBDA {
            return distance <= W(pair_.parameter) ? Vec<W>{} : W(2) + (distance - distance);
          });
        case Measure::kWeighted:
          return fill(type, [&](int64_t i, int64_t k, Vec<W> distance) SOFTDTW_LAMBDA {
            if constexpr (sizeof(W) > sizeof(T))
              return distance * load(weights_at(pair_.wide_weights, row_ - step_ - i) + k);
            if constexpr (sizeof(W) == sizeof(T)) return distance * load(weights_at(pair_.weights, row_ - step_ - i) + k);
          });
        case Measure::kTwed:
          return pair_.x_times ? twed<true>(type) : twed<false>(type);
        case Measure::kMsm:
          fill(type, [&](int64_t, int64_t, Vec<W> distance) SOFTDTW_LAMBDA { return distance; });
          return msm_gaps();
        default:
          return fill(type, [&](int64_t, int64_t, Vec<W> distance) SOFTDTW_LAMBDA { return distance; });
      }
    });
  }

 private:
  template <class C, class F>
  SOFTDTW_INLINE void fill(C type, const F& cost_of) {
    with_distances<W>(type, table_, row_, rows_, step_, steps_, [&](int64_t i, int64_t k, Vec<W> distance) SOFTDTW_LAMBDA {
      put(block_.diagonal, i, k, cost_of(i, k, distance));
    });
  }

  SOFTDTW_INLINE void put(CostBlock<T>& to, int64_t i, int64_t k, Vec<W> cost) const {
    split_step<W>(cost, table_.scale, to.m[i] + k, to.r[i] + k);
  }

  template <bool kHasTimes, class C>
  void twed(C type) {
    if (table_.dim == 1 && row_ > 0) return twed_of_line<kHasTimes>(type);
    alignas(64) W sums[kSteps][kRows];
    // (i - 1, j - 1) is where x and y are read one number earlier.
    Pair<T> before = table_;
    before.x -= 1, before.y += 1;
    with_distances<W>(type, before, row_, rows_, step_, steps_, [&](int64_t i, int64_t k, Vec<W> distance) SOFTDTW_LAMBDA {
      store(sums[i] + k, distance + between<kHasTimes>(i, k, 1));
    });
    if (row_ == 0)
      for (int64_t i = 0; i < steps_; ++i) sums[i][0] = 0;
    fill(type, [&](int64_t i, int64_t k, Vec<W> distance) SOFTDTW_LAMBDA {
      return distance + between<kHasTimes>(i, k, 0) + load(sums[i] + k);
    });
  }

  // Of one dimension, where both distances of a cell are at hand.
  template <bool kHasTimes, class C>
  void twed_of_line(C) {
    const T* const x = table_.x + row_;
    const T* const y = table_.y + kRows + table_.m - 1 - step_;
    for (int64_t k = rows_.begin; k < rows_.end; k += kWidth<W>) {
      const Vec<W> own = load_as(x + k, W{}), before = load_as(x + k - 1, W{}), zero = {};
      for (int64_t i = 0; i < steps_; ++i) {
        const T* const other = y - i + k;
        const Vec<W> now = C::finish(C::share(own - load_as(other, W{}), zero));
        const Vec<W> last = C::finish(C::share(before - load_as(other + 1, W{}), zero));
        // Places differ by as much a step before.
        const Vec<W> times = between<kHasTimes>(i, k, 0);
        put(block_.diagonal, i, k, (now + times) + (last + (kHasTimes ? between<kHasTimes>(i, k, 1) : times)));
      }
    }
  }

  template <bool kHasTimes>
  SOFTDTW_INLINE Vec<W> between(int64_t i, int64_t k, int64_t back) const {
    if constexpr (kHasTimes) {
      const T* const y = pair_.y_times + kRows + table_.m - 1 - step_ - i;
      return VectorMath<W>::abs(load_as(pair_.x_times + row_ + k - back, W{}) - load_as(y + k + back, W{}));
    } else {
      return VectorMath<W>::abs((W(row_ - step_ - i + 2 * k) + 2 * lanes_) * W(pair_.parameter));
    }
  }

  void msm_gaps() {
    const W c = W(pair_.parameter);
    const T* const x = table_.x + row_;
    const T* const y = table_.y + kRows + table_.m - 1 - step_;
    for (int64_t k = rows_.begin; k < rows_.end; k += kWidth<W>) {
      const Vec<W> own = load_as(x + k, W{}), above = load_as(x + k - 1, W{});
      for (int64_t i = 0; i < steps_; ++i) {
        const Vec<W> other = load_as(y - i + k, W{}), before = load_as(y - i + k + 1, W{});
        put(block_.up, i, k, c + gap_of<W>(own, above, other));
        put(block_.left, i, k, c + gap_of<W>(other, before, own));
      }
    }
  }

  const SoftElastic<T>& pair_;
  const Pair<T>& table_;
  const int64_t row_;
  const Rows rows_;
  const int64_t step_, steps_;
  StepBlock<T>& block_;
  Vec<W> lanes_;
};

template <typename T>
void fill_from_tables(
    const SoftElastic<T>& pair, int64_t row, const Rows& rows, int64_t step, int64_t steps, StepBlock<T>& block) {
  const Pair<T>& table = *pair.table;
  const StepTables& tables = pair.tables;
  CostBlock<T>* const to[] = {&block.diagonal, &block.up, &block.left};
  const int64_t last = table.n - row < rows.end ? table.n - row : rows.end, border = pair.sum_border ? 1 : 0;
  double least = 0;
  for (int number = 0; number < 3; ++number) {
    alignas(64) double cost[kSteps][kRows] = {};
    for (int64_t r = rows.begin; r < last; ++r)
      for (int64_t i = 0; i < steps; ++i) {
        const int64_t column = step + i - r;
        if (column < 0 || column >= table.m || column - row - r < table.low || column - row - r > table.high) continue;
        const int64_t at_row = row + r - border, at_column = column - border;
        const double own = tables.at(number, at_row > 0 ? at_row : 0, at_column > 0 ? at_column : 0);
        // A diagonal step to the border is forbidden, and so is what it costs.
        if (number == 0 && (at_row < 0 || at_column < 0)) continue;
        cost[i][r] = own > -__builtin_inf() ? own : __builtin_nan("");
        least = own < least ? own : least;
      }
    for (int64_t i = 0; i < steps; ++i) split_wide_costs(cost[i], table.scale, rows, to[number]->m[i], to[number]->r[i]);
  }
  block.diagonal.least = least * table.scale < block.diagonal.least ? least * table.scale : block.diagonal.least;
}

template <typename T>
void forbid_border(int64_t row, const Rows& rows, int64_t step, int64_t steps, StepBlock<T>& block) {
  for (int64_t i = 0; i < steps; ++i) {
    const int64_t t = step + i;
    const auto forbid = [&](int64_t r) {
      if (r < rows.begin || r >= rows.end) return;
      block.diagonal.m[i][r] = row == 0 && t == 0 && r == 0 ? T(0) : Unreachable<T>::value;
      block.diagonal.r[i][r] = 0;
    };
    if (row == 0) forbid(0);
    forbid(t);  // column 0
  }
}

template <typename T>
void fill_steps(
    const SoftElastic<T>& pair, int64_t row, const Live& live, int64_t step, int64_t steps, StepBlock<T>& block) {
  const Rows rows = rows_of(live);
  const Pair<T>& table = *pair.table;
  if (pair.measure == Measure::kMatrix)
    fill_from_tables(pair, row, rows, step, steps, block);
  else if (sizeof(T) < sizeof(double) && table.wide)
    StepFiller<double, T>(pair, row, rows, step, steps, block)();
  else
    StepFiller<T, T>(pair, row, rows, step, steps, block)();
  if (pair.sum_border && (row == 0 || step < kRows)) forbid_border(row, rows, step, steps, block);
  const int64_t rightmost = step + steps - 1 - row - 2 * rows.begin, leftmost = step - row - 2 * (rows.end - 1);
  const bool inside = step >= rows.end - 1 && rightmost <= table.high && leftmost >= table.low;
  block.has_floor = !inside || !live.all();
  if (!block.has_floor) return;
  const StepKind kind = kind_of(pair.measure);
  if (kind == StepKind::kGaps)
    for (int64_t i = 0; i < steps; ++i)
      for (int64_t k = rows.begin; k < rows.end; k += kWidth<T>) store(block.floor[i] + k, splat(-Unreachable<T>::value));
  if (inside) return;
  const auto forbid = [&](T(*m)[kRows]) { forbid_outside(table, row, rows, step, steps, m); };
  if (kind == StepKind::kGaps) return forbid(block.floor);
  forbid(block.diagonal.m);
  if (kind == StepKind::kEach) forbid(block.up.m), forbid(block.left.m);
}
