// Where the lanes of a pair are in its band, whatever a cell is: soft-DTW in the linear domain (ring.cuh), or hard DTW
// (kernels/hard/rings/hard_ring.cuh). banded.cu has the equations.
#pragma once

#include "core/problem.h"
#include "cuda/hardware/assembly.cuh"
#include "cuda/numbers/device_math.cuh"
#include "cuda/select/blocks.h"
#include "cuda/strips/columns_ahead.cuh"

namespace softdtw {

// How the pairs of a problem are laid out in memory.
struct RingLayout {
  static constexpr int kAhead = 3;  // columns that ColumnsAhead reads at most beyond those of a sweep
  int lanes, rows;                  // of a pair, of a lane
  int x_floats;                     // of a pair's x: whole blocks
  int y_floats;                     // of y, with what lanes read before and behind the table
  int chunks;                       // of a pair of the problem's full lengths

  __host__ RingLayout(int n, int m, const Ring& ring) : lanes(ring.lanes), rows(ring.rows) {
    const int groups = (m - 1 + (n - 1) / rows) / (rows + 1) + 2;
    chunks = (groups + groups_of_chunk() - 1) / groups_of_chunk();
    x_floats = ((n + rows - 1) / rows * rows + 3) / 4 * 4;
    y_floats = (before() + chunks * groups_of_chunk() * rows + lanes + kAhead + 3) / 4 * 4;
  }
  // Where series stay where they are.
  __host__ RingLayout without_series() const {
    RingLayout layout = *this;
    layout.x_floats = layout.y_floats = 0;
    return layout;
  }
  // The columns of a band that the ring holds.
  __host__ __device__ int widest() const { return lanes * (rows + 1) - rows - 1; }
  __host__ __device__ int pairs() const { return kWarp / lanes; }  // of a warp
  // Groups of rows + 1 steps that backward rebuilds at once.
  __host__ __device__ int groups_of_chunk() const { return groups_of_chunk(rows); }
  __host__ __device__ static constexpr int groups_of_chunk(int rows) { return rows <= 4 ? 2 : 1; }
  // Of y: where column 0 is.
  __host__ __device__ int before() const { return rows + lanes + kAhead; }
  // Of shared memory. So the pairs of a warp are in banks of their own.
  __host__ __device__ int floats_of_pair() const { return (x_floats + y_floats + kWarp - 1) / kWarp * kWarp + lanes; }
  // What forward keeps of a pair: x and y as the sweep reads them, and the largest exponent of a cost; then what the lanes hold
  // before every chunk but the first, whose start is known: its rows, the row above them, and integer log2's reference.
  __host__ __device__ int words_of_series() const { return x_floats + y_floats + 4; }
  __host__ __device__ int words_of_chunk(bool has_reference) const { return (rows + 1 + has_reference) * lanes; }
  __host__ __device__ int64_t bytes_of_pair() const {
    return (words_of_series() + int64_t{chunks - 1} * words_of_chunk(true)) * sizeof(int);
  }
};

// A lane's place in the band of its pair.
//
// `end_column`: the last one that is wanted of the last row. A pair that does not fit goes along with the warp's others.
template <int kRows_>
struct RingBand {
  static constexpr int kRows = kRows_, kDims = 1, kGroup = kRows + 1, kAhead = RingLayout::kAhead;
  const int lanes, lane;
  Extent extent;
  bool fits;                       // whether the pair is wanted and valid, and its ring wide enough
  int width;                       // of the band: columns of a row
  int first_group, entry;          // entry: the step of the first group in which a path comes to the table's first cell
  int groups, last_step;           // of the pair; of the last group
  int most_groups, fewest_groups;  // of the warp's pairs

  __device__ RingBand(const RingLayout& layout, const Extent& extent_, bool wanted)
      : RingBand(layout, extent_, extent_.m - 1, wanted) {}
  __device__ RingBand(const RingLayout& layout, const Extent& extent_, int end_column, bool wanted)
      : lanes(layout.lanes), lane(threadIdx.x & (layout.lanes - 1)), extent(extent_) {
    fits = wanted && extent.valid() && extent.high - extent.low + 1 <= layout.widest();
    if (!fits) extent = {1, 1, 0, 0}, end_column = 0;
    width = extent.high - extent.low + 1;
    const int first_step = 1 - extent.low, end_step = end_column + 1 - extent.low + last_block();
    first_group = first_step / kGroup;
    entry = first_step % kGroup;
    groups = end_step / kGroup - first_group + 1;
    last_step = end_step % kGroup;
    most_groups = wanted ? groups : 0;
    fewest_groups = groups;
#pragma unroll
    for (int distance = kWarp / 2; distance > 0; distance /= 2) {
      most_groups = max(most_groups, __shfl_xor_sync(kAllLanes, most_groups, distance));
      fewest_groups = min(fewest_groups, __shfl_xor_sync(kAllLanes, fewest_groups, distance));
    }
  }
  // Which pair a lane has, or would have.
  __device__ static int64_t number(const RingLayout& layout, int64_t first_pair) {
    return first_pair + threadIdx.x / layout.lanes;
  }
  __device__ __forceinline__ int last_block() const { return (extent.n - 1) / kRows; }
  // How many blocks a lane's is older than the one that enters with the pair's group i; and which block it is.
  __device__ __forceinline__ int age(int i) const { return age_of(lane, i); }
  __device__ __forceinline__ int age_of(int lane, int i) const { return (first_group + i - lane) & (lanes - 1); }
  __device__ __forceinline__ int block(int i) const { return first_group + i - age(i); }
  // The lane's column in step r of group i is that and r.
  __device__ __forceinline__ int first_column(int i) const {
    return (first_group + i) * kGroup + extent.low - 1 - block(i);
  }
  // That of the newest block's lane in step 0: the others are further right, one by one.
  __device__ __forceinline__ int column_of_newest(int i) const { return (first_group + i) * kRows + extent.low - 1; }
  // Which of a lane's cells are in the band: in step r of its group, bit kRows - 1 - k of the mask shifted by r for row k.
  __device__ __forceinline__ unsigned mask(int age) const {
    const int end = width + kRows - 1 - kGroup * age;  // the last bit
    const unsigned up_to = end < 0 ? 0 : end >= 31 ? ~0u : (2u << end) - 1;
    return age == 0 ? up_to & (~0u << kRows) : up_to;
  }
  // Not 0 if it is.
  __device__ __forceinline__ static unsigned is_inside(unsigned mask, int k) { return mask & 1u << (kRows - 1 - k); }
  __device__ __forceinline__ unsigned mask_of_group(int i) const { return mask(age(i)); }
  // So many groups begin with lanes left of the table.
  __device__ __forceinline__ int groups_before_table() const { return max((kRows - extent.low) / kRows - first_group, 1); }
  __device__ __forceinline__ int neighbour(int by) const {
    return (threadIdx.x & ~(lanes - 1)) | ((lane + by) & (lanes - 1));
  }
  __device__ __forceinline__ bool is_block_of_last_row(int i) const { return block(i) == last_block(); }
  // Of all lanes of the pair.
  __device__ __forceinline__ bool any_of_pair(bool vote) const {
    const unsigned votes = __ballot_sync(kAllLanes, vote) >> (threadIdx.x & ~(lanes - 1));
    return (votes & (0xffffffffu >> (kWarp - lanes))) != 0;
  }
};

// The least and the largest number of a pair's series.
struct RangeOfSeries {
  float lowest, highest, y_lowest, y_highest;

  __device__ __forceinline__ float widest() const { return greater(highest - y_lowest, y_highest - lowest); }
};

// With series of one dimension, in shared memory.
template <int kRows_>
struct RingNumbers : RingBand<kRows_> {
  using Band = RingBand<kRows_>;
  using Columns = ColumnsAhead<float, 1>;
  using ColumnsBack = ColumnsAhead<float, -1>;
  using Band::Band;
  static constexpr int kRows = kRows_;
  const float *rows, *line;  // x, and y from its column 0 on
  float x[kRows];

  __device__ __forceinline__ void find_series(const RingLayout& layout, const float* own) {
    rows = own;
    line = own + layout.x_floats + layout.before();
  }
  // The pair's part of its warp's memory, where its series are.
  __device__ __forceinline__ float* find_own(const RingLayout& layout, float* memory) {
    float* const own = memory + threadIdx.x / layout.lanes * layout.floats_of_pair();
    find_series(layout, own);
    return own;
  }
  // From where they are to shared memory, and to what is kept, if it is, as `of(number)`. Rows and columns past the pair's end, or before
  // its start, repeat its last ones, or its first: such cells hold finite numbers that no result depends on. Many at once, since most of
  // the time goes into waiting for them.
  template <class Of>
  __device__ __forceinline__ RangeOfSeries copy_series(
      const View<const float>& x_view, const View<const float>& y_view, const RingLayout& layout, float* own, float* kept,
      Of&& of) const {
    const float some = of(y_view.data[0]);
    RangeOfSeries range = {some, some, some, some};
    const auto put = [](int place, int floats, float number, float* to, float* kept_to, float& lowest, float& highest) {
      if (place < floats) to[place] = number;
      if (place < floats && kept_to != nullptr) kept_to[place] = number;
      lowest = lesser(lowest, number);
      highest = greater(highest, number);
    };
    constexpr int kAtOnce = 16;
    const int lanes = this->lanes;
    const Extent& extent = this->extent;
    for (int first = this->lane; first < max(layout.x_floats, layout.y_floats); first += kAtOnce * lanes) {
      float of_x[kAtOnce], of_y[kAtOnce];
#pragma unroll
      for (int i = 0; i < kAtOnce; ++i) {
        const int place = first + i * lanes;
        of_x[i] = x_view.data[min(place, extent.n - 1) * x_view.row_stride];
        of_y[i] = y_view.data[min(max(place - layout.before(), 0), extent.m - 1) * y_view.row_stride];
      }
#pragma unroll
      for (int i = 0; i < kAtOnce; ++i) {
        const int place = first + i * lanes;
        put(place, layout.x_floats, of(of_x[i]), own, kept, range.lowest, range.highest);
        put(place, layout.y_floats, of(of_y[i]), own + layout.x_floats, kept == nullptr ? nullptr : kept + layout.x_floats,
            range.y_lowest, range.y_highest);
      }
    }
    __syncwarp();
    for (int distance = lanes / 2; distance > 0; distance /= 2) {
      range.lowest = lesser(range.lowest, __shfl_xor_sync(kAllLanes, range.lowest, distance));
      range.highest = greater(range.highest, __shfl_xor_sync(kAllLanes, range.highest, distance));
      range.y_lowest = lesser(range.y_lowest, __shfl_xor_sync(kAllLanes, range.y_lowest, distance));
      range.y_highest = greater(range.y_highest, __shfl_xor_sync(kAllLanes, range.y_highest, distance));
    }
    return range;
  }
  // As they have been kept, to shared memory.
  __device__ __forceinline__ void copy_kept_series(const RingLayout& layout, float* own, const float* kept) const {
#pragma unroll 8
    for (int i = this->lane; i < (layout.x_floats + layout.y_floats) / 4; i += this->lanes)
      reinterpret_cast<int4*>(own)[i] = __ldcs(reinterpret_cast<const int4*>(kept) + i);
    __syncwarp();
  }
  // y in the lane's columns of group i: at r of this.
  __device__ __forceinline__ const float* columns(int i) const { return line + this->first_column(i); }
  // From the right, after one another.
  __device__ __forceinline__ ColumnsBack columns_back(int i) const { return ColumnsBack(columns(i) + Band::kGroup - 1); }
  __device__ __forceinline__ void take_rows(int block) {
    const float* const from = rows + min(max(block, 0), this->last_block()) * kRows;
    if constexpr (kRows % 4 == 0) {
#pragma unroll
      for (int k = 0; k < kRows; k += 4) {
        const float4 four = *reinterpret_cast<const float4*>(from + k);
        x[k] = four.x, x[k + 1] = four.y, x[k + 2] = four.z, x[k + 3] = four.w;
      }
    } else {
#pragma unroll
      for (int k = 0; k < kRows; k += 2) {
        const float2 two = *reinterpret_cast<const float2*>(from + k);
        x[k] = two.x, x[k + 1] = two.y;
      }
    }
  }
  // The lane whose turn it is takes its next block, by what all do: that takes no longer. Its first step is one before the block's
  // first column, and what cells have ready for it, of the rows before, concerns no cell of the band.
  __device__ __forceinline__ void turn(int i, Columns& columns_) {
    take_rows(this->block(i));
    columns_ = Columns(columns(i));
  }
  template <class Own>
  __device__ __forceinline__ void move(Own& columns_) const {
    columns_.move();
  }
};

// Steps of a loop over a group that are in flight: of vectors one, which has more than enough instructions.
template <class Pair>
constexpr int kStepsAtOnce = Pair::kRows > 8 || Pair::kDims > 1 ? 1
                             : Pair::kRows == 8                 ? 3
                                                                : Pair::kRows + 1;

// A lane's columns and cells from group to group. A pair is a RingBand with series:
//     Columns, columns(i)                  of a lane, from group i on
//     turn(i, columns)                     before group i: whose turn it is takes its next block
//     move(columns)                        to the next one
// Cells are made of a pair and its columns, and have
//     enter(pair)                          the table's first cell comes next
//     step(pair, from, mask, columns)      a column; `from`: the lane of the block above, `mask`: of the band, shifted
template <class Pair, class Cells>
struct RingSweep {
  static constexpr int kRows = Pair::kRows;
  Pair& pair;
  typename Pair::Columns columns;
  Cells cells;

  // From group i on; the pair has the rows of this group.
  __device__ __forceinline__ RingSweep(Pair& pair_, int i) : pair(pair_), columns(pair.columns(i)), cells(pair, columns) {}
  __device__ __forceinline__ void turn(int i) { pair.turn(i, columns); }
  // leave(r) after every step. kMayStart: lanes may be left of the table.
  template <bool kMayStart, class Leave>
  __device__ __forceinline__ void group(int i, Leave&& leave) {
    const int from = pair.neighbour(-1);
    unsigned mask = pair.mask_of_group(i);
    const int entry = kMayStart && i == 0 && pair.block(i) == 0 ? pair.entry : -1;
    const int first_column = kMayStart ? pair.first_column(i) : 0;
    const auto step = [&](int r) {
      if (kMayStart && r == entry) cells.enter(pair);
      cells.step(pair, from, kMayStart && first_column + r < 0 ? 0 : mask, columns);
      pair.move(columns);
      mask >>= 1;
      leave(r);
    };
    if constexpr (kMayStart) {
#pragma unroll 1
      for (int r = 0; r < kRows + 1; ++r) step(r);
    } else {
#pragma unroll(kStepsAtOnce<Pair>)
      for (int r = 0; r < kRows + 1; ++r) step(r);
    }
  }
};

}  // namespace softdtw
