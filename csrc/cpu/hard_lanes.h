// Hard DTW of a group of pairs, by lanes_sweep.h. Entries are float64, and values those of hard_sweep.h to the bit, if series of one
// dimension are float64, too. interleave() brings series into lanes.

template <typename T, class Type, bool kOneDim, bool kPenalty>
struct HardLanes {
  static constexpr bool kAtOnce = kOneDim && kIsSum<Type>, kUnrollsEdges = kAtOnce;
  static constexpr int kLanes = kWidth<T>;
  const T *const x, *const y;
  const int64_t m, dim, step;  // dim: numbers of a vector; step: of the pairs' vectors
  const Vec<double> penalty;

  SOFTDTW_INLINE void enter(double* row) const {
    for (int64_t j = 0; j < m; ++j) border(j).put(row + j * kLanes);
  }
  SOFTDTW_INLINE static Entries<T> border(int64_t) { return Entries<T>::everywhere(__builtin_inf()); }

  template <int kRows>
  struct Block {
    const HardLanes& cells;
    const T* const __restrict x, * const __restrict y;
    const int64_t dim, step;
    const Vec<double> penalty;

    SOFTDTW_INLINE Block(const HardLanes& cells_, int64_t i)
        : cells(cells_),
          x(cells_.x + i * cells_.step),
          y(cells_.y),
          dim(cells_.dim),
          step(cells_.step),
          penalty(cells_.penalty) {}
    SOFTDTW_INLINE void at(int64_t) {}
    SOFTDTW_INLINE void leave_out(int) {}
    SOFTDTW_INLINE Entries<T> cell(
        int r, int64_t t, const Entries<T>& diagonal, const Entries<T>& up, const Entries<T>& left) const {
      const T *const own_x = x + r * step, *const own_y = y + (t - r) * step;
      Entries<T> now, own;
      if constexpr (!kAtOnce) {
        Vec<T> sum = {};
        for (int64_t d = 0; d < dim; ++d) sum = Type::share(load(own_x + d * kLanes) - load(own_y + d * kLanes), sum);
        own = Entries<T>::of_costs(Type::finish(sum));
      }
      for (int k = 0; k < Entries<T>::kWide; ++k) {
        // Rounding keeps order: this is min(up, left) + penalty. `left` comes last, and is all that is waited for.
        Vec<double> low;
        if constexpr (kPenalty)
          low = minimum(left.of[k] + penalty, minimum(up.of[k] + penalty, diagonal.of[k]));
        else
          low = minimum(left.of[k], minimum(up.of[k], diagonal.of[k]));
        if constexpr (kAtOnce)
          now.of[k] = Type::share(load(own_x) - load(own_y), low);
        else
          now.of[k] = own.of[k] + low;
      }
      return now;
    }
  };

  static void run(HardGroup<T>& group) {
    const int64_t n = group.extent.n, m = group.extent.m, dim = kOneDim ? 1 : group.dim;
    for (int64_t pair = 0; pair < kGroup; pair += kLanes) {
      const T* const x = group.x + (group.is_one_x ? 0 : pair) * n * dim;
      const T* const y = group.y + (group.is_one_y ? 0 : pair) * m * dim;
      const HardLanes cells{x, y, m, dim, dim * kLanes, splat(group.penalty)};
      if (!LanesSweep<T, HardLanes>(cells, group.extent, group.row)(group.value + pair)) {
        for (double& value : group.value) value = __builtin_nan("");
        return;
      }
    }
  }
};

template <typename T>
void hard_lanes(HardGroup<T>& group) {
  with_cost<Costs<VectorMath<T>>>(group.cost, [&](auto type) {
    using Type = decltype(type);
    if constexpr (sizeof(T) == sizeof(double) && kIsSum<Type>)
      if (group.dim == 1)
        return group.penalty > 0 ? HardLanes<T, Type, true, true>::run(group) : HardLanes<T, Type, true, false>::run(group);
    HardLanes<T, Type, false, true>::run(group);
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
