// (5): sums of E dC/dx over the cells of a strip, and of E dC/dy with the opposite sign.

// One dimension of a strip's series while E is swept in reverse. Row sums stay in their lanes. A column's sum moves one lane
// up a step, as the column itself does, and leaves the strip at its first row.
template <class Sum, typename T>
struct SeriesGradient {
  static constexpr int kVectors = kRows / kWidth<T>;
  using V = Vec<T>;
  V x[kVectors], row[kVectors], column[kVectors];
  const T* y;  // of step 0 and the strip's first row
  T *dx, *dy;

  SOFTDTW_INLINE void start(const Pair<T>& pair, const Scratch<T>& scratch, int64_t first_row, int64_t d) {
    const int64_t origin = d * pair.y_stride + kRows + pair.m - 1;
    y = pair.y + origin;
    dy = scratch.dy + origin;
    dx = scratch.dx + d * pair.x_stride + first_row;
    ascending<0, kVectors>([&](auto k) SOFTDTW_LAMBDA {
      x[k] = load(pair.x + d * pair.x_stride + first_row + k * kWidth<T>);
      row[k] = column[k] = V{};
    });
  }

  // Vector k of a step, in ascending order of k.
  SOFTDTW_INLINE void add(int k, int64_t step, V e) {
    const V share = e * Sum::slope(x[k] - load(y - step + k * kWidth<T>)), zero = {};
    row[k] += share;
    column[k] = share + Neighbour<T>::from_after(column[k], k + 1 < kVectors ? column[k + 1 < kVectors ? k + 1 : k] : zero);
  }

  // In place of vectors from k on, if they are dead: their columns have left them.
  SOFTDTW_INLINE void leave_vector(int k) { column[k] = V{}; }

  // After the last vector of a step.
  SOFTDTW_INLINE void leave_step(int64_t step) { dy[-step] += column[0][0]; }

  // After the last step of a segment; `step` is the first in time.
  SOFTDTW_INLINE void finish(int64_t step) {
    column[0][0] = 0;  // has left
    ascending<0, kVectors>([&](auto k) SOFTDTW_LAMBDA {
      T* const to_dx = dx + k * kWidth<T>;
      T* const to_dy = dy - step + k * kWidth<T>;
      store(to_dx, load(to_dx) + row[k]);
      store(to_dy, load(to_dy) + column[k]);
    });
  }
};

// Stands in where E is stored instead.
struct NoGradient {
  template <typename V>
  SOFTDTW_INLINE void add(int, int64_t, V) {}
  SOFTDTW_INLINE void leave_vector(int) {}
  SOFTDTW_INLINE void leave_step(int64_t) {}
};

// E becomes E / cost.
template <class C, typename T>
void divide_by_costs(C, const Pair<T>& pair, int64_t row, int64_t first, int64_t last, T* e) {
  using V = Vec<T>;
  for (int64_t t = first; t <= last; ++t, e += 3 * kRows)
    for (int64_t k = 0; k < kRows; k += kWidth<T>) {
      const T* const y = pair.y + kRows + pair.m - 1 - t + k;
      V sum = {};
      for (int64_t d = 0; d < pair.dim; ++d)
        sum = C::share(load(pair.x + d * pair.x_stride + row + k) - load(y + d * pair.y_stride), sum);
      store(e + k, over_cost<VectorMath<T>>(load(e + k), C::finish(sum)));
    }
}

template <class Sum, typename T>
void add_series_gradient(
    Sum, const Pair<T>& pair, const Scratch<T>& scratch, int64_t row, int64_t first, int64_t last, const T* e) {
  for (int64_t d = 0; d < pair.dim; ++d) {
    SeriesGradient<Sum, T> gradient;
    gradient.start(pair, scratch, row, d);
    for (int64_t t = last; t >= first; --t) {
      const T* const now = e + (t - first) * 3 * kRows;
      ascending<0, kRows / kWidth<T>>([&](auto k) SOFTDTW_LAMBDA { gradient.add(k, t, load(now + k * kWidth<T>)); });
      gradient.leave_step(t);
    }
    gradient.finish(first);
  }
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
