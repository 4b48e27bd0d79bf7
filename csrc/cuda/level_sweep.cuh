// The level engine's sweep of a column (level.cuh), forward.
#pragma once

#include "level_pair.cuh"

namespace softdtw {

// A lane between two columns.
template <int kRows>
struct LevelState {
  double left[kRows];  // its rows at the column it has just left
  double diag;         // the row above them, one column before

  __device__ __forceinline__ void start(bool is_first_lane) {
#pragma unroll
    for (int k = 0; k < kRows; ++k) left[k] = 0;
    diag = is_first_lane ? power_of_two(kTop) : 0;
  }
  template <class Weights>
  __device__ __forceinline__ void step(const LevelPair<kRows>& pair, float y) {
    double up = shuffle_up(left[kRows - 1], pair.lanes);
    if (pair.is_first_lane()) up = 0;
    double upper_left = diag;
    diag = up;
#pragma unroll
    for (int k = 0; k < kRows; ++k) {
      const double weight = Weights::of(pair.x[k] - y);
      // The chain that runs down the rows is a single operation.
      const double others = weight * fma(upper_left, kDiagonal, left[k]);
      upper_left = left[k];
      left[k] = up = fma(weight, up, others);
    }
  }
  // In the layout of LevelLayout::bytes_of_pair.
  __device__ __forceinline__ void keep(int* words, int lanes) const {
#pragma unroll
    for (int k = 0; k < kRows; ++k) words[k * lanes] = rounded_upper_word(left[k]);
    words[kRows * lanes] = rounded_upper_word(diag);
  }
  __device__ __forceinline__ void take(const int (&words)[kRows + 1]) {
#pragma unroll
    for (int k = 0; k < kRows; ++k) left[k] = of_upper_word(words[k]);
    diag = of_upper_word(words[kRows]);
  }
};

}  // namespace softdtw
