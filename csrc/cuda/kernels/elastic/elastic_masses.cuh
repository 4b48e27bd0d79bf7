// The masses D, U, L of (12) of one pair, by cells of its whole table (elastic_table.cuh), and 0 beyond it: where they come from.
//
// Each has Saved, what there is of all pairs, and `columns(i)`, `rows(j)`: which cells of a row or column, of 1 and more, to look at,
// as the masses of others are 0.
#pragma once

#include "core/hard_path.h"
#include "elastic_table.cuh"

namespace softdtw {

// Soft: shares of E.
template <typename T>
class ElasticShares {
 public:
  struct Saved {
    const T *shares, *alignment;
    ElasticLayout layout;
  };
  __device__ ElasticShares(const Saved& saved, int64_t pair, const Extent& extent)
      : ElasticShares(saved.shares, saved.alignment + pair * saved.layout.cells(), saved.layout, pair, extent) {}
  __device__ ElasticShares(
      const T* shares, const T* alignment, const ElasticLayout& layout, int64_t pair, const Extent& extent)
      : shares_(shares + pair * 3 * layout.cells()), alignment_(alignment), layout_(layout), extent_(extent) {}

  __device__ double diagonal(int i, int j) const { return mass(0, i, j); }
  __device__ double up(int i, int j) const { return mass(1, i, j); }
  __device__ double left(int i, int j) const { return mass(2, i, j); }
  __device__ Span columns(int i) const { return {max(1, i + extent_.low), min(extent_.m, i + extent_.high)}; }
  __device__ Span rows(int j) const { return {max(1, j - extent_.high), min(extent_.n, j - extent_.low)}; }

 private:
  __device__ double mass(int step, int i, int j) const {
    if (i > extent_.n || j > extent_.m || !extent_.in_band(i, j)) return 0;
    const int64_t at = layout_.at(i, j);
    return static_cast<double>(alignment_[at]) * static_cast<double>(shares_[step * layout_.cells() + at]);
  }

  const T *const shares_, *const alignment_;
  const ElasticLayout layout_;
  const Extent extent_;
};

// Hard: 1 on the path.
class ElasticPath {
 public:
  struct Saved {
    const Span* spans;
    int64_t n;
  };
  __device__ ElasticPath(const Saved& saved, int64_t pair, const Extent& extent)
      : spans_(saved.spans + pair * (saved.n + 1)), n_(extent.n) {}

  __device__ double diagonal(int i, int j) const { return enters(i, j, j - 1); }
  __device__ double up(int i, int j) const { return enters(i, j, j); }
  __device__ double left(int i, int j) const { return i <= n_ && j > spans_[i].first && j <= spans_[i].last; }
  __device__ Span columns(int i) const { return {max(1, spans_[i].first), spans_[i].last}; }
  __device__ Span rows(int j) const {
    const Span found = rows_of_column(spans_, n_ + 1, j);
    return {max(1, found.first), found.last};
  }

 private:
  // Whether the path comes into row i at column j, from column `from` of the row above.
  __device__ double enters(int i, int j, int from) const {
    return i >= 1 && i <= n_ && spans_[i].first == j && spans_[i - 1].last == from;
  }

  const Span* const spans_;
  const int n_;
};

// (13) from them: elastic_gradient.cu.
template <class Masses, typename T>
cudaError_t elastic_gradient(
    const ElasticProblem<T>& problem, const ElasticGradient<T>& gradient, const typename Masses::Saved& saved,
    cudaStream_t stream);

}  // namespace softdtw
