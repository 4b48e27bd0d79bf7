// One call of hard DTW without paths: threads over groups of pairs, a group by hard_lanes.h.
#pragma once

#include <algorithm>

#include "hard_pass.h"

namespace softdtw {
namespace cpu {

// For tables of one shape, where a group's rows fit the cache.
template <typename T>
struct GroupPass {
  const Problem<T>& problem;
  T* const value;
  const HardPass<T>& alone;

  static bool takes(const Problem<T>& problem, bool open_ends) {
    const bool alike = !(problem.x_lengths || problem.y_lengths || problem.bandwidths || problem.warp_penalties);
    // Of several coordinates, Huber's sums are rounded in another order there.
    const bool same_sums = problem.dim == 1 || problem.cost <= Cost::kCityblock;
    const int64_t numbers =
        (problem.n + problem.m) * problem.dim * int64_t(sizeof(T)) + problem.m * int64_t(sizeof(double));
    return alike && same_sums && !open_ends && problem.cost != Cost::kMatrix && problem.batch >= 2 * kGroup &&
           problem.extent(0).valid() && numbers * kGroup <= kMostBytes;
  }

  void run(const Tensor& like) const {
    HardGroup<T> group{};
    HardPair<T> pair;
    T *x, *y;
    run_pairs(ceil_div(problem.batch, kGroup), carve(nullptr, group) + alone.carve(nullptr, pair, x, y), like, *this);
  }

  int64_t carve(char* base, HardGroup<T>& group) const {
    Parts parts{base};
    group.x = parts.template take<T>(problem.n * problem.dim * kGroup);
    group.y = parts.template take<T>(problem.m * problem.dim * kGroup);
    group.row = parts.template take<double>((problem.m + 1) * kGroup);
    return parts.used;
  }

  void operator()(int64_t index, char* memory) const {
    HardGroup<T> group{};
    group.cost = problem.cost;
    group.extent = problem.extent(0);
    group.dim = problem.dim;
    group.penalty = problem.warp_penalty;
    const int64_t own = carve(memory, group), first = index * kGroup;
    const int64_t count = std::min(kGroup, problem.batch - first);
    bool is_finite[kGroup];
    for (int64_t lane = 0; lane < kGroup; ++lane) {
      const int64_t b = first + std::min(lane, count - 1);  // the last one again, where there are no more
      is_finite[lane] =
          pack(problem.x.pair(b), problem.n, group.x + lane) & pack(problem.y.pair(b), problem.m, group.y + lane);
    }
    kernels(T{}).hard_group(group);
    for (int64_t lane = 0; lane < count; ++lane) {
      if (is_finite[lane])
        value[first + lane] = static_cast<T>(group.value[lane]);
      else
        alone(first + lane, memory + own);  // which knows NaN
    }
  }

  // Whether all of a series is finite. What is not stays out of the lanes.
  bool pack(const View<const T>& from, int64_t rows, T* to) const {
    T nothing = 0;  // 0 times what is finite
    for (int64_t d = 0; d < problem.dim; ++d) {
      const T* entry = from.data + d * from.column_stride;
      for (int64_t i = 0; i < rows; ++i, entry += from.row_stride) {
        nothing += *entry * T(0);
        to[(i * problem.dim + d) * kGroup] = *entry;
      }
    }
    return nothing == T(0);
  }

  static constexpr int64_t kMostBytes = 1 << 20;
};

}  // namespace cpu
}  // namespace softdtw
