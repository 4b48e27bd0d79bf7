// One call of hard DTW without paths: threads over groups of pairs, a group by hard_lanes.h.
#pragma once

#include <algorithm>
#include <cmath>
#include <type_traits>

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
    group.row = parts.template take<double>((problem.m + 1) * kernels(Wide{}).lanes);
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
    group.is_one_x = pack(problem.x, problem.n, first, count, group.x, is_finite);
    group.is_one_y = pack(problem.y, problem.m, first, count, group.y, is_finite);
    kernels(Wide{}).hard_group(group);
    for (int64_t lane = 0; lane < count; ++lane) {
      if (is_finite[lane])
        value[first + lane] = static_cast<T>(group.value[lane]);
      else
        alone(first + lane, memory + own);  // which knows NaN
    }
  }

  // A lane for each pair's series; what is not finite stays out of the lanes. Returns whether all are one series, as of all pairs of
  // two sets many are.
  template <class SeriesOfPairs>
  bool pack(
      const SeriesOfPairs& series, int64_t rows, int64_t first, int64_t count, Wide* to, bool (&is_finite)[kGroup]) const {
    const int64_t lanes = kernels(Wide{}).lanes, dim = problem.dim, numbers = rows * dim;
    View<const T> views[kGroup];
    bool is_one = true, is_contiguous = true, fits[kGroup];
    std::fill(fits, fits + kGroup, true);
    for (int64_t lane = 0; lane < kGroup; ++lane) {
      views[lane] = series.pair(first + std::min(lane, count - 1));  // the last one again, where there are no more
      is_one &= views[lane].data == views[0].data;
      is_contiguous &= views[lane].row_stride == dim && (dim == 1 || views[lane].column_stride == 1);
    }
    for (int64_t k = 0; k < (is_one ? 1 : kGroup); k += lanes) {
      Wide* const own = to + k * numbers;
      if (is_contiguous) {
        const T* from[kGroup];
        for (int64_t lane = 0; lane < lanes; ++lane) from[lane] = views[k + lane].data;
        interleave(from, numbers, own, fits + k);
        continue;
      }
      for (int64_t lane = 0; lane < lanes; ++lane)
        for (int64_t i = 0; i < rows; ++i)
          for (int64_t d = 0; d < dim; ++d) {
            const T entry = views[k + lane].at(i, d);
            own[(i * dim + d) * lanes + lane] = entry;
            if (!std::isfinite(entry)) fits[k + lane] = false;
          }
    }
    for (int64_t lane = 0; lane < kGroup; ++lane) is_finite[lane] &= fits[is_one ? 0 : lane];
    return is_one;
  }

  static void interleave(const T* const* series, int64_t count, Wide* to, bool* is_finite) {
    if constexpr (std::is_same_v<T, Wide>)
      kernels(Wide{}).interleave(series, count, to, is_finite);
    else
      kernels(Wide{}).interleave_floats(series, count, to, is_finite);
  }

  static constexpr int64_t kMostBytes = 1 << 20;
};

}  // namespace cpu
}  // namespace softdtw
