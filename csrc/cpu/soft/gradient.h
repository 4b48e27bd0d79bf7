// (5): sums of E dC/dx over the cells of a strip, and of E dC/dy with the opposite sign.

// Sums over the rows of a strip while E is swept in reverse. They stay in their lanes.
template <typename T>
struct RowSums {
  static constexpr int kVectors = kRows / kWidth<T>;
  using V = Vec<T>;
  V row[kVectors];
  T* to;

  // `first`: where the strip's first row has its sum.
  SOFTDTW_INLINE void start(T* first) {
    to = first;
    ascending<0, kVectors>([&](auto k) SOFTDTW_LAMBDA { row[k] = V{}; });
  }
  SOFTDTW_INLINE void add(int k, V share) { row[k] += share; }
  SOFTDTW_INLINE void finish() {
    ascending<0, kVectors>([&](auto k) SOFTDTW_LAMBDA { store(to + k * kWidth<T>, load(to + k * kWidth<T>) + row[k]); });
  }
};

// Sums over the columns. A column's sum moves one lane up a step, as the column itself does, and leaves the strip at its first
// row.
template <typename T>
struct ColumnSums {
  static constexpr int kVectors = kRows / kWidth<T>;
  using V = Vec<T>;
  V column[kVectors];
  T* to;

  // `first`: where the first column has its sum; the second is before it.
  SOFTDTW_INLINE void start(T* first) {
    to = first;
    ascending<0, kVectors>([&](auto k) SOFTDTW_LAMBDA { column[k] = V{}; });
  }

  // Vector k of a step, in ascending order of k.
  SOFTDTW_INLINE void add(int k, V share) {
    column[k] = share + Neighbour<T>::from_after(column[k], k + 1 < kVectors ? column[k + 1 < kVectors ? k + 1 : k] : V{});
  }

  // In place of vectors from k on, if they are dead: their columns have left them.
  SOFTDTW_INLINE void leave_vector(int k) { column[k] = V{}; }

  // After the last vector of a step. `first`: the first vector that is live; beyond a band the column has no cell above it.
  template <class First>
  SOFTDTW_INLINE void leave_step(First first, int64_t step) {
    to[first * kWidth<T> - step] += column[first][0];
    if (first > 0) column[first][0] = 0;
  }

  // After the last step of a segment; `step` is the first in time.
  SOFTDTW_INLINE void finish(int64_t step) {
    column[0][0] = 0;  // has left
    ascending<0, kVectors>([&](auto k) SOFTDTW_LAMBDA {
      T* const own = to - step + k * kWidth<T>;
      store(own, load(own) + column[k]);
    });
  }
};

// What a cell hands on in reverse: E, and what of it goes to each predecessor, L, U and D of (12). `next`: D of the cell that
// follows on it by a diagonal step.
template <typename V>
struct Masses {
  V all, left, up, diagonal, next;
};

// What a reverse sweep does with them is said by a sink:
//   kTakesNext                            whether it needs `next`
//   take(k, step, masses, own)            vector k of a step, in ascending order of k; `own`: the memory of its shares, which may
//                                         be written over
//   leave_vector(k), leave_step, finish   as those of ColumnSums

// One dimension of a strip's series.
template <class Sum, typename T>
struct SeriesGradient {
  static constexpr bool kTakesNext = false;
  static constexpr int kVectors = kRows / kWidth<T>;
  using V = Vec<T>;
  V x[kVectors];
  const T* y;  // of step 0 and the strip's first row
  RowSums<T> rows;
  ColumnSums<T> columns;

  SOFTDTW_INLINE void start(const Pair<T>& pair, const Scratch<T>& scratch, int64_t first_row, int64_t d) {
    const int64_t origin = d * pair.y_stride + kRows + pair.m - 1;
    y = pair.y + origin;
    rows.start(scratch.dx + d * pair.x_stride + first_row);
    columns.start(scratch.dy + origin);
    ascending<0, kVectors>([&](auto k)
                               SOFTDTW_LAMBDA { x[k] = load(pair.x + d * pair.x_stride + first_row + k * kWidth<T>); });
  }

  SOFTDTW_INLINE void add(int k, int64_t step, V e) {
    const V share = e * Sum::slope(x[k] - load(y - step + k * kWidth<T>));
    rows.add(k, share);
    columns.add(k, share);
  }
  SOFTDTW_INLINE void take(int k, int64_t step, const Masses<V>& masses, T*) { add(k, step, masses.all); }

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

// Of sinks without sums.
struct NoSums {
  static constexpr bool kTakesNext = false;
  SOFTDTW_INLINE void leave_vector(int) {}
  template <class First>
  SOFTDTW_INLINE void leave_step(First, int64_t) {}
  SOFTDTW_INLINE void finish(int64_t) {}
};

// E takes the place of the first share.
struct StoredE : NoSums {
  template <typename V, typename T>
  SOFTDTW_INLINE void take(int, int64_t, const Masses<V>& masses, T* own) {
    store(own, masses.all);
  }
};

// E becomes E / cost.
template <class C, typename T>
void divide_by_costs(C type, const Pair<T>& pair, int64_t row, int64_t first, int64_t last, T* e) {
  for (int64_t step = first; step <= last; step += kSteps, e += kSteps * 3 * kRows) {
    const int64_t steps = last - step + 1 < kSteps ? last - step + 1 : kSteps;
    const Live live = live_quarters(pair, row, step);
    with_costs<T>(type, pair, row, rows_of(live), step, steps, [&](int64_t i, int64_t k, Vec<T> cost) SOFTDTW_LAMBDA {
      T* const own = e + i * 3 * kRows + k;
      if (i < steps) store(own, over_cost<VectorMath<T>>(load(own), cost));
    });
  }
}

template <class Sum, typename T>
void add_series_gradient(
    Sum, const Pair<T>& pair, const Scratch<T>& scratch, int64_t row, int64_t first, int64_t last, const T* e) {
  constexpr int kVectors = kRows / kWidth<T>;
  for (int64_t d = 0; d < pair.dim; ++d) {
    SeriesGradient<Sum, T> gradient;
    gradient.start(pair, scratch, row, d);
    with_runs(pair, row, first, last, [&](auto quarters, int64_t begin, int64_t end) {
      const auto from = quarters.template first<kVectors>();
      const auto to = quarters.template last<kVectors>();
      for (int64_t t = end; t >= begin; --t) {
        const T* const now = e + (t - first) * 3 * kRows;
        ascending(from, to, [&](auto k) SOFTDTW_LAMBDA { gradient.add(k, t, load(now + k * kWidth<T>)); });
        if (to < kVectors) gradient.leave_vector(to < kVectors ? int(to) : 0);
        gradient.leave_step(from, t);
      }
    });
    gradient.finish(first);
  }
}

// e: E of a part, or whatever counts the costs of a cell.
template <typename T>
void add_gradient_of_costs(const Pair<T>& pair, const Scratch<T>& scratch, int64_t row, int64_t first, int64_t last, T* e) {
  with_cost<Costs<VectorMath<T>>>(pair.cost, [&](auto type) {
    if constexpr (type.kOverCost) divide_by_costs(type, pair, row, first, last, e);
    add_series_gradient(typename decltype(type)::Sum{}, pair, scratch, row, first, last, e);
  });
}

template <typename T, typename To>
void write_cost_gradient(
    const Pair<T>& pair, const View<To>& dcost, T factor, int64_t row, int64_t first, int64_t last, const T* e) {
  const int64_t rows = pair.n - row < kRows ? pair.n - row : kRows;
  for (int64_t r = 0; r < rows; ++r) {
    const int64_t left = row + r + pair.low, right = row + r + pair.high;
    int64_t begin = first - r > left ? first - r : left, end = last - r < right ? last - r : right;
    if (begin < 0) begin = 0;
    if (end > pair.m - 1) end = pair.m - 1;
    To* to = dcost.data + (row + r) * dcost.row_stride;
    for (int64_t column = begin; column <= end; ++column)
      to[column * dcost.column_stride] = To(factor * e[(column + r - first) * 3 * kRows + r]);
  }
}
