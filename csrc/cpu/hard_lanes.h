// The sweep of (9) over a group of pairs, two rows at a time, of which the lower one is a column behind: neither waits for the
// other. Compiled once per instruction set. Entries are float64, and values those of hard_sweep.h to the bit, if series of one
// dimension are float64, too.

constexpr int kWide = kGroup / kWidth<double>;  // registers for an entry of every pair

struct Entries {
  Vec<double> of[kWide];
};

SOFTDTW_INLINE Entries everywhere(double a) {
  Entries entries;
  for (int k = 0; k < kWide; ++k) entries.of[k] = splat(a);
  return entries;
}
SOFTDTW_INLINE Entries load_entries(const double* from) {
  Entries entries;
  for (int k = 0; k < kWide; ++k) entries.of[k] = load(from + k * kWidth<double>);
  return entries;
}
SOFTDTW_INLINE void store_entries(double* to, const Entries& entries) {
  for (int k = 0; k < kWide; ++k) store(to + k * kWidth<double>, entries.of[k]);
}

template <int... I>
SOFTDTW_INLINE void widen_by(Vec<float> cost, Vec<double>* wide, std::integer_sequence<int, I...>) {
  wide[0] = widened(__builtin_shufflevector(cost, cost, I...));
  wide[1] = widened(__builtin_shufflevector(cost, cost, (I + kWidth<double>)...));
}
SOFTDTW_INLINE void widen(Vec<float> cost, Vec<double>* wide) {
  widen_by(cost, wide, std::make_integer_sequence<int, kWidth<double>>());
}
SOFTDTW_INLINE void widen(Vec<double> cost, Vec<double>* wide) { *wide = cost; }

template <typename T, class Type, bool kOneDim, bool kPenalty>
struct HardLanes {
  static constexpr bool kAtOnce = kOneDim && kIsSum<Type>;
  const HardGroup<T>& group;

  SOFTDTW_INLINE Entries cost(const T* x, const T* y) const {
    constexpr int kLanes = kWidth<T>, kPer = kLanes / kWidth<double>;
    const int64_t dim = kOneDim ? 1 : group.dim;
    Entries wide;
    for (int k = 0; k < kGroup / kLanes; ++k) {
      Vec<T> sum = {};
      for (int64_t d = 0; d < dim; ++d) {
        const int64_t at = d * kGroup + k * kLanes;
        sum = Type::share(load(x + at) - load(y + at), sum);
      }
      widen(Type::finish(sum), wide.of + k * kPer);
    }
    return wide;
  }

  SOFTDTW_INLINE Entries
  cell(const T* x, const T* y, const Entries& diagonal, const Entries& up, const Entries& left, Vec<double> penalty) const {
    Entries now, costs;
    if constexpr (!kAtOnce) costs = cost(x, y);
    for (int k = 0; k < kWide; ++k) {
      // Rounding keeps order: this is min(up, left) + penalty. `left` comes last, and is all that is waited for.
      Vec<double> low;
      if constexpr (kPenalty)
        low = minimum(left.of[k] + penalty, minimum(up.of[k] + penalty, diagonal.of[k]));
      else
        low = minimum(left.of[k], minimum(up.of[k], diagonal.of[k]));
      if constexpr (kAtOnce)
        now.of[k] = Type::share(load(x + k * kWidth<double>) - load(y + k * kWidth<double>), low);
      else
        now.of[k] = costs.of[k] + low;
    }
    return now;
  }

  void operator()(HardGroup<T>& out) const {
    const Extent& extent = group.extent;
    const int64_t n = extent.n, m = extent.m, step = group.dim * kGroup;
    const Entries infinite = everywhere(__builtin_inf());
    const Vec<double> penalty = splat(group.penalty);
    double* const row = group.row + kGroup;  // column -1 is the border
    for (int64_t j = -1; j < m; ++j) store_entries(row + j * kGroup, infinite);

    const auto first_of = [&](int64_t i) { return i + extent.low > 0 ? i + extent.low : 0; };
    const auto last_of = [&](int64_t i) { return i + extent.high < m - 1 ? i + extent.high : m - 1; };
    for (int64_t i = 0; i < n; i += 2) {
      const bool is_pair = i + 1 < n;
      const int64_t first = first_of(i), last = last_of(i);
      if (stop_asked((is_pair ? 2 : 1) * kGroup * (last - first + 1))) {
        for (double& value : out.value) value = __builtin_nan("");
        return;
      }
      const T *const x = group.x + i * step, *const below = x + step;
      const int64_t first_below = is_pair ? first_of(i + 1) : m, last_below = is_pair ? last_of(i + 1) : -1;

      Entries diagonal = i == 0 ? everywhere(0.0) : load_entries(row + (first - 1) * kGroup);
      Entries left = infinite;                                   // of row i
      Entries left_below = infinite, diagonal_below = infinite;  // of row i + 1
      const auto upper = [&](int64_t j) SOFTDTW_LAMBDA {
        const Entries up = load_entries(row + j * kGroup);
        const Entries now = cell(x, group.y + j * step, diagonal, up, left, penalty);
        diagonal = up;
        return now;
      };
      const auto lower = [&](int64_t j, const Entries& up) SOFTDTW_LAMBDA {
        left_below = cell(below, group.y + j * step, diagonal_below, up, left_below, penalty);
        diagonal_below = up;
        store_entries(row + j * kGroup, left_below);
      };

      int64_t j = first;
      if (!is_pair) {
        for (; j <= last; ++j) {
          left = upper(j);
          store_entries(row + j * kGroup, left);
        }
        continue;
      }
      // The band of the row below begins here or a column later: then this column is its diagonal.
      left = upper(j++);
      if (first_below > first) {
        diagonal_below = left;
        if (j <= last)
          left = upper(j++);
        else
          left = infinite, j++;
      }
      for (; j <= last; ++j) {
        const Entries now = upper(j);
        lower(j - 1, left);
        left = now;
      }
      for (; j - 1 <= last_below; ++j) {
        lower(j - 1, left);
        left = infinite;
      }
    }
    for (int k = 0; k < kGroup; ++k) out.value[k] = row[(m - 1) * kGroup + k];
  }
};

template <typename T>
void hard_lanes(HardGroup<T>& group) {
  with_cost<Costs<VectorMath<T>>>(group.cost, [&](auto type) {
    const auto sweep = [&](auto one_dim, auto penalty) {
      HardLanes<T, decltype(type), decltype(one_dim)::value, decltype(penalty)::value>{group}(group);
    };
    using Yes = std::true_type;
    using No = std::false_type;
    if constexpr (sizeof(T) == sizeof(double))
      if (group.dim == 1) return group.penalty > 0 ? sweep(Yes{}, Yes{}) : sweep(Yes{}, No{});
    group.penalty > 0 ? sweep(No{}, Yes{}) : sweep(No{}, No{});
  });
}
