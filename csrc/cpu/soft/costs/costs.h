// Scaled costs of a few steps of a strip, each split into a whole number m and a fraction r in [-1/2, 1/2].
// C / (gamma ln 2) = m + r, so that w = exp(-C / gamma) = 2^-m 2^-r and (2) stays exact in m at any gamma.

// The rows of the strip that are wanted, in whole quarters.
struct Rows {
  int64_t begin, end;
};
inline Rows rows_of(const Live& live) { return {live.begin * kSteps, live.end * kSteps}; }

// Of a quarter of a strip, for product.h. Columns backwards: column c of a tile's row is at kSteps - 1 - c, and those of the tile
// to the left follow.
template <typename T>
struct Tiles {
  alignas(64) T m[kQuarters][kSteps][2 * kSteps];
  alignas(64) T r[kQuarters][kSteps][2 * kSteps];
  int64_t step[kQuarters] = {-1, -1, -1, -1};  // of the block that they were filled for
};
template <>
struct Tiles<double> {};  // which need none

template <typename T>
struct CostBlock {
  alignas(64) T m[kSteps][kRows];
  alignas(64) T r[kSteps][kRows];
  double least = 0;  // the most negative scaled cost so far, or 0
  Tiles<T> tiles;
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

// A scaled cost in double, where T alone would lose the fraction: a register of double has half as many lanes.
SOFTDTW_INLINE void split_wide_cost(Vec<double> cost, double scale, float* m, float* r) {
  const Vec<double> scaled = minimum(splat<double>(Unreachable<float>::value), cost * scale);  // a NaN stays one
  const Vec<double> part = fraction(scaled);
  store_narrow(m, scaled - part);
  store_narrow(r, part);
}

// The same where pair.bounded says that scaled costs are far from any limit.
template <typename T>
SOFTDTW_INLINE void split_bounded_cost(Vec<double> cost, Vec<double> scale, T* m, T* r) {
  const Vec<double> whole = nearest_whole<double>(cost * scale), rest = cost * scale - whole;
  if constexpr (sizeof(T) < sizeof(double))
    store_narrow(m, whole), store_narrow(r, rest);
  else
    store(m, whole), store(r, rest);
}

#include "product.h"

template <class C, typename T>
void fill_from_line(const Pair<T>& pair, int64_t row, const Rows& rows, int64_t step, int64_t steps, CostBlock<T>& block) {
  const Vec<T> scale = splat(T(pair.scale));
  const T* const x = pair.x + row;
  const T* const y = pair.y + kRows + pair.m - 1 - step;
  for (int64_t k = rows.begin; k < rows.end; k += kWidth<T>) {
    const Vec<T> own = load(x + k);
    for (int64_t i = 0; i < steps; ++i) {
      const Vec<T> cost = C::finish(C::share(own - load(y - i + k), Vec<T>{}));
      if constexpr (sizeof(T) < sizeof(double))
        split_small_cost<T>(cost, scale, block.m[i] + k, block.r[i] + k);
      else
        split_cost<T>(cost, scale, block.m[i] + k, block.r[i] + k);
    }
  }
}

// Squared differences of halves.h.
inline void fill_from_halves(
    const Pair<float>& pair, int64_t row, const Rows& rows, int64_t step, int64_t steps, CostBlock<float>& block) {
  using V = Vec<float>;
  const int64_t origin = kRows + pair.m - 1 - step;
  for (int64_t k = rows.begin; k < rows.end; k += kWidth<float>) {
    const V x_high = load(pair.x_halves.high + row + k), x_low = load(pair.x_halves.low + row + k);
    for (int64_t i = 0; i < steps; ++i) {
      const V high = x_high - load(pair.y_halves.high + origin - i + k),
              low = x_low - load(pair.y_halves.low + origin - i + k);
      const V rest = low * multiply_add(splat(2.0f), high, low);
      const V whole = nearest_whole<float>(multiply_add(high, high, rest));
      store(block.m[i] + k, whole);
      store(block.r[i] + k, multiply_add(high, high, -whole) + rest);
    }
  }
}

constexpr int kDimsAtOnce = 8;                                    // whose vectors of a block are brought together
constexpr int kStepsAtOnce = SOFTDTW_VECTOR_BYTES == 64 ? 8 : 4;  // whose sums are in registers

// Calls use(i, k, cost) with the costs of step + i and of the rows from k on, kWidth<W> of them, in the dtype W. Of a step that is
// not wanted, from `steps` to kSteps, they mean nothing.
//
// The vectors of a block are copied first, some coordinates at a time: where they are, those of neighbouring coordinates may all
// fall into a few sets of the cache. Then a sum over them stays in its register, and there are enough sums to hide the latency.
template <typename W, class C, typename T, typename Use>
SOFTDTW_INLINE void with_costs(
    C, const Pair<T>& pair, int64_t row, const Rows& rows, int64_t step, int64_t steps, const Use& use) {
  alignas(64) W x[kDimsAtOnce][kRows], y[kDimsAtOnce][kRows + kSteps], sums[kSteps][kRows];
  for (int64_t first = 0; first < pair.dim; first += kDimsAtOnce) {
    const int64_t dims = pair.dim - first < kDimsAtOnce ? pair.dim - first : kDimsAtOnce;
    for (int64_t d = 0; d < dims; ++d) {
      const T* const from_x = pair.x + (first + d) * pair.x_stride + row;
      const T* const from_y = pair.y + (first + d) * pair.y_stride + kRows + pair.m - step - kSteps;  // of step kSteps - 1
      for (int64_t r = 0; r < kRows; ++r) x[d][r] = from_x[r];
      for (int64_t c = 0; c < kSteps - steps; ++c) y[d][c] = 0;
      for (int64_t c = kSteps - steps; c < kRows + kSteps - 1; ++c) y[d][c] = from_y[c];
    }
    for (int64_t k = rows.begin; k < rows.end; k += kWidth<W>)
      for (int64_t i = 0; i < kSteps; i += kStepsAtOnce) {
        Vec<W> sum[kStepsAtOnce];
        ascending<0, kStepsAtOnce>([&](auto a) SOFTDTW_LAMBDA { sum[a] = first > 0 ? load(sums[i + a] + k) : Vec<W>{}; });
        for (int64_t d = 0; d < dims; ++d) {
          const Vec<W> own = load(x[d] + k);
          const W* const other = y[d] + kSteps - 1 - i + k;
          ascending<0, kStepsAtOnce>([&](auto a) SOFTDTW_LAMBDA { sum[a] = C::share(own - load(other - a), sum[a]); });
        }
        if (first + kDimsAtOnce < pair.dim)
          ascending<0, kStepsAtOnce>([&](auto a) SOFTDTW_LAMBDA { store(sums[i + a] + k, sum[a]); });
        else
          ascending<0, kStepsAtOnce>([&](auto a) SOFTDTW_LAMBDA { use(i + a, k, C::finish(sum[a])); });
      }
  }
}

template <class C, typename T>
void fill_from_series(
    C type, const Pair<T>& pair, int64_t row, const Rows& rows, int64_t step, int64_t steps, CostBlock<T>& block) {
  const Vec<T> scale = splat(T(pair.scale));
  with_costs<T>(type, pair, row, rows, step, steps, [&](int64_t i, int64_t k, Vec<T> cost) SOFTDTW_LAMBDA {
    if constexpr (sizeof(T) < sizeof(double))
      split_small_cost<T>(cost, scale, block.m[i] + k, block.r[i] + k);
    else
      split_cost<T>(cost, scale, block.m[i] + k, block.r[i] + k);
  });
}

template <class C>
void fill_wide(
    C type, const Pair<float>& pair, int64_t row, const Rows& rows, int64_t step, int64_t steps, CostBlock<float>& block) {
  const double scale = pair.scale;
  if (pair.bounded) {
    with_costs<double>(type, pair, row, rows, step, steps, [&](int64_t i, int64_t k, Vec<double> cost) SOFTDTW_LAMBDA {
      split_bounded_cost(cost, splat(scale), block.m[i] + k, block.r[i] + k);
    });
  } else {
    with_costs<double>(type, pair, row, rows, step, steps, [&](int64_t i, int64_t k, Vec<double> cost) SOFTDTW_LAMBDA {
      split_wide_cost(cost, scale, block.m[i] + k, block.r[i] + k);
    });
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
// of theirs flows into the table. Of r none needs any: outside the band it is a number, unless the pair has a NaN inside, too.
template <typename T>
void forbid_outside(const Pair<T>& pair, int64_t row, const Rows& rows, int64_t step, int64_t steps, T (*m)[kRows]) {
  const Vec<T> infinite = splat<T>(Unreachable<T>::value);
  Vec<T> lanes;
  for (int lane = 0; lane < kWidth<T>; ++lane) lanes[lane] = T(lane);
  // Rows from begin to end of a step are inside: column - row = t - row - 2 r has to lie in [low, high], and column = t - r in
  // [0, ...). Both grow from step to step.
  int64_t begin[kSteps], end[kSteps];
  for (int64_t i = 0; i < steps; ++i) {
    const int64_t t = step + i, over = t - row - pair.high, under = t - row - pair.low;
    begin[i] = over > 0 ? (over + 1) / 2 : 0;
    end[i] = under < 0 ? 0 : under / 2 < t ? under / 2 + 1 : t + 1;
  }
  for (int64_t k = rows.begin; k < rows.end; k += kWidth<T>) {
    if (begin[steps - 1] <= k && k + kWidth<T> <= end[0]) continue;
    for (int64_t i = 0; i < steps; ++i) {
      const auto alive = (lanes >= splat(T(begin[i] - k))) & (lanes < splat(T(end[i] - k)));
      store(m[i] + k, alive ? load(m[i] + k) : infinite);
    }
  }
}

template <typename T>
void fill_costs(const Pair<T>& pair, int64_t row, const Live& live, int64_t step, int64_t steps, CostBlock<T>& block) {
  const Rows rows = rows_of(live);
  if (pair.cost == Cost::kMatrix && pair.matrix.narrow.data)
    fill_from_matrix(pair, pair.matrix.narrow, row, rows, step, steps, block);
  else if (pair.cost == Cost::kMatrix)
    fill_from_matrix(pair, pair.matrix.wide, row, rows, step, steps, block);
  else if (pair.wide) {
    if constexpr (sizeof(T) < sizeof(double)) {
      if (pair.by_products)
        fill_by_products(pair, row, live, step, block);
      else if (pair.x_halves.high)
        fill_from_halves(pair, row, rows, step, steps, block);
      else
        with_cost<Costs<VectorMath<double>>>(
            pair.cost, [&](auto type) { fill_wide(type, pair, row, rows, step, steps, block); });
    }
  } else
    with_cost<Costs<VectorMath<T>>>(pair.cost, [&](auto type) {
      if (pair.dim == 1)
        fill_from_line<decltype(type)>(pair, row, rows, step, steps, block);
      else
        fill_from_series(type, pair, row, rows, step, steps, block);
    });
  // Of the first row its last cell, of the last row its first one.
  const int64_t rightmost = step + steps - 1 - row - 2 * rows.begin, leftmost = step - row - 2 * (rows.end - 1);
  const bool inside = step >= rows.end - 1 && rightmost <= pair.high && leftmost >= pair.low;
  if (!inside) forbid_outside(pair, row, rows, step, steps, block.m);
}
