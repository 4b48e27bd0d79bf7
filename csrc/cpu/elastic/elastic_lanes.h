// Hard elastic measures of a group of pairs, by lanes_sweep.h, with the values of elastic_sweep.h to the bit, but that a weight times
// a cost and a sum may be rounded at once.

// Any cost, of vectors; of numbers there is a type in its place for those that measures have.
struct AnyCost {};

template <typename T, class Type, class CostType>
struct ElasticLanes {
  using V = Vec<T>;
  static constexpr int kLanes = kWidth<T>;
  static constexpr bool kOneDim = !std::is_same_v<CostType, AnyCost>, kUnrollsEdges = false;
  static constexpr bool kHasGaps = kIs<Type, Edit> || kIs<Type, Twed>;
  const ElasticGroup<T>& group;
  const int64_t dim, step;  // numbers of a vector, and of the pairs' vectors
  const T *const x, *const y, *const x_times, *const y_times, *const x_gaps, *const y_gaps;

  ElasticLanes(const ElasticGroup<T>& group_, int64_t pair)
      : group(group_),
        dim(kOneDim ? 1 : group_.dim),
        step(dim * kLanes),
        x(group.x.of(pair)),
        y(group.y.of(pair)),
        x_times(group.x_times.of(pair)),
        y_times(group.y_times.of(pair)),
        x_gaps(group.x_gaps.of(pair)),
        y_gaps(group.y_gaps.of(pair)) {}

  void enter(double* row) const {
    const Extent& extent = group.extent;
    Entries<T> sum = Entries<T>::everywhere(0);
    for (int64_t i = 0; i < extent.n; ++i) {
      add(sum, x_gaps, i);
      sum.put(group.borders + i * kLanes);
    }
    sum = Entries<T>::everywhere(0);
    for (int64_t j = 0; j < extent.m; ++j) {
      add(sum, y_gaps, j);
      (j + 1 <= extent.high ? sum : infinite()).put(row + j * kLanes);
    }
  }
  // A border's next number: what is before it is the sum of its gaps.
  SOFTDTW_INLINE void add(Entries<T>& sum, const T* gaps, int64_t place) const {
    if (!group.sum_border) {
      sum = infinite();
      return;
    }
    const Entries<T> gap = Entries<T>::of_costs(kHasGaps ? load(gaps + place * kLanes) : V{} + 1);
    for (int k = 0; k < Entries<T>::kWide; ++k) sum.of[k] += gap.of[k];
  }
  SOFTDTW_INLINE static Entries<T> infinite() { return Entries<T>::everywhere(__builtin_inf()); }
  SOFTDTW_INLINE Entries<T> border(int64_t i) const { return Entries<T>::at(group.borders + i * kLanes); }

  template <class Own>
  SOFTDTW_INLINE V distance(int64_t row, int64_t column) const {
    if constexpr (kOneDim) return Own::finish(Own::share(load(x + row * kLanes) - load(y + column * kLanes), V{}));
    const T *const own_x = x + row * step, *const own_y = y + column * step;
    V sum = {};
    for (int64_t d = 0; d < dim; ++d) sum = Own::share(load(own_x + d * kLanes) - load(own_y + d * kLanes), sum);
    return Own::finish(sum);
  }
  SOFTDTW_INLINE V between_times(int64_t row, int64_t column) const {
    if (x_times) return load(x_times + row * kLanes) - load(y_times + column * kLanes);
    return splat(group.parameter * T(row - column));
  }

  template <int kRows>
  struct Block {
    const ElasticLanes& cells;
    const int64_t i;
    V own[kRows];                                          // the rows' distances in a step
    V last[kRows] = {}, before[kRows] = {}, before_first;  // kTwed: a of a row's last cell, and of the one up left of it

    Block(const ElasticLanes& cells_, int64_t i_) : cells(cells_), i(i_) {}

    SOFTDTW_INLINE void at(int64_t t) {
      if constexpr (kOneDim)
        look<CostType>(t);
      else
        with_cost<Costs<VectorMath<T>>>(cells.group.cost, [&](auto type) { look<decltype(type)>(t); });
    }
    template <class Own>
    SOFTDTW_INLINE void look(int64_t t) {
      ascending<0, kRows>([&](auto r) SOFTDTW_LAMBDA { own[r] = cells.template distance<Own>(i + r, t - r); });
      if constexpr (kIs<Type, Twed>) {
        before_first = V{};
        if (i > 0 && t > 0)
          before_first = Type::match(cells.template distance<Own>(i - 1, t - 1), cells.between_times(i - 1, t - 1));
      }
    }
    SOFTDTW_INLINE Entries<T> cell(
        int r, int64_t t, const Entries<T>& diagonal, const Entries<T>& up, const Entries<T>& left) {
      const int64_t row = i + r, column = t - r;
      StepCosts<V> costs;
      if constexpr (kIs<Type, Twed>) {
        const V match = Type::match(own[r], cells.between_times(row, column));
        costs.diagonal = match + (r > 0 ? before[r] : before_first);
        leave_out(r);
        last[r] = match;
      } else if constexpr (kIs<Type, Msm>) {
        const V c = splat(cells.group.parameter), own_x = load(cells.x + row * kLanes),
                own_y = load(cells.y + column * kLanes);
        costs.diagonal = own[r];
        costs.up = c + Type::gap(own_x, load(cells.x + (row - 1) * kLanes), own_y);
        costs.left = c + Type::gap(own_y, load(cells.y + (column - 1) * kLanes), own_x);
      } else if constexpr (kIs<Type, Weighted>) {
        costs.diagonal = costs.up = costs.left = own[r] * cells.group.weights[row > column ? row - column : column - row];
      } else {
        costs.diagonal = Type::match(own[r], splat(cells.group.parameter));
      }
      if constexpr (kHasGaps)
        costs.up = load(cells.x_gaps + row * kLanes), costs.left = load(cells.y_gaps + column * kLanes);
      else if constexpr (kIs<Type, Edr> || kIs<Type, Lcss>)
        costs.up = costs.left = V{} + 1;
      const Entries<T> of_diagonal = Entries<T>::of_costs(costs.diagonal), of_up = Entries<T>::of_costs(costs.up),
                       of_left = Entries<T>::of_costs(costs.left);
      Entries<T> now;
      for (int k = 0; k < Entries<T>::kWide; ++k) {
        const Vec<double> others = minimum(up.of[k] + of_up.of[k], diagonal.of[k] + of_diagonal.of[k]);
        now.of[k] = minimum(left.of[k] + of_left.of[k], others);
      }
      return now;
    }
    // The row above is a column further: what it had last is up left of this row's next cell.
    SOFTDTW_INLINE void leave_out(int r) {
      if constexpr (kIs<Type, Twed>) {
        if (r > 0) before[r] = last[r - 1];
      }
    }
  };
};

template <typename T>
void elastic_lanes(ElasticGroup<T>& group) {
  using Math = VectorMath<T>;
  with_measure_of<Measures<Vec<T>>>(group.measure, [&](auto type) {
    using Type = decltype(type);
    // Of numbers the Euclidean distance is the city-block one.
    if (group.dim == 1 && (group.cost == Cost::kCityblock || group.cost == Cost::kEuclidean))
      return sweep_group<ElasticLanes<T, Type, Cityblock<Math>>>(group);
    if constexpr (!kIs<Type, Msm>)
      if (group.dim == 1 && group.cost == Cost::kSqEuclidean)
        return sweep_group<ElasticLanes<T, Type, SqEuclidean<Math>>>(group);
    sweep_group<ElasticLanes<T, Type, AnyCost>>(group);
  });
}
