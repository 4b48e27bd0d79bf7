// Scaled costs of a few steps of a strip, each split into a whole number m and a fraction r in [-1/2, 1/2].
// C / (gamma ln 2) = m + r, so that w = exp(-C / gamma) = 2^-m 2^-r and (2) stays exact in m at any gamma.

// The rows of the strip that are wanted, in whole quarters.
struct Rows {
  int64_t begin, end;
};

template <typename T>
struct CostBlock {
  alignas(64) T m[kSteps][kRows];
  alignas(64) T r[kSteps][kRows];
  double least = 0;  // the most negative scaled cost so far, or 0
};

template <typename T>
SOFTDTW_INLINE void split_cost(Vec<T> cost, Vec<T> scale, T* m, T* r) {
  const Vec<T> scaled = minimum(splat<T>(Unreachable<T>::value), cost * scale);  // a NaN stays one
  const Vec<T> part = fraction(scaled);
  store(m, scaled - part);
  store(r, part);
}

// The same for costs of less than kWideFrom: a product and a sum are one instruction where the target has it.
template <typename T>
SOFTDTW_INLINE void split_small_cost(Vec<T> cost, Vec<T> scale, T* m, T* r) {
  const Vec<T> whole = nearest_whole<T>(cost * scale);
  store(m, whole);
  store(r, cost * scale - whole);
}

// The same for the costs of a step, computed in double where T alone would lose the fraction.
template <typename T>
void split_wide_costs(const double* cost, double scale, const Rows& rows, T* m, T* r) {
  alignas(64) double whole[kRows], rest[kRows];
  for (int64_t row = rows.begin; row < rows.end; row += kWidth<double>) {
    const Vec<double> infinite = splat<double>(Unreachable<T>::value);
    split_cost<double>(minimum(infinite, load(cost + row) * scale), splat<double>(1), whole + row, rest + row);
  }
  for (int64_t row = rows.begin; row < rows.end; ++row) m[row] = T(whole[row]), r[row] = T(rest[row]);
}

template <class C, typename T, bool Line>
void fill_from_series(
    const Pair<T>& pair, int64_t row, const Rows& rows, int64_t step, int64_t steps, CostBlock<T>& block) {
  const Vec<T> scale = splat(T(pair.scale));
  const T* const x = pair.x + row;
  const T* const y = pair.y + kRows + pair.m - 1 - step;
  for (int64_t k = rows.begin; k < rows.end; k += kWidth<T>) {
    const Vec<T> first_x = load(x + k);
    for (int64_t i = 0; i < steps; ++i) {
      Vec<T> cost = C::share(first_x - load(y - i + k), Vec<T>{});
      if (!Line)
        for (int64_t d = 1; d < pair.dim; ++d)
          cost = C::share(load(x + d * pair.x_stride + k) - load(y + d * pair.y_stride - i + k), cost);
      cost = C::finish(cost);
      if constexpr (sizeof(T) < sizeof(double))
        split_small_cost<T>(cost, scale, block.m[i] + k, block.r[i] + k);
      else
        split_cost<T>(cost, scale, block.m[i] + k, block.r[i] + k);
    }
  }
}

template <class C, typename T>
void fill_wide(C, const Pair<T>& pair, int64_t row, const Rows& rows, int64_t step, int64_t steps, CostBlock<T>& block) {
  for (int64_t i = 0; i < steps; ++i) {
    alignas(64) double cost[kRows] = {};
    const T* x = pair.x + row;
    const T* y = pair.y + kRows + pair.m - 1 - (step + i);
    for (int64_t d = 0; d < pair.dim; ++d, x += pair.x_stride, y += pair.y_stride)
      for (int64_t r = rows.begin; r < rows.end; ++r) cost[r] = C::share(double(x[r]) - double(y[r]), cost[r]);
    for (int64_t r = rows.begin; r < rows.end; ++r) cost[r] = C::finish(cost[r]);
    split_wide_costs(cost, pair.scale, rows, block.m[i], block.r[i]);
  }
}

template <typename T, typename From>
void fill_from_matrix(
    const Pair<T>& pair, const View<From>& matrix, int64_t row, const Rows& rows, int64_t step, int64_t steps,
    CostBlock<T>& block) {
  alignas(64) double cost[kSteps][kRows] = {};
  double least = 0;
  const int64_t last = pair.n - row < rows.end ? pair.n - row : rows.end;
  for (int64_t r = rows.begin; r < last; ++r) {
    const int64_t begin = r - step > 0 ? r - step : 0;
    const int64_t end = pair.m + r - step < steps ? pair.m + r - step : steps;
    const From* from = matrix.data + (row + r) * matrix.row_stride + (step - r) * matrix.column_stride;
    const int64_t low = pair.low + row + 2 * r - step, high = pair.high + row + 2 * r - step;
    for (int64_t i = begin > low ? begin : low; i < end && i <= high; ++i) {
      cost[i][r] = from[i * matrix.column_stride];
      least = cost[i][r] < least ? cost[i][r] : least;
    }
  }
  block.least = least * pair.scale < block.least ? least * pair.scale : block.least;
  for (int64_t i = 0; i < steps; ++i) split_wide_costs(cost[i], pair.scale, rows, block.m[i], block.r[i]);
}

// Cells left of the table or outside the band cannot be reached. Cells right of the table and below it need no care: nothing
// of theirs flows into the table.
template <typename T>
void forbid_outside(const Pair<T>& pair, int64_t row, const Rows& rows, int64_t step, int64_t steps, CostBlock<T>& block) {
  const auto clamp = [](int64_t r) { return r < 0 ? 0 : r > kRows ? kRows : r; };
  Vec<T> lanes;
  for (int lane = 0; lane < kWidth<T>; ++lane) lanes[lane] = T(lane);
  for (int64_t i = 0; i < steps; ++i) {
    // column - row = t - row - 2 r has to lie in [low, high], and column = t - r in [0, ...).
    const int64_t t = step + i, over = t - row - pair.high, under = t - row - pair.low;
    const int64_t begin = clamp(over > 0 ? (over + 1) / 2 : 0);
    const int64_t end = clamp(under < 0 ? 0 : under / 2 < t ? under / 2 + 1 : t + 1);
    const Vec<T> infinite = splat<T>(Unreachable<T>::value), zero = {};
    for (int64_t k = rows.begin; k < rows.end; k += kWidth<T>) {
      if (begin <= k && k + kWidth<T> <= end) continue;
      const auto alive = (lanes >= splat(T(begin - k))) & (lanes < splat(T(end - k)));
      store(block.m[i] + k, alive ? load(block.m[i] + k) : infinite);
      store(block.r[i] + k, alive ? load(block.r[i] + k) : zero);
    }
  }
}

template <typename T>
void fill_costs(const Pair<T>& pair, int64_t row, const Live& live, int64_t step, int64_t steps, CostBlock<T>& block) {
  const Rows rows{live.begin * kSteps, live.end * kSteps};
  if (pair.cost == Cost::kMatrix && pair.matrix.narrow.data)
    fill_from_matrix(pair, pair.matrix.narrow, row, rows, step, steps, block);
  else if (pair.cost == Cost::kMatrix)
    fill_from_matrix(pair, pair.matrix.wide, row, rows, step, steps, block);
  else if (pair.wide)
    with_cost<Costs<PlainMath<double>>>(
        pair.cost, [&](auto type) { fill_wide(type, pair, row, rows, step, steps, block); });
  else
    with_cost<Costs<VectorMath<T>>>(pair.cost, [&](auto type) {
      const auto fill =
          pair.dim == 1 ? fill_from_series<decltype(type), T, true> : fill_from_series<decltype(type), T, false>;
      fill(pair, row, rows, step, steps, block);
    });
  const int64_t last_of_strip = step + steps - 1 - row;
  const bool inside = step >= kRows - 1 && last_of_strip <= pair.high && step - row - 2 * (kRows - 1) >= pair.low;
  if (!inside) forbid_outside(pair, row, rows, step, steps, block);
}
