// What twed charges its rows and columns, from series and times as they are given. For host and device.
//
// (14)  t[i] = nu (given[i] - origin), the origin being the earlier of a pair's first two times; without times nu i.
//       gap[i] = distance(x[i], x[i-1]) + |t[i] - t[i-1]| + lmbda, and gap[0] = 0, which no path pays.
//
// Times that decrease anywhere are NaN, all of the series; so is one that is not finite. Beyond a series' own length all is 0.
#pragma once

#include "elastic.h"

namespace softdtw {

// (B, L) of one side, with any strides; both sides are of one kind.
struct GivenTimes {
  enum class Kind { kFloat32, kFloat64, kInt64 };
  const void* data = nullptr;
  Kind kind = Kind::kFloat32;
  int64_t batch_stride = 0, stride = 0;

  template <typename N>
  SOFTDTW_HD N as(int64_t b, int64_t i) const {
    return static_cast<const N*>(data)[b * batch_stride + i * stride];
  }
  // f(a number of the kind).
  template <class F>
  SOFTDTW_HD auto with_kind(F&& f) const {
    return kind == Kind::kFloat32 ? f(float{}) : kind == Kind::kFloat64 ? f(double{}) : f(int64_t{});
  }
};

template <typename T>
struct TwedSide {
  View<const T> series;
  GivenTimes given;
  const int64_t* lengths = nullptr;
  int64_t count = 0, length = 0;
  bool has_slopes = false;  // an infinite difference, which has none, is then NaN
};

template <typename T>
struct TwedTerms {
  TwedSide<T> x, y;
  Cost cost = Cost::kEuclidean;
  int64_t dim = 0;
  double nu = 0, lmbda = 0;
  const double *nus = nullptr, *lmbdas = nullptr;  // of each pair, or null

  SOFTDTW_HD bool has_given() const { return x.given.data != nullptr; }
  SOFTDTW_HD bool has_times() const { return has_given() || nus != nullptr; }
  int64_t rows() const { return x.count + y.count; }
  int64_t longest() const { return x.length > y.length ? x.length : y.length; }
};

// What is written. times: null without; of a batch stride of 0 where all pairs have the same.
template <typename T>
struct TwedTermsOut {
  NumbersView<T> x_times, y_times, x_gaps, y_gaps;
};

// Arriving and leaving; null where there is none, or none is asked for. nus, lmbdas: of each series of x, and then of y.
template <typename T>
struct TwedTermsGradient {
  NumbersView<const T> from_x_times, from_y_times, from_x_gaps, from_y_gaps;
  View<T> x, y;
  NumbersView<T> x_times, y_times;
  double *nus = nullptr, *lmbdas = nullptr;
};

// One series. A Group is who works at a vector: for_each(count, f) calls f with the places that are of this lane, and sum(number) is
// over all of them.
template <typename T>
class TwedSeries {
 public:
  SOFTDTW_HD TwedSeries(const TwedTerms<T>& terms, bool is_y, int64_t b)
      : terms_(terms), side_(is_y ? terms.y : terms.x), vectors_(side_.series.pair(b)), b_(b) {
    length_ = side_.length;
    if (side_.lengths != nullptr && side_.lengths[b] < length_) length_ = side_.lengths[b] > 0 ? side_.lengths[b] : 0;
    nu_ = terms.nus ? terms.nus[b] : terms.nu;
    lmbda_ = terms.lmbdas ? terms.lmbdas[b] : terms.lmbda;
    if (!terms.has_given()) return;
    const GivenTimes &x = terms.x.given, &y = terms.y.given;
    if (x.kind == GivenTimes::Kind::kInt64)
      whole_origin_ = earlier(x.as<int64_t>(b, 0), y.as<int64_t>(b, 0));
    else
      origin_ = x.with_kind([&](auto kind) {
        using N = decltype(kind);
        return double(earlier(x.as<N>(b, 0), y.as<N>(b, 0)));
      });
  }

  SOFTDTW_HD int64_t length() const { return length_; }

  // (given[i] - origin), or i.
  SOFTDTW_HD T place(int64_t i) const {
    if (!terms_.has_given()) return T(i);
    return side_.given.with_kind([&](auto kind) { return since_origin(side_.given.template as<decltype(kind)>(b_, i)); });
  }
  SOFTDTW_HD T time(int64_t i) const { return place(i) * T(nu_); }
  SOFTDTW_HD double nu() const { return nu_; }

  // t[i] and, but for row 0, t[i-1].
  struct Times {
    T own = 0, before = 0;
    bool decreases = false;
  };
  SOFTDTW_HD Times times(int64_t i) const {
    if (!terms_.has_given()) return {T(i) * T(nu_), T(i - 1) * T(nu_), false};
    return side_.given.with_kind([&](auto kind) {
      using N = decltype(kind);
      const N own = side_.given.template as<N>(b_, i), before = i > 0 ? side_.given.template as<N>(b_, i - 1) : own;
      return Times{since_origin(own) * T(nu_), since_origin(before) * T(nu_), own < before};
    });
  }

  // Between i and i - 1: of one coordinate, and of vectors.
  SOFTDTW_HD T difference(int64_t i, int64_t d) const {
    const T own = vectors_.at(i, d) - vectors_.at(i - 1, d);
    return side_.has_slopes ? own + (own - own) : own;
  }
  template <class Group>
  SOFTDTW_HD T distance(const Group& group, int64_t i, bool is_there) const {
    const auto of_lane = [&](auto type) {
      T sum = 0;
      group.for_each(terms_.dim, [&](int64_t d) { sum = type.share(difference(i, d), sum); });
      return sum;
    };
    const T own = is_there ? with_sum<Costs<Math>>(terms_.cost, of_lane) : T(0);
    return finish_cost<Math>(terms_.cost, group.sum(own));
  }
  SOFTDTW_HD T gap(const Times& times, T distance) const {
    if (!terms_.has_times()) return distance + T(nu_ + lmbda_);
    return distance + (Math::abs(times.own - times.before) + T(lmbda_));
  }

  SOFTDTW_HD T slope(int64_t i, int64_t d) const { return slope_of<Math>(terms_.cost, difference(i, d)); }
  SOFTDTW_HD T slope_of_times(int64_t i) const {
    const Times own = times(i);
    const T step = own.own - own.before;
    return step > 0 ? T(1) : step < 0 ? T(-1) : step;  // 0, or NaN
  }

  // What the gradients need of row i: those of the gaps before and behind it, as far as there are some.
  struct Around {
    T before = 0, behind = 0;
  };
  SOFTDTW_HD Around around(const NumbersView<const T>& from_gaps, int64_t i) const {
    Around own;
    if (from_gaps.data == nullptr) return own;
    const NumbersView<const T> gradients = from_gaps.of(b_);
    if (i >= 1 && i < length_) own.before = gradients.at(i);
    if (i + 1 < length_) own.behind = gradients.at(i + 1);
    return own;
  }
  // d / d t[i], as far as it is there.
  SOFTDTW_HD T of_time(const NumbersView<const T>& from_times, const Around& around, int64_t i) const {
    T sum = from_times.data == nullptr ? T(0) : from_times.of(b_).at(i);
    if (i >= 1) sum += slope_of_times(i) * around.before;
    if (i + 1 < length_) sum -= slope_of_times(i + 1) * around.behind;
    return sum;
  }
  // d / d x[i], coordinates of this lane: f(d, number). Rows that are not there have zeros; a whole Group calls it.
  template <class Group, class F>
  SOFTDTW_HD void of_vector(const Group& group, const Around& around, int64_t i, F&& f) const {
    const bool has_before = i >= 1 && i < length_, has_behind = i + 1 < length_;
    T before = around.before, behind = around.behind;
    if (is_over_cost(terms_.cost)) {
      before = over_cost<Math>(before, distance(group, i, has_before));
      behind = over_cost<Math>(behind, distance(group, i + 1, has_behind));
    } else {
      before *= T(factor_of(terms_.cost));
      behind *= T(factor_of(terms_.cost));
    }
    if (i >= side_.length) return;
    group.for_each(terms_.dim, [&](int64_t d) {
      T sum = 0;
      if (has_before) sum += before * slope(i, d);
      if (has_behind) sum -= behind * slope(i + 1, d);
      f(d, sum);
    });
  }

 private:
  using Math = PlainMath<T>;

  // One rounding, and NaN of what is not finite.
  SOFTDTW_HD T since_origin(int64_t given) const { return T(given - whole_origin_); }
  template <typename N>
  SOFTDTW_HD T since_origin(N given) const {
    using Wider = decltype(N{} + T{});
    const Wider own = given;
    return T(own - Wider(origin_) + (own - own));
  }
  template <typename N>
  SOFTDTW_HD static N earlier(N a, N b) {
    return a < b ? a : b;
  }

  const TwedTerms<T>& terms_;
  const TwedSide<T>& side_;
  const View<const T> vectors_;
  const int64_t b_;
  int64_t length_, whole_origin_ = 0;
  double nu_, lmbda_, origin_ = 0;
};

}  // namespace softdtw
