// The cell: equations (1) to (5), apart from any wavefront, for host and device.
//
// A table entry a = exp(-R / gamma) is held as s 2^-m ("lazy log"): m plays the role of R / (gamma ln 2) and s is a sum of
// positive terms near 1. Adding two entries keeps the smaller m and scales the other s by one exp2; a cost only adds to m;
// now and then s is folded into m with one log2. Nothing can overflow, and a scale factor that underflows belongs to a term
// that no sum of the same precision could have kept.
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

template <typename T>
struct Entry {
  T m, s;
};

// The share of a cell's E that goes to each of its three predecessors; they sum to 1.
template <typename T>
struct Weights {
  T diag, up, left;
};

// Math supplies exp2(T), log2(T), reciprocal(T), min(T, T), abs(T), fma(T, T, T).
template <typename T, typename Math>
struct SoftDtw {
  T scale;    // 1 / (gamma ln 2): from the unit of the costs to that of m
  T penalty;  // of a step up or left, in the unit of m

  SOFTDTW_HD static Entry<T> add(Entry<T> a, Entry<T> b) {
    const T difference = a.m - b.m;
    const T factor = Math::exp2(-Math::abs(difference));
    const bool a_is_smaller_term = difference > T(0);
    const T small = a_is_smaller_term ? a.s : b.s, large = a_is_smaller_term ? b.s : a.s;
    return {Math::min(a.m, b.m), Math::fma(small, factor, large)};
  }

  template <bool WithPenalty>
  SOFTDTW_HD Entry<T> step(Entry<T> from) const {
    return WithPenalty ? Entry<T>{from.m + penalty, from.s} : from;
  }

  // (1), (2). left and diag come from the previous column, so their sum is off the chain that runs down the rows.
  template <bool WithPenalty>
  SOFTDTW_HD Entry<T> cell(Entry<T> diag, Entry<T> up, Entry<T> left, T cost) const {
    const Entry<T> sum = add(add(step<WithPenalty>(left), diag), step<WithPenalty>(up));
    return {Math::fma(cost, scale, sum.m), sum.s};
  }

  // The same cell, and the normalised weights of (3) and (4): E of this cell flows back to its predecessors in these shares.
  template <bool WithPenalty>
  SOFTDTW_HD Entry<T> cell(Entry<T> diag, Entry<T> up, Entry<T> left, T cost, Weights<T>& weights) const {
    left = step<WithPenalty>(left);
    up = step<WithPenalty>(up);
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
    return {Math::fma(cost, scale, Math::min(m, up.m)), sum};
  }

  SOFTDTW_HD static T folded(Entry<T> entry) { return entry.m - Math::log2(entry.s); }
};

}  // namespace softdtw
