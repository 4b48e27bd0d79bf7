// Elastic measures: one batch of problems in which the three steps into a cell have costs of their own.
//
// (11)  R[i,j] = min or softmin_gamma of  R[i-1,j-1] + d[i,j],  R[i-1,j] + u[i,j],  R[i,j-1] + l[i,j],  value = R[N,M]
//       R[0,0] = 0, and the rest of row and column 0 is infinite, or with a summed border R[i,0] = u[1] + ... + u[i] and
//       R[0,j] = l[1] + ... + l[j], as far as the band has them: (i, 0) where low <= -i, (0, j) where j <= high.
// (12)  D, U, L: how much of the paths comes into a cell by each step. E[i,j] = D[i+1,j+1] + U[i+1,j] + L[i,j+1], E[N,M] = 1,
//       and D, U, L are the shares exp(-(R[i-1,j-1] + d - R[i,j]) / gamma) ... of E, which sum to 1.
// (13)  dvalue/dd = D, dvalue/du = U, dvalue/dl = L. Every path uses each row once, by a diagonal step or one up, so
//       where u depends on the row alone dvalue/du[i] = 1 - sum_j D[i,j], and likewise dvalue/dl[j] = 1 - sum_i D[i,j].
//
// With gamma = 0 it is min, and D, U, L are 1 on the best path: of equal steps the diagonal one before up before left.
#pragma once

#include "cost.h"

namespace softdtw {

// u of a row and l of a column do not depend on the cell for all but kMsm, kWeighted and kMatrix.
enum class Measure : int { kMatrix = -1, kEdit, kEdr, kLcss, kTwed, kMsm, kWeighted };

// One number per row or column of each series, with the strides of any (B, L) tensor.
template <typename T>
struct NumbersView {
  T* data = nullptr;
  int64_t batch_stride = 0, stride = 0;

  SOFTDTW_HD NumbersView of(int64_t series) const { return {data + series * batch_stride, 0, stride}; }
  SOFTDTW_HD T& at(int64_t place) const { return data[place * stride]; }
};

template <typename T>
struct ElasticProblem : Problem<T> {
  Measure measure = Measure::kEdit;
  bool sum_border = false;
  NumbersView<const T> x_times, y_times;  // kTwed, in the unit of the costs; null: `parameter` times the place
  NumbersView<const T> x_gaps, y_gaps;    // u and l of kEdit and kTwed
  View<const T> diagonal, up, left;       // kMatrix: (B, N, M) each, with strides of 0 where they do not depend on it
  double parameter = 0;                   // see the measures below
  const double* parameters = nullptr;     // null: `parameter` holds for every pair

  SOFTDTW_HD bool is_hard() const { return this->gamma == 0 && !this->gammas; }
  SOFTDTW_HD double parameter_of(int64_t b) const { return parameters ? parameters[b] : parameter; }
};

// Where a backward pass writes, all of it for each pair; null where nothing is asked for. `value`, `grad_value` of Gradient.
template <typename T>
struct ElasticGradient : Gradient<T> {
  T *x_times = nullptr, *y_times = nullptr;  // (B, N) and (B, M), packed
  T *x_gaps = nullptr, *y_gaps = nullptr;    // the same
  T* parameter = nullptr;                    // (B,): of kMsm's c, kWeighted's g
  T* gamma = nullptr;                        // (B,): (value - <D, d> - <U, u> - <L, l>) / gamma
  View<T> diagonal, up, left;                // of kMatrix: D, U, L
};

// What the steps into a cell cost.
template <typename T>
struct StepCosts {
  T diagonal, up, left;
};

#include "elastic_types.h"

// f(type) with one of Types, which are Measures, for a measure that is no matrix. What is compiled is chosen at the op's edge.
template <class Types, int kPlace = 0, class F>
SOFTDTW_HD auto with_measure_of(Measure measure, F&& f) {
  using Own = std::tuple_element_t<kPlace, Types>;
  if constexpr (kPlace + 1 == std::tuple_size_v<Types>)
    return f(Own{});
  else
    return measure == static_cast<Measure>(kPlace) ? f(Own{}) : with_measure_of<Types, kPlace + 1>(measure, f);
}
template <typename V, class F>
SOFTDTW_HD auto with_measure(Measure measure, F&& f) {
  return with_measure_of<Measures<V>>(measure, f);
}

template <class Type, template <typename> class Other>
constexpr bool kIs = false;
template <typename V, template <typename> class Other>
constexpr bool kIs<Other<V>, Other> = true;

template <template <typename> class Other, int kPlace = 0>
constexpr Measure measure_of() {
  if constexpr (kIs<std::tuple_element_t<kPlace, Measures<float>>, Other>)
    return static_cast<Measure>(kPlace);
  else
    return measure_of<Other, kPlace + 1>();
}

// In the place of a measure's type: whichever the problem says, for what need not be fast.
struct AnyMeasure {};

// One pair, cell by cell: for whoever needs no more than that, and as the definition. Cells are counted from 0. Type: of Measures, or
// AnyMeasure.
template <class Type, class Math, typename T>
class ElasticCells {
 public:
  SOFTDTW_HD ElasticCells(const ElasticProblem<T>& problem, int64_t pair)
      : problem_(problem),
        x_(problem.x.pair(pair)),
        y_(problem.y.pair(pair)),
        extent_(problem.extent(pair)),
        parameter_(problem.parameter_of(pair)),
        x_series_(problem.x.of(pair)),
        y_series_(problem.y.of(pair)) {}

  SOFTDTW_HD T distance(int i, int j) const { return cost_of_vectors(i, j); }

  template <template <typename> class Other>
  SOFTDTW_HD bool is() const {
    if constexpr (std::is_same_v<Type, AnyMeasure>)
      return problem_.measure == measure_of<Other>();
    else
      return kIs<Type, Other>;
  }

  SOFTDTW_HD StepCosts<T> operator()(int i, int j) const {
    const T own = distance(i, j);
    if (is<Twed>()) {
      const T before = i > 0 && j > 0 ? Twed<T>::match(distance(i - 1, j - 1), between_times(i - 1, j - 1)) : T(0);
      return {Twed<T>::match(own, between_times(i, j)) + before, gap_of_row(i), gap_of_column(j)};
    }
    if (is<Msm>()) {
      const T c = T(parameter_), x = x_.at(i, 0), y = y_.at(j, 0);
      return {
          own, i > 0 ? c + Msm<T>::gap(x, x_.at(i - 1, 0), y) : T(INFINITY),
          j > 0 ? c + Msm<T>::gap(y, y_.at(j - 1, 0), x) : T(INFINITY)};
    }
    if (is<Weighted>()) {
      const T all = T(Weighted<T>::weight(i - j, parameter_, extent_.n > extent_.m ? extent_.n : extent_.m)) * own;
      return {all, all, all};
    }
    const T epsilon = T(parameter_);
    const T match = is<Edr>() ? Edr<T>::match(own, epsilon) : is<Lcss>() ? Lcss<T>::match(own, epsilon) : own;
    return {match, gap_of_row(i), gap_of_column(j)};
  }

  // u and l where they do not depend on the cell; of a summed border, too.
  SOFTDTW_HD T gap_of_row(int i) const { return counts() ? T(1) : problem_.x_gaps.of(x_series_).at(i); }
  SOFTDTW_HD T gap_of_column(int j) const { return counts() ? T(1) : problem_.y_gaps.of(y_series_).at(j); }
  // Whether distances count by no more than a threshold.
  SOFTDTW_HD bool counts() const { return is<Edr>() || is<Lcss>(); }

  SOFTDTW_HD T between_times(int i, int j) const {
    if (problem_.x_times.data == nullptr) return T(parameter_) * T(i - j);
    return problem_.x_times.of(x_series_).at(i) - problem_.y_times.of(y_series_).at(j);
  }

 private:
  SOFTDTW_HD T cost_of_vectors(int row, int column) const {
    T sum = 0;
    for (int64_t d = 0; d < problem_.dim; ++d) sum = add_share<Math>(problem_.cost, x_.at(row, d) - y_.at(column, d), sum);
    return finish_cost<Math>(problem_.cost, sum);
  }

  const ElasticProblem<T>& problem_;
  const View<const T> x_, y_;
  const Extent extent_;
  const double parameter_;
  const int64_t x_series_, y_series_;
};

}  // namespace softdtw
