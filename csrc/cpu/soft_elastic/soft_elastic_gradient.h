// (13): what masses of steps add up to. Parts of a sink (gradient.h), each for what one gradient needs.

// The costs of distances count this mass of a cell: E times its weight, D, or D of the cell and of that which a diagonal step
// from it leads to, whose cost has the distance once more.
template <Measure kMeasure, typename T>
struct MatchMass {
  static constexpr bool kTakesNext = kMeasure == Measure::kTwed;
  using V = Vec<T>;
  ParityWeights<T> weights;
  int64_t row;

  SOFTDTW_INLINE void start(const SoftElastic<T>& pair, int64_t first_row) {
    weights = pair.weights;
    row = first_row;
  }
  SOFTDTW_INLINE V operator()(int k, int64_t step, const Masses<V>& masses) const {
    if constexpr (kMeasure == Measure::kTwed) return masses.diagonal + masses.next;
    if constexpr (kMeasure != Measure::kWeighted) return masses.diagonal;
    return masses.all * load(weights_at(weights, row - step) + k * kWidth<T>);
  }
};

template <Measure kMeasure, class Sum, typename T>
struct DistanceGradient : SeriesGradient<Sum, T> {
  using Base = SeriesGradient<Sum, T>;
  static constexpr bool kTakesNext = MatchMass<kMeasure, T>::kTakesNext;
  MatchMass<kMeasure, T> mass;

  SOFTDTW_INLINE void start(const SoftElastic<T>& pair, const ElasticScratch<T>& scratch, int64_t row) {
    Base::start(*pair.table, scratch, row, 0);
    mass.start(pair, row);
  }
  SOFTDTW_INLINE void take(int k, int64_t step, const Masses<Vec<T>>& masses, T*) {
    Base::add(k, step, mass(k, step, masses));
  }
};

// The same for the times of kTwed.
template <typename T>
struct TimesGradient {
  static constexpr bool kTakesNext = true;
  static constexpr int kVectors = kRows / kWidth<T>;
  using V = Vec<T>;
  V own[kVectors];
  const T* other;
  RowSums<T> rows;
  ColumnSums<T> columns;

  SOFTDTW_INLINE void start(const SoftElastic<T>& pair, const ElasticScratch<T>& scratch, int64_t row) {
    const int64_t origin = kRows + pair.table->m - 1;
    other = pair.y_times + origin;
    rows.start(scratch.x_times + row);
    columns.start(scratch.y_times + origin);
    ascending<0, kVectors>([&](auto k) SOFTDTW_LAMBDA { own[k] = load(pair.x_times + row + k * kWidth<T>); });
  }
  SOFTDTW_INLINE void take(int k, int64_t step, const Masses<V>& masses, T*) {
    const V slope = Cityblock<VectorMath<T>>::slope(own[k] - load(other - step + k * kWidth<T>));
    const V share = (masses.diagonal + masses.next) * slope;
    rows.add(k, share);
    columns.add(k, share);
  }
  SOFTDTW_INLINE void leave_vector(int k) { columns.leave_vector(k); }
  template <class First>
  SOFTDTW_INLINE void leave_step(First first, int64_t step) {
    columns.leave_step(first, step);
  }
  SOFTDTW_INLINE void finish(int64_t step) {
    rows.finish();
    columns.finish(step);
  }
};

// Of gaps that are a row's or a column's own. Sums of U and L themselves: where they are small, 1 less a sum of D would not show
// them.
template <typename T>
struct GapGradient {
  static constexpr bool kTakesNext = false;
  RowSums<T> rows;
  ColumnSums<T> columns;

  SOFTDTW_INLINE void start(const SoftElastic<T>& pair, const ElasticScratch<T>& scratch, int64_t row) {
    rows.start(scratch.x_gaps + row);
    columns.start(scratch.y_gaps + kRows + pair.table->m - 1);
  }
  SOFTDTW_INLINE void take(int k, int64_t, const Masses<Vec<T>>& masses, T*) {
    rows.add(k, masses.up);
    columns.add(k, masses.left);
  }
  SOFTDTW_INLINE void leave_vector(int k) { columns.leave_vector(k); }
  template <class First>
  SOFTDTW_INLINE void leave_step(First first, int64_t step) {
    columns.leave_step(first, step);
  }
  SOFTDTW_INLINE void finish(int64_t step) {
    rows.finish();
    columns.finish(step);
  }
};

// Of kMsm, whose gaps have slopes to three numbers.
template <typename T>
struct MsmGradient {
  static constexpr bool kTakesNext = false;
  static constexpr int kVectors = kRows / kWidth<T>;
  using V = Vec<T>;
  V x[kVectors], x_before[kVectors];
  const T* y;
  RowSums<T> rows, rows_before;
  ColumnSums<T> columns, columns_before;

  SOFTDTW_INLINE void start(const SoftElastic<T>& pair, const ElasticScratch<T>& scratch, int64_t row) {
    const int64_t origin = kRows + pair.table->m - 1;
    y = pair.table->y + origin;
    rows.start(scratch.dx + row), rows_before.start(scratch.x_before + row);
    columns.start(scratch.dy + origin), columns_before.start(scratch.y_before + origin);
    ascending<0, kVectors>([&](auto k) SOFTDTW_LAMBDA {
      const T* const own = pair.table->x + row + k * kWidth<T>;
      x[k] = load(own), x_before[k] = load(own - 1);
    });
  }

  // Of a mass that pays the gap of v: v moves away from the nearer of a and b, which moves towards it (Msm::slopes).
  struct Slopes {
    V v, a, b;

    SOFTDTW_INLINE Slopes(V mass, V own, V one, V other) {
      using Math = VectorMath<T>;
      const V p = one - own, q = other - own, zero = {};
      v = minimum(p, q) > zero ? -mass : maximum(p, q) < zero ? mass : zero;
      a = Math::abs(p) <= Math::abs(q) ? -v : zero;
      b = -v - a;
    }
  };

  SOFTDTW_INLINE void take(int k, int64_t step, const Masses<V>& masses, T*) {
    const T* const other = y - step + k * kWidth<T>;
    const V own_y = load(other);
    const Slopes up(masses.up, x[k], x_before[k], own_y), left(masses.left, own_y, load(other + 1), x[k]);
    const V match = masses.diagonal * Cityblock<VectorMath<T>>::slope(x[k] - own_y);
    rows.add(k, match + (up.v + left.b));
    columns.add(k, match - (up.b + left.v));
    rows_before.add(k, up.a);
    columns_before.add(k, left.a);
  }
  SOFTDTW_INLINE void leave_vector(int k) { columns.leave_vector(k), columns_before.leave_vector(k); }
  template <class First>
  SOFTDTW_INLINE void leave_step(First first, int64_t step) {
    columns.leave_step(first, step);
    columns_before.leave_step(first, step);
  }
  SOFTDTW_INLINE void finish(int64_t step) {
    rows.finish(), rows_before.finish();
    columns.finish(step), columns_before.finish(step);
  }
};

// What a later look at the part needs: L, U and D in place of their shares. Where there are distances, what counts them comes first;
// behind it E of kWeighted.
template <Measure kMeasure, typename T>
struct StoredMasses : NoSums {
  static constexpr bool kTakesNext = MatchMass<kMeasure, T>::kTakesNext;
  MatchMass<kMeasure, T> mass;

  SOFTDTW_INLINE void start(const SoftElastic<T>& pair, const ElasticScratch<T>&, int64_t row) { mass.start(pair, row); }
  SOFTDTW_INLINE void take(int k, int64_t step, const Masses<Vec<T>>& masses, T* own) {
    if constexpr (kMeasure == Measure::kMatrix || kMeasure == Measure::kMsm)
      store(own, masses.left);
    else
      store(own, mass(k, step, masses));
    store(own + kRows, kMeasure == Measure::kWeighted ? masses.all : masses.up);
    store(own + 2 * kRows, masses.diagonal);
  }
};

template <class... Parts>
struct Together : Parts... {
  static constexpr bool kTakesNext = (Parts::kTakesNext || ...);

  template <typename T>
  SOFTDTW_INLINE Together(const SoftElastic<T>& pair, const ElasticScratch<T>& scratch, int64_t row) {
    (Parts::start(pair, scratch, row), ...);
  }
  template <typename V, typename T>
  SOFTDTW_INLINE void take(int k, int64_t step, const Masses<V>& masses, T* own) {
    (Parts::take(k, step, masses, own), ...);
  }
  SOFTDTW_INLINE void leave_vector(int k) { (Parts::leave_vector(k), ...); }
  template <class First>
  SOFTDTW_INLINE void leave_step(First first, int64_t step) {
    (Parts::leave_step(first, step), ...);
  }
  SOFTDTW_INLINE void finish(int64_t step) { (Parts::finish(step), ...); }
};

// Of stored masses: what they cost, and of kWeighted what its parameter is charged with.
template <StepKind kKind, typename T>
void add_costs(
    const SoftElastic<T>& pair, int64_t row, int64_t first, int64_t last, const T* masses, ElasticTotals& totals) {
  using V = Vec<T>;
  StepBlock<T> block;
  V lanes;
  for (int lane = 0; lane < kWidth<T>; ++lane) lanes[lane] = T(lane);
  const T half = T(pair.table->n > pair.table->m ? pair.table->n : pair.table->m) / 2;
  for (int64_t step = first; step <= last; step += kSteps, masses += kSteps * 3 * kRows) {
    const int64_t steps = last - step + 1 < kSteps ? last - step + 1 : kSteps;
    const Live live = live_quarters(*pair.table, row, step);
    const Rows rows = rows_of(live);
    fill_steps(pair, row, live, step, steps, block);
    V cost = {}, parameter = {};
    for (int64_t i = 0; i < steps; ++i)
      for (int64_t k = rows.begin; k < rows.end; k += kWidth<T>) {
        const T* const own = masses + i * 3 * kRows + k;
        const auto of = [&](const CostBlock<T>& from) SOFTDTW_LAMBDA { return load(from.m[i] + k) + load(from.r[i] + k); };
        if constexpr (kKind == StepKind::kCell) {
          const V share = load(own + kRows) * of(block.diagonal), place = T(row - step - i + 2 * k) + 2 * lanes;
          const V weight = load(weights_at(pair.weights, row - step - i) + k);
          cost += share;
          parameter += share * (1 - weight) * (VectorMath<T>::abs(place) - half);
        } else {
          cost += load(own + 2 * kRows) * of(block.diagonal);
          if constexpr (kKind == StepKind::kEach) {
            const V up = load(own + kRows), left = load(own);
            cost += up * of(block.up) + left * of(block.left);
            parameter += up + left;
          }
        }
      }
    for (int lane = 0; lane < kWidth<T>; ++lane) totals.cost += cost[lane], totals.parameter += parameter[lane];
  }
}

// D, U and L of ready-made costs. A gap of the border is that of the first column or row.
template <typename T>
void write_masses(
    const SoftElastic<T>& pair, const ElasticScratch<T>& scratch, int64_t first_row, int64_t first, int64_t last,
    const T* masses) {
  const Pair<T>& table = *pair.table;
  const int64_t border = pair.sum_border ? 1 : 0, rows = table.n - first_row < kRows ? table.n - first_row : kRows;
  for (int64_t r = 0; r < rows; ++r) {
    const int64_t left_end = first_row + r + table.low, right_end = first_row + r + table.high;
    int64_t begin = first - r > left_end ? first - r : left_end, end = last - r < right_end ? last - r : right_end;
    if (begin < 0) begin = 0;
    if (end > table.m - 1) end = table.m - 1;
    const int64_t row = first_row + r - border;
    for (int64_t j = begin; j <= end; ++j) {
      const T* const own = masses + (j + r - first) * 3 * kRows + r;
      const int64_t column = j - border;
      const auto add = [&](int step, const T* mass, int64_t at_row, int64_t at_column) {
        scratch.tables.add(step, at_row, at_column, double(scratch.factor) * double(*mass));
      };
      if (row >= 0 && column >= 0) add(0, own + 2 * kRows, row, column);
      if (row >= 0) add(1, own + kRows, row, column > 0 ? column : 0);
      if (column >= 0) add(2, own, row > 0 ? row : 0, column);
    }
  }
}
