// Columns of y as the lanes of a warp meet them, in shared memory: each is read, and its gap cost split, once for all lanes.
//
// A source says where they come from: load(column), a column of the table, as it is in memory, and of(loaded), as lanes read it.
// Columns beyond a pair's ends repeat the nearest ones.
#pragma once

#include "cuda/costs/tile.cuh"
#include "cuda/kernels/elastic/elastic_table.cuh"

namespace softdtw {

// The lowest and the highest of some numbers; NaN if one is NaN.
template <typename T>
struct Range {
  T lowest = INFINITY, highest = -INFINITY;

  __device__ __forceinline__ void add(T number) {
    lowest = lesser(lowest, number);
    highest = greater(highest, number);
  }
  // Of all lanes.
  __device__ __forceinline__ void join_lanes() {
    for (int distance = kWarp / 2; distance > 0; distance /= 2) {
      lowest = lesser(lowest, __shfl_xor_sync(kAllLanes, lowest, distance));
      highest = greater(highest, __shfl_xor_sync(kAllLanes, highest, distance));
    }
  }
  // What a number of the one and a number of the other are apart at most.
  __device__ __forceinline__ T apart(const Range& other) const {
    return greater(highest - other.lowest, other.highest - lowest);
  }
};

// Numbers alone.
template <class S>
struct NumberSource {
  using T = typename S::Scalar;
  struct Column {
    T y;
  };
  using Loaded = Column;
  struct Ranges {
    Range<T> y;
    __device__ __forceinline__ void add(const Loaded& column) { y.add(column.y); }
    __device__ __forceinline__ void join_lanes() { y.join_lanes(); }
  };
  const T* const line;
  const int64_t stride;
  const ElasticPlace at;

  __device__ NumberSource(const ElasticTable<T>& problem, const ElasticPlace& at_, int64_t pair)
      : line(problem.y.pair(pair).data), stride(problem.y.row_stride), at(at_) {}
  __device__ __forceinline__ Loaded load(int column) const { return {line[at.column(column) * stride]}; }
  __device__ __forceinline__ Column of(const Loaded& column) const { return column; }
};

// A warp's columns: those of a stage and the kWarp before it, which lanes are at, and then those of the next stage.
template <class S, class Source>
struct SharedColumns {
  using Column = typename Source::Column;
  static constexpr int kOfStage = S::kStage * S::kSteps, kSlots = 2 * kWarp;
  static_assert(kWarp + 2 * kOfStage <= kSlots);
  Column slots[kSlots + S::kSteps];  // the first ones once more at the end: those of a chunk follow on each other

  __device__ __forceinline__ void put(int column, const Column& own) {
    const int slot = column & (kSlots - 1);
    slots[slot] = own;
    if (slot < S::kSteps) slots[slot + kSlots] = own;
  }
  __device__ __forceinline__ const Column* at(int column) const { return slots + (column & (kSlots - 1)); }
};

// Rows of x in a lane, kAbove above its tile among them, and columns of y in shared memory.
template <class S, class Source_, int kAbove>
struct SoftSeries {
  using T = typename S::Scalar;
  using Source = Source_;
  using Column = typename Source::Column;
  using Shared = SharedColumns<S, Source>;
  using Ranges = typename Source::Ranges;
  Shared& shared;
  const Source source;
  T x[S::kRows + kAbove];
  Range<T> of_rows;
  T of_strip = 0;  // what no cost of the strip exceeds
  int first = 0;   // the lane's first column in the chunk
  const Column* columns = nullptr;
  typename Source::Loaded next;  // of the next stage's columns

  __device__ SoftSeries(
      Shared& shared_, const Source& source_, const ElasticTable<T>& problem, const ElasticPlace& at, int64_t pair, int row)
      : shared(shared_), source(source_) {
    load_rows<S, kAbove>(problem.x.pair(pair).data, problem.x.row_stride, at, row, x);
#pragma unroll
    for (int k = 0; k < S::kRows + kAbove; ++k) of_rows.add(x[k]);
  }
  // Of the columns in which a strip's cells count, and the one before them; by the warp.
  __device__ __forceinline__ Ranges ranges_of(const Strip<S>& strip) const {
    Ranges ranges;
#pragma unroll 4
    for (int column = strip.first_column - 1 + static_cast<int>(threadIdx.x); column < strip.end_column; column += kWarp)
      ranges.add(source.load(column));
    ranges.join_lanes();
    return ranges;
  }
  // What no cost of the chunk exceeds, NaN if one is NaN: of(ranges) of the strip where that is small, or else of the chunk's columns.
  template <class Of>
  __device__ __forceinline__ T reach(T scale, Of&& of) const {
    constexpr T kSmall = 1 << 14;  // exponents of 2
    if (of_strip * scale < kSmall) return of_strip;
    Ranges ranges;
#pragma unroll 1
    for (int t = -kAbove; t < S::kSteps; ++t) ranges.add(source.load(first + t));
    return of(ranges);
  }

  // All that a stage needs whose first lane begins with column `start`; by the warp, before a __syncwarp().
  __device__ __forceinline__ void fill(int start) {
    const int lane = threadIdx.x;
    const typename Source::Loaded before = source.load(start - kWarp + lane);
    if (lane < Shared::kOfStage) next = source.load(start + lane);
    shared.put(start - kWarp + lane, source.of(before));
    put(start);
  }
  // The columns of the next stage alone: on their way, and then there.
  __device__ __forceinline__ void fetch(int start) {
    if (threadIdx.x < Shared::kOfStage) next = source.load(start + threadIdx.x);
  }
  __device__ __forceinline__ void put(int start) {
    if (threadIdx.x < Shared::kOfStage) shared.put(start + threadIdx.x, source.of(next));
  }
  __device__ __forceinline__ void use(const Place<S>& place) {
    first = place.column;
    columns = shared.at(first);
  }
  // Rows from -kAbove, columns from -1.
  __device__ __forceinline__ T row(int k) const { return x[k + kAbove]; }
  __device__ __forceinline__ Column column(int t) const { return t < 0 ? *shared.at(first - 1) : columns[t]; }
  template <typename V>
  __device__ __forceinline__ V difference(int k, const Column& column) const {
    return static_cast<V>(row(k)) - static_cast<V>(column.y);
  }
  __device__ __forceinline__ T widest(const Ranges& ranges) const { return of_rows.apart(ranges.y); }
};

}  // namespace softdtw
