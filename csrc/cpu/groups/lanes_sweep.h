// The sweep of many pairs whose tables have one shape: a register of pairs after the other, some rows at a time, each of which is a
// column behind the one above, so that none waits for another one. Compiled once per instruction set.
//
// Cells say what the steps into a cell cost:
//   Cells(group, pair)                        of the pairs that a register has from this one on
//   void enter(double* row) const             the row above the table, from column 0 on
//   Entries<T> border(i) const                column -1 of row i
//   kUnrollsEdges                             whether so little that a loop over the ends of rows would take longer
//   Block<kRows>(cells, i)                    of kRows rows from i on:
//     void at(t)                              is called before a step in which row i + r is at column t - r
//     Entries<T> cell(r, t, diagonal, up, left)
//     void leave_out(r)                       instead, where the row is not in its band

// A cell of each of the pairs that are swept together: as many as a register of T has lanes.
template <typename T>
struct Entries {
  static constexpr int kWide = kWidth<T> / kWidth<double>;
  Vec<double> of[kWide];

  SOFTDTW_INLINE static Entries everywhere(double a) {
    Entries entries;
    for (int k = 0; k < kWide; ++k) entries.of[k] = splat(a);
    return entries;
  }
  SOFTDTW_INLINE static Entries at(const double* from) {
    Entries entries;
    for (int k = 0; k < kWide; ++k) entries.of[k] = load(from + k * kWidth<double>);
    return entries;
  }
  SOFTDTW_INLINE void put(double* to) const {
    for (int k = 0; k < kWide; ++k) store(to + k * kWidth<double>, of[k]);
  }
  SOFTDTW_INLINE static Entries of_costs(Vec<T> cost) {
    return widened_by(cost, std::make_integer_sequence<int, kWidth<double>>());
  }

 private:
  template <int... I>
  SOFTDTW_INLINE static Entries widened_by(Vec<T> cost, std::integer_sequence<int, I...>) {
    if constexpr (kWide == 1)
      return {cost};
    else
      return {
          widened(__builtin_shufflevector(cost, cost, I...)),
          widened(__builtin_shufflevector(cost, cost, (I + kWidth<double>)...))};
  }
};

template <typename T, class Cells>
class LanesSweep {
 public:
  LanesSweep(const Cells& cells, const Extent& extent, double* row) : cells_(cells), extent_(extent), row_(row + kLanes) {}

  // What the last cells of the pairs hold, in `value`. False: asked to stop. Its row of the table has a place before column 0.
  bool operator()(double* value) const {
    Entries<T>::everywhere(0).put(row_ - kLanes);
    cells_.enter(row_);
    const int64_t width = int64_t(extent_.high) - extent_.low + 1, columns = width < extent_.m ? width : extent_.m;
    for (int64_t i = 0; i < extent_.n;) {
      if (i % kRowsPerLook == 0 && stop_asked(kRowsPerLook * kLanes * columns)) return false;
      if (extent_.n - i >= kRowsAtOnce) {
        sweep<kRowsAtOnce>(i);
        i += kRowsAtOnce;
      } else {
        sweep<1>(i);
        ++i;
      }
      border(i - 1).put(row_ - kLanes);
    }
    for (int lane = 0; lane < kLanes; ++lane) value[lane] = row_[(extent_.m - 1) * kLanes + lane];
    return true;
  }

 private:
  static constexpr int kLanes = kWidth<T>;
  // So many rows that sums are not waited for, and what they need of the columns before stays in registers.
  static constexpr int kRowsAtOnce = 4 / Entries<T>::kWide, kRowsPerLook = 32;

  int64_t first_of(int64_t i) const { return i + extent_.low > 0 ? i + extent_.low : 0; }
  int64_t last_of(int64_t i) const { return i + extent_.high < extent_.m - 1 ? i + extent_.high : extent_.m - 1; }
  SOFTDTW_INLINE Entries<T> border(int64_t i) const {
    return -1 - i >= extent_.low ? cells_.border(i) : Entries<T>::everywhere(__builtin_inf());
  }

  // Rows from i on. Before, row_ has the entries of the row above, and afterwards those of the last of them.
  template <int kRows>
  void sweep(int64_t i) const {
    double* const row = row_;
    const int64_t first = first_of(i), last = last_of(i);
    const Entries<T> infinite = Entries<T>::everywhere(__builtin_inf());
    Entries<T> left[kRows], diagonal[kRows];
    for (int r = 0; r < kRows; ++r) left[r] = border(i + r), diagonal[r] = infinite;
    diagonal[0] = Entries<T>::at(row + (first - 1) * kLanes);
    typename Cells::template Block<kRows> block(cells_, i);

    const auto advance = [&](int64_t t, const auto& is_inside, const auto& is_over) SOFTDTW_LAMBDA {
      Entries<T> above = infinite;
      if (is_inside(Constant<0>{})) above = Entries<T>::at(row + t * kLanes);
      block.at(t);
      descending<0, kRows>([&](auto r) SOFTDTW_LAMBDA {
        constexpr int kRow = decltype(r)();
        const Entries<T> up = kRow > 0 ? left[kRow > 0 ? kRow - 1 : 0] : above;
        if (is_inside(r)) {
          left[kRow] = block.cell(r, t, diagonal[kRow], up, left[kRow]);
        } else {
          block.leave_out(r);
          if (is_over(r)) left[kRow] = infinite;
        }
        diagonal[kRow] = up;
      });
      if (is_inside(Constant<kRows - 1>{})) left[kRows - 1].put(row + (t - kRows + 1) * kLanes);
    };
    const auto always = [](auto) SOFTDTW_LAMBDA { return true; };
    const auto never = [](auto) SOFTDTW_LAMBDA { return false; };
    // Each row begins, or ends, so many steps after the one above it.
    const auto begin = [&](auto late) SOFTDTW_LAMBDA {
      constexpr int kLate = decltype(late)();
      ascending<0, kLate*(kRows - 1)>([&](auto s) SOFTDTW_LAMBDA {
        advance(first + s, [](auto r) SOFTDTW_LAMBDA { return kLate * decltype(r)() <= decltype(s)(); }, never);
      });
    };
    const auto end = [&](auto late) SOFTDTW_LAMBDA {
      constexpr int kLate = decltype(late)();
      ascending<1, kLate*(kRows - 1) + 1>([&](auto s) SOFTDTW_LAMBDA {
        advance(last + s, [](auto r) SOFTDTW_LAMBDA { return kLate * decltype(r)() >= decltype(s)(); }, always);
      });
    };
    const int64_t more = first_of(i + kRows - 1) - first, most = last_of(i + kRows - 1) - last;  // columns
    const int64_t all_from = first + more + kRows - 1, stop = last + most + kRows - 1;
    if constexpr (Cells::kUnrollsEdges) {
      const bool is_even = (more == 0 || more == kRows - 1) && (most == 0 || most == kRows - 1);
      if (is_even && all_from <= last + 1) {
        more > 0 ? begin(Constant<2>{}) : begin(Constant<1>{});
        for (int64_t t = all_from; t <= last; ++t) advance(t, always, never);
        most > 0 ? end(Constant<2>{}) : end(Constant<1>{});
        return;
      }
    }
    for (int64_t t = first; t <= stop; ++t) {
      for (; t >= all_from && t <= last; ++t) advance(t, always, never);
      if (t > stop) break;
      advance(
          t, [&](int r) SOFTDTW_LAMBDA { return t - r >= first_of(i + r) && t - r <= last_of(i + r); },
          [&](int r) SOFTDTW_LAMBDA { return t - r > last_of(i + r); });
    }
  }

  const Cells& cells_;
  const Extent extent_;
  double* const row_;
};

// Values that were not reached are NaN.
template <class Cells, template <typename> class AnyGroup, typename T>
void sweep_group(AnyGroup<T>& group) {
  for (int64_t pair = 0; pair < kGroup; pair += kWidth<T>) {
    const Cells cells(group, pair);
    if (LanesSweep<T, Cells>(cells, group.extent, group.row)(group.value + pair)) continue;
    for (double& value : group.value) value = __builtin_nan("");
    return;
  }
}
