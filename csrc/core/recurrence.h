// The cell: equations (1) to (5), apart from any wavefront, for host and device.
//
// A table entry a = exp(-R / gamma) is held as s 2^-m with a whole number m. Adding two entries keeps the smaller m and scales
// the other s by a power of two, which is exact; a cost splits into a whole number, which adds to m, and a fraction, which
// multiplies s. So no digit depends on the size of R: every rounding is one of s, of the order of the dtype's epsilon,
// whatever gamma is. s drifts by a few powers of two a cell, so whoever sweeps brings it back to [1, 2) often enough.
// A term that is flushed to zero while adding was too small to change the sum.
#pragma once

#include <limits>

#include "problem.h"

namespace softdtw {

// m of a cell that no path reaches, by m's own type. Finite, so that the difference of two of them is 0 and not NaN.
template <typename T>
struct Unreachable;
template <>
struct Unreachable<float> {
  static constexpr float value = 1e30f;
};
template <>
struct Unreachable<double> {
  static constexpr double value = 0x1p664;  // which fits an instruction
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

// m may be of a wider type than s.
template <typename T, typename M = T>
struct Entry {
  M m;
  T s;
};

// The shares of a cell's E that go to two of its three predecessors; the diagonal one gets the rest. So they must be rounded as
// quotients are: where one predecessor is all that counts its share is 1 and nothing else, or what is missing of it would add
// up in the diagonal ones along a run of thousands of such cells.
template <typename T>
struct Weights {
  T up, left;
};

// Math<T> supplies exp2_of_fraction(T), which is 2^T within [-1/2, 1/2], power(T), which is 2^T of whole numbers up to 0,
// divide(T, T, T), which is the Weights that the first two are of the third, round(T), min(T, T), max(T, T), abs(T), fma(T, T, T).
// kGeneral: with the penalty, and costs of any size.
template <typename T, typename M, template <typename> class Math, bool kGeneral>
struct SoftDtw {
  using Cell = Entry<T, M>;
  static constexpr bool kIsGeneral = kGeneral;
  M scale;       // 1 / (gamma ln 2): from the unit of the costs to that of m
  Cell penalty;  // of a step up or left: to be added to m, to be multiplied with s

  // What a cost adds to m and multiplies s with. In the general case a cost too large for a fraction is itself as good as a
  // whole number, +inf forbids its cell, and NaN goes to both.
  SOFTDTW_HD static Cell split(M cost, M scale) {
    if constexpr (kGeneral) {
      const M scaled = cost * scale;
      // Of a wider M no other cost is as large.
      const bool forbids = sizeof(M) > sizeof(T) ? cost > std::numeric_limits<T>::max() : scaled > Unreachable<M>::value;
      const M exponent = forbids ? Unreachable<M>::value : scaled;
      const bool small = exponent < Whole<M>::limit;
      const M whole = Math<M>::round(exponent);
      return {
          whole, small                  ? Math<T>::exp2_of_fraction(static_cast<T>(whole - exponent))
                 : exponent == exponent ? T(1)
                                        : static_cast<T>(cost)};
    } else {
      const T whole = Math<T>::fma(cost, scale, Whole<T>::rounder) - Whole<T>::rounder;
      return {whole, Math<T>::exp2_of_fraction(-Math<T>::fma(cost, scale, -whole))};
    }
  }

  SOFTDTW_HD static Cell add(Cell a, Cell b) {
    const T difference = static_cast<T>(a.m - b.m);
    const T factor = Math<T>::power(-Math<T>::abs(difference));
    const bool a_is_smaller_term = difference > T(0);
    const T small = a_is_smaller_term ? a.s : b.s, large = a_is_smaller_term ? b.s : a.s;
    return {Math<M>::min(a.m, b.m), Math<T>::fma(small, factor, large)};
  }

  SOFTDTW_HD Cell step(Cell from) const { return kGeneral ? Cell{from.m + penalty.m, from.s * penalty.s} : from; }

  // (1), (2). left and diag come from the previous column, so their sum is off the chain that runs down the rows.
  SOFTDTW_HD Cell cell(Cell diag, Cell up, Cell left, M cost) const { return cell(diag, up, left, split(cost, scale)); }
  // From a cost that is split already.
  SOFTDTW_HD Cell cell(Cell diag, Cell up, Cell left, Cell own) const {
    const Cell sum = add(add(step(left), diag), step(up));
    return {sum.m + own.m, sum.s * own.s};
  }

  // The same cell, and the normalised weights of (3) and (4): E of this cell flows back to its predecessors in these shares.
  SOFTDTW_HD Cell cell(Cell diag, Cell up, Cell left, M cost, Weights<T>& weights) const {
    return cell(diag, up, left, split(cost, scale), weights);
  }
  SOFTDTW_HD Cell cell(Cell diag, Cell up, Cell left, Cell own, Weights<T>& weights) const {
    left = step(left);
    up = step(up);
    const T first = static_cast<T>(left.m - diag.m);
    const T first_factor = Math<T>::power(-Math<T>::abs(first));
    const T from_left = left.s * (first > T(0) ? first_factor : T(1));
    const T both = Math<T>::fma(diag.s, first > T(0) ? T(1) : first_factor, from_left);
    const M m = Math<M>::min(left.m, diag.m);
    const T second = static_cast<T>(m - up.m);
    const T second_factor = Math<T>::power(-Math<T>::abs(second));
    const T rest = second > T(0) ? second_factor : T(1);
    const T from_up = up.s * (second > T(0) ? T(1) : second_factor);
    const T sum = Math<T>::fma(both, rest, from_up);
    weights = Math<T>::divide(from_up, from_left * rest, sum);
    return {Math<M>::min(m, up.m) + own.m, sum * own.s};
  }

  // The share of the diagonal predecessor. Rounding may leave the others with a little more than 1.
  SOFTDTW_HD static T diagonal_share(const Weights<T>& weights) {
    return Math<T>::max(T(1) - weights.up - weights.left, T(0));
  }
};

}  // namespace softdtw
