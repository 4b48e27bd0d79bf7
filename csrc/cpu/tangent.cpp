// Second and third order on the CPU: plain float64 sweeps, row by row, with threads across the batch.
//
// Layout: a row of the table holds its cells of the band from first_column(row) on, `width` apart from the next row. Kept
// between the sweep of tangents and the one back are the shares of every cell and the mean over its predecessors.
#include <cmath>
#include <cstring>
#include <limits>

#include <torch/csrc/stable/library.h>

#include "binding/tangent_entry.h"
#include "cpu/soft/pair.h"
#include "cpu/threads/schedule.h"

namespace softdtw {
namespace cpu {
namespace {

template <typename T>
struct HostMath : PlainMath<T> {
  static T exp2_of_fraction(T a) { return std::exp2(a); }
  // As DeviceMath's.
  static T power(T whole) {
    if (!(whole > -1023)) return whole == whole ? T(0) : whole;
    const uint64_t bits = uint64_t(int64_t(whole) + 1023) << 52;
    T power;
    std::memcpy(&power, &bits, sizeof bits);
    return power;
  }
  static Weights<T> divide(T a, T b, T by) { return {a / by, b / by}; }
  // Without a call into the library, which a processor of 2003 would need.
  static T round(T a) { return std::fabs(a) < Whole<T>::limit ? (a + Whole<T>::rounder) - Whole<T>::rounder : a; }
  static T min(T a, T b) { return b < a ? b : a; }
  static T max(T a, T b) { return a < b ? b : a; }
};

using Recurrence = SoftDtw<double, double, HostMath, true>;
constexpr double kUnreachable = Unreachable<double>::value;

// Brings s back to [1, 2). A NaN of s makes m NaN.
inline void normalise(Entry<double>& entry) {
  uint64_t bits;
  std::memcpy(&bits, &entry.s, sizeof bits);
  entry.m -= static_cast<double>(static_cast<int>(bits >> 52) - 1023) + (entry.s - entry.s);
  bits = (bits & 0x000fffffffffffffull) | 0x3ff0000000000000ull;
  std::memcpy(&entry.s, &bits, sizeof bits);
}

struct Rows {
  Extent extent;
  int64_t width;

  Rows(const Extent& extent, int64_t m)
      : extent(extent), width(std::min<int64_t>(m, int64_t(extent.high) - extent.low + 1)) {}
  int first(int row) const { return std::max(0, row + extent.low); }
  int last(int row) const { return std::min(extent.m - 1, row + extent.high); }
  int64_t cell(int row, int column) const { return row * width + column - first(row); }
};

template <typename T, int kDirections>
struct TangentPass {
  // Of a row, by column; entries and jets one cell further right, so that there is a cell left of the first one.
  struct Row {
    Entry<double>* entries;
    Jet<kDirections>* jets;
    Flow<kDirections>* flows;
  };

  const Problem<T>& problem;
  const Tangents<T>& tangents;

  int64_t cells() const {
    if (problem.bandwidth < 0 || problem.bandwidths || problem.x_lengths || problem.y_lengths) return problem.n * problem.m;
    return problem.n * Rows(problem.extent(0), problem.m).width;
  }
  struct Memory {
    Shares<double>* shares;
    Jet<kDirections>* means;
    Row rows[2];
  };
  // Everything that a pair needs; returns the bytes. With base null only counts them.
  int64_t carve(char* base, Memory& to) const {
    Parts parts{base};
    to.shares = parts.take<Shares<double>>(cells());
    to.means = parts.take<Jet<kDirections>>(cells());
    for (Row& row : to.rows) {
      row.entries = parts.take<Entry<double>>(problem.m + 2);
      row.jets = parts.take<Jet<kDirections>>(problem.m + 2);
      row.flows = parts.take<Flow<kDirections>>(problem.m + 2);
    }
    return parts.used;
  }

  void operator()(int64_t b, char* base) const {
    const Extent extent = problem.extent(b);
    if (!extent.valid()) return spoil(b, {static_cast<int>(problem.n), static_cast<int>(problem.m), 0, 0}, true);
    Memory memory;
    carve(base, memory);
    const Rows table(extent, problem.m);
    if (!forward(b, table, memory.rows, memory.shares, memory.means)) return spoil(b, extent, false);
    backward(b, table, memory.rows, memory.shares, memory.means);
  }

  double direction(const View<const T>& view, int64_t b, int row, int column) const {
    return view.data ? static_cast<double>(view.pair(b).at(row, column)) : 0.0;
  }

  // (1), and R's derivatives. Returns whether the value is finite.
  bool forward(int64_t b, const Rows& table, Row* rows, Shares<double>* shares, Jet<kDirections>* means) const {
    const double scale = problem.scale_of(b), inverse_gamma = 1 / problem.gamma_of(b);
    const Recurrence recurrence = {1.0, Recurrence::split(problem.penalty_of(b) * scale, 1.0)};
    const Entry<double> nowhere = {kUnreachable, 1.0};
    const View<const T> costs = problem.cost_matrix.pair(b);
    std::fill_n(rows[1].entries, problem.m + 2, nowhere);
    std::fill_n(rows[1].jets, problem.m + 2, Jet<kDirections>());
    rows[1].entries[0] = {0.0, 1.0};
    Entry<double> cell = nowhere;
    for (int i = 0; i < table.extent.n && !stop_asked(table.width); ++i) {
      const Row &now = rows[i % 2], &above = rows[(i + 1) % 2];
      // What the row after next left beside this one's cells.
      now.entries[table.first(i)] = now.entries[table.last(i) + 2] = nowhere;
      now.jets[table.first(i)] = now.jets[table.last(i) + 2] = {};
      for (int j = table.first(i); j <= table.last(i); ++j) {
        const double cost = static_cast<double>(costs.at(i, j)) * scale;
        Weights<double> weights;
        cell = recurrence.cell(
            above.entries[j], above.entries[j + 1], now.entries[j], cost > kUnreachable ? kUnreachable : cost, weights);
        normalise(cell);
        const Shares<double> share = {Recurrence::diagonal_share(weights), weights.up, weights.left};
        const Jet<kDirections> mean = mean_of(share, above.jets[j], above.jets[j + 1], now.jets[j], inverse_gamma);
        const int64_t at = table.cell(i, j);
        shares[at] = share;
        means[at] = mean;
        now.entries[j + 1] = cell;
        now.jets[j + 1] = at_cell(mean, direction(tangents.first, b, i, j), direction(tangents.second, b, i, j));
      }
    }
    tangents.value_tangent[b] = static_cast<T>(rows[(table.extent.n + 1) % 2].jets[table.extent.m].s);
    return cell.m < kUnreachable / 2;
  }

  // (3), (4), and E's derivatives: every cell gathers from its successors.
  void backward(
      int64_t b, const Rows& table, Row* rows, const Shares<double>* shares, const Jet<kDirections>* means) const {
    const Extent& extent = table.extent;
    const double inverse_gamma = 1 / problem.gamma_of(b);
    for (int i = extent.n - 1; i >= 0 && !stop_asked(table.width); --i) {
      Flow<kDirections>*const now = rows[i % 2].flows, *const below = rows[(i + 1) % 2].flows;
      for (int j = table.last(i); j >= table.first(i); --j) {
        const Jet<kDirections> own =
            at_cell(means[table.cell(i, j)], direction(tangents.first, b, i, j), direction(tangents.second, b, i, j));
        Flow<kDirections> flow;
        if (i == extent.n - 1 && j == extent.m - 1) flow.e = 1;
        const auto take = [&](int row, int column, double Shares<double>::* share) {
          if (row >= extent.n || column >= extent.m || !extent.in_band(row, column)) return;
          const int64_t at = table.cell(row, column);
          receive(flow, (row > i ? below : now)[column], means[at], own, shares[at].*share, inverse_gamma);
        };
        take(i + 1, j + 1, &Shares<double>::diag);
        take(i + 1, j, &Shares<double>::up);
        take(i, j + 1, &Shares<double>::left);
        now[j] = flow;
        write_flow(tangents, b, i, j, flow);
      }
    }
  }

  // NaN for a pair without a finite value: in its part of the table, or everywhere. Derivatives along no direction are 0.
  void spoil(int64_t b, const Extent& extent, bool everywhere) const {
    constexpr double nan = std::numeric_limits<double>::quiet_NaN();
    const auto moves = [&](const View<const T>& view) {
      for (int i = 0; i < extent.n; ++i)
        for (int j = 0; j < extent.m; ++j)
          if ((everywhere || extent.in_band(i, j)) && direction(view, b, i, j) != 0) return true;
      return false;
    };
    const double along_first = moves(tangents.first) ? nan : 0;
    Flow<kDirections> flow;
    flow.e = nan;
    flow.s = along_first;
    if constexpr (kDirections == 2) {
      flow.t = moves(tangents.second) ? nan : 0;
      flow.st = along_first == 0 || flow.t == 0 ? 0 : nan;
    }
    tangents.value_tangent[b] = static_cast<T>(along_first);
    for (int i = 0; i < extent.n; ++i)
      for (int j = 0; j < extent.m; ++j)
        if (everywhere || extent.in_band(i, j)) write_flow(tangents, b, i, j, flow);
  }
};

struct TangentBackend {
  template <typename T, int kDirections>
  static void tangents(const Problem<T>& problem, const Tangents<T>& tangents, const Tensor& like) {
    const TangentPass<T, kDirections> pass{problem, tangents};
    typename TangentPass<T, kDirections>::Memory nothing;
    constexpr double kSweeps = 32;  // cell by cell, in double
    run_pairs(problem.batch, pass.carve(nullptr, nothing), kSweeps * work_of(problem), like, pass);
  }
};

}  // namespace
}  // namespace cpu
}  // namespace softdtw

SOFTDTW_REGISTER_TANGENTS(CPU, softdtw::cpu::TangentBackend)
