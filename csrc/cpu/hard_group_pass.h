// One call of hard DTW without paths: threads over groups of pairs, a group by hard_lanes.h.
#pragma once

#include <algorithm>

#include "hard_pass.h"

namespace softdtw {
namespace cpu {

// For tables of one shape, where a group's rows fit the cache.
// Wide: what series are stored as, float64 where they have one dimension.
template <typename T, typename Wide>
struct GroupPass {
  const Problem<T>& problem;
  T* const value;
  const HardPass<T>& alone;

  static bool takes(const Problem<T>& problem, bool open_ends) {
    const bool alike = !(problem.x_lengths || problem.y_lengths || problem.bandwidths || problem.warp_penalties);
    // Of several coordinates, Huber's sums are rounded in another order there.
    const bool same_sums = problem.dim == 1 || problem.cost <= Cost::kCityblock;
    const int64_t numbers =
        (problem.n + problem.m) * problem.dim * int64_t(sizeof(Wide)) + problem.m * int64_t(sizeof(double));
    return alike && same_sums && !open_ends && problem.cost != Cost::kMatrix && problem.batch >= 2 * kGroup &&
           problem.extent(0).valid() && numbers * kGroup <= kMostBytes;
  }

  void run(const Tensor& like) const {
    HardGroup<Wide> group{};
    HardPair<T> pair;
    HardSeries<T> series;
    const int64_t bytes = carve(nullptr, group) + alone.carve(nullptr, pair, series);
    run_pairs(ceil_div(problem.batch, kGroup), bytes, work_of(problem), like, *this);
  }

  int64_t carve(char* base, HardGroup<Wide>& group) const {
    Parts parts{base};
    group.x = parts.template take<Wide>(problem.n * problem.dim * kGroup);
    group.y = parts.template take<Wide>(problem.m * problem.dim * kGroup);
    group.row = parts.template take<double>((problem.m + 1) * kGroup);
    return parts.used;
  }

  void operator()(int64_t index, char* memory) const {
    HardGroup<Wide> group{};
    group.cost = problem.cost;
    group.extent = problem.extent(0);
    group.dim = problem.dim;
    group.penalty = problem.warp_penalty;
    const int64_t own = carve(memory, group), first = index * kGroup;
    const int64_t count = std::min(kGroup, problem.batch - first);
    bool is_finite[kGroup];
    std::fill(is_finite, is_finite + kGroup, true);
    pack(problem.x, problem.n, first, count, group.x, is_finite);
    pack(problem.y, problem.m, first, count, group.y, is_finite);
    kernels(Wide{}).hard_group(group);
    for (int64_t lane = 0; lane < count; ++lane) {
      if (is_finite[lane])
        value[first + lane] = static_cast<T>(group.value[lane]);
      else
        alone(first + lane, memory + own);  // which knows NaN
    }
  }

  // A lane for each pair's series; what is not finite stays out of the lanes. Of all pairs of two sets many have one series in common.
  template <class SeriesOfPairs>
  void pack(
      const SeriesOfPairs& series, int64_t rows, int64_t first, int64_t count, Wide* to, bool (&is_finite)[kGroup]) const {
    const auto view = [&](int64_t lane) {  // the last one again, where there are no more
      return View<const T>(series.pair(first + std::min(lane, count - 1)));
    };
    bool is_shared = true;
    for (int64_t lane = 1; lane < kGroup; ++lane) is_shared &= view(lane).data == view(0).data;
    for (int64_t lane = 0; lane < (is_shared ? 1 : kGroup); ++lane) {
      const View<const T> from = view(lane);
      int64_t spoiled = 0;
      for (int64_t d = 0; d < problem.dim; ++d) {
        const T* const entry = from.data + d * from.column_stride;
        Wide* const lanes = to + d * kGroup + lane;
        const int64_t stride = from.row_stride, step = problem.dim * kGroup;
        // In loops of their own, which become instructions of many numbers each.
        if (stride == 1)
          for (int64_t i = 0; i < rows; ++i) spoiled += entry[i] - entry[i] != T(0);
        else
          for (int64_t i = 0; i < rows; ++i) spoiled += entry[i * stride] - entry[i * stride] != T(0);
        if (is_shared)
          for (int64_t i = 0; i < rows; ++i)
            std::fill(lanes + i * step, lanes + i * step + kGroup, Wide(entry[i * stride]));
        else
          for (int64_t i = 0; i < rows; ++i) lanes[i * step] = entry[i * stride];
      }
      if (spoiled > 0) std::fill(is_finite + lane, is_finite + (is_shared ? kGroup : lane + 1), false);
    }
  }

  static constexpr int64_t kMostBytes = 1 << 20;
};

}  // namespace cpu
}  // namespace softdtw
