// One pair of series as the CPU kernels see it: packed inputs, the strips of its table, what forward keeps for backward.
//
// The table is cut into strips of kRows rows. A strip is swept by anti-diagonals: at step t, row r of the strip is at column
// t - r. Between strips only the bottom row travels (an edge); inside a strip a snapshot of the sweep every kSegment steps
// lets backward recompute a segment in cache. No N x M array exists.
#pragma once

#include <cstddef>
#include <cstdint>
#include <utility>

#include "core/problem.h"
#include "core/recurrence.h"
#include "cpu/elastic/elastic_group.h"
#include "cpu/elastic/elastic_pair.h"
#include "cpu/hard/hard_group.h"
#include "cpu/hard/hard_pair.h"
#include "cpu/soft_elastic/soft_elastic.h"
#include "cpu/threads/progress.h"

namespace softdtw {
namespace cpu {

constexpr int64_t kRows = 64;      // of a strip
constexpr int64_t kSteps = 16;     // of a block, after which entries are normalised and the reference is moved
constexpr int64_t kSegment = 256;  // steps between snapshots
constexpr int64_t kLead = 256;     // columns more to wait for in the row above, where another thread writes it
constexpr int64_t kPart = 128;     // steps of the reverse sweep between two words to the strip above

inline int64_t ceil_div(int64_t a, int64_t b) { return (a + b - 1) / b; }
inline int64_t round_up(int64_t a, int64_t b) { return ceil_div(a, b) * b; }

// Hands out parts of memory, each on cache lines of its own. Without memory it only counts their bytes.
struct Parts {
  char* memory;
  int64_t used = 0;

  template <typename T>
  T* take(int64_t count) {
    char* const at = memory + used;
    used += round_up(count * sizeof(T), 64);
    return memory ? reinterpret_cast<T*>(at) : nullptr;
  }
};

// Costs from here on count as infinite; a value from here on is reported as inf.
template <typename T>
constexpr T far_away() {
  return Unreachable<T>::value / 16;
}

// A matrix of the caller's dtype, which need not be that of the sweep: one of the two has data.
struct AnyView {
  View<float> narrow;
  View<double> wide;

  void set(const View<float>& view) { narrow = view; }
  void set(const View<double>& view) { wide = view; }
  template <typename T>
  void set(const View<const T>& view) {
    set(View<T>{const_cast<T*>(view.data), view.batch_stride, view.row_stride, view.column_stride});
  }
};

// A series of one dimension in the unit of the square root of a scaled cost, each number in two parts (halves.h). Laid out as
// Pair's x or y.
template <typename T>
struct Halves {
  T *high = nullptr, *low = nullptr;
};

template <typename T>
struct Pair {
  Cost cost;
  int64_t n, m, low, high, dim;
  const T* x;  // [dim][padded rows], the last row repeated beyond n
  const T* y;  // [dim][y_stride], reversed in time; kRows times the last column before it, and the first one after it
  int64_t x_stride, y_stride;
  AnyView matrix;                // for Cost::kMatrix; only read
  double scale;                  // 1 / (gamma ln 2)
  double penalty;                // in the unit of the costs
  bool wide;                     // scaled costs are so large that float32 would lose their fraction: compute them in double
  bool bounded;                  // they are below 2^50
  bool by_products;              // of wide ones: from a matrix product
  Halves<T> x_halves, y_halves;  // of wide ones: from these; null otherwise

  int64_t strips() const { return ceil_div(n, kRows); }
};

// The strip that starts at a row: its steps are clipped to the table and to the band.
struct Strip {
  int64_t row, first, last;
};

template <typename T>
inline Strip strip_of(const Pair<T>& pair, int64_t row) {
  const int64_t bottom = (row + kRows < pair.n ? row + kRows : pair.n) - 1;
  const int64_t left = row + pair.low, right = bottom + pair.high;
  const int64_t first = left > 0 ? left / kSteps * kSteps : 0;
  return {row, first, (right < pair.m - 1 ? right : pair.m - 1) + bottom - row};
}

// What a pair's table has at most: N rows and M columns, of which `width` are in a row's band.
struct TableShape {
  int64_t n, m, width;

  int64_t strips() const { return ceil_div(n, kRows); }
};

// Bands that are the same for all pairs of full length, as backward has to know them too. border: rows, and columns, beside the series'.
template <typename T>
TableShape table_shape(const Problem<T>& problem, int64_t border = 0) {
  const bool is_shared = !problem.x_lengths && !problem.y_lengths && !problem.bandwidths && problem.bandwidth >= 0;
  const int64_t n = problem.n + border, m = problem.m + border, apart = m > n ? m - n : n - m;
  const bool is_narrow = is_shared && problem.bandwidth < m && 2 * problem.bandwidth + 1 + apart < m;
  return {n, m, is_narrow ? 2 * problem.bandwidth + 1 + apart : m};
}

// Edges and snapshots of one pair, in the `saved` tensor or, where nothing is kept, in scratch memory (one edge, no snapshot).
//
// One edge is enough where nothing is kept: a strip reads a column before it writes it, and the strip below reads it next.
//
// Column c of a strip's edge is at strip stride + c, and its segment s at strip segments + s, where strips share the places
// that neither of two needs: with a band a strip writes columns from its first step less 63 on, up to its last row's last one, and the
// strip below begins 64 columns further right.
//
// Bytes per pair:
//   strips = ceil(N / 64), whole = ceil((M + 63) / 256)
//   stride = min(M, width + 79), segments = min(whole, ceil((width + 79) / 256) + 1)
//   edges = (strips - 2) stride + M, or 0 of one strip; snapshots = (strips - 1) segments + whole
//   round_up(edges (8 + sizeof(T)) + snapshots (8 + 256 sizeof(T)), 64)
template <typename T>
struct Table {
  double* edge_m;              // [edges], absolute
  double* snapshot_reference;  // [snapshots]
  T* edge_s;                   // [edges]
  T* snapshots;                // [snapshots][4][kRows]
  int64_t edge_stride;         // 0: every strip overwrites the edge above it
  int64_t segments;            // 0: no snapshots

  static constexpr int64_t kBesideBand =
      kRows + kSteps - 1;  // columns before a strip's first row's, rounded down to a block
  static int64_t whole_segments_of(const TableShape& shape) { return ceil_div(shape.m + kRows - 1, kSegment); }
  static int64_t stride_of(const TableShape& shape) {
    return shape.width + kBesideBand < shape.m ? shape.width + kBesideBand : shape.m;
  }
  static int64_t segments_of(const TableShape& shape) {
    const int64_t of_band = ceil_div(shape.width + kBesideBand, kSegment) + 1, whole = whole_segments_of(shape);
    return of_band < whole ? of_band : whole;
  }
  static int64_t edges_of(const TableShape& shape) {
    return shape.strips() > 1 ? (shape.strips() - 2) * stride_of(shape) + shape.m : 0;
  }
  static int64_t snapshots_of(const TableShape& shape) {
    return (shape.strips() - 1) * segments_of(shape) + whole_segments_of(shape);
  }
  static int64_t payload(const TableShape& shape) {
    return edges_of(shape) * int64_t(sizeof(double) + sizeof(T)) +
           snapshots_of(shape) * int64_t(sizeof(double) + 4 * kRows * sizeof(T));
  }
  static int64_t bytes(const TableShape& shape) { return round_up(payload(shape), 64); }

  // The bytes that a forward pass leaves alone: padding, and snapshots of segments that the last strip does not reach.
  void clear_rest(char* memory, const TableShape& shape, const Strip& last_strip) const {
    for (int64_t segment = last_strip.last / kSegment + 1; segment < segments; ++segment) {
      const int64_t at = (shape.strips() - 1) * segments + segment;
      snapshot_reference[at] = 0;
      __builtin_memset(snapshots + at * 4 * kRows, 0, 4 * kRows * sizeof(T));
    }
    const int64_t used = payload(shape);
    __builtin_memset(memory + used, 0, bytes(shape) - used);
  }

  // Forward leaves this in place of a table that float32 could not hold (exactness.h). The first reference is 0 otherwise.
  void clear_unsound(char* memory, const TableShape& shape) const {
    __builtin_memset(memory, 0, bytes(shape));
    snapshot_reference[0] = __builtin_nan("");
  }
  bool unsound() const { return snapshot_reference[0] != snapshot_reference[0]; }

  static Table saved(char* memory, const TableShape& shape) {
    Table table;
    table.edge_m = reinterpret_cast<double*>(memory);
    table.snapshot_reference = table.edge_m + edges_of(shape);
    table.edge_s = reinterpret_cast<T*>(table.snapshot_reference + snapshots_of(shape));
    table.snapshots = table.edge_s + edges_of(shape);
    table.edge_stride = stride_of(shape);
    table.segments = segments_of(shape);
    return table;
  }
};

// What backward needs besides the table. dx, dy are sums over the cells of E dC/dx, laid out as Pair's x and y.
template <typename T>
struct Scratch {
  T* weights;            // [kSegment][3][kRows] of the thread; then E takes the place of the first
  T* incoming;           // [m] E that a strip hands to the row above it
  T* incoming_diagonal;  // the part of it that came by diagonal steps; null unless it is asked for
  T *dx, *dy;
  AnyView dcost;  // for Cost::kMatrix
  T factor;       // of dcost: the gradient that arrives from above
};

}  // namespace cpu
}  // namespace softdtw
