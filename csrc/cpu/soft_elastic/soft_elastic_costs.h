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

// Distances of a block in one dimension, without the copies of with_costs.
template <typename W, class C, typename T, typename Use>
SOFTDTW_INLINE void on_line(
    const Pair<T>& pair, int64_t row, const Rows& rows, int64_t step, int64_t steps, const Use& use) {
  const T* const x = pair.x + row;
  const T* const y = pair.y + kRows + pair.m - 1 - step;
  for (int64_t k = rows.begin; k < rows.end; k += kWidth<W>) {
    const Vec<W> own = load_as(x + k, W{});
    for (int64_t i = 0; i < steps; ++i) use(i, k, C::finish(C::share(own - load_as(y - i + k, W{}), Vec<W>{})));
  }
}

// Distances of a block. Compiled once for all measures.
template <typename W>
using Distances = W (&)[kSteps][kRows];
template <typename W, typename T>
SOFTDTW_APART void store_distances(
    const Pair<T>& pair, int64_t row, const Rows& rows, int64_t step, int64_t steps, Distances<W> distances) {
  with_cost<Costs<VectorMath<W>>>(pair.cost, [&](auto type) {
    using C = decltype(type);
    const auto use = [&](int64_t i, int64_t k, Vec<W> distance) SOFTDTW_LAMBDA { store(distances[i] + k, distance); };
    if (pair.dim != 1) return with_costs<W>(type, pair, row, rows, step, steps, use);
    on_line<W, C>(pair, row, rows, step, steps, use);
  });
}

// w of the cells from one on whose row less its column is `place`, each a row further down a diagonal.
template <typename W>
SOFTDTW_INLINE const W* weights_at(const ParityWeights<W>& weights, int64_t place) {
  return place % 2 == 0 ? weights.even + place / 2 : weights.odd + (place - 1) / 2;
}

// Where the costs of a step into the cells of a block go, split. A copy of all that it needs: what is stored may be anything, as
// far as the compiler knows, and members of others would be read again for every register.
template <typename W, typename T>
class StepCost {
 public:
  SOFTDTW_INLINE StepCost(const Pair<T>& table, CostBlock<T>& to)
      : m_(to.m), r_(to.r), scale_(splat(W(table.scale))), bounded_(table.bounded) {}

  SOFTDTW_INLINE void operator()(int64_t i, int64_t k, Vec<W> cost) const {
    T *const m = m_[i] + k, *const r = r_[i] + k;
    if constexpr (sizeof(W) < sizeof(double))
      split_small_cost<W>(cost, scale_, m, r);
    else if (bounded_)
      split_bounded_cost(cost, scale_, m, r);
    else if constexpr (sizeof(W) > sizeof(T))
      split_wide_cost(cost, scale_[0], m, r);
    else
      split_cost<T>(cost, scale_, m, r);
  }

 private:
  T (*const m_)[kRows];
  T (*const r_)[kRows];
  const Vec<W> scale_;
  const bool bounded_;
};

template <typename W, typename T>
class StepFiller {
 public:
  StepFiller(const SoftElastic<T>& pair, int64_t row, const Rows& rows, int64_t step, int64_t steps, StepBlock<T>& block)
      : pair_(pair), table_(*pair.table), row_(row), rows_(rows), step_(step), steps_(steps), block_(block) {
    for (int lane = 0; lane < kWidth<W>; ++lane) twice_lanes_[lane] = W(2 * lane);
  }

  void operator()() {
    switch (pair_.measure) {
      case Measure::kEdr:
      case Measure::kLcss:
        return threshold();
      case Measure::kWeighted:
        return fill<Cost::kSqEuclidean, Cost::kSqEuclidean>(
            [weights = this->weights(), place = row_ - step_](int64_t i, int64_t k, Vec<W> distance)
                SOFTDTW_LAMBDA { return distance * load(weights_at(weights, place - i) + k); });
      case Measure::kTwed:
        return pair_.x_times ? twed<true>() : twed<false>();
      case Measure::kMsm:
        return msm();
      default:
        return fill<Cost::kCityblock, Cost::kEuclidean>([](int64_t, int64_t, Vec<W> distance)
                                                            SOFTDTW_LAMBDA { return distance; });
    }
  }

 private:
  template <Cost kCost>
  using TypeOf = std::tuple_element_t<static_cast<int>(kCost), Costs<VectorMath<W>>>;

  // Costs that follow from the distance. Of those that a measure has in one dimension and in several, both at once.
  template <Cost kLine, Cost kMany, class F>
  SOFTDTW_INLINE void fill(const F& cost_of) {
    const StepCost<W, T> put(table_, block_.diagonal);
    const auto use = [&](int64_t i, int64_t k, Vec<W> distance) SOFTDTW_LAMBDA { put(i, k, cost_of(i, k, distance)); };
    if (table_.dim == 1 && table_.cost == kLine) return on_line<W, TypeOf<kLine>>(table_, row_, rows_, step_, steps_, use);
    if (table_.dim > 1 && table_.cost == kMany)
      return with_costs<W>(TypeOf<kMany>{}, table_, row_, rows_, step_, steps_, use);
    alignas(64) W distances[kSteps][kRows];
    store_distances<W>(table_, row_, rows_, step_, steps_, distances);
    for (int64_t k = rows_.begin; k < rows_.end; k += kWidth<W>)
      for (int64_t i = 0; i < steps_; ++i) use(i, k, load(distances[i] + k));
  }

  ParityWeights<W> weights() const {
    if constexpr (sizeof(W) > sizeof(T)) return pair_.wide_weights;
    if constexpr (sizeof(W) == sizeof(T)) return pair_.weights;
  }

  // |t - s| of a cell, or of the one `back` before it on the diagonal.
  template <bool kHasTimes>
  struct Between {
    const T *x_times, *y_times;
    W nu;
    Vec<W> places;

    SOFTDTW_INLINE Vec<W> operator()(int64_t i, int64_t k, int64_t back) const {
      if constexpr (kHasTimes)
        return VectorMath<W>::abs(load_as(x_times + k - back, W{}) - load_as(y_times - i + k + back, W{}));
      else
        return VectorMath<W>::abs((places + W(2 * k - i)) * nu);
    }
  };
  template <bool kHasTimes>
  SOFTDTW_INLINE Between<kHasTimes> between() const {
    return {
        pair_.x_times + row_, pair_.y_times + kRows + table_.m - 1 - step_, W(pair_.parameter),
        twice_lanes_ + W(row_ - step_)};
  }

  template <bool kHasTimes>
  void twed() {
    using Line = TypeOf<Cost::kCityblock>;
    if (table_.dim == 1 && table_.cost == Cost::kCityblock && row_ > 0) return twed_of_line<kHasTimes, Line>();
    alignas(64) W sums[kSteps][kRows];
    // (i - 1, j - 1) is where x and y are read one number earlier.
    Pair<T> before = table_;
    before.x -= 1, before.y += 1;
    store_distances<W>(before, row_, rows_, step_, steps_, sums);
    add_times(sums, between<kHasTimes>());
    twed_with(sums);
  }
  // To the distances at (i - 1, j - 1) the times there and at (i, j). Of row 0 there is nothing before.
  template <class Times>
  SOFTDTW_APART void add_times(Distances<W> sums, const Times& times) const {
    const auto add = [&](int64_t back) SOFTDTW_LAMBDA {
      for (int64_t k = rows_.begin; k < rows_.end; k += kWidth<W>)
        for (int64_t i = 0; i < steps_; ++i) store(sums[i] + k, load(sums[i] + k) + times(i, k, back));
    };
    add(1);
    if (row_ == 0)
      for (int64_t i = 0; i < steps_; ++i) sums[i][0] = 0;
    add(0);
  }
  SOFTDTW_APART void twed_with(Distances<W> sums) {
    fill<Cost::kCityblock, Cost::kEuclidean>([&](int64_t i, int64_t k, Vec<W> distance)
                                                 SOFTDTW_LAMBDA { return distance + load(sums[i] + k); });
  }

  // Edr, and Lcss, where those are near that are as far apart as the threshold is, and others cost two gaps.
  SOFTDTW_APART void threshold() {
    const bool is_lcss = pair_.measure == Measure::kLcss;
    const W epsilon = W(pair_.parameter), apart = is_lcss ? W(2) : W(1);
    const Vec<W> of_equal = splat(is_lcss ? W(0) : apart);
    fill<Cost::kCityblock, Cost::kEuclidean>([=](int64_t, int64_t, Vec<W> distance) SOFTDTW_LAMBDA {
      const Vec<W> beyond = distance == epsilon ? of_equal : apart + (distance - distance);
      return distance < epsilon ? Vec<W>{} : beyond;
    });
  }

  // Of one dimension, where both distances of a cell are at hand: the column before is that of the step before.
  template <bool kHasTimes, class C>
  SOFTDTW_APART void twed_of_line() {
    using Math = VectorMath<W>;
    const StepCost<W, T> put(table_, block_.diagonal);
    const int64_t at_y = kRows + table_.m - 1 - step_, steps = steps_, end = rows_.end;
    const T *const x = table_.x + row_, *const y = table_.y + at_y;
    const T *const x_times = pair_.x_times + (kHasTimes ? row_ : 0), *const y_times =
                                                                         pair_.y_times + (kHasTimes ? at_y : 0);
    const W twice = 2 * W(pair_.parameter);
    for (int64_t k = rows_.begin; k < end; k += kWidth<W>) {
      const Vec<W> own = load_as(x + k, W{}), before = load_as(x + k - 1, W{});
      Vec<W> last = load_as(y + k + 1, W{}), last_time = {}, place = twice_lanes_ + W(row_ - step_ + 2 * k), time = {},
             time_before = {};
      if constexpr (kHasTimes) {
        time = load_as(x_times + k, W{}), time_before = load_as(x_times + k - 1, W{});
        last_time = load_as(y_times + k + 1, W{});
      }
      for (int64_t i = 0; i < steps; ++i) {
        const Vec<W> other = load_as(y - i + k, W{});
        const Vec<W> distances = C::finish(C::share(own - other, Vec<W>{})) + C::finish(C::share(before - last, Vec<W>{}));
        last = other;
        if constexpr (kHasTimes) {
          const Vec<W> other_time = load_as(y_times - i + k, W{});
          put(i, k, distances + (Math::abs(time - other_time) + Math::abs(time_before - last_time)));
          last_time = other_time;
        } else {  // places differ by as much a step before
          put(i, k, distances + Math::abs(place) * twice);
          place -= W(1);
        }
      }
    }
  }

  // Which has one dimension and one cost.
  SOFTDTW_APART void msm() {
    using C = TypeOf<Cost::kCityblock>;
    const StepCost<W, T> diagonal(table_, block_.diagonal), up(table_, block_.up), left(table_, block_.left);
    const T *const x = table_.x + row_, *const y = table_.y + kRows + table_.m - 1 - step_;
    const int64_t steps = steps_, end = rows_.end;
    const W c = W(pair_.parameter);
    // Of a number from an interval, the ways to whose ends are a and b, or -a and -b.
    const auto gap = [c](Vec<W> a, Vec<W> b, Vec<W> minus_a, Vec<W> minus_b) SOFTDTW_LAMBDA {
      return c + maximum(maximum(minimum(a, b), minimum(minus_a, minus_b)), Vec<W>{});
    };
    for (int64_t k = rows_.begin; k < end; k += kWidth<W>) {
      const Vec<W> own = load_as(x + k, W{}), before = load_as(x + k - 1, W{});
      const Vec<W> back = before - own, forth = own - before;
      Vec<W> last = load_as(y + k + 1, W{});
      for (int64_t i = 0; i < steps; ++i) {
        const Vec<W> other = load_as(y - i + k, W{});
        const Vec<W> to_y = other - own, to_x = own - other;
        diagonal(i, k, C::finish(C::share(to_x, Vec<W>{})));
        up(i, k, gap(back, to_y, forth, to_x));
        left(i, k, gap(last - other, to_x, other - last, to_y));
        last = other;
      }
    }
  }

  const SoftElastic<T>& pair_;
  const Pair<T>& table_;
  const int64_t row_;
  const Rows rows_;
  const int64_t step_, steps_;
  StepBlock<T>& block_;
  Vec<W> twice_lanes_;
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
