// The cell: equations (1) to (5), apart from any wavefront, for host and device.
//
// A table entry a = exp(-R / gamma) is held as s 2^-m with a whole number m. Adding two entries keeps the smaller m and scales
// the other s by a power of two, which is exact; a cost splits into a whole number, which adds to m, and a fraction, which
// multiplies s. So no digit depends on the size of R: every rounding is one of s, of the order of the dtype's epsilon,
// whatever gamma is. Nothing can overflow: s stays between 2^-20 and 2^53 within a chunk and is then brought back to [1, 2).
// A term that is flushed to zero while adding was too small to change the sum.
#pragma once

#include "problem.h"

namespace softdtw {

constexpr double kLn2 = 0.693147180559945309417;

// m of a cell that no path reaches. Finite, so that the difference of two of them is 0 and not NaN.
template <typename T>
struct Unreachable;
template <>
struct Unreachable<float> {
  static constexpr float value = 1e30f;
};
template <>
struct Unreachable<double> {
  static constexpr double value = 1e200;
};

// Whole numbers below this are exact in the dtype with room for a few sums of them; adding and subtracting `rounder` rounds
// anything smaller to a whole number.
template <typename T>
struct Whole;
template <>
struct Whole<float> {
  static constexpr float limit = 4194304.0f, rounder = 12582912.0f;  // 2^22, 1.5 * 2^23
};
template <>
struct Whole<double> {
  static constexpr double limit = 1125899906842624.0, rounder = 6755399441055744.0;  // 2^50, 1.5 * 2^52
};

template <typename T>
struct Entry {
  T m, s;
};

// The share of a cell's E that goes to each of its three predecessors; they sum to 1.
template <typename T>
struct Weights {
  T diag, up, left;
};

// Math supplies exp2(T), reciprocal(T), min(T, T), abs(T), fma(T, T, T).
template <typename T, typename Math>
struct SoftDtw {
  T scale;           // 1 / (gamma ln 2): from the unit of the costs to that of m
  Entry<T> penalty;  // of a step up or left: to be added to m, to be multiplied with s

  // What a cost adds to m and multiplies s with. kAnySize: a cost of 2^22 or more is itself as good as a whole number.
  template <bool kAnySize>
  SOFTDTW_HD static Entry<T> split(T cost, T scale) {
    T whole = Math::fma(cost, scale, Whole<T>::rounder) - Whole<T>::rounder;
    T fraction = Math::fma(cost, scale, -whole);
    if (kAnySize && !(cost * scale < Whole<T>::limit)) {
      whole = cost * scale;
      fraction = T(0);
    }
    return {whole, Math::exp2(-fraction)};
  }

  SOFTDTW_HD static Entry<T> add(Entry<T> a, Entry<T> b) {
    const T difference = a.m - b.m;
    const T factor = Math::exp2(-Math::abs(difference));
    const bool a_is_smaller_term = difference > T(0);
    const T small = a_is_smaller_term ? a.s : b.s, large = a_is_smaller_term ? b.s : a.s;
    return {Math::min(a.m, b.m), Math::fma(small, factor, large)};
  }

  template <bool kGeneral>
  SOFTDTW_HD Entry<T> step(Entry<T> from) const {
    return kGeneral ? Entry<T>{from.m + penalty.m, from.s * penalty.s} : from;
  }

  // (1), (2). left and diag come from the previous column, so their sum is off the chain that runs down the rows.
  // kGeneral: with the penalty, and costs of any size.
  template <bool kGeneral>
  SOFTDTW_HD Entry<T> cell(Entry<T> diag, Entry<T> up, Entry<T> left, T cost) const {
    const Entry<T> own = split<kGeneral>(cost, scale);
    const Entry<T> sum = add(add(step<kGeneral>(left), diag), step<kGeneral>(up));
    return {sum.m + own.m, sum.s * own.s};
  }

  // The same cell, and the normalised weights of (3) and (4): E of this cell flows back to its predecessors in these shares.
  template <bool kGeneral>
  SOFTDTW_HD Entry<T> cell(Entry<T> diag, Entry<T> up, Entry<T> left, T cost, Weights<T>& weights) const {
    const Entry<T> own = split<kGeneral>(cost, scale);
    left = step<kGeneral>(left);
    up = step<kGeneral>(up);
    const T first = left.m - diag.m;
    const T first_factor = Math::exp2(-Math::abs(first));
    const T from_left = left.s * (first > T(0) ? first_factor : T(1));
    const T from_diag = diag.s * (first > T(0) ? T(1) : first_factor);
    const T m = Math::min(left.m, diag.m);
    const T second = m - up.m;
    const T second_factor = Math::exp2(-Math::abs(second));
    const T rest = second > T(0) ? second_factor : T(1);
    const T from_up = up.s * (second > T(0) ? T(1) : second_factor);
    const T sum = Math::fma(from_left + from_diag, rest, from_up);
    const T inverse = Math::reciprocal(sum);
    weights.up = from_up * inverse;
    weights.left = from_left * (rest * inverse);
    weights.diag = from_diag * (rest * inverse);
    return {Math::min(m, up.m) + own.m, sum * own.s};
  }
};

}  // namespace softdtw
