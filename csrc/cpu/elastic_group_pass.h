// One call of a hard elastic measure without paths, of many pairs: threads over groups of pairs, a group by elastic_lanes.h.
#pragma once

#include <algorithm>
#include <cmath>

#include "elastic_group.h"
#include "elastic_pass.h"

namespace softdtw {
namespace cpu {

// For tables of one shape, where a group's rows fit the cache.
template <typename T>
class ElasticGroupPass {
 public:
  ElasticGroupPass(const ElasticProblem<T>& problem, T* value)
      : problem_(problem), value_(value), alone_(problem, value, nullptr) {}

  bool takes() const {
    const bool alike = !(problem_.x_lengths || problem_.y_lengths || problem_.bandwidths || problem_.parameters);
    if (!alike || problem_.measure == Measure::kMatrix || problem_.cost == Cost::kMatrix || problem_.batch < 2 * kGroup)
      return false;
    ElasticGroup<T> group;
    return problem_.extent(0).valid() && std::abs(problem_.parameter) < kMost && carve(nullptr, group) <= kMostBytes;
  }

  void run(const Tensor& like) const {
    ElasticGroup<T> group;
    run_pairs(ceil_div(problem_.batch, kGroup), carve(nullptr, group) + alone_.bytes(), work_of(problem_), like, *this);
  }

  void operator()(int64_t index, char* memory) const {
    ElasticGroup<T> group;
    const int64_t own = carve(memory, group), first = index * kGroup, count = std::min(kGroup, problem_.batch - first);
    bool fits[kGroup];
    std::fill(fits, fits + kGroup, true);
    pack(
        problem_.n, first, count, fits, problem_.x, problem_.x_times, problem_.x_gaps, group.x, group.x_times,
        group.x_gaps);
    pack(
        problem_.m, first, count, fits, problem_.y, problem_.y_times, problem_.y_gaps, group.y, group.y_times,
        group.y_gaps);
    kernels(T{}).elastic_group(group);
    for (int64_t lane = 0; lane < count; ++lane) {
      if (fits[lane])
        value_[first + lane] = static_cast<T>(group.value[lane]);
      else
        alone_(first + lane, memory + own);  // which knows NaN
    }
  }

 private:
  static constexpr int64_t kMostBytes = 1 << 20;
  // Below, no cost is NaN: sums of products are finite.
  static constexpr double kMost = sizeof(T) == sizeof(float) ? 1e15 : 1e150;

  int64_t carve(char* base, ElasticGroup<T>& group) const {
    const int64_t lanes = kernels(T{}).elastic_lanes, longest = std::max(problem_.n, problem_.m);
    group.measure = problem_.measure, group.cost = problem_.cost;
    group.dim = problem_.dim;
    group.parameter = T(problem_.parameter);
    group.sum_border = problem_.sum_border;
    group.extent = problem_.extent(0);
    Parts parts{base};
    const auto take = [&](bool has_any, int64_t length, int64_t dim) {
      const int64_t numbers = ElasticGroup<T>::padded(length) * dim * kGroup;
      return has_any ? parts.template take<T>(numbers) : nullptr;
    };
    group.x = take(true, problem_.n, problem_.dim), group.y = take(true, problem_.m, problem_.dim);
    const bool has_times = problem_.x_times.data, has_gaps = problem_.x_gaps.data;
    group.x_times = take(has_times, problem_.n, 1), group.y_times = take(has_times, problem_.m, 1);
    group.x_gaps = take(has_gaps, problem_.n, 1), group.y_gaps = take(has_gaps, problem_.m, 1);
    T* const weights = parts.template take<T>(problem_.measure == Measure::kWeighted ? longest : 0);
    group.row = parts.template take<double>((problem_.m + 1) * lanes);
    group.borders = parts.template take<double>(problem_.n * lanes);
    group.weights = weights;
    if (base && problem_.measure == Measure::kWeighted)
      for (int64_t k = 0; k < longest; ++k) weights[k] = T(Weighted<T>::weight(k, problem_.parameter, longest));
    return parts.used;
  }

  // A lane for each pair's series, and for what belongs to it.
  template <class SeriesOfPairs>
  void pack(
      int64_t length, int64_t first, int64_t count, bool (&fits)[kGroup], const SeriesOfPairs& series,
      const NumbersView<const T>& times, const NumbersView<const T>& gaps, T* to, T* to_times, T* to_gaps) const {
    const int64_t lanes = kernels(T{}).elastic_lanes, padded = ElasticGroup<T>::padded(length);
    for (int64_t lane = 0; lane < kGroup; ++lane) {
      const int64_t b = first + std::min(lane, count - 1);  // the last one again, where there are no more
      const View<const T> own = series.pair(b);
      const auto put = [&](T* all, int64_t dim, const auto& from) {
        if (!all) return;
        T* const out = all + lane / lanes * (padded * dim * lanes) + lane % lanes;
        for (int64_t d = 0; d < dim; ++d)
          for (int64_t i = 0; i < padded; ++i) {
            const int64_t place = i - kLanePadding;
            const T number = place < 0 || place >= length ? T(0) : from(place, d);
            out[(i * dim + d) * lanes] = number;
            if (!(std::abs(number) < T(kMost))) fits[lane] = false;
          }
      };
      put(to, problem_.dim, [&](int64_t i, int64_t d) { return own.at(i, d); });
      const NumbersView<const T> own_times = times.of(series.of(b)), own_gaps = gaps.of(series.of(b));
      put(to_times, 1, [&](int64_t i, int64_t) { return own_times.at(i); });
      put(to_gaps, 1, [&](int64_t i, int64_t) { return own_gaps.at(i); });
    }
  }

  const ElasticProblem<T>& problem_;
  T* const value_;
  const ElasticForward<T> alone_;
};

}  // namespace cpu
}  // namespace softdtw
