// Scaled costs of a few steps of a strip, each split into a whole number m and a fraction r in [-1/2, 1/2].
// C / (gamma ln 2) = m + r, so that w = exp(-C / gamma) = 2^-m 2^-r and (2) stays exact in m at any gamma.

template <typename T>
struct CostBlock {
  alignas(64) T m[kSteps][kRows];
  alignas(64) T r[kSteps][kRows];
};

// A is the type in which costs are computed and split; it is double where T alone would lose the fraction.
template <typename T, typename A>
SOFTDTW_INLINE void split_costs(const A* cost, A scale, T* m, T* r) {
  constexpr A rounder = Lanes<A>::kRounder, limit = rounder / 4, infinite = Unreachable<T>::value;
  for (int64_t row = 0; row < kRows; ++row) {
    const A product = cost[row] * scale;
    const A scaled = product > infinite ? infinite : product;  // a NaN stays one
    const A whole = (scaled + rounder) - rounder;
    const bool split = scaled < limit && scaled > -limit;
    m[row] = T(split ? whole : scaled);
    r[row] = T(scaled - (split ? whole : scaled));
  }
}

template <typename T, typename A, Cost kCost>
void fill_from_series(const Pair<T>& pair, int64_t row, int64_t step, int64_t steps, CostBlock<T>& block) {
  for (int64_t i = 0; i < steps; ++i) {
    alignas(64) A cost[kRows] = {};
    const T* x = pair.x + row;
    const T* y = pair.y + kRows + pair.m - 1 - (step + i);
    for (int64_t d = 0; d < pair.dim; ++d, x += pair.x_stride, y += pair.y_stride)
      for (int64_t r = 0; r < kRows; ++r) {
        const A difference = A(x[r]) - A(y[r]);
        cost[r] += kCost == Cost::kCityblock ? __builtin_fabs(difference) : difference * difference;
      }
    if (kCost == Cost::kEuclidean)
      for (int64_t r = 0; r < kRows; ++r) cost[r] = __builtin_sqrt(cost[r]);
    split_costs<T, A>(cost, A(pair.scale), block.m[i], block.r[i]);
  }
}

template <typename T>
void fill_from_matrix(const Pair<T>& pair, int64_t row, int64_t step, int64_t steps, CostBlock<T>& block) {
  alignas(64) double cost[kSteps][kRows] = {};
  const int64_t rows = pair.n - row < kRows ? pair.n - row : kRows;
  for (int64_t r = 0; r < rows; ++r) {
    const int64_t begin = r - step > 0 ? r - step : 0;
    const int64_t end = pair.m + r - step < steps ? pair.m + r - step : steps;
    const T* from = pair.matrix.data + (row + r) * pair.matrix.row_stride + (step - r) * pair.matrix.column_stride;
    const int64_t low = pair.low + row + 2 * r - step, high = pair.high + row + 2 * r - step;
    for (int64_t i = begin > low ? begin : low; i < end && i <= high; ++i) cost[i][r] = from[i * pair.matrix.column_stride];
  }
  for (int64_t i = 0; i < steps; ++i) split_costs<T, double>(cost[i], pair.scale, block.m[i], block.r[i]);
}

// Cells left of the table or outside the band cannot be reached. Cells right of the table and below it need no care: nothing
// of theirs flows into the table.
template <typename T>
void forbid_outside(const Pair<T>& pair, int64_t row, int64_t step, int64_t steps, CostBlock<T>& block) {
  for (int64_t i = 0; i < steps; ++i) {
    // column - row = step - row - 2 r has to lie in [low, high], and column = step - r in [0, ...).
    const int64_t t = step + i, over = t - row - pair.high, under = t - row - pair.low;
    int64_t begin = over > 0 ? (over + 1) / 2 : 0, end = under < 0 ? 0 : under / 2 + 1;
    if (end > t + 1) end = t + 1;
    if (begin > kRows) begin = kRows;
    if (end < begin) end = begin;
    for (int64_t r = 0; r < begin; ++r) block.m[i][r] = Unreachable<T>::value, block.r[i][r] = 0;
    for (int64_t r = end; r < kRows; ++r) block.m[i][r] = Unreachable<T>::value, block.r[i][r] = 0;
  }
}

template <typename T, typename A>
void fill_as(const Pair<T>& pair, int64_t row, int64_t step, int64_t steps, CostBlock<T>& block) {
  if (pair.cost == Cost::kSqEuclidean)
    fill_from_series<T, A, Cost::kSqEuclidean>(pair, row, step, steps, block);
  else if (pair.cost == Cost::kCityblock || pair.dim == 1)
    fill_from_series<T, A, Cost::kCityblock>(pair, row, step, steps, block);
  else
    fill_from_series<T, A, Cost::kEuclidean>(pair, row, step, steps, block);
}

template <typename T>
void fill_costs(const Pair<T>& pair, int64_t row, int64_t step, int64_t steps, CostBlock<T>& block) {
  if (pair.cost == Cost::kMatrix)
    fill_from_matrix(pair, row, step, steps, block);
  else if (pair.wide)
    fill_as<T, double>(pair, row, step, steps, block);
  else
    fill_as<T, T>(pair, row, step, steps, block);
  const int64_t last_of_strip = step + steps - 1 - row;
  const bool inside = step >= kRows - 1 && last_of_strip <= pair.high && step - row - 2 * (kRows - 1) >= pair.low;
  if (!inside) forbid_outside(pair, row, step, steps, block);
}
