// What a lane of the linear engine (linear.cuh) holds between columns, in either direction, and between rows.
#pragma once

#include <climits>

#include "linear.cuh"
#include "strip.cuh"

namespace softdtw {

// A lane between two columns. Between chunks, in the problem's type, rows are renewed, or 0 where no path has reached them.
template <class S, typename Number = typename S::Scalar>
struct LinearLane {
  using Limits = Range<Number>;
  Number left[S::kRows];   // the lane's rows at the column it has just left
  int exponent[S::kRows];  // their units
  Number diag;             // the row above them, one column before
  int above;               // its unit; once it has become one, that of the lane above's last row, or of the edge

  __device__ __forceinline__ LinearLane() {}
  template <typename Other>
  __device__ __forceinline__ explicit LinearLane(const LinearLane<S, Other>& other) : diag(other.diag), above(other.above) {
#pragma unroll
    for (int k = 0; k < S::kRows; ++k) left[k] = other.left[k], exponent[k] = other.exponent[k];
  }
  // Nothing is reached, but the upper left corner.
  __device__ __forceinline__ void start(Number corner) {
#pragma unroll
    for (int k = 0; k < S::kRows; ++k) left[k] = 0, exponent[k] = kNoExponent;
    diag = corner;
    above = 0;
  }
  // Numbers of [1, 2), or 0.
  __device__ __forceinline__ void take(const Wide (&rows)[S::kRows], const Wide& corner) {
#pragma unroll
    for (int k = 0; k < S::kRows; ++k) left[k] = static_cast<Number>(rows[k].a), exponent[k] = rows[k].e;
    diag = static_cast<Number>(corner.a);
    above = corner.e;
  }
  __device__ __forceinline__ Wide row(int k) const { return Wide::of(left[k], exponent[k]); }
  __device__ __forceinline__ Wide corner() const { return Wide::of(diag, above); }

  // Gives every row, none of which is 0, a unit of which it is about 2^kRenewed.
  __device__ __forceinline__ void renew() {
    constexpr int kShift = Limits::kExponentShift, kExponent = Limits::kBias + Limits::kRenewed;
#pragma unroll
    for (int k = 0; k < S::kRows; ++k) {
      const int word = Limits::word(left[k]), moved = (word >> kShift) - kExponent;
      exponent[k] += moved;
      if constexpr (sizeof(Number) == 4)
        left[k] = __int_as_float((word & ((1 << kShift) - 1)) | kExponent << kShift);
      else  // by arithmetic: nvcc 13.0 loses the lower half of one that is put together
        left[k] *= scaling_factor<Number>(-moved);
    }
  }
  // The same where all rows may be 0.
  __device__ __forceinline__ void renew_if_reached() {
    if (left[S::kRows - 1] > 0) renew();
  }
  // Lanes that no path has reached yet take the unit of the nearest lane above that one has, or of the edge above, `top_unit`.
  __device__ __forceinline__ void adopt(int lane, int top_unit) {
    const bool reached = left[S::kRows - 1] > 0;
    int unit = lane == 0 && !reached ? top_unit : exponent[S::kRows - 1];
    const unsigned lanes = __ballot_sync(kAllLanes, reached) | 1u;
    unit = __shfl_sync(kAllLanes, unit, 31 - __clz(lanes & ((2u << lane) - 1u)));
    if (reached) return;
#pragma unroll
    for (int k = 0; k < S::kRows; ++k) exponent[k] = unit;
  }
  // Takes over the unit of the row above. False where the row above does not fit into it.
  __device__ __forceinline__ bool become(int unit_above) {
    const int shift = above - unit_above;
    above = unit_above;
    if (diag == 0) return true;
    if constexpr (sizeof(Number) == 4) {
      diag *= scaling_factor<Number>(shift);
      return abs(shift) <= Limits::kLargestShift;
    } else {
      diag = Scaling(shift)(diag);
      return true;
    }
  }
  // What the unit of a row's neighbour above exceeds its own by.
  __device__ __forceinline__ int shift(int k) const { return (k > 0 ? exponent[k > 0 ? k - 1 : 0] : above) - exponent[k]; }
  // After a chunk, whether what rows handed down whose factors are 0 was next to nothing: an entry is at most the chunk's last,
  // divided by the weights since.
  __device__ __forceinline__ bool are_negligible(int deepest) const {
    bool all = true;
#pragma unroll
    for (int k = 1; k < S::kRows; ++k) {
      const int last = (Limits::word(left[k - 1]) >> Limits::kExponentShift) - Limits::kBias;
      all = all && (shift(k) >= -Limits::kLargestShift || shift(k) + last + 2 * S::kSteps * deepest + kFarBelow <= 0);
    }
    return all;
  }
  // How far units are from that of the lane's first row; rows that are not reached have none.
  __device__ __forceinline__ int farthest_unit() const {
    int farthest = diag > 0 && left[0] > 0 ? abs(above - exponent[0]) : 0;
#pragma unroll
    for (int k = 1; k < S::kRows; ++k) farthest = max(farthest, left[k] > 0 ? abs(exponent[k] - exponent[0]) : 0);
    return farthest;
  }
  __device__ __forceinline__ bool is_finite() const { return is_below(Limits::kBias + 1); }
  __device__ __forceinline__ bool is_below(int exponent) const {
    unsigned highest = Limits::word(left[0]);  // unsigned, since a NaN may have a sign
#pragma unroll
    for (int k = 1; k < S::kRows; ++k) highest = max(highest, static_cast<unsigned>(Limits::word(left[k])));
    return highest < static_cast<unsigned>(Limits::kBias + exponent) << Limits::kExponentShift;
  }
};

// What the rows of a lane multiply with what they take from the row above, for a chunk. kMayBeFar: a row may be so far below the
// next one that its factor is 0.
template <class S, typename Number, bool kMayBeFar>
struct Factors {
  using Limits = Range<Number>;
  Number row[S::kRows];
  bool fit;  // whether these are the factors
  bool some_are_far = false;
  unsigned far_units = 0;  // how far below the next ones the rows left out are, in 16 bits each

  __device__ __forceinline__ Factors() {}
  __device__ __forceinline__ Factors(const int (&units)[S::kRows], int above) {
    int lowest = above - units[0], highest = lowest;
#pragma unroll
    for (int k = 0; k < S::kRows; ++k) {
      const int shift = (k > 0 ? units[k > 0 ? k - 1 : 0] : above) - units[k];
      highest = max(highest, shift);
      if constexpr (kMayBeFar) {
        row[k] = power_of_two(shift);
        if (k > 0) some_are_far = some_are_far || shift < -Limits::kLargestShift;
      } else {
        row[k] = scaling_factor<Number>(shift);
        lowest = min(lowest, shift);
      }
    }
    fit = highest <= Limits::kLargestShift && lowest >= -Limits::kLargestShift;
  }
  // For the lane of the pair's first rows, in a plain sweep of float32: makes the factors of rows 0 that are far above the row
  // above. Nothing is above the first row, so no row that hands down to a far one rises by more than the factors in between say
  // (`rise`, in a chunk's steps); what is left out is less than 2^-kFarBelow of 2^kLowestBesideFar.
  __device__ __forceinline__ void leave_far_rows_out(const int (&units)[S::kRows]) {
    constexpr int kAtFirst = Limits::kRenewed + 1, kSteps = 4;  // 2^kSteps: twice the columns of a chunk
    static_assert(1 << kSteps == 2 * S::kSteps);
    int rise = kAtFirst;
    fit = true;
#pragma unroll
    for (int k = 1; k < S::kRows; ++k) {
      const int shift = units[k - 1] - units[k];
      fit = fit && shift <= Limits::kLargestShift;
      if (shift >= -Limits::kLargestShift) {
        rise = max(kAtFirst, rise + shift + kSteps) + 1;
        continue;
      }
      fit = fit && shift + rise + 1 <= kLowestBesideFar - kFarBelow && far_units < 1u << 16 && shift > -(1 << 16);
      far_units = far_units << 16 | static_cast<unsigned>(-shift);
      row[k] = 0;
      rise = kAtFirst;
    }
  }
};

// The smallest of a chunk's entries, as the word of one.
template <typename Number>
struct Lowest {
  int word = INT_MAX;

  __device__ __forceinline__ void meet(Number a) { word = min(word, Range<Number>::word(a)); }
  __device__ __forceinline__ bool is_enough() const { return is_above(Range<Number>::kLowest); }
  __device__ __forceinline__ bool is_above(int exponent) const {
    return word >= (Range<Number>::kBias + exponent) << Range<Number>::kExponentShift;
  }
};

// What flows between chunks of the reversed sweep.
template <class S, typename Number = typename S::Scalar>
struct LinearFlow {
  using Limits = Range<Number>;
  Number right[S::kRows];  // r of the column to the right, relative to 2^-exponent
  int exponent[S::kRows];
  Number diag;  // r of the row below the lane's rows, in the column to the right
  Number next;  // lane 31: what the strip below hands over for the coming column
  int below;    // both are relative to 2^-below

  __device__ __forceinline__ LinearFlow() : diag(0), next(0), below(0) {
#pragma unroll
    for (int k = 0; k < S::kRows; ++k) right[k] = 0, exponent[k] = 0;
  }
  // In other units; what leaves the range becomes 0 or infinite.
  template <typename Other>
  __device__ __forceinline__ LinearFlow(const LinearFlow<S, Other>& other, const int (&wanted)[S::kRows], int wanted_below)
      : below(wanted_below) {
#pragma unroll
    for (int k = 0; k < S::kRows; ++k) {
      right[k] = static_cast<Number>(Scaling(wanted[k] - other.exponent[k])(other.right[k]));
      exponent[k] = wanted[k];
    }
    const Scaling scaling(wanted_below - other.below);
    diag = static_cast<Number>(scaling(other.diag));
    next = static_cast<Number>(scaling(other.next));
  }
  __device__ __forceinline__ void clear() {
#pragma unroll
    for (int k = 0; k < S::kRows; ++k) right[k] = 0;
    diag = next = 0;
  }
  __device__ __forceinline__ bool is_finite() const {
    unsigned highest = max(Limits::word(diag), Limits::word(next));
#pragma unroll
    for (int k = 0; k < S::kRows; ++k) highest = max(highest, static_cast<unsigned>(Limits::word(right[k])));
    return highest < Limits::kInfinity;
  }
  // Units that are no farther from those of now than a plain sweep moves them.
  __device__ __forceinline__ void move(const int (&wanted)[S::kRows], int wanted_below) {
#pragma unroll
    for (int k = 0; k < S::kRows; ++k) {
      right[k] *= scaling_factor<Number>(wanted[k] - exponent[k]);
      exponent[k] = wanted[k];
    }
    const Number scaling = scaling_factor<Number>(wanted_below - below);
    diag *= scaling;
    next *= scaling;
    below = wanted_below;
  }
  __device__ __forceinline__ Wide row(int k) const { return Wide::of(right[k], -exponent[k]); }
  __device__ __forceinline__ void take(const LinearFlow<S, double>& other) {
    Wide rows[S::kRows];
#pragma unroll
    for (int k = 0; k < S::kRows; ++k) rows[k] = other.row(k);
    take(rows, Wide::of(other.diag, -other.below), Wide::of(other.next, -other.below));
  }
  // Numbers of [1, 2), or 0, but for one of the last two.
  __device__ __forceinline__ void take(const Wide (&rows)[S::kRows], const Wide& corner, const Wide& coming) {
#pragma unroll
    for (int k = 0; k < S::kRows; ++k) {
      right[k] = static_cast<Number>(rows[k].a);
      exponent[k] = -rows[k].e;
    }
    below = -max(corner.e, coming.e);  // what is flushed here adds to the same cells as the other
    diag = static_cast<Number>(corner.in_unit(-below));
    next = static_cast<Number>(coming.in_unit(-below));
  }
};

}  // namespace softdtw
