// The ring of lanes that has a pair's band (kernels/banded): numbers of shape, which kernels launch with and plans go by.
#pragma once

#include <algorithm>
#include <iterator>

#include "core/call.h"

namespace softdtw {

struct Ring {
  int rows = 0, lanes = 0;  // of a lane, of a pair; 0 where no ring is wide enough

  // Columns of a band that it holds: a lane has a block of rows until it has left the band, and one step more at either end.
  constexpr int64_t width() const { return lanes * (rows + 1) - rows - 1; }
};

// From the cheapest one on.
constexpr Ring kRings[] = {{4, 4}, {8, 4}, {4, 8}, {8, 8}, {4, 16}, {8, 16}, {4, 32}, {8, 32}};
constexpr int64_t kWidestRing = kRings[std::size(kRings) - 1].width();

// A ring for all pairs. Where they have bands or lengths of their own, nobody knows before the call how wide they are: as wide as a
// radius of a tenth and lengths that differ by half the longer series. Wider ones are given up.
inline Ring ring_of(const Call& call) {
  const int64_t longest = std::max(call.n, call.m), apart = longest - std::min(call.n, call.m);
  const int64_t radius = call.bandwidth >= 0 ? call.bandwidth : longest / 10;
  int64_t width = 2 * radius + 1 + apart;
  if (call.is_ragged) width = std::max(width, std::min(width + longest / 2, kWidestRing));
  for (const Ring& ring : kRings)
    if (width <= ring.width()) return ring;
  return {};
}

}  // namespace softdtw
