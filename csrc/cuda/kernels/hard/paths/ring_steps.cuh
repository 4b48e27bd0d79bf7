// The steps that a ring (kernels/hard/rings) notes, and the walk back over them. A ring that notes none, for values alone, has NoSteps.
//
// A lane keeps two bits of every cell: whether its best step is another one than the diagonal one; and whether it comes from the left
// rather than from above, which counts only then. Both are signs of a difference, which one shift brings into a word of the row's, the
// newest one lowest. A word has as many whole groups of steps as it can hold. Steps count from the pair's first group on, and
//     steps of all words [pair][word][lane][row]
// are written by all lanes of a ring at once.
//
// A step back along a path takes a lane's row one step back in time, a step up none; from a block's first row to the block above each
// one more, since the lane above is a step ahead. So the walk goes back in time, row by row.
#pragma once

#include "cuda/kernels/banded/ring_band.cuh"

namespace softdtw {

// Of a row of a lane, in the steps of a word.
struct RowSteps {
  unsigned beside, left;
};

struct NoSteps {
  __device__ __forceinline__ void note(int, float, float, float, float) {}
  template <class Band>
  __device__ __forceinline__ void leave_group(const Band&, int, RowSteps*) {}
};

template <int kRows>
struct RingSteps {
  static constexpr int kGroup = kRows + 1, kGroupsOfWord = 32 / kGroup, kStepsOfWord = kGroupsOfWord * kGroup;
  unsigned beside[kRows] = {}, left[kRows] = {};

  // In row k, of entries before its cost: the best one, and those of the predecessors.
  __device__ __forceinline__ void note(int k, float best, float diagonal, float above, float before) {
    beside[k] = __funnelshift_l(__float_as_uint(best - diagonal), beside[k], 1);
    left[k] = __funnelshift_l(__float_as_uint(before - above), left[k], 1);
  }
  // After group i, by all lanes; `table`: the pair's.
  template <class Band>
  __device__ __forceinline__ void leave_group(const Band& band, int i, RowSteps* table) const {
    const int of_word = i % kGroupsOfWord, missing = (kGroupsOfWord - 1 - of_word) * kGroup;
    if ((missing > 0 && i + 1 < band.most_groups) || !band.fits) return;
    uint4* const own = reinterpret_cast<uint4*>(table + (i / kGroupsOfWord * band.lanes + band.lane) * kRows);
#pragma unroll
    for (int k = 0; k < kRows; k += 2)
      own[k / 2] = {beside[k] << missing, left[k] << missing, beside[k + 1] << missing, left[k + 1] << missing};
  }
};

// Words that all steps of a pair need.
__host__ inline int words_of_steps(const RingLayout& layout) {
  const int groups_of_word = 32 / (layout.rows + 1);
  return (layout.chunks * layout.groups_of_chunk() + groups_of_word - 1) / groups_of_word;
}

// The walk back along a path of a pair. Where it is in a word is one bit, the older the higher, so that what leads from row to row is
// a few logical operations. A block's rows are read at once, and the block above on the way. Lanes that walk alike read alike.
//
// Whatever the sweep noted, the walk ends, and reads nothing but the pair's steps.
template <int kRows>
class RingWalk {
  using Band = RingBand<kRows>;
  using Steps = RingSteps<kRows>;
  static constexpr int kSteps = Steps::kStepsOfWord;
  static constexpr unsigned kAll = (2u << (kSteps - 1)) - 1;
  struct Block {
    uint4 rows[kRows / 2];  // of two rows each: beside, left, beside, left

    __device__ __forceinline__ unsigned beside(int k) const { return k % 2 == 0 ? rows[k / 2].x : rows[k / 2].z; }
    __device__ __forceinline__ unsigned left(int k) const { return k % 2 == 0 ? rows[k / 2].y : rows[k / 2].w; }
    // Steps that lead to another row.
    __device__ __forceinline__ unsigned stops(int k) const { return ~(beside(k) & left(k)) & kAll; }
  };
  const Band& band;
  const RowSteps* const table;
  int block, word;
  unsigned at;  // the step; from bit kSteps on, one of the word before
  Block own, above;

  __device__ __forceinline__ Block load(int of) const {
    const int lane = of & (band.lanes - 1);  // of block -1 too
    const uint4* const from = reinterpret_cast<const uint4*>(table + (word * band.lanes + lane) * kRows);
    Block loaded;
#pragma unroll
    for (int i = 0; i < kRows / 2; ++i) loaded.rows[i] = from[i];
    return loaded;
  }
  __device__ __forceinline__ static int place(unsigned bit) { return 31 - __clz(static_cast<int>(bit)); }
  // The column of the block's lane in step 0 of the pair's first word.
  __device__ __forceinline__ int first_column() const {
    return band.first_group * Steps::kGroup + band.extent.low - 1 - block;
  }
  __device__ __forceinline__ int column(unsigned bit) const {
    return first_column() + kSteps - 1 + word * kSteps - place(bit);
  }

 public:
  // From a column of the last row of a block.
  __device__ __forceinline__ RingWalk(const Band& band_, const RowSteps* table_, int from_block, int from_column)
      : band(band_), table(table_), block(from_block) {
    const int time = from_column - first_column();
    word = time / kSteps;
    at = 1u << (kSteps - 1 - time % kSteps);
  }
  // Calls visit(row, first, last) for every row up to the first one of `last_block`, with the columns that the path meets there.
  // Returns the column by which it comes from the row above.
  template <class Visit>
  __device__ __forceinline__ int walk(int last_block, Visit&& visit) {
    own = load(block);
    while (block >= last_block) {
      above = load(block - 1);
#pragma unroll
      for (int k = kRows - 1; k >= 0; --k) {
        const int row = block * kRows + k;
        if (row >= band.extent.n) continue;
        const int last = column(at);
        unsigned stops = own.stops(k) & -at;
        while (stops == 0 && word > 0) {
          at = at >> kSteps != 0 ? at >> kSteps : 1;
          --word;
          own = load(block);
          above = load(block - 1);
          stops = own.stops(k) & -at;
        }
        const unsigned stop = stops != 0 ? stops & -stops : 1u << (kSteps - 1);
        visit(row, max(column(stop), 0), last);
        at = (own.beside(k) & stop) != 0 ? stop : stop << 1;
      }
      at <<= 1;  // the lane above is a step ahead
      own = above;
      --block;
    }
    return column(at);
  }
};

}  // namespace softdtw
