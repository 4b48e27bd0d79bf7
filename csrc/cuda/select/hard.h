// Hard DTW and elastic measures, which have kernels of their own: how their strips are swept.
#pragma once

#include "blocks.h"

namespace softdtw {

enum class HardSpecialization : int {
  kTall,          // strips of 16 rows a lane: values of many pairs of one dimension
  kUnivariate,    // one dimension
  kFourDims,      // up to so many, vector by vector
  kEightDims,     //
  kDense,         // any cost
  kMultivariate,  // costs by warps of their own
  kRing,          // with a band, up to eight dimensions or few pairs: a ring of lanes (kernels/hard/rings)
};

// A ring of lanes for the band of a pair, or two, one for the upper half of its rows and one for the lower half. Two find no path: a
// lower half's steps are those back from the end, which break ties the other way.
struct HardRing {
  Ring of_side;
  int sides = 1;
  int cost_blocks = 0;  // of a multiprocessor: beside the warp that sweeps, others compute costs (kernels/hard/rings/costs)

  // Columns that a side's rows meet at most.
  int64_t columns_of_side(const Call& call) const {
    const int64_t apart = call.m > call.n ? call.m - call.n : 0;
    const bool is_known = sides == 2 && !call.is_ragged;
    return is_known ? std::min(call.m, (call.n + 1) / 2 + apart + call.bandwidth) : call.m;
  }
};

struct HardPlan {
  HardSpecialization sweep;
  int rows;       // of a lane
  HardRing ring;  // of kRing; pairs with a band of their own that is too wide for it have strips
};

constexpr int kTallRows = 16;
constexpr int64_t kHardMultivariateDims = 9;  // from so many on; lanes hold fewer

constexpr int kRowsOfFewPairs = 14;  // of a lane where a ring has all lanes of a warp
constexpr int kSchedulers = 4;       // of a multiprocessor: each has one warp at least
// Rings of several dimensions: rows of a lane, and lanes of a pair.
constexpr bool are_rows_of_vectors(int rows, int64_t dim) {
  return rows == 4 || rows == 8 || (rows == kRowsOfFewPairs && dim <= 4);
}
constexpr int fewest_lanes_of_vectors(int rows) { return rows == 4 ? 4 : rows == 8 ? 8 : kLanes; }

// From the cheapest one on, as kRings.
inline HardRing hard_ring_of(const Call& call, const Device& device) {
  constexpr int64_t kBytesOfWarp = 28 * 1024;  // of series in shared memory, so that a multiprocessor has eight warps
  constexpr int64_t kShortest = 64;
  if (call.bandwidth >= std::max(call.n, call.m)) return {};
  const int64_t width = ring_band_width(call);
  const auto warps = [&](const Ring& ring) { return ceil_div(call.batch * ring.lanes, kLanes); };
  const auto sides = [&](const Ring& ring) {
    return !call.keeps && call.n >= kShortest && 2 * warps(ring) <= int64_t{kSchedulers} * device.processors ? 2 : 1;
  };
  const auto suits = [&](const Ring& ring) {
    if (call.dim > 1)
      return width <= ring.width() && are_rows_of_vectors(ring.rows, call.dim) &&
             ring.lanes >= fewest_lanes_of_vectors(ring.rows);
    const int64_t bytes = kLanes / ring.lanes * (call.n + call.m + 2 * kLanes) * int64_t{sizeof(float)};
    const bool has_room = ring.lanes == kLanes ? bytes <= device.block_bytes / 2 : bytes <= kBytesOfWarp;
    return width <= ring.width() && has_room;
  };
  // Few pairs get more lanes with fewer rows.
  for (const Ring& ring : kRings)
    if (suits(ring) && (ring.rows == kFewRows || 2 * warps(ring) > kFewestWarps)) return {ring, sides(ring)};
  for (const Ring& ring : kRings)
    if (suits(ring)) return {ring, sides(ring)};
  const Ring widest = {kRowsOfFewPairs, kLanes};
  const bool are_few = 2 * warps(widest) <= int64_t{kSchedulers} * device.processors;
  const bool has_kernel = !call.keeps || call.dim == 1;  // of vectors, strips find paths faster
  if (suits(widest) && are_few && has_kernel && call.n >= kShortest) return {widest, sides(widest)};
  return {};
}

// Rings whose costs other warps compute, a block each. The warp that sweeps has a scheduler for itself: others of a block that would share it
// are idle. Taller blocks of rows have more cells that do not wait for each other, and take more memory.
constexpr int cost_warps(int rows) { return rows == 4 ? 8 : 4; }
constexpr int cost_ring_warps(int rows) { return cost_warps(rows) + (cost_warps(rows) - 1) / (kSchedulers - 1) + 1; }
constexpr int cost_ring_groups(int rows) { return 2 * cost_warps(rows); }  // of steps, ahead of the sweep
// In shared memory, beside these: blocks of the lanes and of two rounds of groups, columns of the same at least, and norms of both.
constexpr int cost_ring_blocks(int rows) { return kLanes + 2 * cost_warps(rows); }
constexpr int kCostRingColumns = 128;
constexpr int64_t cost_ring_dims(int64_t dim) { return (dim + 3) / 4 * 4; }
constexpr int64_t cost_ring_groups_bytes(int rows) {
  constexpr int64_t kBarriers = 256;
  return int64_t{4} * cost_ring_groups(rows) * (rows + 1) * rows * kLanes + kBarriers;
}
constexpr int64_t cost_ring_bytes(int rows, int64_t dim) {
  const int64_t of_dimension = rows * (cost_ring_blocks(rows) + 1) + kCostRingColumns + 4;
  const int64_t norms = rows * cost_ring_blocks(rows) + kCostRingColumns;
  return cost_ring_groups_bytes(rows) + 4 * (cost_ring_dims(dim) * of_dimension + norms);
}
// Of few pairs, since a block has a multiprocessor for itself, or half of one, which pays for paths and where vectors are long. Costs of many
// dimensions take longer than those of strips, if a pair has several multiprocessors there.
inline HardRing cost_ring_of(const Call& call, const Device& device) {
  constexpr int64_t kShortest = 64;  // of two sides
  constexpr int kMostShared = 2;     // blocks of a multiprocessor
  if (!call.is_multivariate() || call.is_ragged || call.bandwidth < 0 || !device.has_pipelines()) return {};
  const int shared = call.batch <= device.processors ? 1 : kMostShared;
  if (call.batch > shared * int64_t{device.processors}) return {};
  if (shared > 1 && !call.keeps && call.dim <= kFewDims) return {};
  const int64_t width = band_width(call);
  const int sides = !call.keeps && call.n >= kShortest && 2 * call.batch <= device.processors ? 2 : 1;
  const int times = (4 * call.batch <= device.processors ? 1 : 2) * (call.is_of_squares() ? 1 : 2);
  for (const Ring& ring : {Ring{4, kLanes}, Ring{8, kLanes}}) {
    const int64_t most_dims = times * (ring.rows == 8 ? 32 : 64);
    const bool has_room = shared * cost_ring_bytes(ring.rows, call.dim) <= device.block_bytes;
    if (width <= ring.width() && call.dim <= most_dims && has_room) return {ring, sides, shared};
  }
  return {};
}
// Unless the band has most of the table, of which strips take no more.
inline bool pays(const HardRing& ring, const Call& call) {
  const int rows = ring.of_side.rows, lanes = ring.of_side.lanes;
  return rows > 0 && lanes * rows * (call.m + call.n / rows) <= 2 * call.n * call.m;
}

// call.keeps: a path is wanted.
inline HardPlan hard_plan(const Call& call, const Device& device, bool may_have_ring = true) {
  const bool is_of_few_dims = call.is_multivariate() && call.dim <= kFewDims;
  if (may_have_ring && !call.is_float64 && call.has_band) {
    HardRing ring = cost_ring_of(call, device);
    const bool has_lanes = is_of_numbers(call) || is_of_few_dims;
    if (has_lanes && !pays(ring, call)) ring = hard_ring_of(call, device);
    if (pays(ring, call)) return {HardSpecialization::kRing, ring.of_side.rows, ring};
  }
  if (call.is_float64) return {HardSpecialization::kDense, 2, {}};
  if (call.is_multivariate() && call.dim >= kHardMultivariateDims && device.has_pipelines())
    return {HardSpecialization::kMultivariate, 2, {}};
  // Taller strips have fewer lanes beyond the table's ends in their chunks and fewer hand-overs, but there have to be enough of
  // them.
  if (!call.keeps && call.is_univariate() && strips_of(call.n, 2) > 1) {
    constexpr int kWarpsOfProcessor = 8, kOfCell = 4,
                  kOfColumn = 12;  // instructions: of a cell, and of a column beside them
    const int64_t tall = strips_of(call.n, kTallRows), low = strips_of(call.n, 4);
    const bool is_cheaper = tall * (kTallRows * kOfCell + kOfColumn) < low * (4 * kOfCell + kOfColumn);
    if (is_cheaper && call.batch * tall >= int64_t{kWarpsOfProcessor} * device.processors)
      return {HardSpecialization::kTall, kTallRows, {}};
  }
  const int rows = strips_of(call.n, 2) == 1 ? 2 : 4;
  if (call.is_univariate()) return {HardSpecialization::kUnivariate, rows, {}};
  if (call.cost != Cost::kSqEuclidean || call.dim > 8) return {HardSpecialization::kDense, rows, {}};
  return {call.dim <= 4 ? HardSpecialization::kFourDims : HardSpecialization::kEightDims, rows, {}};
}

// Paths: whether each strip of a pair's has a warp of its own, which maps tell where to start (kernels/hard/paths). `columns`: of a strip.
// To make the maps takes the time of so many pairs' walks, one warp each, row by row.
inline bool has_strip_maps(int64_t batch, int64_t strips, int64_t columns) {
  constexpr int64_t kFewestStrips = 4, kMostColumns = int64_t{1} << 16;  // of all pairs
  return strips >= kFewestStrips && batch * columns <= kMostColumns;
}

// Gradients along paths: whether a block has a pair, and finds the rows of its columns in shared memory; else each column looks for its own.
// Of many dimensions several threads share a row, which a block leaves to one.
inline bool has_block_of_pair(const Call& call, const Device& device) {
  constexpr int64_t kBlocksOfProcessor = 2, kMostColumns = 2048, kMostRows = 16384, kMostDims = 32;
  return call.dim <= kMostDims && call.batch >= kBlocksOfProcessor * device.processors && call.m <= kMostColumns &&
         call.n <= kMostRows;
}

// Elastic measures of one dimension in float32: rows of a lane. With a path, whose steps have to fit, up to kElasticTallRows. Taller
// strips have fewer hand-overs and fewer instructions a column, but there have to be enough of them, and a block has all that a
// pair has. Of a band a taller strip has more columns.
constexpr int kElasticRows = 4, kElasticTallRows = 8, kElasticTallestRows = 16;

inline int elastic_rows(const Call& call, const Device& device) {
  constexpr int kWarpsOfProcessor = 8, kMostStrips = 8, kOfCell = 8, kOfColumn = 20;  // instructions
  const int64_t width = call.bandwidth >= 0 ? band_width(call) : call.m;
  const auto time = [&](int rows) {
    const int64_t columns = std::min(call.m, width + kLanes * rows) + kLanes;
    return strips_of(call.n, rows) * columns * (rows * kOfCell + kOfColumn);
  };
  int best = kElasticRows;
  for (const int rows : {kElasticTallRows, kElasticTallestRows}) {
    const int64_t strips = strips_of(call.n, rows);
    const bool fits = strips <= kMostStrips && call.batch * strips >= int64_t{kWarpsOfProcessor} * device.processors;
    if (fits && !(call.keeps && rows > kElasticTallRows) && time(rows) < time(best)) best = rows;
  }
  return best;
}

// Elastic measures of one dimension in float32 with a band: a ring for each pair, whose rows and columns are vectors of up to four
// numbers. `border`: rows, and columns, of a border that is summed up.
inline HardRing elastic_ring_of(Call call, int border, const Device& device) {
  if (call.is_float64 || !call.has_band) return {};
  call.n += border;
  call.m += border;
  call.dim = 4;
  call.keeps = true;  // of one side
  const HardRing ring = hard_ring_of(call, device);
  return ring.of_side.rows != kRowsOfFewPairs && pays(ring, call) ? ring : HardRing{};
}

// Soft elastic measures by strips: warps of a block, and blocks that share a pair. One where pairs fill the machine, whose strips the
// warps of a block then take in turns.
constexpr int kSoftWarps = 4;

struct SoftBlocks {
  int warps = 1;
  int64_t groups = 1;
};

inline SoftBlocks soft_blocks(int64_t batch, int64_t strips, const Device& device) {
  constexpr int kBlocksOfProcessor = 4;
  const int warps = stencil_warps(batch, strips);
  const bool fills = batch >= int64_t{kBlocksOfProcessor} * device.processors;
  return {warps, fills ? 1 : ceil_div(strips, warps)};
}

}  // namespace softdtw
