// From the shares of a soft strip's cells to the masses D, U, L of (12), and what the gradients of (13) are made of. Compiled once
// per instruction set.

template <typename T, class Type>
class ElasticBackward {
 public:
  ElasticBackward(const ElasticPair<T>& pair, const ElasticStrip& strip, ElasticSums<T>& sums)
      : pair_(pair), strip_(strip), sums_(sums), costs_(pair, strip) {
    for (int lane = 0; lane < kLanes; ++lane) lanes_[lane] = lane;
  }

  bool operator()() {
    const Extent& extent = pair_.extent;
    const int64_t first = strip_.first_diagonal(extent), last = strip_.last_diagonal(extent);
    const int64_t stride = ElasticStrip::stride(strip_.rows);
    for (int k = 0; k < 3; ++k) {
      diagonal_[k] = sums_.masses + k * stride + kElasticSlack;
      up_[k] = sums_.masses + (3 + k) * stride + kElasticSlack;
      left_[k] = sums_.masses + (6 + k) * stride + kElasticSlack;
    }
    all_ = sums_.masses + 9 * stride + kElasticSlack;
    for (int64_t i = 0; i < 10 * stride; ++i) sums_.masses[i] = 0;
    take_below(last + 2);
    take_below(last + 1);
    for (int64_t d = last; d >= first; --d) {
      const StripRows own(extent, strip_.row, strip_.rows, d);
      if (stop_asked(own.last - own.first + 1)) return false;
      const int now = place(d), next = place(d + 1), second = place(d + 2);
      const double* const shares = strip_.shares + (d - first) * 3 * stride;
      double *const diagonal = diagonal_[now], *const up = up_[now], *const left = left_[now];
      for (int64_t k = own.first; k <= own.last; k += kLanes)
        store(all_ + k, load(diagonal_[second] + k + 1) + load(up_[next] + k + 1) + load(left_[next] + k));
      if (d - own.last == extent.m - 1 && strip_.row + own.last == extent.n - 1) all_[own.last] = 1;
      for (int64_t k = own.first; k <= own.last; k += kLanes) {  // what is beyond the last row nothing reads
        const V all = load(all_ + k);
        store(diagonal + k, all * load(shares + k));
        store(up + k, all * load(shares + stride + k));
        store(left + k, all * load(shares + 2 * stride + k));
      }
      for (double* const mass : {diagonal, up, left}) mass[own.first - 1] = mass[own.last + 1] = 0;
      take_below(d);
      if (own.first == 0 && own.last >= 0) {
        sums_.flow_diagonal[d] = diagonal[0];
        sums_.flow_up[d] = up[0];
      }
      if (own.first <= own.last) add(d, own.first, own.last - own.first + 1, diagonal_[second] + 1);
    }
    for (int lane = 0; lane < kLanes; ++lane) sums_.cost += sum_[lane], sums_.parameter += parameter_[lane];
    return true;
  }

 private:
  using V = Vec<double>;
  static constexpr int64_t kLanes = kWidth<double>;

  static int place(int64_t diagonal) { return int((diagonal + 3) % 3); }

  // What the row below the strip has on a diagonal.
  void take_below(int64_t d) {
    const int64_t column = d - strip_.rows, row = strip_.row + strip_.rows;
    const bool is_there = row < pair_.extent.n && column >= 0 && column < pair_.extent.m && pair_.in_band(row, column);
    diagonal_[place(d)][strip_.rows] = is_there ? sums_.flow_diagonal[column] : 0;
    up_[place(d)][strip_.rows] = is_there ? sums_.flow_up[column] : 0;
  }

  // Of `count` rows from `first` on. `next`: D of the cells that follow on theirs by a diagonal step. Whole registers, of which
  // rows beyond have no mass; what is packed goes on beyond them.
  void add(int64_t d, int64_t first, int64_t count, const double* next) {
    const int64_t row = strip_.row + first, at_y = pair_.extent.m - 1 - (d - first);
    const double *const diagonal = diagonal_[place(d)] + first, *const up = up_[place(d)] + first;
    const double* const left = left_[place(d)] + first;
    if constexpr (std::is_same_v<Type, Ready>) {
      const View<T>* const tables[] = {&sums_.diagonal, &sums_.up, &sums_.left};
      const double* const masses[] = {diagonal, up, left};
      for (int n = 0; n < 3; ++n)
        for (int64_t k = 0; k < count; ++k) tables[n]->at(row + k, d - first - k) = T(masses[n][k]) * sums_.factor;
    } else {
      T* const distance = costs_.memory(0);
      double* const mass = all_ + first;  // E is not needed any more
      costs_.distances(row, at_y, (count + kLanes - 1) / kLanes * kLanes, distance);
      V sum = {}, parameter = {};
      if constexpr (kIs<Type, Edr> || kIs<Type, Lcss>) {
        const T epsilon = T(pair_.parameter);
        for (int64_t k = 0; k < count; ++k) distance[k] = Type::match(distance[k], epsilon);
        for (int64_t k = 0; k < count; k += kLanes) sum += kept(diagonal, k, count) * (load_wide(distance + k) - 2);
      } else if constexpr (kIs<Type, Edit>) {
        for (int64_t k = 0; k < count; k += kLanes) {
          const V own = kept(diagonal, k, count);
          sum += own * load_wide(distance + k);
          add_diagonal(row + k, at_y + k, own);
          store(mass + k, own);
        }
        add_distances(row, at_y, count, distance, mass);
      } else if constexpr (kIs<Type, Twed>) {
        for (int64_t k = 0; k < count; k += kLanes) {
          const V own = kept(diagonal, k, count), both = own + kept(next + first, k, count);
          const V between = pair_.x_times ? load_wide(pair_.x_times + row + k) - load_wide(pair_.y_times + at_y + k)
                                          : (double(row - (d - first) + 2 * k) + 2 * lanes_) * double(T(pair_.parameter));
          sum += both * (load_wide(distance + k) + VectorMath<double>::abs(between));
          add_diagonal(row + k, at_y + k, own);
          store(mass + k, both);
          if (sums_.x_times) {
            const V slope = between > V{} ? both : between < V{} ? -both : V{};
            add_to(sums_.x_times + row + k, slope);
            add_to(sums_.y_times + at_y + k, -slope);
          }
        }
        add_distances(row, at_y, count, distance, mass);
      } else if constexpr (kIs<Type, Msm>) {
        const T *const x = pair_.x + row, *const y = pair_.y + at_y;
        const double c = pair_.parameter;
        for (int64_t k = 0; k < count; k += kLanes) {
          const V own_x = load_wide(x + k), before_x = load_wide(x + k - 1);
          const V own_y = load_wide(y + k), before_y = load_wide(y + k + 1);
          const V of_diagonal = kept(diagonal, k, count), of_up = kept(up, k, count), of_left = kept(left, k, count);
          const GapSlopes by_up(own_x, before_x, own_y), by_left(own_y, before_y, own_x);
          const V sign = own_x > own_y ? V{} + 1.0 : own_x < own_y ? V{} - 1.0 : V{}, step = of_diagonal * sign;
          add_to(sums_.x + row + k, step + of_up * by_up.v + of_left * by_left.b);
          add_to(sums_.y + at_y + k, of_up * by_up.b + of_left * by_left.v - step);
          add_to(sums_.x_before + row + k, of_up * by_up.a);
          add_to(sums_.y_before + at_y + k, of_left * by_left.a);
          sum += of_diagonal * load_wide(distance + k) + of_up * (c + gap_of<double>(own_x, before_x, own_y)) +
                 of_left * (c + gap_of<double>(own_y, before_y, own_x));
          parameter += of_up + of_left;
        }
      } else {
        const double half = double(pair_.extent.n > pair_.extent.m ? pair_.extent.n : pair_.extent.m) / 2;
        T* const weights = costs_.memory(1);
        for (int64_t k = 0; k < count; ++k) {
          const int64_t from = row - (d - first) + 2 * k;
          weights[k] = pair_.weights[from < 0 ? -from : from];
        }
        for (int64_t k = 0; k < count; k += kLanes) {
          const V w = load_wide(weights + k), all = kept(mass, k, count), own = all * load_wide(distance + k) * w;
          const V from = double(row - (d - first) + 2 * k) + 2 * lanes_;
          sum += own;
          parameter += own * (1 - w) * (VectorMath<double>::abs(from) - half);
          store(mass + k, all * w);
        }
        add_distances(row, at_y, count, distance, mass);
      }
      sum_ += sum;
      parameter_ += parameter;
      (void)up, (void)left, (void)next;
    }
  }

  // Of a gap, as Msm::slopes has them.
  struct GapSlopes {
    V v, a, b;

    SOFTDTW_INLINE GapSlopes(V own, V one, V other) {
      const V p = one - own, q = other - own, zero = {};
      const auto below = (p > zero) & (q > zero), above = (p < zero) & (q < zero);
      const auto is_first = (below & (p <= q)) | (~below & (p >= q));
      v = below ? zero - 1.0 : above ? zero + 1.0 : zero;
      a = is_first ? -v : zero;
      b = is_first ? zero : -v;
    }
  };

  // Masses of the rows from k on, none beyond `count`.
  SOFTDTW_INLINE V kept(const double* mass, int64_t k, int64_t count) const {
    return lanes_ < splat(double(count - k)) ? load(mass + k) : V{};
  }

  SOFTDTW_INLINE static void add_to(double* sums, V own) { store(sums, load(sums) + own); }

  SOFTDTW_INLINE void add_diagonal(int64_t row, int64_t at_y, V mass) {
    add_to(sums_.x_diagonal + row, mass);
    add_to(sums_.y_diagonal + at_y, mass);
  }

  // The gradient of distances that count `mass` times.
  void add_distances(int64_t row, int64_t at_y, int64_t count, const T* distance, const double* mass) {
    with_cost<Costs<VectorMath<double>>>(pair_.cost, [&](auto type) {
      for (int64_t dim = 0; dim < pair_.dim; ++dim) {
        const T *const x = pair_.x + dim * pair_.x_stride + row, *const y = pair_.y + dim * pair_.y_stride + at_y;
        double *const dx = sums_.x + dim * pair_.x_stride + row, *const dy = sums_.y + dim * pair_.y_stride + at_y;
        for (int64_t k = 0; k < count; k += kLanes) {
          V own = load(mass + k);
          if constexpr (type.kOverCost) own = over_cost<VectorMath<double>>(own, load_wide(distance + k));
          const V slope = own * double(type.kFactor) * type.slope(load_wide(x + k) - load_wide(y + k));
          add_to(dx + k, slope);
          add_to(dy + k, -slope);
        }
      }
    });
  }

  const ElasticPair<T>& pair_;
  const ElasticStrip& strip_;
  ElasticSums<T>& sums_;
  ElasticCosts<T, Type> costs_;
  double *diagonal_[3], *up_[3], *left_[3], *all_;
  V lanes_, sum_ = {}, parameter_ = {};
};

// Of a strip that was swept with kShares.
template <typename T>
bool elastic_backward(const ElasticPair<T>& pair, const ElasticStrip& strip, ElasticSums<T>& sums) {
  return with_costs(pair, [&](auto type) { return ElasticBackward<T, decltype(type)>(pair, strip, sums)(); });
}
