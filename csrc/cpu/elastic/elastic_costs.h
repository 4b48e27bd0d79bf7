// What the steps into the cells of a diagonal cost, compiled once per instruction set; the loops become vectors.

template <typename T, class Type>
class ElasticCosts {
 public:
  ElasticCosts(const ElasticPair<T>& pair, const ElasticStrip& strip) : pair_(pair), strip_(strip) {
    T* const memory = reinterpret_cast<T*>(strip.costs) + kElasticSlack;
    const int64_t stride = ElasticStrip::stride(strip.rows);
    for (int k = 0; k < 3; ++k) {
      own_[k] = memory + k * stride;
      kept_[k] = memory + (3 + k) * stride;
      for (int64_t i = -kElasticSlack; i < strip.rows + kElasticSlack; ++i)
        own_[k][i] = kIs<Type, Edr> || kIs<Type, Lcss> ? T(1) : T(0), kept_[k][i] = T(0);
    }
  }

  // Of the two diagonals before a strip's first one, which `before` below reads beside the row above the strip.
  void enter(int64_t diagonal) {
    if constexpr (kIs<Type, Twed>)
      for (int64_t d = diagonal - 2; d < diagonal; ++d)
        if (strip_.row > 0 && d + 1 >= 0) matches(d, -1, 1, kept_[(d + 3) % 3] - 1);
  }

  // Of `count` rows from `first` on, and what is read beyond them. Whether one is NaN is noted in `spoiled`.
  StepCosts<const T*> operator()(int64_t d, int64_t first, int64_t count, bool& spoiled) {
    T* const own = own_[0];
    const int64_t row = strip_.row + first, column = d - first, y = pair_.extent.m - 1 - column;
    StepCosts<const T*> costs = {own, own_[1], own_[2]};
    if constexpr (kIs<Type, Twed>) {
      T *const now = kept_[(d + 3) % 3], *const before = kept_[(d + 1) % 3];
      matches(d, first - 1, count + 1, now + first - 1);
      now[first + count] = T(0);
      for (int64_t k = 0; k < count; ++k) own[k] = now[first + k] + before[first + k - 1];
      costs.up = pair_.x_gaps + row, costs.left = pair_.y_gaps + y;
    } else if constexpr (kIs<Type, Msm>) {
      const T c = T(pair_.parameter);
      const T *const own_x = pair_.x + row, *const own_y = pair_.y + y;
      distances(row, y, count, own);
      for (int64_t k = 0; k < count; ++k) {
        own_[1][k] = c + Type::gap(own_x[k], own_x[k - 1], own_y[k]);
        own_[2][k] = c + Type::gap(own_y[k], own_y[k + 1], own_x[k]);
      }
    } else if constexpr (kIs<Type, Weighted>) {
      distances(row, y, count, own);
      const int64_t first_place = row - column;
      for (int64_t k = 0; k < count; ++k) {
        const int64_t place = first_place + 2 * k;
        own[k] *= pair_.weights[place < 0 ? -place : place];
      }
      costs.up = costs.left = own;
    } else {
      distances(row, y, count, own);
      if constexpr (!kIs<Type, Edit>) {
        const T epsilon = T(pair_.parameter);
        for (int64_t k = 0; k < count; ++k) own[k] = Type::match(own[k], epsilon);
      } else {
        costs.up = pair_.x_gaps + row, costs.left = pair_.y_gaps + y;
      }
    }
    int64_t wrong = 0;
    for (int64_t k = 0; k < count; ++k) wrong += own[k] != own[k];
    spoiled |= wrong > 0;
    return costs;
  }

 private:
  // Of a cost's vectors, at rows from `row` on and columns from m - 1 - y down.
  void distances(int64_t row, int64_t at_y, int64_t count, T* __restrict out) const {
    with_cost<Costs<PlainMath<T>>>(pair_.cost, [&](auto type) {
      const T* x = pair_.x + row;
      const T* y = pair_.y + at_y;
      for (int64_t k = 0; k < count; ++k) out[k] = type.share(x[k] - y[k], T(0));
      for (int64_t dim = 1; dim < pair_.dim; ++dim) {
        x += pair_.x_stride, y += pair_.y_stride;
        for (int64_t k = 0; k < count; ++k) out[k] = type.share(x[k] - y[k], out[k]);
      }
      for (int64_t k = 0; k < count; ++k) out[k] = type.finish(out[k]);
    });
  }

  void matches(int64_t d, int64_t first, int64_t count, T* __restrict out) const {
    const int64_t row = strip_.row + first, y = pair_.extent.m - 1 - (d - first);
    distances(row, y, count, out);
    if (pair_.x_times) {
      const T *const x_times = pair_.x_times + row, *const y_times = pair_.y_times + y;
      for (int64_t k = 0; k < count; ++k) out[k] = Type::match(out[k], x_times[k] - y_times[k]);
    } else {
      const T unit = T(pair_.parameter);
      const int32_t place = int32_t(row - (d - first));
      for (int32_t k = 0; k < int32_t(count); ++k) out[k] = Type::match(out[k], unit * T(place + 2 * k));
    }
  }

  const ElasticPair<T>& pair_;
  const ElasticStrip& strip_;
  T *own_[3], *kept_[3];
};

// Ready-made costs of each step.
struct Ready {};

template <typename T>
class ElasticCosts<T, Ready> {
 public:
  ElasticCosts(const ElasticPair<T>& pair, const ElasticStrip& strip) : pair_(pair), strip_(strip) {
    for (int k = 0; k < 3; ++k) own_[k] = reinterpret_cast<T*>(strip.costs) + k * ElasticStrip::stride(strip.rows);
  }
  void enter(int64_t) {}

  StepCosts<const T*> operator()(int64_t d, int64_t first, int64_t count, bool& spoiled) {
    const int64_t rows = StripRows(pair_.extent, strip_.row, strip_.rows, d).last - first + 1;
    const View<const T>* const views[] = {&pair_.diagonal, &pair_.up, &pair_.left};
    int64_t wrong = 0;
    for (int n = 0; n < 3; ++n) {
      const int64_t stride = views[n]->row_stride - views[n]->column_stride;
      const T* const from = &views[n]->at(strip_.row + first, d - first);
      T* const own = own_[n];
      for (int64_t k = 0; k < rows; ++k) own[k] = from[k * stride];
      for (int64_t k = rows; k < count; ++k) own[k] = T(0);
      for (int64_t k = 0; k < rows; ++k) wrong += !(own[k] > -T(INFINITY));
    }
    spoiled |= wrong > 0;
    return {own_[0], own_[1], own_[2]};
  }

 private:
  const ElasticPair<T>& pair_;
  const ElasticStrip& strip_;
  T* own_[3];
};

template <typename T, class F>
auto with_costs(const ElasticPair<T>& pair, const F& f) {
  if (pair.measure == Measure::kMatrix) return f(Ready{});
  return with_measure<T>(pair.measure, f);
}
