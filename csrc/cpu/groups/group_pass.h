// One call without paths of many pairs whose tables have one shape: threads over groups of pairs, a lane each.
//
// A Packing says what a kind of measures needs of them:
//   Problem, Group                                what its pairs and a group of them are
//   const Problem& problem
//   bool takes() const                            whether lanes have the values of single pairs
//   void carve(Parts& parts, Group& group) const  memory for all but the row
//   void pack(pairs, group, fits) const           fits: of each lane whether its numbers may be swept with others
//   void sweep(group) const
// Alone computes single pairs.
#pragma once

#include <algorithm>

#include "cpu/threads/schedule.h"
#include "group_pack.h"

namespace softdtw {
namespace cpu {

template <typename T, class Packing, class Alone>
class GroupPass {
 public:
  GroupPass(const Packing& packing, const Alone& alone, T* value)
      : packing_(packing), problem_(packing.problem), alone_(alone), value_(value) {}

  // False: the call is not for groups, and nothing was done.
  bool run(const Tensor& like) const {
    typename Packing::Group group;
    if (!are_alike() || !packing_.takes() || carve(nullptr, group) > kMostBytes) return false;
    const int64_t bytes = carve(nullptr, group) + alone_.bytes();
    run_pairs(ceil_div(problem_.batch, kGroup), bytes, work_of(problem_), like, *this);
    return true;
  }

  void operator()(int64_t index, char* memory) const {
    typename Packing::Group group;
    const int64_t own = carve(memory, group), first = index * kGroup;
    const GroupPairs pairs{first, std::min(kGroup, problem_.batch - first)};
    group.cost = problem_.cost;
    group.extent = problem_.extent(0);
    group.dim = problem_.dim;
    bool fits[kGroup];
    std::fill(fits, fits + kGroup, true);
    packing_.pack(pairs, group, fits);
    packing_.sweep(group);
    for (int64_t lane = 0; lane < pairs.count; ++lane) {
      if (fits[lane])
        value_[first + lane] = static_cast<T>(group.value[lane]);
      else
        alone_(first + lane, memory + own);  // which knows NaN
    }
  }

 private:
  static constexpr int64_t kMostBytes = 1 << 20;  // so that a group's rows fit the cache

  bool are_alike() const {
    const bool have_own = problem_.x_lengths || problem_.y_lengths || problem_.bandwidths || problem_.warp_penalties;
    return !have_own && problem_.cost != Cost::kMatrix && problem_.batch >= 2 * kGroup && problem_.extent(0).valid();
  }
  int64_t carve(char* base, typename Packing::Group& group) const {
    Parts parts{base};
    packing_.carve(parts, group);
    group.row = parts.template take<double>((problem_.m + 1) * kernels(typename Packing::Group::Number{}).lanes);
    return parts.used;
  }

  const Packing packing_;
  const typename Packing::Problem& problem_;
  const Alone& alone_;
  T* const value_;
};

}  // namespace cpu
}  // namespace softdtw
