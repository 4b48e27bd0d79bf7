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
// Precision: entries are s 2^-m with a whole m (recurrence.h), which a lane keeps relative to a reference of its own, a whole
// number renewed every chunk. float32 holds whole numbers up to 2^24, so all is exact but the rounding of s as long as the
// costs that one lane sees in a chunk stay below 1e6 gamma or so; beyond that, m rounds as the costs themselves do.
#pragma once

#include "math.cuh"

namespace softdtw {

constexpr int kWarp = 32;
constexpr unsigned kAllLanes = 0xffffffffu;

template <typename T, int kRows_>
struct Shape {
  using Scalar = T;
  static constexpr int kRows = kRows_;
  static constexpr int kSteps = kRows == 1 ? 16 : 8;  // kRows * kSteps weights in registers in backward
  static constexpr int kStripRows = kWarp * kRows;
  static constexpr int kSkewChunks = kWarp / kSteps;  // a strip's edge leaves lane 31 this many chunks after lane 0's
  static constexpr int kSnapshot = 2 * kRows + 3;     // left column and diagonal neighbour, reference
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
  // Of the edge: the strip's columns alone, without the chunks in which its lanes wake and fall asleep.
  __device__ int groups() const { return chunks - S::kSkewChunks; }
};

template <class S>
__device__ __forceinline__ int strips_of(const Extent& extent) {
  return (extent.n + S::kStripRows - 1) / S::kStripRows;
}

// A strip among its neighbours, and where the pair's last cell lies in it.
template <class S>
struct Surroundings {
  Strip<S> strip, above, below;  // itself, where there is none
  bool is_first, is_last;
  int above_offset, below_offset;  // in groups: this strip's first column in the one above, the one below's in this one
  int end_lane, end_row, end_time, end_chunk;  // end_row in the lane's tile; -1 for lane and chunk if it is not here

  __device__ Surroundings(const Extent& extent, int index)
      : strip(extent, index), above(extent, max(0, index - 1)), below(extent, min(index + 1, strips_of<S>(extent) - 1)) {
    is_first = index == 0;
    is_last = index == strips_of<S>(extent) - 1;
    above_offset = (strip.first_column - above.first_column) / S::kSteps;
    below_offset = (below.first_column - strip.first_column) / S::kSteps;
    const int row = extent.n - 1 - strip.first_row;
    end_lane = is_last ? row / S::kRows : -1;
    end_row = row % S::kRows;
    end_time = extent.m - 1 - strip.first_column + end_lane;
    end_chunk = is_last ? end_time / S::kSteps : -1;
  }
};

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
  for (int i = 0; i < kCount / 2; ++i)
    reinterpret_cast<double2*>(address)[i] = make_double2(group[2 * i], group[2 * i + 1]);
}

// A group of kSteps entries of a strip's last row.
template <class S>
struct Group {
  using T = typename S::Scalar;
  T m[S::kSteps], s[S::kSteps];
  T reference;
};

// The last row of each strip, in groups of kSteps columns. Group g of a strip holds columns first_column + g kSteps onwards.
// An edge keeps all its groups, or the latest kRing of them.
constexpr int kRing = 8;

template <class S>
struct Edges {
  using T = typename S::Scalar;
  T* entries = nullptr;
  T* references = nullptr;
  int64_t slots = 0, length = 0;  // edges per pair, groups per edge
  bool is_ring = false;

  static int64_t scalars(int64_t batch, int64_t slots, int64_t length) {
    return batch * slots * length * (2 * S::kSteps + 1);
  }
  Edges() = default;
  Edges(T* memory, int64_t batch, int64_t slots_, int64_t length_, bool is_ring_ = false)
      : entries(memory),
        references(memory + batch * slots_ * length_ * 2 * S::kSteps),
        slots(slots_),
        length(length_),
        is_ring(is_ring_) {}
};

// One edge of one pair.
template <class S>
struct Edge {
  using T = typename S::Scalar;
  T* entries = nullptr;
  T* references = nullptr;
  bool is_ring = false;

  Edge() = default;
  __device__ Edge(const Edges<S>& edges, int64_t pair, int64_t slot)
      : entries(edges.entries + (pair * edges.slots + slot) * edges.length * 2 * S::kSteps),
        references(edges.references + (pair * edges.slots + slot) * edges.length),
        is_ring(edges.is_ring) {}
  __device__ __forceinline__ int64_t place_of(int g) const { return is_ring ? g % kRing : g; }

  __device__ __forceinline__ void read(int g, Group<S>& group) const {
    const int64_t place = place_of(g);
    load_group(entries + place * 2 * S::kSteps, group.m);
    load_group(entries + place * 2 * S::kSteps + S::kSteps, group.s);
    group.reference = __ldcg(references + place);
  }
  __device__ __forceinline__ void write(int g, const Group<S>& group) const {
    const int64_t place = place_of(g);
    store_group(entries + place * 2 * S::kSteps, group.m);
    store_group(entries + place * 2 * S::kSteps + S::kSteps, group.s);
    references[place] = group.reference;
  }
};

// Forward's saved state: snapshots, then the edges of all strips but the last. Without a band or lengths every byte is
// written.
template <class S>
struct Saved {
  using T = typename S::Scalar;
  T* snapshots = nullptr;
  Edges<S> edges;
  int64_t strips = 0, chunks = 0;

  static int64_t bytes(int64_t batch, const Sizes<S>& sizes) {
    const int64_t snapshots = batch * sizes.strips * sizes.chunks * kWarp * S::kSnapshot;
    return sizeof(T) * (snapshots + Edges<S>::scalars(batch, sizes.strips - 1, sizes.chunks - S::kSkewChunks));
  }
  Saved() = default;
  Saved(void* memory, int64_t batch, const Sizes<S>& sizes)
      : snapshots(static_cast<T*>(memory)), strips(sizes.strips), chunks(sizes.chunks) {
    T* const after_snapshots = snapshots + batch * strips * chunks * kWarp * S::kSnapshot;
    edges = Edges<S>(after_snapshots, batch, strips - 1, chunks - S::kSkewChunks);
  }

  __device__ T* snapshot(int64_t pair, int strip, int chunk) const {
    return snapshots + ((pair * strips + strip) * chunks + chunk) * (kWarp * S::kSnapshot);
  }
};

}  // namespace softdtw
