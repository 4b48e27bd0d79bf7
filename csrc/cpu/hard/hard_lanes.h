// Hard DTW of a group of pairs, by lanes_sweep.h. Entries are float64, and values those of hard_sweep.h to the bit, if series of one
// dimension are float64, too.

// kOneDim: of a cost that adds to what it is given.
template <typename T, class Type, bool kOneDim, bool kPenalty>
struct HardLanes {
  static constexpr bool kUnrollsEdges = kOneDim;
  static constexpr int kLanes = kWidth<T>;
  const T *const x, *const y;
  const int64_t m, dim, step;  // dim: numbers of a vector; step: of the pairs' vectors
  const Vec<double> penalty;

  HardLanes(const HardGroup<T>& group, int64_t pair)
      : x(group.x.of(pair)),
        y(group.y.of(pair)),
        m(group.extent.m),
        dim(kOneDim ? 1 : group.dim),
        step(dim * kLanes),
        penalty(splat(group.penalty)) {}

  SOFTDTW_INLINE void enter(double* row) const {
    for (int64_t j = 0; j < m; ++j) border(j).put(row + j * kLanes);
  }
  SOFTDTW_INLINE static Entries<T> border(int64_t) { return Entries<T>::everywhere(__builtin_inf()); }

  template <int kRows>
  struct Block {
    const T* const __restrict x, * const __restrict y;
    const int64_t dim, step;
    const Vec<double> penalty;

    SOFTDTW_INLINE Block(const HardLanes& cells, int64_t i)
        : x(cells.x + i * cells.step), y(cells.y), dim(cells.dim), step(cells.step), penalty(cells.penalty) {}
    SOFTDTW_INLINE void at(int64_t) {}
    SOFTDTW_INLINE void leave_out(int) {}
    SOFTDTW_INLINE Entries<T> cell(
        int r, int64_t t, const Entries<T>& diagonal, const Entries<T>& up, const Entries<T>& left) const {
      const T *const own_x = x + r * step, *const own_y = y + (t - r) * step;
      Entries<T> now, own;
      if constexpr (!kOneDim) {
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
        if constexpr (kOneDim)
          now.of[k] = Type::share(load(own_x) - load(own_y), low);
        else
          now.of[k] = own.of[k] + low;
      }
      return now;
    }
  };
};

template <typename T>
void hard_lanes(HardGroup<T>& group) {
  with_cost<Costs<VectorMath<T>>>(group.cost, [&](auto type) {
    using Type = decltype(type);
    if constexpr (sizeof(T) == sizeof(double) && kIsSum<Type>)
      if (group.dim == 1)
        return group.penalty > 0 ? sweep_group<HardLanes<T, Type, true, true>>(group)
                                 : sweep_group<HardLanes<T, Type, true, false>>(group);
    sweep_group<HardLanes<T, Type, false, true>>(group);
  });
}
