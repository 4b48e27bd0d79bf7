// From the shares of a soft strip's cells to the masses D, U, L of (12), and what the gradients of (13) are made of. Compiled once
// per instruction set.

template <typename T, class Type>
class ElasticBackward {
 public:
  ElasticBackward(const ElasticPair<T>& pair, const ElasticStrip& strip, ElasticSums<T>& sums)
      : pair_(pair), strip_(strip), sums_(sums), costs_(pair, strip) {}

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
      for (int64_t k = own.first; k <= own.last; ++k)
        all_[k] = diagonal_[second][k + 1] + up_[next][k + 1] + left_[next][k];
      if (d - own.last == extent.m - 1 && strip_.row + own.last == extent.n - 1) all_[own.last] = 1;
      for (int64_t k = own.first; k <= own.last; ++k) {
        diagonal[k] = all_[k] * shares[k];
        up[k] = all_[k] * shares[stride + k];
        left[k] = all_[k] * shares[2 * stride + k];
      }
      for (double* const mass : {diagonal, up, left}) mass[own.first - 1] = mass[own.last + 1] = 0;
      take_below(d);
      if (own.first == 0 && own.last >= 0) {
        sums_.flow_diagonal[d] = diagonal[0];
        sums_.flow_up[d] = up[0];
      }
      if (own.first <= own.last) add(d, own.first, own.last - own.first + 1, diagonal_[second] + 1);
    }
    return true;
  }

 private:
  static int place(int64_t diagonal) { return int((diagonal + 3) % 3); }

  // What the row below the strip has on a diagonal.
  void take_below(int64_t d) {
    const int64_t column = d - strip_.rows, row = strip_.row + strip_.rows;
    const bool is_there = row < pair_.extent.n && column >= 0 && column < pair_.extent.m && pair_.in_band(row, column);
    diagonal_[place(d)][strip_.rows] = is_there ? sums_.flow_diagonal[column] : 0;
    up_[place(d)][strip_.rows] = is_there ? sums_.flow_up[column] : 0;
  }

  // Of `count` rows from `first` on. `next`: D of the cells that follow on theirs by a diagonal step.
  void add(int64_t d, int64_t first, int64_t count, const double* next) {
    const int64_t row = strip_.row + first, at_y = pair_.extent.m - 1 - (d - first);
    const double *const diagonal = diagonal_[place(d)] + first, *const up = up_[place(d)] + first;
    const double *const left = left_[place(d)] + first, *const all = all_ + first;
    if constexpr (std::is_same_v<Type, Ready>) {
      const View<T>* const tables[] = {&sums_.diagonal, &sums_.up, &sums_.left};
      const double* const masses[] = {diagonal, up, left};
      for (int n = 0; n < 3; ++n)
        for (int64_t k = 0; k < count; ++k) tables[n]->at(row + k, d - first - k) = T(masses[n][k]) * sums_.factor;
    } else {
      T* const distance = costs_.memory(0);
      costs_.distances(row, at_y, count, distance);
      double sum = 0, parameter = 0;
      if constexpr (kIs<Type, Edr> || kIs<Type, Lcss>) {
        const T epsilon = T(pair_.parameter);
        for (int64_t k = 0; k < count; ++k) sum += diagonal[k] * (double(Type::match(distance[k], epsilon)) - 2);
      } else if constexpr (kIs<Type, Edit>) {
        for (int64_t k = 0; k < count; ++k) sum += diagonal[k] * double(distance[k]);
        add_distances(row, at_y, count, distance, diagonal);
        add_diagonal(row, at_y, count, diagonal);
      } else if constexpr (kIs<Type, Twed>) {
        double* const both = all_ + first;  // E is not needed any more
        for (int64_t k = 0; k < count; ++k) {
          both[k] = diagonal[k] + next[first + k];
          const T between = pair_.x_times ? pair_.x_times[row + k] - pair_.y_times[at_y + k]
                                          : T(pair_.parameter) * T(row - (d - first) + 2 * k);
          sum += both[k] * double(Type::match(distance[k], between));
        }
        add_distances(row, at_y, count, distance, both);
        add_diagonal(row, at_y, count, diagonal);
        if (sums_.x_times)
          for (int64_t k = 0; k < count; ++k) {
            const T between = pair_.x_times[row + k] - pair_.y_times[at_y + k];
            const double slope = between > T(0) ? both[k] : between < T(0) ? -both[k] : 0.0;
            sums_.x_times[row + k] += slope;
            sums_.y_times[at_y + k] -= slope;
          }
      } else if constexpr (kIs<Type, Msm>) {
        const T *const x = pair_.x + row, *const y = pair_.y + at_y;
        double *const dx = sums_.x + row, *const dy = sums_.y + at_y;
        double *const dx_before = sums_.x_before + row, *const dy_before = sums_.y_before + at_y;
        const T c = T(pair_.parameter);
        for (int64_t k = 0; k < count; ++k) {
          const auto of_up = Type::slopes(x[k], x[k - 1], y[k]), of_left = Type::slopes(y[k], y[k + 1], x[k]);
          const double sign = x[k] > y[k] ? 1.0 : x[k] < y[k] ? -1.0 : 0.0;
          dx[k] += diagonal[k] * sign + up[k] * double(of_up.v) + left[k] * double(of_left.b);
          dy[k] += -diagonal[k] * sign + up[k] * double(of_up.b) + left[k] * double(of_left.v);
          dx_before[k] += up[k] * double(of_up.a);
          dy_before[k] += left[k] * double(of_left.a);
          sum += diagonal[k] * double(distance[k]) + up[k] * double(c + Type::gap(x[k], x[k - 1], y[k])) +
                 left[k] * double(c + Type::gap(y[k], y[k + 1], x[k]));
          parameter += up[k] + left[k];
        }
      } else {
        double* const mass = all_ + first;
        const double half = double(pair_.extent.n > pair_.extent.m ? pair_.extent.n : pair_.extent.m) / 2;
        for (int64_t k = 0; k < count; ++k) {
          const int64_t from = row - (d - first) + 2 * k, place = from < 0 ? -from : from;
          const double w = double(pair_.weights[place]), own = mass[k] * double(distance[k]) * w;
          sum += own;
          parameter += own * (1 - w) * (double(place) - half);
          mass[k] *= w;
        }
        add_distances(row, at_y, count, distance, mass);
      }
      sums_.cost += sum;
      sums_.parameter += parameter;
      (void)up, (void)left, (void)all, (void)next;
    }
  }

  void add_diagonal(int64_t row, int64_t at_y, int64_t count, const double* mass) {
    for (int64_t k = 0; k < count; ++k) {
      sums_.x_diagonal[row + k] += mass[k];
      sums_.y_diagonal[at_y + k] += mass[k];
    }
  }

  // The gradient of distances that count `mass` times.
  void add_distances(int64_t row, int64_t at_y, int64_t count, const T* distance, const double* mass) {
    with_cost<Costs<PlainMath<T>>>(pair_.cost, [&](auto type) {
      for (int64_t dim = 0; dim < pair_.dim; ++dim) {
        const T *const x = pair_.x + dim * pair_.x_stride + row, *const y = pair_.y + dim * pair_.y_stride + at_y;
        double *const dx = sums_.x + dim * pair_.x_stride + row, *const dy = sums_.y + dim * pair_.y_stride + at_y;
        for (int64_t k = 0; k < count; ++k) {
          const double own = type.kOverCost ? over_cost<PlainMath<double>>(mass[k], double(distance[k])) : mass[k];
          const double slope = own * double(type.kFactor) * double(type.slope(x[k] - y[k]));
          dx[k] += slope;
          dy[k] -= slope;
        }
      }
    });
  }

  const ElasticPair<T>& pair_;
  const ElasticStrip& strip_;
  ElasticSums<T>& sums_;
  ElasticCosts<T, Type> costs_;
  double *diagonal_[3], *up_[3], *left_[3], *all_;
};

// Of a strip that was swept with kShares.
template <typename T>
bool elastic_backward(const ElasticPair<T>& pair, const ElasticStrip& strip, ElasticSums<T>& sums) {
  return with_costs(pair, [&](auto type) { return ElasticBackward<T, decltype(type)>(pair, strip, sums)(); });
}
