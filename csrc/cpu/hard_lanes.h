// The sweep of (9) over a group of pairs: a register of pairs after the other, some rows at a time, each of which is a column behind
// the one above, so that none waits for another one. Compiled once per instruction set. Entries are float64, and values those of
// hard_sweep.h to the bit, if series of one dimension are float64, too. interleave() brings series into lanes.

template <typename T, class Type, bool kOneDim, bool kPenalty>
struct HardLanes {
  static constexpr bool kAtOnce = kOneDim && kIsSum<Type>;
  static constexpr int kLanes = kWidth<T>;               // pairs that are swept together
  static constexpr int kWide = kLanes / kWidth<double>;  // registers for an entry of each of them
  // So many that sums are not waited for, and what they need of the columns before stays in registers.
  static constexpr int kRowsAtOnce = 4 / kWide, kRowsPerLook = 32;

  struct Entries {
    Vec<double> of[kWide];
  };
  SOFTDTW_INLINE static Entries everywhere(double a) {
    Entries entries;
    for (int k = 0; k < kWide; ++k) entries.of[k] = splat(a);
    return entries;
  }
  SOFTDTW_INLINE static Entries load_entries(const double* from) {
    Entries entries;
    for (int k = 0; k < kWide; ++k) entries.of[k] = load(from + k * kWidth<double>);
    return entries;
  }
  SOFTDTW_INLINE static void store_entries(double* to, const Entries& entries) {
    for (int k = 0; k < kWide; ++k) store(to + k * kWidth<double>, entries.of[k]);
  }

  template <int... I>
  SOFTDTW_INLINE static Entries widened_by(Vec<T> cost, std::integer_sequence<int, I...>) {
    if constexpr (kWide == 1)
      return {cost};
    else
      return {
          widened(__builtin_shufflevector(cost, cost, I...)),
          widened(__builtin_shufflevector(cost, cost, (I + kWidth<double>)...))};
  }

  const int64_t dim, step;  // numbers of a vector, and of the pairs' vectors
  const Vec<double> penalty;

  SOFTDTW_INLINE Entries costs(const T* x, const T* y) const {
    Vec<T> sum = {};
    for (int64_t d = 0; d < dim; ++d) sum = Type::share(load(x + d * kLanes) - load(y + d * kLanes), sum);
    return widened_by(Type::finish(sum), std::make_integer_sequence<int, kWidth<double>>());
  }

  SOFTDTW_INLINE Entries
  cell(const T* x, const T* y, const Entries& diagonal, const Entries& up, const Entries& left) const {
    Entries now, own;
    if constexpr (!kAtOnce) own = costs(x, y);
    for (int k = 0; k < kWide; ++k) {
      // Rounding keeps order: this is min(up, left) + penalty. `left` comes last, and is all that is waited for.
      Vec<double> low;
      if constexpr (kPenalty)
        low = minimum(left.of[k] + penalty, minimum(up.of[k] + penalty, diagonal.of[k]));
      else
        low = minimum(left.of[k], minimum(up.of[k], diagonal.of[k]));
      if constexpr (kAtOnce)
        now.of[k] = Type::share(load(x) - load(y), low);
      else
        now.of[k] = own.of[k] + low;
    }
    return now;
  }

  // kRows rows from i on. `row` holds the entries of the row above before, and those of the last of them afterwards.
  template <int kRows>
  void sweep_rows(
      const Extent& extent, int64_t i, const T* __restrict x, const T* __restrict y, double* __restrict row) const {
    const auto first_of = [&](int r) { return i + r + extent.low > 0 ? i + r + extent.low : 0; };
    const auto last_of = [&](int r) { return i + r + extent.high < extent.m - 1 ? i + r + extent.high : extent.m - 1; };
    const int64_t first = first_of(0), last = last_of(0);
    const Entries infinite = everywhere(__builtin_inf());
    Entries left[kRows], diagonal[kRows];
    for (int r = 0; r < kRows; ++r) left[r] = diagonal[r] = infinite;
    diagonal[0] = i == 0 ? everywhere(0.0) : load_entries(row + (first - 1) * kLanes);

    // In step t row r is at column t - r: outside its band it is infinite.
    const auto advance = [&](int64_t t, const auto& is_inside) SOFTDTW_LAMBDA {
      Entries above = infinite;
      if (is_inside(Constant<0>{})) above = load_entries(row + t * kLanes);
      descending<0, kRows>([&](auto r) SOFTDTW_LAMBDA {
        constexpr int kRow = decltype(r)();
        const Entries up = kRow > 0 ? left[kRow > 0 ? kRow - 1 : 0] : above;
        if (is_inside(r))
          left[kRow] = cell(x + kRow * step, y + (t - kRow) * step, diagonal[kRow], up, left[kRow]);
        else
          left[kRow] = infinite;
        diagonal[kRow] = up;
      });
      if (is_inside(Constant<kRows - 1>{})) store_entries(row + (t - kRows + 1) * kLanes, left[kRows - 1]);
    };
    // Each row begins, or ends, so many steps after the one above it.
    const auto begin = [&](auto late) SOFTDTW_LAMBDA {
      constexpr int kLate = decltype(late)();
      ascending<0, kLate*(kRows - 1)>([&](auto s) SOFTDTW_LAMBDA {
        advance(first + s, [](auto r) SOFTDTW_LAMBDA { return kLate * decltype(r)() <= decltype(s)(); });
      });
    };
    const auto end = [&](auto late) SOFTDTW_LAMBDA {
      constexpr int kLate = decltype(late)();
      ascending<1, kLate*(kRows - 1) + 1>([&](auto s) SOFTDTW_LAMBDA {
        advance(last + s, [](auto r) SOFTDTW_LAMBDA { return kLate * decltype(r)() >= decltype(s)(); });
      });
    };
    const int64_t more = first_of(kRows - 1) - first, most = last_of(kRows - 1) - last;  // columns
    const int64_t all_from = first + more + kRows - 1;
    const bool is_even = (more == 0 || more == kRows - 1) && (most == 0 || most == kRows - 1);
    if (is_even && all_from <= last + 1) {
      more > 0 ? begin(Constant<2>{}) : begin(Constant<1>{});
      for (int64_t t = all_from; t <= last; ++t) advance(t, [](auto) SOFTDTW_LAMBDA { return true; });
      most > 0 ? end(Constant<2>{}) : end(Constant<1>{});
      return;
    }
    for (int64_t t = first; t <= last + most + kRows - 1; ++t)
      advance(t, [&](int r) SOFTDTW_LAMBDA { return t - r >= first_of(r) && t - r <= last_of(r); });
  }

  // Of the pairs from `pair` on. False: asked to stop.
  bool sweep(HardGroup<T>& group, int64_t pair) const {
    const Extent& extent = group.extent;
    const T* const x = group.x + (group.is_one_x ? 0 : pair) * extent.n * dim;
    const T* const y = group.y + (group.is_one_y ? 0 : pair) * extent.m * dim;
    double* const row = group.row + kLanes;  // column -1 is the border
    const Entries infinite = everywhere(__builtin_inf());
    for (int64_t j = -1; j < extent.m; ++j) store_entries(row + j * kLanes, infinite);
    const int64_t columns = extent.high - extent.low + 1 < extent.m ? extent.high - extent.low + 1 : extent.m;
    for (int64_t i = 0; i < extent.n;) {
      if (i % kRowsPerLook == 0 && stop_asked(kRowsPerLook * kLanes * columns)) return false;
      if (extent.n - i >= kRowsAtOnce) {
        sweep_rows<kRowsAtOnce>(extent, i, x + i * step, y, row);
        i += kRowsAtOnce;
      } else {
        sweep_rows<1>(extent, i, x + i * step, y, row);
        ++i;
      }
    }
    for (int lane = 0; lane < kLanes; ++lane) group.value[pair + lane] = row[(extent.m - 1) * kLanes + lane];
    return true;
  }

  static void run(HardGroup<T>& group) {
    const int64_t dim = kOneDim ? 1 : group.dim;
    const HardLanes lanes{dim, dim * kLanes, splat(group.penalty)};
    for (int64_t pair = 0; pair < kGroup; pair += kLanes)
      if (!lanes.sweep(group, pair)) {
        for (double& value : group.value) value = __builtin_nan("");
        return;
      }
  }
};

template <typename T>
void hard_lanes(HardGroup<T>& group) {
  with_cost<Costs<VectorMath<T>>>(group.cost, [&](auto type) {
    const auto sweep = [&](auto one_dim, auto penalty) {
      HardLanes<T, decltype(type), decltype(one_dim)::value, decltype(penalty)::value>::run(group);
    };
    using Yes = std::true_type;
    using No = std::false_type;
    if constexpr (sizeof(T) == sizeof(double))
      if (group.dim == 1) return group.penalty > 0 ? sweep(Yes{}, Yes{}) : sweep(Yes{}, No{});
    group.penalty > 0 ? sweep(No{}, Yes{}) : sweep(No{}, No{});
  });
}

// Lane k of register i becomes lane i of register k.
template <int kHalf = 1, typename T, int... I>
SOFTDTW_INLINE void transpose(Vec<T>* v, std::integer_sequence<int, I...> lanes) {
  for (int i = 0; i < kWidth<T>; ++i) {
    if (i & kHalf) continue;
    const Vec<T> a = v[i], b = v[i + kHalf];
    v[i] = __builtin_shufflevector(a, b, (I & kHalf ? kWidth<T> + I - kHalf : I)...);
    v[i + kHalf] = __builtin_shufflevector(a, b, (I & kHalf ? kWidth<T> + I : I + kHalf)...);
  }
  if constexpr (2 * kHalf < kWidth<T>) transpose<2 * kHalf, T>(v, lanes);
}

// A lane for each of some series of `count` numbers, in the order of a HardGroup; and which of them are finite.
template <typename From, typename T>
void interleave(const From* const* series, int64_t count, T* to, bool* is_finite) {
  constexpr int kLanes = kWidth<T>;
  Vec<T> spoiled = {};  // NaN after a number that is none, or infinite
  int64_t i = 0;
  for (; i + kLanes <= count; i += kLanes) {
    Vec<T> v[kLanes], lost = {};
    ascending<0, kLanes>([&](int lane) SOFTDTW_LAMBDA {
      if constexpr (sizeof(T) == sizeof(double))
        v[lane] = load_wide(series[lane] + i);
      else
        v[lane] = load(series[lane] + i);
    });
    transpose<1, T>(v, std::make_integer_sequence<int, kLanes>());
    ascending<0, kLanes>([&](int k) SOFTDTW_LAMBDA {
      lost += v[k] - v[k];
      store(to + (i + k) * kLanes, v[k]);
    });
    spoiled += lost;
  }
  for (; i < count; ++i)
    for (int lane = 0; lane < kLanes; ++lane) {
      const T own = series[lane][i];
      to[i * kLanes + lane] = own;
      spoiled[lane] += own - own;
    }
  for (int lane = 0; lane < kLanes; ++lane) is_finite[lane] = is_finite[lane] && spoiled[lane] == T(0);
}
