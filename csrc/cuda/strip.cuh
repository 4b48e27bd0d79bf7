// Strips: the geometry and the saved state that the stencil and the tiled variant share.
//
// A pair's table is cut into strips of 32 K rows, K = kRows. One warp sweeps a strip from left to right; lane l owns the K
// rows from l K on and is at column first + t - l in step t, so a step is a skewed anti-diagonal of the strip and every
// neighbour is in the lane itself or one lane up. Steps come in chunks of kSteps: a lane's part of a chunk is a K x kSteps
// tile (a parallelogram across the warp, so no fill or drain between chunks).
//
//           columns ->  first      ...       end
//   lane 0              t = 0 1 2 3 ...
//   lane 1                  1 2 3 4 ...          rows K .. 2K-1
//   ...
//   lane 31                       31 32 ...      its last row is the strip's edge, the next strip's input
//
// Saved for backward: every lane's left column at the start of every chunk (a snapshot) and the edges. Backward rebuilds a
// chunk from its snapshot, so no N x M tensor exists.
//
// Precision: a lane keeps its entries relative to a reference of its own, renewed every chunk, so that m stays small and a
// float32 m is as exact as the costs themselves, at every gamma and length.
#pragma once

#include "math.cuh"

namespace softdtw {

constexpr int kWarp = 32;
constexpr unsigned kAllLanes = 0xffffffffu;

template <typename T, int kRows_>
struct Shape {
  using Scalar = T;
  static constexpr int kRows = kRows_;
  static constexpr int kSteps = (kRows == 4 || sizeof(T) == 8) ? 8 : 16;  // registers: kRows * kSteps weights in backward
  static constexpr int kStripRows = kWarp * kRows;
  static constexpr int kSkewChunks = kWarp / kSteps;  // a strip's edge leaves lane 31 this many chunks after lane 0's
  static constexpr int kSnapshot = kRows + 2;         // left column, diagonal neighbour, reference
};

// One strip of one pair: rows [first_row, first_row + kStripRows) and the columns of the band that they meet.
template <class S>
struct Strip {
  int first_row, first_column, end_column, chunks;

  __device__ Strip(const Extent& extent, int index) {
    first_row = index * S::kStripRows;
    // One column ahead of the band: no path enters the first column from its upper left, so strips exchange one row only.
    const int first = max(0, first_row + extent.low - 1);
    first_column = first - first % S::kSteps;
    const int last_row = min(extent.n, first_row + S::kStripRows) - 1;
    end_column = min(extent.m, last_row + extent.high + 1);
    chunks = (end_column - first_column + kWarp + S::kSteps - 1) / S::kSteps;
  }
};

template <class S>
__device__ __forceinline__ int strips_of(const Extent& extent) {
  return (extent.n + S::kStripRows - 1) / S::kStripRows;
}

// The longest strip, in chunks, and the number of strips, of any pair of a problem: what memory is laid out by. Mirrored in
// torchsoftdtw/saved_state.py.
template <class S>
struct Sizes {
  int64_t strips, chunks;

  template <typename T>
  explicit Sizes(const Problem<T>& problem) {
    strips = (problem.n + S::kStripRows - 1) / S::kStripRows;
    int64_t width = problem.m;
    if (problem.bandwidth >= 0 && !problem.bandwidths && !problem.x_lengths && !problem.y_lengths) {
      const int64_t shift = problem.m > problem.n ? problem.m - problem.n : problem.n - problem.m;
      const int64_t radius = problem.bandwidth < width ? problem.bandwidth : width;
      const int64_t banded = S::kStripRows + shift + 2 * radius + S::kSteps;
      width = banded < width ? banded : width;
    }
    chunks = (width + kWarp + S::kSteps - 1) / S::kSteps;
  }
};

// A group of numbers that one lane moves, 16 bytes at a time; `address` is aligned to a group. Loads bypass L1, which the
// writes of other multiprocessors do not reach.
template <int kCount>
__device__ __forceinline__ void load_group(const float* address, float (&group)[kCount]) {
#pragma unroll
  for (int i = 0; i < kCount / 4; ++i) {
    const float4 four = __ldcg(reinterpret_cast<const float4*>(address) + i);
    group[4 * i] = four.x, group[4 * i + 1] = four.y, group[4 * i + 2] = four.z, group[4 * i + 3] = four.w;
  }
}

template <int kCount>
__device__ __forceinline__ void load_group(const double* address, double (&group)[kCount]) {
#pragma unroll
  for (int i = 0; i < kCount / 2; ++i) {
    const double2 two = __ldcg(reinterpret_cast<const double2*>(address) + i);
    group[2 * i] = two.x, group[2 * i + 1] = two.y;
  }
}

template <int kCount>
__device__ __forceinline__ void store_group(float* address, const float (&group)[kCount]) {
#pragma unroll
  for (int i = 0; i < kCount / 4; ++i)
    reinterpret_cast<float4*>(address)[i] = make_float4(group[4 * i], group[4 * i + 1], group[4 * i + 2], group[4 * i + 3]);
}

template <int kCount>
__device__ __forceinline__ void store_group(double* address, const double (&group)[kCount]) {
#pragma unroll
  for (int i = 0; i < kCount / 2; ++i) reinterpret_cast<double2*>(address)[i] = make_double2(group[2 * i], group[2 * i + 1]);
}

// The last row of each strip, in groups of kSteps columns, each group with its reference. Group g of a strip holds columns
// first_column + g kSteps onwards. An edge keeps all its groups, or the latest kRing of them.
constexpr int kRing = 8;

template <class S>
struct Edges {
  using T = typename S::Scalar;
  T* values = nullptr;
  T* references = nullptr;
  int64_t slots = 0, length = 0;  // edges per pair, groups per edge
  bool is_ring = false;

  static int64_t scalars(int64_t batch, int64_t slots, int64_t length) { return batch * slots * length * (S::kSteps + 1); }
  Edges() = default;
  Edges(T* memory, int64_t batch, int64_t slots_, int64_t length_, bool is_ring_ = false)
      : values(memory), references(memory + batch * slots_ * length_ * S::kSteps), slots(slots_), length(length_),
        is_ring(is_ring_) {}
};

// One edge of one pair.
template <class S>
struct Edge {
  using T = typename S::Scalar;
  T* values = nullptr;
  T* references = nullptr;
  bool is_ring = false;

  Edge() = default;
  __device__ Edge(const Edges<S>& edges, int64_t pair, int64_t slot)
      : values(edges.values + (pair * edges.slots + slot) * edges.length * S::kSteps),
        references(edges.references + (pair * edges.slots + slot) * edges.length), is_ring(edges.is_ring) {}
  __device__ __forceinline__ int place_of(int g) const { return is_ring ? g % kRing : g; }

  __device__ __forceinline__ void read(int g, T (&group)[S::kSteps], T& reference) const {
    const int place = place_of(g);
    load_group(values + static_cast<int64_t>(place) * S::kSteps, group);
    reference = __ldcg(references + place);
  }
  __device__ __forceinline__ void write(int g, const T (&group)[S::kSteps], T reference) const {
    const int place = place_of(g);
    store_group(values + static_cast<int64_t>(place) * S::kSteps, group);
    references[place] = reference;
  }
};

// Forward's saved state: snapshots, then edges.
template <class S>
struct Saved {
  using T = typename S::Scalar;
  T* snapshots = nullptr;
  Edges<S> edges;
  int64_t strips = 0, chunks = 0;

  static int64_t bytes(int64_t batch, const Sizes<S>& sizes) {
    const int64_t snapshots = batch * sizes.strips * sizes.chunks * kWarp * S::kSnapshot;
    return sizeof(T) * (snapshots + Edges<S>::scalars(batch, sizes.strips, sizes.chunks));
  }
  Saved() = default;
  Saved(void* memory, int64_t batch, const Sizes<S>& sizes)
      : snapshots(static_cast<T*>(memory)), strips(sizes.strips), chunks(sizes.chunks) {
    edges = Edges<S>(snapshots + batch * strips * chunks * kWarp * S::kSnapshot, batch, strips, chunks);
  }

  __device__ T* snapshot(int64_t pair, int strip, int chunk) const {
    return snapshots + ((pair * strips + strip) * chunks + chunk) * (kWarp * S::kSnapshot);
  }
};

// Where a chunk stands: which cells a lane may hold, and what needs no check in the whole warp.
template <class S>
struct Place {
  int row, column;  // the lane's first cell
  bool in_table;    // every cell of the chunk is in rows [0, n) and columns [0, m)
  bool in_band;     // no cell is left of the table or outside the band; cells below or right of the table do no harm

  __device__ Place(const Strip<S>& strip, const Extent& extent, int chunk, int lane) {
    const int start = strip.first_column + chunk * S::kSteps;
    row = strip.first_row + lane * S::kRows;
    column = start - lane;
    const int leftmost = start - (kWarp - 1), rightmost = start + S::kSteps - 1;
    const int last_row = strip.first_row + S::kStripRows - 1;
    in_table = leftmost >= 0 && rightmost < extent.m && last_row < extent.n;
    in_band = leftmost >= 0 && rightmost - strip.first_row <= extent.high && leftmost - last_row >= extent.low;
  }
  __device__ bool holds(const Extent& extent, int k, int t) const {
    return column + t >= 0 && extent.in_band(row + k, column + t);
  }
};

// One coordinate of the kRows rows of x and the kSteps columns of y that a lane's tile meets. Rows and columns past the
// pair's end repeat its last ones: such cells hold finite numbers that no result depends on, and padding is never read.
template <class S>
struct SeriesTile {
  using T = typename S::Scalar;
  const View<const T> x, y;
  const Extent& extent;
  const Place<S>& place;
  const int64_t dim;
  const bool direct;  // no clamping, neighbours in time are neighbours in memory

  __device__ SeriesTile(const Problem<T>& problem, const Extent& extent_, const Place<S>& place_, int64_t pair)
      : x(problem.x.pair(pair)), y(problem.y.pair(pair)), extent(extent_), place(place_), dim(problem.dim),
        direct(place_.in_table && problem.x.row_stride == 1 && problem.y.row_stride == 1) {}

  // Calls f(d, rows, columns) for every coordinate, with the loads of kInFlight coordinates in flight.
  template <int kInFlight, class F>
  __device__ __forceinline__ void for_each_dim(F&& f) const {
    const T* x_line = x.data;
    const T* y_line = y.data;
    if (direct) {
      x_line += place.row;
      y_line += place.column;
#pragma unroll(kInFlight)
      for (int64_t d = 0; d < dim; ++d, x_line += x.column_stride, y_line += y.column_stride) {
        T rows[S::kRows], columns[S::kSteps];
#pragma unroll
        for (int k = 0; k < S::kRows; ++k) rows[k] = x_line[k];
#pragma unroll
        for (int t = 0; t < S::kSteps; ++t) columns[t] = y_line[t];
        f(d, rows, columns);
      }
    } else {
#pragma unroll 1
      for (int64_t d = 0; d < dim; ++d, x_line += x.column_stride, y_line += y.column_stride) {
        T rows[S::kRows], columns[S::kSteps];
#pragma unroll
        for (int k = 0; k < S::kRows; ++k) rows[k] = x_line[min(place.row + k, extent.n - 1) * x.row_stride];
#pragma unroll
        for (int t = 0; t < S::kSteps; ++t)
          columns[t] = y_line[min(max(place.column + t, 0), extent.m - 1) * y.row_stride];
        f(d, rows, columns);
      }
    }
  }
};

// A lane's tile of costs.
template <class S>
__device__ __forceinline__ void load_costs(
    const Problem<typename S::Scalar>& problem, const Extent& extent, const Place<S>& place, int64_t pair,
    typename S::Scalar (&costs)[S::kRows][S::kSteps]) {
  using T = typename S::Scalar;
  if (problem.cost == Cost::kMatrix) {
    const View<const T> matrix = problem.cost_matrix.pair(pair);
    const T scale = scale_of(problem);
#pragma unroll
    for (int k = 0; k < S::kRows; ++k) {
      const T* line = matrix.data + min(place.row + k, extent.n - 1) * matrix.row_stride;
#pragma unroll
      for (int t = 0; t < S::kSteps; ++t)
        costs[k][t] = limit_cost(line[min(max(place.column + t, 0), extent.m - 1) * matrix.column_stride] * scale);
    }
    return;
  }
#pragma unroll
  for (int k = 0; k < S::kRows; ++k)
#pragma unroll
    for (int t = 0; t < S::kSteps; ++t) costs[k][t] = T(0);
  const SeriesTile<S> series(problem, extent, place, pair);
  const auto add = [&](auto share) {
    series.template for_each_dim<S::kSteps == 8 ? 4 : 2>([&](int64_t, const T(&rows)[S::kRows], const T(&columns)[S::kSteps]) {
#pragma unroll
      for (int k = 0; k < S::kRows; ++k)
#pragma unroll
        for (int t = 0; t < S::kSteps; ++t) costs[k][t] = share(rows[k] - columns[t], costs[k][t]);
    });
  };
  if (problem.cost == Cost::kCityblock)
    add([](T difference, T sum) { return sum + DeviceMath<T>::abs(difference); });
  else
    add([](T difference, T sum) { return DeviceMath<T>::fma(difference, difference, sum); });
  if (problem.cost == Cost::kEuclidean) {
#pragma unroll
    for (int k = 0; k < S::kRows; ++k)
#pragma unroll
      for (int t = 0; t < S::kSteps; ++t) costs[k][t] = sqrt(costs[k][t]);
  }
}

// A lane's state between chunks: its rows at the column it has just left, and the neighbour row's entry one column before.
template <class S>
struct Lane {
  using T = typename S::Scalar;
  T left[S::kRows];  // folded: s = 1
  T diag;
  T reference;
};

// The edge above a chunk, for lane 0; the other lanes get theirs from the lane above.
template <class S>
struct Top {
  typename S::Scalar values[S::kSteps];
  typename S::Scalar reference;
};

template <class S>
__device__ __forceinline__ void no_top(Top<S>& top) {
#pragma unroll
  for (int t = 0; t < S::kSteps; ++t) top.values[t] = Unreachable<typename S::Scalar>::value;
  top.reference = 0;
}

// Renews the lane's reference so that its smallest entry becomes about 0, and returns what turns an entry of the lane above
// (of the edge, for lane 0) into this lane's unit. A lane that no path has reached yet takes over the reference of the
// nearest lane above that one has.
template <class S>
__device__ __forceinline__ typename S::Scalar renew_reference(Lane<S>& state, int lane, typename S::Scalar top_reference) {
  using T = typename S::Scalar;
  T lowest = state.diag;
#pragma unroll
  for (int k = 0; k < S::kRows; ++k) lowest = DeviceMath<T>::min(lowest, state.left[k]);
  const bool reached = !is_unreachable(lowest);
  const T before = state.reference;
  T renewed = reached ? before + lowest : (lane == 0 ? top_reference : before);
  const unsigned reached_lanes = __ballot_sync(kAllLanes, reached) | 1u;
  const T nearest = __shfl_sync(kAllLanes, renewed, 31 - __clz(reached_lanes & ((2u << lane) - 1u)));
  if (!reached) renewed = nearest;
  const T shift = renewed - before;
#pragma unroll
  for (int k = 0; k < S::kRows; ++k) state.left[k] = reached ? state.left[k] - shift : state.left[k];
  state.diag = reached ? state.diag - shift : state.diag;
  state.reference = renewed;
  const T above = __shfl_up_sync(kAllLanes, renewed, 1);
  return (lane == 0 ? top_reference : above) - renewed;
}

}  // namespace softdtw
