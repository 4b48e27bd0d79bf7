// Where float32 holds the whole numbers m exactly, and how a pair that leaves this range is recognised: it is swept in double
// instead (passes.h), whose range is 2^29 times as large.
//
// m is held relative to a reference, which at the start of a block of kSteps steps is the smallest m of all that flows into
// it: two diagonals and the row above. All arithmetic on m is exact while m stays below 2^24; above, it is rounded. Rounding
// matters only in cells that contribute to the result. Claim: wherever such a cell is rounded, `least_lost` shows it, the
// smallest absolute m of the entries of m >= kExactLimit = 2^23 that are met at the end of a block, on the last two diagonals
// and in the strip's last row, which are all that flows out of it.
//
// Proof, for costs that are not negative. Take a cell c whose m is rounded, hence at least 2^24, and which contributes. It
// hands a share that is not flushed to zero to a successor, which again contributes, and so on to [N,M]. The m of a successor
// is a minimum over terms plus a cost: it is below the m of c by 300 at most, or the share would be below 2^-149 of the
// smallest s over the largest and be flushed. The reference stays put inside a block. So within 16 steps the chain is still
// above 2^24 - 4800 > 2^23 where it leaves the block, on one of the two diagonals or in the last row, or at [N,M].
//
// A cell that is rounded but contributes nothing is no reason to give up float32: off-diagonal corners of long or trending
// series are such cells. With K = N + M, fewer than 3^K paths lead from a cell c to [N,M], each of weight 1 at most; so all
// that passes through c is below 2^(1.6 K - R[c]), and it is harmless when R[c] > R[N,M] + 1.6 K + 128, in units of
// gamma ln 2 as m. Rounded cells have rounded R: five roundings a step by 2^-24 of R, up to K steps, are below 5/16 of R
// for K <= 2^20. Let c be harmful, with R its true and r its computed value, T and t those of [N,M]. Then
//     r <= (21/16) R <= (21/16) (T + 1.6 K + 128) <= (21/16) ((16/11) t + 1.6 K + 128) < 2 max(t, 0) + 8 K + 1024.
// So a pair is sound unless least_lost is below that. A longer pair is sound only if nothing was lost.
//
// Negative costs, which only a cost matrix can have: the chain may fall by 16 times the most negative cost, which keeps it
// above 2^23 if that is above -2^18; the second argument does not hold, so nothing may be lost.
//
// s is rounded in every step, by 2^-24 or so, and where costs are equal always in the same direction: 6e-8 gamma (N + M) in all.
// That is nothing beside a value of some 1e-2 gamma (N + M) and more. Below, as in tables of few rows and many small costs, or
// where the costs and the number of paths all but cancel, the value would have lost digits.
#pragma once

#include <cmath>
#include <cstdint>

namespace softdtw {
namespace cpu {

constexpr float kExactLimit = 8388608.0f;        // 2^23
constexpr double kMostNegativeCost = -262144.0;  // -2^18
constexpr int64_t kLongestWithLosses = 1 << 20;  // N + M
constexpr int64_t kMostRoundedSteps = 160;       // N + M, up to which a value of any size keeps 1e-5 gamma
constexpr double kLeastPerStep = 1e-2;
constexpr double kNothingLost = __builtin_inf();

// What the sweeps of a pair tell of it, in units of gamma ln 2.
struct Range {
  double least_lost = kNothingLost;
  double least_cost = 0;  // or 0
};

// Whether float32 gave the right result. An infinite one may be finite in double, whose costs reach further.
inline bool sound(const Range& range, double total, int64_t length) {
  if (range.least_cost < kMostNegativeCost || total == __builtin_inf()) return false;
  if (length > kMostRoundedSteps && std::abs(total) < kLeastPerStep * double(length)) return false;
  if (range.least_lost == kNothingLost) return true;
  const bool harmless = range.least_lost > 2 * (total > 0 ? total : 0) + 8.0 * double(length) + 1024;
  return range.least_cost >= 0 && length <= kLongestWithLosses && harmless;
}

}  // namespace cpu
}  // namespace softdtw
