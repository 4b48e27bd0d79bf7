// The steps that a ring (kernels/hard/rings) notes. A ring that notes none, for values alone, has NoSteps.
//
// A lane keeps two bits of every cell: whether its best step is another one than the diagonal one; and whether it comes from the left
// rather than from above, which counts only then. Both are signs of a difference, which one shift brings into a word of the row's, the
// newest one lowest. A word has as many whole groups of steps as it can hold, and above them ones in both. Steps count from the pair's first group on, and
//     steps of all words [pair][word][lane][row]
// are written by all lanes of a ring at once.
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
  static constexpr unsigned kBeyond = ~0u << kStepsOfWord;
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
    const auto word = [missing](unsigned bits) { return bits << missing | kBeyond; };
#pragma unroll
    for (int k = 0; k < kRows; k += 2)
      own[k / 2] = {word(beside[k]), word(left[k]), word(beside[k + 1]), word(left[k + 1])};
  }
};

// Words that all steps of a pair need.
__host__ inline int words_of_steps(const RingLayout& layout) {
  const int groups_of_word = 32 / (layout.rows + 1);
  return (layout.chunks * layout.groups_of_chunk() + groups_of_word - 1) / groups_of_word;
}

}  // namespace softdtw
