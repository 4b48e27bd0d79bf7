// What a group of pairs of hard DTW is packed from. Wide: what series are stored as, float64 where they have one dimension.
#pragma once

#include <limits>

#include "cpu/groups/group_pack.h"

namespace softdtw {
namespace cpu {

template <typename T, typename Wide>
struct HardPacking {
  using Problem = softdtw::Problem<T>;
  using Group = HardGroup<Wide>;
  const Problem& problem;

  // Of several coordinates, Huber's sums are rounded in another order in lanes.
  bool takes() const { return problem.dim == 1 || problem.cost <= Cost::kCityblock; }

  void carve(Parts& parts, Group& group) const {
    group.x = take_series<Wide>(parts, problem.n * problem.dim, 0);
    group.y = take_series<Wide>(parts, problem.m * problem.dim, 0);
  }

  void pack(const GroupPairs& pairs, Group& group, bool (&fits)[kGroup]) const {
    const auto put = [&](const SeriesView<const T>& series, int64_t rows, GroupSeries<Wide>& to) {
      const auto view_of = [&](int64_t lane) { return series.pair(pairs.of_lane(lane)); };
      pack_series<T>(view_of, rows, problem.dim, std::numeric_limits<Wide>::infinity(), to, fits);
    };
    put(problem.x, problem.n, group.x);
    put(problem.y, problem.m, group.y);
    group.penalty = problem.warp_penalty;
  }

  void sweep(Group& group) const { kernels(Wide{}).hard_group(group); }
};

}  // namespace cpu
}  // namespace softdtw
