// (14) of core/twed_terms.h on the CPU: threads over the series.
#pragma once

#include "core/twed_terms.h"
#include "cpu/threads/schedule.h"

namespace softdtw {
namespace cpu {

struct Alone {  // at a vector
  template <class F>
  static void for_each(int64_t count, const F& f) {
    for (int64_t d = 0; d < count; ++d) f(d);
  }
  template <typename T>
  static T sum(T own) {
    return own;
  }
};

// f(is_y, b) for every series of both sides.
template <typename T, class F>
void for_each_series(const TwedTerms<T>& terms, const F& f) {
  const double work = double(terms.dim) * double(terms.x.count * terms.x.length + terms.y.count * terms.y.length);
  const int64_t grain = threads_for_work(work) == 1 ? terms.rows() : 1;
  torch::stable::parallel_for(0, terms.rows(), grain, [&](int64_t begin, int64_t end) {
    for (int64_t row = begin; row < end; ++row) f(row >= terms.x.count, row < terms.x.count ? row : row - terms.x.count);
  });
}

template <typename T>
void twed_terms(const TwedTerms<T>& terms, const TwedTermsOut<T>& out) {
  for_each_series(terms, [&](bool is_y, int64_t b) {
    const TwedSeries<T> own(terms, is_y, b);
    const NumbersView<T>& all_times = is_y ? out.y_times : out.x_times;
    const NumbersView<T> gaps = (is_y ? out.y_gaps : out.x_gaps).of(b), times = all_times.of(b);
    const bool writes_times = times.data != nullptr && (all_times.batch_stride != 0 || b == 0);
    T spoiled = 0;
    for (int64_t i = 1; terms.has_given() && i < own.length(); ++i)
      if (own.times(i).decreases) spoiled = T(NAN);
    for (int64_t i = 0; i < (is_y ? terms.y : terms.x).length; ++i) {
      const bool is_there = i < own.length();
      const auto own_times = is_there ? own.times(i) : typename TwedSeries<T>::Times{};
      if (writes_times) times.at(i) = own_times.own + (is_there ? spoiled : T(0));
      gaps.at(i) = is_there && i > 0 ? own.gap(own_times, own.distance(Alone{}, i, true)) + spoiled : T(0);
    }
  });
}

template <typename T>
void twed_terms_gradient(const TwedTerms<T>& terms, const TwedTermsGradient<T>& gradient) {
  for_each_series(terms, [&](bool is_y, int64_t b) {
    const TwedSeries<T> own(terms, is_y, b);
    const View<T> vectors = (is_y ? gradient.y : gradient.x).pair(b);
    const NumbersView<T> times = (is_y ? gradient.y_times : gradient.x_times).of(b);
    const NumbersView<const T>& from_times = is_y ? gradient.from_y_times : gradient.from_x_times;
    double of_nu = 0, of_lmbda = 0;
    for (int64_t i = 0; i < (is_y ? terms.y : terms.x).length; ++i) {
      const bool is_there = i < own.length();
      const auto around = own.around(is_y ? gradient.from_y_gaps : gradient.from_x_gaps, i);
      if (vectors.data != nullptr)
        own.of_vector(Alone{}, around, i, [&](int64_t d, T number) { vectors.at(i, d) = number; });
      if (gradient.lmbdas != nullptr) of_lmbda += around.before;
      if (times.data == nullptr && gradient.nus == nullptr) continue;
      const T of_time = is_there ? own.of_time(from_times, around, i) : T(0);
      if (times.data != nullptr) times.at(i) = of_time * T(own.nu());
      if (is_there) of_nu += double(of_time) * double(own.place(i));
    }
    const int64_t row = is_y ? terms.x.count + b : b;
    if (gradient.nus != nullptr) gradient.nus[row] = of_nu;
    if (gradient.lmbdas != nullptr) gradient.lmbdas[row] = of_lmbda;
  });
}

}  // namespace cpu
}  // namespace softdtw
