// A table swept from both its ends at once, for few pairs of float32 series of one dimension, and values of several: their time is
// the length of the chain of chunks that wait for each other. From the table's first cell on, strips sweep forward as ever. From its last
// cell on others do the same with both series reversed: theirs are the same strips, bottom up, and lane l of one holds the rows of lane 31 - l of
// the other. They meet at a cut through the middle of the table, which runs one column to the left from lane to lane:
//
//     front   a a a a a a|b b b b     a: costs of paths from the first cell on, the cell's own included
//             a a a a a|b b b b b     b: costs of paths from the cell on to the last one
//             a a a a|b b b b b b
//             a a a|b b b b b b b     back
//
// Every path takes one step across the cut, so exp(-R[N,M] / gamma) is the sum of exp(-(a + b) / gamma) over these steps, and a
// step's share of the sum is what flows of E through it. So backward starts at the cut and goes back to both ends at once.
// In chunks: strip s is swept from the front up to C(s) = C(0) - 4 s and from the back in the others. With a band it begins and ends
// with the stages in which its lanes are inside, so one side has the whole of most strips, and the cut is where the band crosses it.
#pragma once

#include "cuda/gradients/strip_gradient.cuh"
#include "cuda/kernels/warp_specialised/options.cuh"
#include "cuda/numbers/extended_range_state.cuh"
#include "cuda/strips/async_prefetch.cuh"
#include "cuda/strips/strip_job.cuh"

namespace softdtw {

using BidirectionalShape = Shape<float, 2>;

// Without a band it is known when compiled that all strips are whole: what is computed at the start of a chain counts.
template <bool kHasBand>
struct BidirectionalSizes {
  using S = BidirectionalShape;
  static_assert(S::kStage == S::kSkewChunks);
  // Chunks of a strip, from both sides together: whole stages, and at least two columns more than the lanes meet, one before the first
  // and one behind the last of either side. A strip hands a column on in the step after it, so a side that sweeps a whole strip
  // needs the latter.
  int strips, chunks;
  int low, high;  // of the band

  SOFTDTW_HD explicit BidirectionalSizes(const Extent& extent)
      : strips((extent.n + S::kStripRows - 1) / S::kStripRows),
        chunks((extent.m + 2 * kWarp) / kWarp * S::kStage),
        low(extent.low),
        high(extent.high) {}
  // Of every pair: without lengths or bands of its own.
  static BidirectionalSizes of(const Problem<float>& problem) {
    Problem<float> any;
    any.n = problem.n;
    any.m = problem.m;
    any.bandwidth = problem.bandwidth;
    return BidirectionalSizes(any.extent(0));
  }
  // The chunks of a strip of the table, from the front, in which lanes are inside the band, or about to hand on what they left: whole
  // stages. Seen from the back they are the same.
  SOFTDTW_HD int first(int strip) const {
    if (!kHasBand) return 0;
    const int column = strip * S::kStripRows + low;  // one ahead of the band, by lane 0
    return static_cast<unsigned>(column < 0 ? 0 : column) / kWarp * S::kStage;
  }
  SOFTDTW_HD int end(int strip) const {
    if (!kHasBand) return chunks;
    const unsigned column = (strip + 1) * S::kStripRows + high + kWarp + 1;
    const int wanted = (column + kWarp - 1) / kWarp * S::kStage;
    return wanted < chunks ? wanted : chunks;
  }
  // No strip has more stages than these.
  SOFTDTW_HD int stages() const {
    if (!kHasBand) return chunks / S::kStage;
    const int64_t of_band = (static_cast<int64_t>(high) - low + S::kStripRows + 3 * kWarp) / kWarp;
    return of_band < chunks / S::kStage ? static_cast<int>(of_band) : chunks / S::kStage;
  }
  // Those of a strip that the front sweeps end here, and those that the back does begin.
  SOFTDTW_HD int end_of_front(int strip) const {
    const int cut = chunks_of(false, strip), last = end(strip);
    return !kHasBand || cut < last ? cut : last;
  }
  SOFTDTW_HD int first_of_back(int strip) const {
    const int cut = chunks_of(false, strip), first_one = first(strip);
    return !kHasBand || cut > first_one ? cut : first_one;
  }
  // Of an edge between two strips, from both sides together.
  SOFTDTW_HD int groups() const {
    if (!kHasBand) return chunks - S::kSkewChunks;
    const int of_band = stages() * S::kStage + S::kStripRows / S::kSteps;
    return of_band < chunks - S::kSkewChunks ? of_band : chunks - S::kSkewChunks;
  }
  // Of the side's first strip, if there were as many: so that both sides take the same time.
  SOFTDTW_HD int ahead(bool from_back) const {
    const int both = chunks + (strips - 1) * S::kSkewChunks, front = both / (2 * S::kStage) * S::kStage;
    return from_back ? both - front : front;
  }
  // Of a strip that counts from the side's end, up to the cut.
  SOFTDTW_HD int chunks_of(bool from_back, int index) const {
    const int wanted = ahead(from_back) - index * S::kSkewChunks;
    return wanted < 0 ? 0 : wanted < chunks ? wanted : chunks;
  }
};

// A chunk's place, of a side whose first rows and columns may be missing.
template <class S, bool kHasBand>
struct SidePlace : Place<S> {
  using Place<S>::Place;

  __device__ bool holds(const Extent& extent, int k, int t) const {
    return this->row + k >= 0 && (kHasBand ? Place<S>::holds(extent, k, t) : this->column + t >= 0);
  }
};

// A pair's series, as a side sees it.
template <template <typename> class Series, typename T>
__device__ __forceinline__ View<T> seen_from(bool is_back, const Series<T>& series, int64_t pair, int count) {
  const View<T> own = series.pair(pair);
  return is_back ? View<T>{own.data + (count - 1) * own.row_stride, 0, -own.row_stride, own.column_stride} : own;
}

// Columns of series that may run backwards in memory, and rows of which the table may lack some.
struct SideTile : UnivariateTile<BidirectionalShape> {
  using S = BidirectionalShape;

  __device__ SideTile(
      const Problem<float>& problem, const Extent& extent, const Strip<S>& strip, int64_t pair, int lane, bool is_back)
      : UnivariateTile<S>(seen_from(is_back, problem.y, pair, extent.m), extent.m - 1) {
    const View<const float> rows = seen_from(is_back, problem.x, pair, extent.n);
    const int first = strip.first_row + lane * S::kRows;
#pragma unroll
    for (int k = 0; k < S::kRows; ++k) set_row(k, rows.data[min(max(first + k, 0), extent.n - 1) * rows.row_stride]);
  }
  __device__ __forceinline__ void fetch(const Place<S>& place) {
    if (!place.in_columns || stride != -1) return UnivariateTile<S>::fetch(place);
    const float* const first = line - place.column;
#pragma unroll
    for (int t = 0; t < S::kSteps; ++t) next[t] = first[-t];
  }
};

// One side of a pair, as it sees the table: strips, rows and columns count from its end.
template <bool kHasBand>
struct Side {
  using S = BidirectionalShape;
  const Extent& extent;
  const BidirectionalSizes<kHasBand> sizes;
  const bool is_back;
  const int first_row, first_column;  // of the first strip

  __device__ Side(const Extent& extent_, bool is_back_)
      : extent(extent_),
        sizes(extent_),
        is_back(is_back_),
        first_row(is_back_ ? extent_.n - sizes.strips * S::kStripRows : 0),
        first_column(is_back_ ? extent_.m + kWarp - sizes.chunks * S::kSteps : -1) {}

  // The first chunk of a strip, and how many there are: none past the last one.
  __device__ __forceinline__ int first_chunk(int index) const {
    if (!kHasBand) return 0;
    const int strip = strip_of(index);
    return is_back ? sizes.chunks - sizes.end(strip) : sizes.first(strip);
  }
  __device__ __forceinline__ int chunks(int index) const {
    if (index >= sizes.strips) return 0;
    if (!kHasBand) return sizes.chunks_of(is_back, index);
    const int strip = strip_of(index);
    return max(0, is_back ? sizes.end(strip) - sizes.first_of_back(strip) : sizes.end_of_front(strip) - sizes.first(strip));
  }
  // Whether a strip of the side goes as far as the cut, and not only to where it leaves the band.
  __device__ __forceinline__ bool meets_cut(int index) const {
    if (!kHasBand) return true;
    const int cut = sizes.chunks_of(false, strip_of(index));
    return is_back ? sizes.first_of_back(strip_of(index)) == cut : sizes.end_of_front(strip_of(index)) == cut;
  }
  // Of what a strip leaves for the next one.
  __device__ __forceinline__ int groups(int index) const { return max(0, chunks(index) - S::kSkewChunks); }
  __device__ __forceinline__ Strip<S> strip(int index) const {
    return {first_row + index * S::kStripRows, first_column + first_chunk(index) * S::kSteps, extent.m, chunks(index)};
  }
  // Which strip of the table it is.
  __device__ __forceinline__ int strip_of(int index) const { return is_back ? sizes.strips - 1 - index : index; }
  template <template <typename> class Series, typename T>
  __device__ __forceinline__ View<T> seen(const Series<T>& series, int64_t pair, int count) const {
    return seen_from(is_back, series, pair, count);
  }
  // Tile: SideTile, with options or without.
  template <class Tile>
  __device__ __forceinline__ Tile tile(const Problem<float>& problem, const Strip<S>& strip, int64_t pair) const {
    return Tile(problem, extent, strip, pair, threadIdx.x, is_back);
  }
  // The chunk that holds the end that the side starts from.
  __device__ __forceinline__ int corner_chunk() const { return (-first_row / S::kRows - first_column) / S::kSteps; }
};

// Of a kernel that is compiled for a tile.
template <class Tile>
constexpr bool kHasBand = TileOptions<BidirectionalShape, Tile>::kTakesBands;
template <class Tile>
using SideOf = Side<kHasBand<Tile>>;

// A strip of a side among its neighbours, for the sweep (sweeping_warp.cuh).
template <bool kHasBand>
struct SideStrip {
  using S = BidirectionalShape;
  using Place = SidePlace<S, kHasBand>;
  static constexpr bool kIsCut = true;
  const Strip<S> strip, above;
  const bool is_first, is_last;  // is_last: nobody reads what it leaves
  const int entry_chunk, above_offset;
  static constexpr int end_lane = -1, end_row = -1, end_time = -1, end_chunk = -1;

  __device__ SideStrip(const Side<kHasBand>& side, int index)
      : strip(side.strip(index)),
        above(side.strip(max(0, index - 1))),
        is_first(index == 0),
        is_last(side.chunks(index + 1) == 0),
        entry_chunk(index == 0 ? side.corner_chunk() : -1),
        above_offset(index == 0 ? 0 : side.first_chunk(index) - side.first_chunk(index - 1)) {}

  __device__ __forceinline__ static bool holds_corner(int) { return false; }
  // Paths enter somewhere in the first strip, in a general sweep.
  template <class Cell>
  __device__ __forceinline__ void enter(const Place& place, int k, int t, Cell& diag) const {
    if (entry_chunk >= 0 && place.row + k == 0 && place.column + t == 0) diag = {floor_of_m<S>(), 1};
  }
  // Lanes that hold no row of the table stay near the first one that does.
  template <class Top, class State>
  __device__ __forceinline__ double reference_above(const Top& top, const State& state) const {
    if (is_first) return __shfl_sync(kAllLanes, state.reference, -strip.first_row / S::kRows);
    return !kHasBand || top.exists ? top.reference : state.reference;
  }
};

// A number s 2^-m.
struct Number {
  double m, s;
};

// What both sides leave, `stride` bytes a pair: the states at the cut, and where backward is to follow, the snapshots of every
// stage, all edges, and exp(-R[N,M] / gamma).
struct BidirectionalMemory {
  using S = BidirectionalShape;
  char* memory;
  int64_t stride;
  bool is_kept;

  // Of a strip, without its first stage from either side, whose start is known, but with the states at the cut.
  template <class Sizes>
  SOFTDTW_HD static int64_t snapshots(const Sizes& sizes, bool keeps) {
    return keeps ? sizes.stages() : 2;
  }
  // Of a pair: for every edge, or for one of either side that holds each in turn.
  template <class Sizes>
  SOFTDTW_HD static int64_t edges(const Sizes& sizes, bool keeps) {
    return keeps ? sizes.strips - 1 : 2;
  }
  template <class Sizes>
  static int64_t bytes_of_pair(const Sizes& sizes, bool keeps) {
    return sizes.strips * snapshots(sizes, keeps) * Snapshot<S>::kBytes +
           Edges<S>::bytes_of_pair(edges(sizes, keeps), sizes.groups()) + sizeof(Number);
  }
  template <class Sizes>
  BidirectionalMemory(const Sizes& sizes, void* memory_, bool keeps)
      : memory(static_cast<char*>(memory_)), stride(bytes_of_pair(sizes, keeps)), is_kept(keeps) {}

  __device__ __forceinline__ Number& sum(int64_t pair) const {
    return *reinterpret_cast<Number*>(memory + (pair + 1) * stride - sizeof(Number));
  }
};

// The same as a side sees it.
template <bool kHasBand>
struct SideMemory {
  using S = BidirectionalShape;
  const Side<kHasBand>& side;
  const BidirectionalMemory& all;

  __device__ __forceinline__ bool keeps() const { return all.is_kept; }
  // The state of a strip at the start of a stage, from 1 to where the side ends.
  __device__ __forceinline__ char* stage(int64_t pair, int index, int stage) const {
    const int strip = side.strip_of(index);
    int64_t slot = side.is_back;
    if (all.is_kept) slot = (side.is_back ? of_front(strip) / S::kStage : 0) + stage - 1;
    const int64_t slots = BidirectionalMemory::snapshots(side.sizes, all.is_kept);
    return all.memory + pair * all.stride + (strip * slots + slot) * Snapshot<S>::kBytes;
  }
  __device__ __forceinline__ char* cut(int64_t pair, int index) const {
    return stage(pair, index, side.chunks(index) / S::kStage);
  }
  // What a strip leaves for the next one of the side.
  __device__ __forceinline__ Edge<S> edge(int64_t pair, int index) const {
    const BidirectionalSizes<kHasBand>& sizes = side.sizes;
    const int64_t slots = BidirectionalMemory::snapshots(sizes, all.is_kept),
                  edges = BidirectionalMemory::edges(sizes, all.is_kept);
    float* const entries =
        reinterpret_cast<float*>(all.memory + pair * all.stride + sizes.strips * slots * Snapshot<S>::kBytes);
    double* const references = reinterpret_cast<double*>(entries + edges * sizes.groups() * 2 * S::kSteps);
    int64_t first = side.is_back ? sizes.groups() : 0;
    if (all.is_kept) {
      // Between this strip of the table and the next one, from the front first.
      const int upper = side.is_back ? side.strip_of(index) - 1 : index;
      first = static_cast<int64_t>(upper) * sizes.groups() + (side.is_back ? groups_of_front(upper) : 0);
    }
    return {entries + first * 2 * S::kSteps, references + first};
  }
  __device__ __forceinline__ Edge<S> edge(int64_t pair, int index, const Strip<S>&) const { return edge(pair, index); }

 private:
  // What the front has of a strip of the table, in chunks, and of the edge below it.
  __device__ __forceinline__ int of_front(int strip) const {
    if (!kHasBand) return side.sizes.chunks_of(false, strip);
    return max(0, side.sizes.end_of_front(strip) - side.sizes.first(strip));
  }
  __device__ __forceinline__ int groups_of_front(int strip) const {
    return kHasBand ? max(0, of_front(strip) - S::kSkewChunks) : of_front(strip + 1);
  }
};

template <class Tile>
using SideMemoryOf = SideMemory<kHasBand<Tile>>;

}  // namespace softdtw
