// The warps of a block that have a pair: all of them if the pair is the block's own from the beginning, or the only one that kernels
// before have left it (pair_lists.cuh). Of several that are left teams of fewer warps have one each. So the few pairs that are mostly left
// take as little time as they can, and many keep all warps busy.
#pragma once

#include "cuda/hardware/handoff.cuh"
#include "cuda/kernels/foresight/pair_lists.cuh"

namespace softdtw {

// All warps of a block, for a pair of its own.
struct WholeBlock {
  static constexpr int first_round = 0, number = 0;
  const int warps, warp;
  Progress* const words;  // of each, in shared memory

  __device__ explicit WholeBlock(Progress* words_) : warps(blockDim.y), warp(threadIdx.y), words(words_) {
    if (threadIdx.x == 0) words[warp] = 0;
    __syncthreads();
  }
};

struct Team {
  int warps, number, warp;  // of the team; of the block's teams; of the team's warps
  int first_round = 0;      // of the pair that the team has: rounds go on from pair to pair, so words only grow
  Progress* words;          // of the team's warps, in shared memory

  // `fewest`: warps that a team is to have. Both that and the block's are powers of two where there may be several pairs.
  __device__ Team(const PairsLeft& left, int64_t batch, int fewest, Progress* words_of_block) : warps(blockDim.y) {
    int pairs;
    left.pair_of_block(batch, blockDim.y / fewest - 1, pairs);
    while (warps > fewest && pairs * warps > blockDim.y) warps /= 2;
    number = threadIdx.y / warps;
    warp = threadIdx.y % warps;
    words = words_of_block + number * warps;
    if (threadIdx.x == 0) words[warp] = 0;
    __syncthreads();
  }
  // Calls go(pair) for those of the team, one after another, each of `rounds` at most.
  template <class Go>
  __device__ __forceinline__ void for_each_pair(const PairsLeft& left, int64_t batch, int rounds, Go&& go) {
    int64_t pair;
#pragma unroll 1
    for (int turn = number, seen; (pair = left.pair_of_block(batch, turn, seen)) >= 0; turn += blockDim.y / warps) {
      if (turn != number) meet(rounds);
      go(pair);
    }
  }

 private:
  // Waits until the team's other warps have done their parts of a pair. Barriers with a number would be taken from other blocks.
  __device__ __forceinline__ void meet(int rounds) {
    first_round += rounds;
    __syncwarp();
    if (threadIdx.x == 0) publish<true>(words + warp, progress_of(first_round, 0));
    if (threadIdx.x < warps)
      while (look_at<true>(words + threadIdx.x) < progress_of(first_round, 0)) __nanosleep(20);
    __syncwarp();
  }
};

}  // namespace softdtw
