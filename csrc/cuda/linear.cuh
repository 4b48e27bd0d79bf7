// The linear engine: equations (2), (3) and (4) as they stand, with one exponent a row. The fastest one, for problems without a
// band or a penalty whose costs stay within its range; robust.cuh computes the pairs that it gives up, in the same call.
//
// A lane holds each of its rows as a' 2^e. What a row takes from the row above is multiplied by f, 2 to the difference of their
// e. A cell is then one exponential, two multiplications and two additions of positive numbers,
//     s = left + f (up + diag),  a = w s,
// and its relative error stays near that of the exponential. In reverse, with r = w v and v the sum of the successors' r,
//     v = right + f (down + diag),  r = w v,  E = a v,
// where r is relative to 2^-e of its row, so that E needs no factor, and f is that of the row below. r knows nothing of a: what
// a was rounded by is the error of one E, and does not travel on.
//
// What could go wrong is range alone. There are three sweeps of a chunk, each tried where the one before does not hold:
// - kPlain: in the problem's own type, for chunks inside the table. Every row begins near 2^kRenewed.
// - kWide: in float64, also for chunks in which lanes enter the table, or which hold its last cell.
// - kCareful: every number has an exponent of its own (wide.cuh), and nothing can leave its range.
// The first two hold if, looked at afterwards, every entry was at least 2^kLowest in its row's unit and no row became infinite:
// - Infinity and NaN stay in their row, since no weight of a row that keeps above 2^kLowest is 0: the last column shows them.
// - What is flushed to zero on its way into an entry a = w s, with gradual underflow, is at most three times 2^(kLowest - 48) of s
//   itself, since s >= a: all terms of the entry share every continuation. (The factors are powers of two within the range, by
//   `fits`, or, in kWide, 0 where `are_negligible` shows afterwards that what they stand for was below 2^-kFarBelow of s.)
// - In reverse E <= 1 and a >= 2^kLowest bound v by 2^-kLowest, and r with it. What is lost of r, half a unit of gradual
//   underflow, is times a what E loses: at most 2^-22 in float32, as much as rounding an E of 1 does.
// - r of the lane below's next chunk is taken over in the unit of its present one, for which the table there may be too high:
//   `can_meet` looks whether what the lane hands down to it is within the range. That, times half a unit, is what E loses.
// - From one chunk to the next a row's unit moves by no more than its entries did in the chunk, that is, by less than the
//   range.
// A pair is given up as a whole where a cost is beyond kDeepestCareful, or too many chunks are not plain, or its rows are so far
// apart that what backward keeps cannot hold them (kFarthestUnits), or its series are so far from their origin that moving them
// there would round their differences by too much (kFarthest).
#pragma once

#include "wide.cuh"

namespace softdtw {

// How a chunk is swept.
constexpr int kPlain = 0, kWide = 1, kCareful = 2;

constexpr int kFarBelow = 40, kLowestBesideFar = -60, kFarthestUnits = 30000;

// What a plain sweep may count on in its type. `word` orders as positive numbers do.
template <typename Number>
struct Range;

template <>
struct Range<float> {
  static constexpr int kBias = 127, kLowest = -100, kRenewed = 20, kLargestShift = 126;
  static constexpr int kExponentShift = 23, kInfinity = 0x7f800000;

  __device__ __forceinline__ static int word(float a) { return __float_as_int(a); }
};

template <>
struct Range<double> {
  static constexpr int kBias = softdtw::kBias, kLowest = -900, kRenewed = 50, kLargestShift = 700;
  static constexpr int kExponentShift = 20, kInfinity = 0x7ff00000;

  __device__ __forceinline__ static int word(double a) { return __double2hiint(a); }
};

// 2^e, |e| <= kLargestShift.
template <typename Number>
__device__ __forceinline__ Number scaling_factor(int e) {
  if constexpr (sizeof(Number) == 4)
    return __int_as_float((e << 23) + (127 << 23));
  else
    return __hiloint2double((e << 20) + (kBias << 20), 0);
}

}  // namespace softdtw
