// One batch of soft-DTW problems as plain pointers and numbers. No torch header: kernels include this and nothing of torch.
#pragma once

#include <cmath>
#include <cstdint>

#if defined(__CUDACC__)
#define SOFTDTW_HD __host__ __device__ __forceinline__
#else
#define SOFTDTW_HD inline
#endif

namespace softdtw {

constexpr double kLn2 = 0.693147180559945309417;

// A ready-made matrix, or the place of a type in Costs (cost_types.h).
enum class Cost : int { kMatrix = -1, kSqEuclidean, kEuclidean, kCityblock, kHuber };

// A (batch, row, column) tensor with any strides, counted in elements: x is (B, N, D), y (B, M, D), a cost matrix (B, N, M).
template <typename T>
struct View {
  T* data = nullptr;
  int64_t batch_stride = 0, row_stride = 0, column_stride = 0;

  SOFTDTW_HD View pair(int64_t b) const { return {data + b * batch_stride, 0, row_stride, column_stride}; }
  SOFTDTW_HD T& at(int64_t row, int64_t column) const { return data[row * row_stride + column * column_stride]; }
};

// The series of one side. Pair b has the b-th of them, or the one that `index` names: all pairs of two sets need no copies.
template <typename T>
struct SeriesView : View<T> {
  const int32_t* index = nullptr;

  SOFTDTW_HD int64_t of(int64_t b) const { return index ? index[b] : b; }
  SOFTDTW_HD View<T> pair(int64_t b) const { return View<T>::pair(of(b)); }
};

// The part of the table that one pair fills: rows [0, n), columns [0, m), low <= column - row <= high.
struct Extent {
  int n, m, low, high;

  SOFTDTW_HD bool valid() const { return n > 0; }
  SOFTDTW_HD bool in_band(int row, int column) const { return column - row >= low && column - row <= high; }
};

// A band's radius, or that of none where no cell of any pair is outside, of an elastic table's border neither.
inline int64_t radius_that_counts(int64_t radius, int64_t n, int64_t m) { return radius >= (n > m ? n : m) ? -1 : radius; }

template <typename T>
struct Problem {
  Cost cost = Cost::kSqEuclidean;
  SeriesView<const T> x, y;   // unless cost is kMatrix
  View<const T> cost_matrix;  // if cost is kMatrix
  int64_t batch = 0, n = 0, m = 0, dim = 0;
  const int64_t* x_lengths = nullptr;   // of each series; null: every pair has n rows
  const int64_t* y_lengths = nullptr;   // null: every pair has m columns
  const int64_t* bandwidths = nullptr;  // null: `bandwidth` holds for every pair
  int64_t bandwidth = -1;               // Sakoe-Chiba radius; below 0: no band
  double gamma = 1, warp_penalty = 0;
  double scale = 1;                        // 1 / (gamma ln 2): from the unit of the costs to that of exponents of 2
  const double* gammas = nullptr;          // null: `gamma` holds for every pair
  const double* warp_penalties = nullptr;  // null: `warp_penalty` holds for every pair

  SOFTDTW_HD double gamma_of(int64_t b) const { return gammas ? gammas[b] : gamma; }
  SOFTDTW_HD double scale_of(int64_t b) const { return gammas ? 1.0 / (gammas[b] * kLn2) : scale; }
  SOFTDTW_HD double penalty_of(int64_t b) const { return warp_penalties ? warp_penalties[b] : warp_penalty; }

  // Some pairs may leave a part of the padded table, or of the padded series, untouched.
  SOFTDTW_HD bool ragged() const { return x_lengths || y_lengths || bandwidths || bandwidth >= 0; }

  // A gamma or a penalty that the arithmetic of T cannot take, as per_pair.py says it of plain numbers. NaN is none either.
  SOFTDTW_HD bool numbers_valid(int64_t b) const {
    constexpr double tiny = sizeof(T) == 4 ? 1.1754943508222875e-38 : 2.2250738585072014e-308;
    constexpr double largest = sizeof(T) == 4 ? 3.4028234663852886e38 : 1.7976931348623157e308;
    const double own = gamma_of(b), penalty = penalty_of(b);
    if (gammas && !(own > 1e-300 && own <= largest && scale_of(b) >= tiny && scale_of(b) <= largest)) return false;
    return !(gammas || warp_penalties) || (penalty >= 0 && penalty * scale_of(b) <= largest);
  }

  // Lengths on a device cannot be checked on the host without a synchronisation, nor can gammas and penalties. One out of
  // range gives an invalid extent, and the kernels answer NaN for that pair.
  SOFTDTW_HD Extent extent(int64_t b) const {
    if ((gammas || warp_penalties) && !numbers_valid(b)) return {0, 0, 0, 0};
    const int64_t rows = x_lengths ? x_lengths[x.of(b)] : n, columns = y_lengths ? y_lengths[y.of(b)] : m;
    if (rows < 1 || rows > n || columns < 1 || columns > m) return {0, 0, 0, 0};
    const int64_t widest = rows + columns + 64;  // no band: wider than any table, and no sum with it overflows an int
    int64_t radius = bandwidths ? bandwidths[b] : bandwidth;
    if (bandwidths && radius < 0) return {0, 0, 0, 0};
    if (radius < 0 || radius > widest) radius = widest;
    const int64_t shift = columns - rows;
    const int64_t low = (shift < 0 ? shift : 0) - radius, high = (shift > 0 ? shift : 0) + radius;
    return {static_cast<int>(rows), static_cast<int>(columns), static_cast<int>(low), static_cast<int>(high)};
  }
};

// Where a backward pass writes. For cost kMatrix only `cost` is set, otherwise only x and y, each if asked for.
template <typename T>
struct Gradient {
  const T* value = nullptr;       // (B,) forward's result
  const T* grad_value = nullptr;  // (B,) the gradient that arrives from above, `grad_stride` elements apart
  int64_t grad_stride = 1;
  View<T> x, y, cost;

  SOFTDTW_HD T arriving(int64_t b) const { return grad_value[b * grad_stride]; }
  // The gradient of a pair whose value is not a number: none, but 0 where nothing arrives, as of a pair that was masked out.
  SOFTDTW_HD T without_value(int64_t b) const { return arriving(b) == T(0) ? T(0) : T(NAN); }
};

// The answer for a pair whose value is not a number, by one of some threads: in the pair's own part, and everywhere where its
// lengths are out of range: no number of such a pair is to be trusted.
template <typename T>
SOFTDTW_HD void spoil_gradient(
    const Problem<T>& problem, const Gradient<T>& gradient, const Extent& extent, int64_t pair, int64_t thread,
    int64_t threads) {
  const int64_t n = extent.valid() ? extent.n : problem.n, m = extent.valid() ? extent.m : problem.m;
  const T with = gradient.without_value(pair);
  const auto fill = [&](const View<T>& out, int64_t rows, int64_t columns, bool is_table) {
    if (out.data == nullptr) return;
    for (int64_t i = thread; i < rows * columns; i += threads) {
      const int row = static_cast<int>(i / columns), column = static_cast<int>(i % columns);
      if (!is_table || !extent.valid() || extent.in_band(row, column)) out.pair(pair).at(row, column) = with;
    }
  };
  fill(gradient.x, n, problem.dim, false);
  fill(gradient.y, m, problem.dim, false);
  fill(gradient.cost, n, m, true);
}

}  // namespace softdtw
