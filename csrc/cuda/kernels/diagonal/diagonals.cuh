// Anti-diagonals of a table in device memory, for the kernels that go from one to the next.
#pragma once

#include "core/problem.h"

namespace softdtw {

// Rows [first, last] of diagonal d in the table and in the band.
struct Diagonal {
  int first, last;

  __device__ Diagonal(const Extent& extent, int d) {
    first = max(max(0, d - extent.m + 1), (d - extent.high + 1) >> 1);
    last = min(min(extent.n - 1, d), (d - extent.low) >> 1);
  }
  __device__ int width() const { return max(0, last - first + 1); }
};

// Of a block, which has a pair.
constexpr int kMostThreads = 512;
template <typename T>
unsigned threads_of_diagonals(const Problem<T>& problem) {
  const int64_t widest = problem.n < problem.m ? problem.n : problem.m;
  int threads = 32;
  while (threads < kMostThreads && threads < widest) threads *= 2;
  return threads;
}

// Cells of a pair's table, an upper bound over the pairs. Mirrored in torchsoftdtw/_kernels/saved_state.py.
template <typename T>
int64_t cells_of(const Problem<T>& problem) {
  const int64_t all = problem.n * problem.m;
  if (problem.bandwidth < 0 || problem.bandwidths || problem.x_lengths || problem.y_lengths) return all;
  const int64_t shift = problem.m > problem.n ? problem.m - problem.n : problem.n - problem.m;
  const int64_t radius = problem.bandwidth < problem.n + problem.m ? problem.bandwidth : problem.n + problem.m;
  const int64_t banded = (problem.n + problem.m - 1) * ((shift + 2 * radius) / 2 + 1);
  return banded < all ? banded : all;
}

}  // namespace softdtw
