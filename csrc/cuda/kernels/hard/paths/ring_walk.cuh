// The walk back along a path, over the steps that a ring has noted (ring_steps.cuh), by its lanes.
//
// A step back along a path takes a lane's row one step back in time, a step up none; from a block's first row to the block above each
// one more, since the lane above is a step ahead. So the walk goes back in time, row by row. Where it is in a word is a mask: its own step's
// bit and all older ones, which are higher. With the bits of a row's steps that lead to another row, in the word,
//
//     stop  = steps & mask                                    the lowest one is where the path leaves the row
//     mask' = (stop ^ -stop) | (stop & -stop & is_up)         above it; with it, if the step leads up and not by the diagonal
//
// since -stop has the lowest bit of stop, and of the bits above the others. These three operations are all that a row waits for.
//
// The word that the walk is at is in shared memory, and those before are on their way. All lanes of a ring walk alike. A pass takes a block's
// rows, or, where the walk comes to the end of the word, those up to it: the word before takes the others in the next pass. So pairs of a
// warp never part.
#pragma once

#include <cuda_pipeline_primitives.h>

#include "cuda/select/hard.h"
#include "ring_steps.cuh"

namespace softdtw {

// Shared memory of a warp's walks: so many words of each ring.
constexpr int kWordsOfWalk = 4;
constexpr int64_t ring_walk_bytes(int rows) { return kWordsOfWalk * kWarp * rows * int64_t{sizeof(RowSteps)}; }

template <int kRows>
class RingWalk {
  using Band = RingBand<kRows>;
  static constexpr int kSteps = RingSteps<kRows>::kStepsOfWord;
  static constexpr unsigned kOldest = 1u << (kSteps - 1);
  static_assert(kSteps + 1 < 32, "a row's oldest step leads two bits further, with that to the block above");
  static constexpr int kFewestLanes = kRows == kRowsOfFewPairs ? kWarp : kRings[0].lanes;
  struct Rows {
    unsigned stops[kRows], is_up[kRows];  // the latter counts where there is a stop
  };
  // What a pass has of a lane's row, of several where a ring has fewer lanes than a block has rows.
  struct Visit {
    int row = -1;  // none
    unsigned at = 0, stop = 0;
    int entry = -1, oldest = 0;  // as of the walk
  };
  static constexpr int kVisits = (kRows + kFewestLanes - 1) / kFewestLanes;
  const Band& band;
  const RowSteps* const table;  // the pair's
  RowSteps* const words;        // some of them, in shared memory
  int block, row;               // the block's row that comes next
  int entry;                    // the column by which the path has come into that row, if that was in another word; or -1
  int word, oldest;             // oldest: the column of the word's oldest step, in the block
  const RowSteps* of_word;      // in shared memory
  unsigned mask;

 public:
  // memory: ring_walk_bytes() of shared memory. A pair without a path goes along with the warp's others.
  __device__ __forceinline__ RingWalk(const Band& band_, const RowSteps* table_, RowSteps* memory, bool has_path)
      : band(band_),
        table(table_),
        words(memory + (threadIdx.x & ~(band.lanes - 1)) * kWordsOfWalk * kRows),
        block(has_path ? band.last_block() : -1),
        row((band.extent.n - 1) % kRows),
        entry(-1) {
    const int first_column = band.first_group * RingSteps<kRows>::kGroup + band.extent.low - 1 - block;
    const int time = has_path ? band.extent.m - 1 - first_column : 0;
    word = time / kSteps;
    oldest = first_column + word * kSteps;
    of_word = slot(word);
    mask = 0u - (kOldest >> time % kSteps);
    __syncwarp();  // what lanes have written of steps, others read
#pragma unroll
    for (int i = 0; i < kWordsOfWalk; ++i) fetch(word - i, has_path);
    arrive<kWordsOfWalk - 1>();
  }
  // Calls visit(row, first, last) for every row, with the columns that the path meets there, by one lane; by others meanwhile with a row
  // below 0. By the whole warp.
  template <class F>
  __device__ __forceinline__ void walk(F&& visit) {
    Visit visits[kVisits];
    Rows rows = rows_left();
    while (__any_sync(kAllLanes, block >= 0)) {
      const Rows rows_above = rows_of(block - 1);
      finish(visits, visit);
      unsigned at[kRows], stop[kRows];
#pragma unroll
      for (int k = kRows - 1; k >= 0; --k) {
        at[k] = mask;
        stop[k] = rows.stops[k] & mask;
        const unsigned negative = 0u - stop[k];
        mask = (stop[k] ^ negative) | (stop[k] & negative & rows.is_up[k]);
      }
      begin(visits, at, stop);
      const bool is_stuck = block >= 0 && stop[0] == 0;
      block -= !is_stuck;
      oldest += !is_stuck;
      mask <<= 1;
      if (__any_sync(kAllLanes, is_stuck)) {
        go_back(is_stuck, at, stop);
        rows = rows_left();
      } else {
        row = kRows - 1;
        entry = -1;
        rows = rows_above;
      }
    }
    finish(visits, visit);
  }

 private:
  __device__ __forceinline__ RowSteps* slot(int of) const { return words + (of & (kWordsOfWalk - 1)) * band.lanes * kRows; }
  __device__ __forceinline__ void fetch(int of, bool is_wanted) const {
    if (is_wanted && of >= 0) {
      const uint4* const from = reinterpret_cast<const uint4*>(table + int64_t{of} * band.lanes * kRows) + band.lane;
      uint4* const to = reinterpret_cast<uint4*>(slot(of)) + band.lane;
#pragma unroll
      for (int i = 0; i < kRows / 2; ++i)
        __pipeline_memcpy_async(to + i * band.lanes, from + i * band.lanes, sizeof(uint4));
    }
    __pipeline_commit();
  }
  // All but so many of the words that have been fetched.
  template <int kOnTheirWay>
  __device__ __forceinline__ static void arrive() {
    __pipeline_wait_prior(kOnTheirWay);
    __syncwarp();
  }
  // In the first word all paths end, whatever the sweep noted.
  __device__ __forceinline__ Rows rows_of(int of) const {
    const uint4* const own = reinterpret_cast<const uint4*>(of_word + (of & (band.lanes - 1)) * kRows);
    const unsigned last = word <= 0 ? kOldest : 0;
    Rows rows;
#pragma unroll
    for (int k = 0; k < kRows; k += 2) {
      const uint4 two = own[k / 2];
      rows.stops[k] = ~(two.x & two.y) | last;
      rows.stops[k + 1] = ~(two.z & two.w) | last;
      rows.is_up[k] = two.x;
      rows.is_up[k + 1] = two.z;
    }
    return rows;
  }
  // Those of the block that come next: the walk stays where it is in the others.
  __device__ __forceinline__ Rows rows_left() const {
    Rows rows = rows_of(block);
#pragma unroll
    for (int k = 1; k < kRows; ++k)
      if (k > row) rows.stops[k] = rows.is_up[k] = ~0u;
    return rows;
  }
  // Of the lowest bit.
  __device__ __forceinline__ static int column(int oldest, unsigned bits) {
    return oldest + kSteps - __ffs(static_cast<int>(bits));
  }
  // Whether lanes have so many rows of a block.
  __device__ __forceinline__ bool has_visit(int i) const { return i == 0 || i * band.lanes < kRows; }
  // Rows that the path leaves in this word. What is to be done for them can wait until the next pass, which has the time.
  __device__ __forceinline__ void begin(
      Visit (&visits)[kVisits], const unsigned (&at)[kRows], const unsigned (&stop)[kRows]) const {
#pragma unroll
    for (int i = 0; i < kVisits; ++i) {
      if (!has_visit(i)) continue;
      const int k = i * kFewestLanes + band.lane;
      Visit& own = visits[i];
#pragma unroll
      for (int j = kRows - 1; j >= i * kFewestLanes; --j)  // in the order in which they come
        if (k <= j) own.at = at[j], own.stop = stop[j];
      own.row = k <= row && own.stop != 0 ? block * kRows + k : -1;
      own.entry = k == row ? entry : -1;
      own.oldest = oldest;
    }
  }
  template <class F>
  __device__ __forceinline__ void finish(const Visit (&visits)[kVisits], F&& visit) const {
#pragma unroll
    for (int i = 0; i < kVisits; ++i) {
      if (!has_visit(i)) continue;
      const Visit& own = visits[i];
      const int first = max(column(own.oldest, own.stop), 0), last = column(own.oldest, own.at);
      visit(own.row, first, max(own.entry >= 0 ? own.entry : last, first));
    }
  }
  // To the word before, from the row that the path does not leave in this one.
  __device__ __forceinline__ void go_back(bool is_stuck, const unsigned (&at)[kRows], const unsigned (&stop)[kRows]) {
    int stuck = 0;
    unsigned from = at[0];
#pragma unroll
    for (int k = 1; k < kRows; ++k)
      if (stop[k] == 0) stuck = k, from = at[k];
    const int came_by = stuck == row && entry >= 0 ? entry : column(oldest, from);
    entry = is_stuck ? came_by : -1;
    row = is_stuck ? stuck : kRows - 1;
    const bool goes_back = is_stuck && word > 0;
    // Its first step, unless it was beyond already.
    if (goes_back) mask = static_cast<unsigned>(static_cast<int>(from) >> kSteps);
    if (is_stuck && word <= 0) mask = 0u - kOldest;
    word -= goes_back;
    of_word = slot(word);
    oldest -= goes_back ? kSteps : 0;
    arrive<kWordsOfWalk - 2>();
    fetch(word - (kWordsOfWalk - 1), goes_back);
  }
};

}  // namespace softdtw
