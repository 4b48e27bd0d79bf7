// The steps that a ring notes, and the walk back over them. A ring that notes none, for values alone, has NoSteps.
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

// Calls visit(row, first, last) for every row from the last to the first, with the columns that the path meets there. Whatever the sweep noted, the walk ends, and reads nothing but
// the pair's steps.
template <int kRows, class Visit>
__device__ __forceinline__ void walk_back(const RingBand<kRows>& band, const RowSteps* table, Visit&& visit) {
  using Steps = RingSteps<kRows>;
  constexpr int kSteps = Steps::kStepsOfWord;
  constexpr unsigned kAll = (2u << (kSteps - 1)) - 1;
  const auto load = [&](int word, int row) {
    const int lane = row / kRows & (band.lanes - 1);
    const uint2 bits = *reinterpret_cast<const uint2*>(table + (word * band.lanes + lane) * kRows + row % kRows);
    return RowSteps{bits.x, bits.y};
  };
  int time = (band.groups - 1) * Steps::kGroup + band.last_step, word = time / kSteps;
  RowSteps steps = load(word, band.extent.n - 1);
  for (int row = band.extent.n - 1; row >= 0; --row) {
    const int above = max(row - 1, 0), word_above = word;
    const RowSteps steps_above = load(word_above, above);  // most likely; on its way while this row is looked at
    const int column_at_0 = band.first_group * Steps::kGroup + band.extent.low - 1 - row / kRows, last = column_at_0 + time;
    // The newest step from now on back that is not to the left.
    unsigned stops = ~(steps.beside & steps.left) & kAll & ~0u << (kSteps - 1 + word * kSteps - time);
    while (stops == 0 && word > 0) {
      steps = load(--word, row);
      stops = ~(steps.beside & steps.left) & kAll;
    }
    const int bit = stops != 0 ? __ffs(static_cast<int>(stops)) - 1 : kSteps - 1;
    time = (word + 1) * kSteps - 1 - bit;
    visit(row, max(column_at_0 + time, 0), last);
    const bool is_diagonal = (steps.beside >> bit & 1) == 0;
    time = max(time - is_diagonal - (row % kRows == 0), 0);
    word = time / kSteps;
    steps = word == word_above ? steps_above : load(word, above);
  }
}

}  // namespace softdtw
