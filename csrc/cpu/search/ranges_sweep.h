// The sweep of (10) over a pair, compiled once per instruction set. As that of (9) it goes by whole anti-diagonals.

using Origins = typename Lanes<double>::Bits;  // a start for every lane of float64

SOFTDTW_INLINE Origins load_origins(const int64_t* from) {
  Origins origins;
  __builtin_memcpy(&origins, from, sizeof origins);
  return origins;
}

// `count` cells of a diagonal, and more up to a whole register, as hard_cells() has them: entries, and beside them origins.
template <typename T>
SOFTDTW_INLINE void ranges_cells(
    const T* cost, const double* before, const double* last, double* now, const int64_t* from_before,
    const int64_t* from_last, int64_t* from_now, double penalty, int64_t count) {
  using V = Vec<double>;
  const V stepped = splat(penalty), infinite = splat(__builtin_inf());
  for (int64_t k = 0; k < count; k += kWidth<double>) {
    const V given = load_wide(cost + k), own = given < infinite ? given : infinite;
    const V left = load(last + k) + stepped, diagonal = load(before + k - 1), up = load(last + k - 1) + stepped;
    const Origins by_diagonal = diagonal < left;  // all bits of a lane, or none
    const V side = by_diagonal ? diagonal : left;
    const Origins by_up = up < side;
    store(now + k, own + (by_up ? up : side));
    Origins origins = by_diagonal ? load_origins(from_before + k - 1) : load_origins(from_last + k);
    origins = by_up ? load_origins(from_last + k - 1) : origins;
    __builtin_memcpy(from_now + k, &origins, sizeof origins);
  }
}

template <typename T>
void ranges_sweep(const RangesPair<T>& pair) {
  const Extent& extent = pair.extent;
  const int64_t bottom = extent.n - 1, stride = entries_stride(extent.n);
  const double infinite = __builtin_inf();
  double* rows[3];
  int64_t* origins[3];
  for (int k = 0; k < 3; ++k) {
    rows[k] = pair.entries + k * stride + 1;  // row -1 is the row above the table
    origins[k] = pair.origins + k * stride + 1;
    for (int64_t i = -1; i <= extent.n + kHardSlack; ++i) rows[k][i] = infinite, origins[k][i] = -1;
  }
  // Row -1 of a diagonal is at the column after that of row 0, and the diagonal predecessor of row 0 two diagonals on. As its
  // upper predecessor it is never better, and starts later.
  for (int64_t d = -2; d < 0; ++d) rows[d + 3][-1] = 0, origins[d + 3][-1] = d + 2;
  alignas(64) T cost[kHardBlock] = {};  // what is beyond a diagonal keeps an earlier number
  for (int64_t d = 0; d < diagonals_of(extent); ++d) {
    const int64_t at = d % 3, last = (d + 2) % 3, before = (d + 1) % 3;
    const DiagonalRows own(extent, d);
    if (stop_asked(own.last - own.first + 1)) return;
    for (int64_t row = own.first; row <= own.last; row += kHardBlock) {
      const int64_t count = own.last - row + 1 < kHardBlock ? own.last - row + 1 : kHardBlock;
      hard_costs(pair, d, row, count, cost);
      ranges_cells(
          cost, rows[before] + row, rows[last] + row, rows[at] + row, origins[before] + row, origins[last] + row,
          origins[at] + row, pair.penalty, count);
    }
    // What the next two diagonals may read beside this one.
    rows[at][-1] = 0, origins[at][-1] = d + 2;
    rows[at][own.last + 1] = infinite, origins[at][own.last + 1] = -1;
    if (own.last == bottom) {
      pair.value[d - bottom] = rows[at][bottom];
      pair.start[d - bottom] = int32_t(origins[at][bottom]);
    }
  }
}
