// Integer log2: equation (1) on entries s 2^-m of float32, for the pairs of float32 series that the linear domain gives up,
// whose entries fall by hundreds of binary orders a cell. (With a band pairs have rings, kernels/banded/log2/log2_ring.cuh, of several
// dimensions groups of lanes, kernels/vector_log2.)
//
// As in the extended range (extended_range.cuh) m is whole, but a cost is not split before it is added: m rises by the cost as it stands, and
// what rounding m loses goes to s. Of a cell with the predecessors d, u, l
//     low = min(m_d, m_u, m_l),   m = fl(low + cost),   rest = low + cost - m,
//     s = (s_d 2^(low - m_d) + s_u 2^(low - m_u) + s_l 2^(low - m_l)) 2^-rest.
// All m are in [2^23, 2^24), where float32's last place is 1: every m is whole, and `rest` exact, at most 1/2 in size. And the
// bits of two m, as integers, differ by what the m do: so the powers of two of the sum, whose exponents are whole, are put
// together from bits, in two integer operations each, and 2^-rest is the cell's only exponential. Pairs are laid out as the
// linear domain's (warp_pair.cuh), without strips. m is relative to a whole number of the lane's own, its reference, which is
// renewed with every chunk, and every s is brought back to [1, 2) then. In between a number passes kSteps steps, which lead
// through c columns and into the a-th lane below, a + c < kSteps: no more than kRows (a + 1) + c cells, each of which
// multiplies it by at most 2^(1/2), over no more than C(kRows (a + 1) + c, c) 2^c paths. So s stays below 2^70, and above 2^-70.
//
// Where m is beyond the range, the last place may be 2, and the factor 2. In a lane that is in the table already that takes some
// of the chunk's columns, for none adds more than kDeepestUnscaled, which leaves no more than three lanes to pass: s stays
// within 2^90. Where lanes enter, m may rise from row to row; but then it has done so in the lane that enters in the chunk's
// last step, too.
//
// Steps add up to an error of the value of less than 2e-7 (n + m) gamma; a pair with a value so small that this counts is given
// up. So is one that leaves the range of m, which is looked for after every chunk: an m of a row is too large then, or one from
// the lane above was too small at any time. An m that was too large in between, but is not any more, is of no account: a row's m
// falls in one step by far more than the 150 binary orders that float32 can add, or by so little that it is still too large.
// With a warp penalty p of P + f binary orders, P whole, 0 <= f < 1, entries are multiplied with 2^(f (i + j)): a step up or left
// costs P then, a cell 2 f more, and the s of up and left need no factor of their own. What is said of costs above holds for cost + p.
#pragma once

#include "cuda/kernels/warp_pair/warp_pair.cuh"
#include "cuda/numbers/extended_range.cuh"

namespace softdtw {

// The range of m. A renewal brings the lane's smallest m to kLog2Floor, or up to twice kMostOfS above it, the most that log2(s) is
// before one, in size.
constexpr float kLog2Least = 8388608, kLog2Most = 12058624, kLog2Floor = 10485760, kMostOfS = 90;

constexpr double kLeastOfAStep = 1.0 / 32;  // of a value that is not given up, in exponents of 2

// How a lane's entries wait for backward, one word each: m - log2(s) in 2^-16 of a unit that suits the largest m of the lane. m in
// [kLog2Floor, kLog2Most), s in [1, 2). An unreachable cell is beyond all others.
struct Log2Words {
  static constexpr int kCodes = 4;                          // of units: 1, 4, 16 and 64
  static constexpr float kMost = 65000, kFarthest = 65500;  // units: of an entry, of an unreachable cell
  static constexpr unsigned kRounder = 0x4b400000u;         // the bits of Whole<float>::rounder
  int code;

  __device__ __forceinline__ static Log2Words of(float highest) {
    const float span = highest - kLog2Floor;
    return {(span >= kMost) + (span >= 4 * kMost) + (span >= 16 * kMost)};
  }
  // From the word that a lane's entries have beside them.
  __device__ __forceinline__ static Log2Words of_word(int word) { return {word & (kCodes - 1)}; }
  __device__ __forceinline__ int reference_of(int word) const { return (word - code) / kCodes; }
  __device__ __forceinline__ float unit() const { return __uint_as_float((127u + 2 * code) << 23); }
  __device__ __forceinline__ float per_unit() const { return __uint_as_float((127u - 2 * code) << 23); }

  __device__ __forceinline__ int pack(const Entry<float>& entry) const {
    const float m = fminf((entry.m - kLog2Floor) * per_unit(), kFarthest), shifted = m + Whole<float>::rounder;
    const float rest =
        DeviceMath<float>::fma(DeviceMath<float>::log2(entry.s), -per_unit(), m - (shifted - Whole<float>::rounder));
    const unsigned whole = static_cast<unsigned>(__float_as_int(shifted)) << 16;
    return static_cast<int>(whole + __float_as_uint(DeviceMath<float>::fma(rest, 65536.0f, Whole<float>::rounder)));
  }
  // s is in (2^-unit, 1].
  __device__ __forceinline__ Entry<float> unpack(int word) const {
    const unsigned bits = static_cast<unsigned>(word) - kRounder + (2u << 16);  // nothing is below -2
    const float whole = __uint_as_float(0x4b000000u | bits >> 16) - (8388608.0f + 2.0f);
    const float fraction = 1.0f - __uint_as_float(0x3f800000u | (bits & 0xffffu) << 7);
    return {
        whole > kMost + 100 ? Unreachable<float>::value : DeviceMath<float>::fma(whole, unit(), kLog2Floor),
        DeviceMath<float>::exp2(fraction * unit())};
  }
};

// A cell: what its cost and the m of its predecessors say, and then its entry.
struct Log2Cell {
  float m;
  Terms<float> terms;

  // The cost is in the unit of `scale`.
  __device__ __forceinline__ Log2Cell(
      const Entry<float>& diag, const Entry<float>& up, const Entry<float>& left, float cost, float scale, NoLog2Penalty) {
    const float low = lowest_of(left.m, diag.m, up.m);
    m = DeviceMath<float>::fma(cost, scale, low);
    terms = {
        power_of_difference(low, left.m), power_of_difference(low, diag.m), power_of_difference(low, up.m),
        DeviceMath<float>::exp2(DeviceMath<float>::fma(-cost, scale, m - low))};
  }
  // `below`: low in the units of m of up and left.
  __device__ __forceinline__ Log2Cell(
      const Entry<float>& diag, const Entry<float>& up, const Entry<float>& left, float cost, float scale,
      const Log2Penalty& penalty) {
    const float low = penalty.lowest_of(left.m, diag.m, up.m), below = penalty.below(low);
    const float whole_cost = DeviceMath<float>::fma(cost, scale, penalty.of_cell());
    m = low + whole_cost;
    terms = {
        power_of_difference(below, left.m), power_of_difference(low, diag.m), power_of_difference(below, up.m),
        DeviceMath<float>::exp2((m - low) - whole_cost)};
  }
  // `weights`, if given, become the shares of E that its predecessors get.
  template <class... Shares>
  __device__ __forceinline__ Entry<float> entry(
      const Entry<float>& diag, const Entry<float>& up, const Entry<float>& left, Shares&... weights) const {
    return {m, sum_of(terms, diag.s, up.s, left.s, weights...)};
  }
};

// What the lane's row k costs at a column, in the unit of the pair's factor.
template <class Pair>
__device__ __forceinline__ float cost_at(const Pair& pair, int k, float y) {
  return pair.cost.cost(pair.x[k] - y);
}
template <class Group>
__device__ __forceinline__ float cost_at(const Group& group, int k, const typename Group::Column& y) {
  return group.cost_at(k, y);
}

// Whether a pair has a band, outside of which cells do not count.
template <class Pair, class = void>
constexpr bool kIsBanded = false;
template <class Pair>
constexpr bool kIsBanded<Pair, std::void_t<decltype(Pair::kHasBand)>> = Pair::kHasBand;

// So far at least is m from the lane above to be: costs below 0 may take it down from there, by kFall at most.
template <class Pair, class = void>
constexpr float kLeastFromAbove = kLog2Least;
template <class Pair>
constexpr float kLeastFromAbove<Pair, std::void_t<decltype(Pair::kFall)>> = kLog2Least + Pair::kFall;

// A lane between two columns.
template <int kRows>
struct Log2State {
  Entry<float> left[kRows];  // its rows at the column it has just left
  Entry<float> diag;         // the row above them, one column before
  int reference = -static_cast<int>(kLog2Floor);
  float above = 0;                  // what the reference of the lane above exceeds its own by
  float lowest_above = kLog2Floor;  // m from the lane above since the last renewal, or less
  float highest = kLog2Floor;       // m of its rows before and after the last renewal, or more
  bool is_exact = true;

  __device__ __forceinline__ void start(bool is_first_lane) {
#pragma unroll
    for (int k = 0; k < kRows; ++k) left[k] = {Unreachable<float>::value, 1};
    diag = {is_first_lane ? kLog2Floor : Unreachable<float>::value, 1};
  }
  // A column, with y there, a number or a vector. kMayEnter: the lane may be left of the table still, or enter it in this step, its `column` being 0; then
  // it takes over the reference of the lane above. `visit(k, cell, diag, up, left)` returns the entry.
  template <bool kMayEnter, class Pair, class Column, class Visit>
  __device__ __forceinline__ void step(const Pair& pair, const Column& y, int column, Visit&& visit) {
    if (kMayEnter) {
      const int reference_above = pair.from_above(reference);
      if (column == 0) reference = reference_above;
      above = static_cast<float>(reference_above - reference);
    }
    Entry<float> up = pair.from_above(left[kRows - 1]);
    const float handed = up.m;
    up.m += above;
    if (pair.is_top_lane()) up.m = Unreachable<float>::value;
    // Not if references differ by 2^24 or more, so that float32 holds what they differ by.
    if (kMayEnter && up.m < kLog2Floor && up.m > 0) {
      fall(up.m - kLog2Floor);
      up.m = handed + above;
    }
    lowest_above = fminf(lowest_above, up.m);
    Entry<float> upper_left = diag;
    diag = up;
#pragma unroll
    for (int k = 0; k < kRows; ++k) {
      const Entry<float> own = left[k];
      up = visit(k, Log2Cell(upper_left, up, own, cost_at(pair, k, y), pair.factor, pair.penalty), upper_left, up, own);
      bool counts = !kMayEnter || column >= 0;
      if constexpr (kIsBanded<Pair>) counts = counts && pair.is_in_band(column, k);
      if ((kMayEnter || kIsBanded<Pair>) && !counts) up = {Unreachable<float>::value, 1};
      upper_left = own;
      left[k] = up;
    }
  }
  // Before the lane takes other rows than those that it has.
  __device__ __forceinline__ void look_at_rows() {
#pragma unroll
    for (int k = 0; k < kRows; ++k)
      is_exact = is_exact && (left[k].m < kLog2Most || left[k].m >= Unreachable<float>::value / 2);
  }
  // Brings s to [1, 2) and the lane's smallest m near kLog2Floor by a new reference, after a look at all of them.
  template <class Pair>
  __device__ __forceinline__ void renew(const Pair& pair) {
    constexpr float kFar = Unreachable<float>::value / 2;
    float lowest = diag.m;
    highest = kIsBanded<Pair> ? 0 : left[0].m;
#pragma unroll
    for (int k = 0; k < kRows; ++k) {
      lowest = fminf(lowest, left[k].m);
      highest = fmaxf(highest, kIsBanded<Pair> && left[k].m >= kFar ? 0 : left[k].m);
    }
    const bool has_entered = (kIsBanded<Pair> ? lowest : highest) < kFar;  // without a band, with all of its rows
    // Rows before the band are to have the unit of those above when they reach it.
    if constexpr (kIsBanded<Pair>) {
      const int reference_above = pair.from_above(reference);
      if (!has_entered) reference = reference_above;
    }
    const float by = has_entered ? lowest - (kLog2Floor + kMostOfS) : 0;
    highest = has_entered ? fmaxf(highest, highest - by) : kLog2Floor;
    is_exact = is_exact && highest < kLog2Most && lowest_above >= kLeastFromAbove<Pair>;
    reference += static_cast<int>(by);
    // A float32's exponent as a float32, but for a constant.
    const float rest = by - (8388608.0f + 127.0f);
    renew(diag, rest);
#pragma unroll
    for (int k = 0; k < kRows; ++k) renew(left[k], rest);
    look_above(pair);
  }
  __device__ __forceinline__ static void renew(Entry<float>& entry, float rest) {
    const unsigned bits = __float_as_uint(entry.s);
    entry.m -= __uint_as_float(bits >> 23 | 0x4b000000u) + rest;
    entry.s = __uint_as_float((bits & 0x007fffffu) | 0x3f800000u);
  }
  // Brings m to a lower reference, where far better entries come from the lane above: at first there may be only one column
  // to come from, and then there are two.
  __device__ __forceinline__ void fall(float by) {
    reference += static_cast<int>(by);
    above -= by;
    diag.m -= by;
#pragma unroll
    for (int k = 0; k < kRows; ++k) left[k].m -= by;
  }
  template <class Pair>
  __device__ __forceinline__ void look_above(const Pair& pair) {
    above = static_cast<float>(pair.from_above(reference) - reference);
    lowest_above = kLog2Floor;
  }
  // In the layout of ShortPairLayout::bytes_of_pair.
  static constexpr int kWords = kRows + 2;
  __device__ __forceinline__ void keep(int* words, int lanes) const {
    // diag may be far above the rows. Beyond the range it is of no account, as a row's m is there.
    const Log2Words as = Log2Words::of(diag.m < kLog2Most ? fmaxf(highest, diag.m) : highest);
#pragma unroll
    for (int k = 0; k < kRows; ++k) words[k * lanes] = as.pack(left[k]);
    words[kRows * lanes] = as.pack(diag);
    words[(kRows + 1) * lanes] = reference * Log2Words::kCodes + as.code;
  }
  __device__ __forceinline__ void take_words(const int (&words)[kWords]) {
    const Log2Words as = Log2Words::of_word(words[kRows + 1]);
#pragma unroll
    for (int k = 0; k < kRows; ++k) left[k] = as.unpack(words[k]);
    diag = as.unpack(words[kRows]);
    reference = as.reference_of(words[kRows + 1]);
  }
};

// Whether lanes are still left of the table in a chunk, or have just entered it.
__device__ __forceinline__ bool may_enter(int lanes, int chunk) {
  return (chunk - 1) * ShortPairLayout::kSteps < lanes - 1;
}

}  // namespace softdtw
