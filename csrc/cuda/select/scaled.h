// Which calls the scaled linear domain takes (kernels/scaled_linear_domain), and how many lanes a pair has there.
#pragma once

#include <algorithm>

#include "blocks.h"

namespace softdtw {

// Rows of a lane, whose vectors it holds, and lanes of a group, which go through the pair's strips in turn: as many as leave the fewest
// of them idle, but with few pairs more.
constexpr int kFewestScaledLanes = 4;
constexpr int64_t kFewestScaledPairs = 2048, kFewestScaledWarps = 2048;
constexpr int scaled_rows(int64_t dim) { return dim > 4 ? 4 : 8; }
inline int scaled_lanes(int64_t batch, int64_t n, int64_t m, int rows) {
  int best = kLanes;
  int64_t least = INT64_MAX;
  for (int lanes = kLanes; lanes >= kFewestScaledLanes; lanes /= 2) {
    if (lanes < kLanes && batch * lanes < kFewestScaledWarps * kLanes) break;
    const int64_t work = ceil_div(n, lanes * rows) * (m + 2 * lanes) * lanes;
    if (work < least) best = lanes, least = work;
  }
  return best;
}
// Where it is faster for every kind of data that was measured (cuda/notes.md): of longer series more rows of a lane are too far apart.
constexpr int64_t kLongestScaled = 256, kLongestScaledValues = 200, kScaledValuesDims = 3;
inline bool has_scaled_domain(const Call& call) {
  const bool is_small = call.keeps ? call.dim <= kFewDims && std::max(call.n, call.m) <= kLongestScaled
                                   : call.dim <= kScaledValuesDims && std::max(call.n, call.m) <= kLongestScaledValues;
  return call.is_multivariate() && is_small && !call.has_band && call.batch >= kFewestScaledPairs;
}

}  // namespace softdtw
