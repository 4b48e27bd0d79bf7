// What a group of pairs of a hard elastic measure is packed from.
#pragma once

#include <algorithm>
#include <cmath>

#include "cpu/groups/group_pack.h"

namespace softdtw {
namespace cpu {

template <typename T>
struct ElasticPacking {
  using Problem = ElasticProblem<T>;
  using Group = ElasticGroup<T>;
  const Problem& problem;

  bool takes() const {
    return !problem.parameters && problem.measure != Measure::kMatrix && std::abs(problem.parameter) < kLimit;
  }

  void carve(Parts& parts, Group& group) const {
    const auto take = [&](bool has_any, int64_t length, int64_t dim) {
      return has_any ? take_series<T>(parts, length * dim, kLanePadding * dim) : GroupSeries<T>{};
    };
    const bool has_times = problem.x_times.data, has_gaps = problem.x_gaps.data;
    group.x = take(true, problem.n, problem.dim), group.y = take(true, problem.m, problem.dim);
    group.x_times = take(has_times, problem.n, 1), group.y_times = take(has_times, problem.m, 1);
    group.x_gaps = take(has_gaps, problem.n, 1), group.y_gaps = take(has_gaps, problem.m, 1);
    group.weights = parts.template take<T>(problem.measure == Measure::kWeighted ? longest() : 0);
    group.borders = parts.template take<double>(problem.n * kernels(T{}).lanes);
  }

  void pack(const GroupPairs& pairs, Group& group, bool (&fits)[kGroup]) const {
    const auto put_series = [&](const SeriesView<const T>& series, int64_t length, GroupSeries<T>& to) {
      const auto view_of = [&](int64_t lane) { return series.pair(pairs.of_lane(lane)); };
      pack_series<T>(view_of, length, problem.dim, kLimit, to, fits);
    };
    const auto put_numbers = [&](const NumbersView<const T>& numbers, const SeriesView<const T>& series, int64_t length,
                                 GroupSeries<T>& to) {
      if (!numbers.data) return;
      const auto view_of = [&](int64_t lane) {
        return View<const T>{numbers.of(series.of(pairs.of_lane(lane))).data, 0, numbers.stride, 1};
      };
      pack_series<T>(view_of, length, 1, kLimit, to, fits);
    };
    put_series(problem.x, problem.n, group.x);
    put_series(problem.y, problem.m, group.y);
    put_numbers(problem.x_times, problem.x, problem.n, group.x_times);
    put_numbers(problem.y_times, problem.y, problem.m, group.y_times);
    put_numbers(problem.x_gaps, problem.x, problem.n, group.x_gaps);
    put_numbers(problem.y_gaps, problem.y, problem.m, group.y_gaps);
    group.measure = problem.measure;
    group.parameter = T(problem.parameter);
    group.sum_border = problem.sum_border;
    if (problem.measure == Measure::kWeighted)
      for (int64_t k = 0; k < longest(); ++k) group.weights[k] = T(Weighted<T>::weight(k, problem.parameter, longest()));
  }

  void sweep(Group& group) const { kernels(T{}).elastic_group(group); }

 private:
  // Below, no cost is NaN: sums of products are finite.
  static constexpr T kLimit = sizeof(T) == sizeof(float) ? T(1e15) : T(1e150);

  int64_t longest() const { return std::max(problem.n, problem.m); }
};

}  // namespace cpu
}  // namespace softdtw
