// The steps that a sweep of hard DTW notes.
//
// Each lane keeps the step of every cell of its tile, two bits each, in up to four words per chunk: N M / 4 bytes, and one coalesced
// store per warp and chunk. Of a row of a tile the columns that a path meets are found at once, from the bits of that row.
#pragma once

#include "cuda/strips/strip.cuh"

namespace softdtw {

// The steps of a lane's tile of a chunk, row after row.
template <class S>
struct alignas(sizeof(unsigned) * (S::kRows * S::kSteps / 16)) StepWords {
  static constexpr int kBits = 2, kRowBits = S::kSteps * kBits, kWords = S::kRows * kRowBits / 32;
  static_assert(32 % kRowBits == 0);  // a row is in one word
  unsigned words[kWords] = {};

  // Those of row k in `of_tile`, the first one lowest; above them there may be others.
  __device__ __forceinline__ static unsigned row(const unsigned* of_tile, int k) {
    return of_tile[k * kRowBits / 32] >> k * kRowBits % 32;
  }
  // The lower bit of each step of a row up to step t that is not to the left.
  __device__ __forceinline__ static unsigned stops(unsigned row, int t) {
    return ~(row >> 1) & (0x55555555u >> (30 - 2 * t));
  }
  __device__ __forceinline__ void add(int k, int t, unsigned step) {
    words[k * kRowBits / 32] |= step << (k * kRowBits % 32 + t * kBits);
  }
  // Those of a part of the chunk, which begins with step `from`.
  __device__ __forceinline__ void add(const StepWords& of_part, int from) {
#pragma unroll
    for (int i = 0; i < kWords; ++i) words[i] |= of_part.words[i] << from * kBits;
  }
};

// Steps of all pairs: [pair][strip][chunk][lane][word].
template <class S>
struct StepTable {
  using Words = StepWords<S>;
  unsigned* words = nullptr;
  int64_t strips = 0, chunks = 0;

  static int64_t bytes(int64_t batch, const Sizes<S>& sizes) {
    return batch * sizes.strips * sizes.chunks * kWarp * Words::kWords * sizeof(unsigned);
  }
  __device__ __forceinline__ unsigned* of(int64_t pair, int strip, int chunk, int lane) const {
    return words + (((pair * strips + strip) * chunks + chunk) * kWarp + lane) * Words::kWords;
  }
  __device__ __forceinline__ void store(int64_t pair, int strip, int chunk, int lane, const Words& steps) const {
    *reinterpret_cast<Words*>(of(pair, strip, chunk, lane)) = steps;
  }
  __device__ __forceinline__ Words load(int64_t pair, int strip, int chunk, int lane) const {
    return chunk < 0 ? Words() : *reinterpret_cast<const Words*>(of(pair, strip, chunk, lane));
  }
};

// Follows a path to the left, in row k of a tile, from step t of its chunk, to where it enters the row. go_back() makes `tile` and t those of
// the chunk before. Returns whether the path comes there by a diagonal step.
template <class Words, class GoBack>
__device__ __forceinline__ bool leave_row(const Words& tile, int k, int& t, GoBack&& go_back) {
  while (true) {
    const unsigned bits = Words::row(tile.words, k), stops = Words::stops(bits, t);
    if (stops != 0) {
      const int bit = 31 - __clz(stops);
      t = bit / 2;
      return (bits >> bit & 1) == 0;
    }
    t = -1;
    go_back();
  }
}

}  // namespace softdtw
