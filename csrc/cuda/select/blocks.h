// How the work of a call is cut into blocks and warps: numbers of shape and device, which kernels launch with and plans go by.
#pragma once

#include <algorithm>
#include <iterator>

#include "core/call.h"
#include "device.h"

namespace softdtw {

constexpr int kLanes = 32;  // of a warp
constexpr int64_t ceil_div(int64_t a, int64_t b) { return (a + b - 1) / b; }
constexpr int64_t strips_of(int64_t n, int rows) { return ceil_div(n, kLanes * rows); }

// From so many dimensions on, squared Euclidean costs in float32 are products: in stencil the sweep's own costs stay faster for
// longer.
constexpr int64_t kStencilMultivariateDims = 16;
// Up to so many, a lane of the multivariate and the warp-specialised kernels can hold the vectors of its rows.
constexpr int kFewDims = 8;

// Multivariate backward of many dimensions that divides E by costs: less shared memory than a device has to have for it.
constexpr int64_t kDividingBytes = 120 * 1024;

// stencil: warps of a block, as many as there are strips, unless the pairs alone fill the machine.
constexpr int kStencilWarps = 4;
inline int stencil_warps(int64_t pairs, int64_t strips) {
  return static_cast<int>(std::min<int64_t>(strips, pairs >= 2048 ? 1 : pairs >= 1024 ? 2 : kStencilWarps));
}

// One dimension, with a cost that the kernels of kernels/linear_domain and kernels/warp_specialised have (options).
inline bool is_of_numbers(const Call& call) {
  const bool is_known = call.cost == Cost::kSqEuclidean || call.cost == Cost::kEuclidean || call.cost == Cost::kCityblock ||
                        call.cost == Cost::kHuber;
  return call.dim == 1 && is_known;
}

// Short pairs of one dimension, each by the lanes of a warp or by some of them: 8, 16 or 32, up to 16 rows a lane.
constexpr int kMostLaneRows = 16;
// Of longer series the sums of many pairs of unit noise leave the range.
constexpr int64_t kLongestShort = 1500, kMostShortRows = kLanes * kMostLaneRows;  // n + m, n
inline bool are_short_pairs(const Call& call) {
  const bool has_kernel = is_of_numbers(call) && !(call.has_band && call.is_float64);
  return has_kernel && call.n <= kMostShortRows && call.n + call.m <= kLongestShort;
}
constexpr int64_t kFewestWarps = 1024;  // that fill the machine: with fewer, pairs get more lanes
inline int lanes_of_pair(int64_t batch, int64_t n) {
  int lanes = n > 16 * kMostLaneRows ? 32 : n > 8 * kMostLaneRows ? 16 : 8;
  while (lanes < kLanes && batch * lanes < kFewestWarps * kLanes) lanes *= 2;
  return lanes;
}
// Rows come in fours, with a band from eight on, for which there are fewer kernels.
inline int lane_rows(int64_t n, int lanes, bool has_band) {
  return std::max(static_cast<int>(ceil_div(n, 4 * lanes)) * 4, has_band ? 8 : 4);
}
// Whether pairs of a kind go through a kernel of their own, by lists. To make them takes another launch and some 10 us: not of small
// work, nor of short pairs, of which a lane has fewer rows or a warp has several.
constexpr int kFewestRowsOfLists = 12;
constexpr int64_t kFewestCellsOfLists = int64_t{1} << 28;
inline bool has_lists_of_pairs(int64_t batch, int64_t n, int64_t m, bool is_float64, int lanes, int rows) {
  return !is_float64 && lanes == kLanes && rows >= kFewestRowsOfLists && batch * n * m >= kFewestCellsOfLists;
}
// Whether backward takes them by windows of 16 of 32 lanes, two pairs a warp: with fewer pairs a window has no fewer turns.
constexpr int64_t kFewestForWindows = 1024;
inline bool goes_back_in_windows(int64_t batch, int lanes, int rows) {
  return lanes == kLanes && rows == kMostLaneRows && batch >= kFewestForWindows;
}

// Many pairs of few dimensions or of ready-made costs (kernels/vector_log2): rows of a lane, whose vectors it holds, and lanes of a group, which go through the
// pair's strips in turn. Those of the least work, where so many warps fill the machine, and fewer are no faster. Backward has as few
// lanes as fill it, since the less E counts in a strip, the more is left out.
struct VectorGroupShape {
  int rows, lanes, lanes_back;
};
constexpr int kFewestVectorLanes = 8, kTallVectorRows = 12;
constexpr int64_t kVectorWarps = 1536, kVectorWarpsBack = 1024;
// With a band strips of fewer rows have fewer columns outside.
constexpr int rows_of_group(int64_t dim, bool is_banded_vector = false) { return dim > 4 || is_banded_vector ? 4 : 8; }
constexpr bool has_tall_rows(int64_t dim) { return dim < 4; }
// width: columns of a row in the band, or m.
inline VectorGroupShape shape_of_vectors(const Call& call, int64_t width) {
  constexpr int kRowsOfAStep = 2;  // that a step costs beside its rows
  const int64_t batch = call.batch;
  const int rows_of_lane = rows_of_group(call.dim, call.has_band && call.cost != Cost::kMatrix),
            tall = has_tall_rows(call.dim) && call.cost != Cost::kMatrix && !call.has_band ? kTallVectorRows : rows_of_lane;
  VectorGroupShape best = {};
  int64_t least = INT64_MAX;
  for (const int rows : {rows_of_lane, tall})
    for (int lanes = kLanes; lanes >= kFewestVectorLanes; lanes /= 2) {
      const int64_t columns = call.has_band ? std::min(call.m, width + lanes * rows) : call.m;
      const int64_t steps = ceil_div(call.n, lanes * rows) * (columns + 2 * lanes);
      const int64_t work = steps * (rows + kRowsOfAStep) * std::max(batch * lanes, kVectorWarps * kLanes);
      if (work < least) best = {rows, lanes, lanes}, least = work;
    }
  while (best.lanes_back > kFewestVectorLanes && batch * (best.lanes_back / 2) >= kVectorWarpsBack * kLanes)
    best.lanes_back /= 2;
  return best;
}
// Of ready-made costs, in float32.
inline bool is_matrix(const Call& call) { return !call.is_float64 && call.cost == Cost::kMatrix; }
constexpr int64_t kLongestVectors = 2048;
// Of few dimensions, or of one and too long for the kernels of short pairs.
inline bool are_vectors(const Call& call) {
  const bool are_long = !call.is_float64 && is_of_numbers(call) && !call.has_band && !are_short_pairs(call);
  return (call.is_multivariate() || are_long) && call.dim <= kFewDims && std::max(call.n, call.m) <= kLongestVectors;
}
inline bool are_matrices(const Call& call) { return is_matrix(call) && std::max(call.n, call.m) <= kLongestVectors; }

// Bands of many pairs: a ring of lanes has a pair's band (kernels/banded).
struct Ring {
  int rows = 0, lanes = 0;  // of a lane, of a pair; 0 where no ring is wide enough

  // Columns of a band that it holds: a lane has a block of rows until it has left the band, and one step more at either end.
  constexpr int64_t width() const { return lanes * (rows + 1) - rows - 1; }
};

// From the cheapest one on.
constexpr Ring kRings[] = {{4, 4},  {6, 4},  {8, 4},  {4, 8},  {6, 8},  {8, 8},
                           {4, 16}, {6, 16}, {8, 16}, {4, 32}, {6, 32}, {8, 32}};
constexpr int kFewRows = 4;
constexpr int64_t kWidestRing = kRings[std::size(kRings) - 1].width();

// Columns of a row in the band, which has a radius of a tenth where each pair has its own.
inline int64_t band_width(const Call& call) {
  const int64_t longest = std::max(call.n, call.m), apart = longest - std::min(call.n, call.m);
  const int64_t radius = call.bandwidth >= 0 ? call.bandwidth : longest / 10;
  return 2 * radius + 1 + apart;
}
// Those that a ring has to hold. Where pairs have bands or lengths of their own, nobody knows before the call how wide they are: as
// wide as a radius of a tenth and lengths that differ by half the longer series. Wider ones are given up.
inline int64_t ring_band_width(const Call& call) {
  const int64_t width = band_width(call);
  return call.is_ragged ? std::max(width, std::min(width + std::max(call.n, call.m) / 2, kWidestRing)) : width;
}

// A ring for all pairs.
constexpr int64_t kMostRingBytes = 40 * 1024;  // of the series of a warp's pairs: with more there are too few warps
inline Ring ring_of(const Call& call) {
  const int64_t width = ring_band_width(call);
  const auto holds = [&](const Ring& ring) {
    if (call.dim > 1) return width <= ring.width();
    const bool is_short = call.n + call.m <= kLongestShort;
    return width <= ring.width() && (is_short || kLanes / ring.lanes * (call.n + call.m) * 4 <= kMostRingBytes);
  };
  // Few pairs get more lanes with fewer rows.
  for (const Ring& ring : kRings)
    if (holds(ring) && (ring.rows == kFewRows || call.batch * ring.lanes > kFewestWarps * kLanes / 2)) return ring;
  for (const Ring& ring : kRings)
    if (holds(ring)) return ring;
  return {};
}
// Whether it takes less than the lanes of short pairs, which go over the whole table: by cells, of whatever lanes, where one of a ring
// takes about half as long.
inline bool ring_pays(const Call& call) {
  const Ring ring = ring_of(call);
  if (!are_short_pairs(call) || ring.lanes == 0 || call.bandwidth < 0) return true;
  const int lanes = lanes_of_pair(call.batch, call.n), rows = lane_rows(call.n, lanes, true);
  const int64_t of_ring = ring.lanes * (ring.rows + 1) * (call.m + call.bandwidth + call.n / ring.rows);
  return of_ring <= 2 * lanes * (rows + 1) * (call.m + lanes);
}
// With a band, which a ring of lanes holds.
constexpr int64_t kLongestRing = 4096;  // n + m
constexpr int64_t kRingDims = 4;
inline bool has_ring(const Call& call) {
  const bool is_known = call.dim > 1 ? are_vectors(call) && call.dim <= kRingDims : !call.is_float64 && is_of_numbers(call);
  return is_known && call.has_band && call.n + call.m <= kLongestRing && ring_of(call).lanes > 0;
}
// Whether the linear domain, in float64, tries the pairs of rings first. Of longer series most leave its range.
inline bool has_linear_rings(const Call& call, const Device& device) {
  const bool may_hold = call.is_univariate() && !call.has_penalty && call.n + call.m <= kLongestShort;
  return may_hold && device.has_fast_float64();
}

// Gradients of many dimensions: whether E goes to a table, from which they follow as products of matrices.
inline bool has_table_of_gradients(const Call& call) {
  constexpr int64_t kDims = 32, kDimsOfSmallTables = 16, kSmallTables = int64_t{1} << 25;  // cells of all tables
  return call.cost != Cost::kMatrix &&
         call.dim >= (call.batch * call.n * call.m <= kSmallTables ? kDimsOfSmallTables : kDims);
}

// Costs of few dimensions in float32, from vectors that lanes hold: up to so many dimensions, by rows a lane,
// where no more than one number of four is padding.
constexpr int held_dims(int rows) { return rows == 2 ? 8 : 4; }
inline bool reads_vectors(const Call& call, int rows) {
  return call.is_multivariate() && call.dim <= held_dims(rows) && (call.dim % 4 == 0 || call.dim % 4 == 3);
}

// Whether vectors can be read four numbers at a time.
inline bool reads_fours(const View<const float>& series, int64_t dim) {
  return reinterpret_cast<uintptr_t>(series.data) % 16 == 0 && series.row_stride % 4 == 0 && series.batch_stride % 4 == 0 &&
         dim % 4 == 0;
}
inline bool reads_fours(const Problem<float>& problem) {
  return reads_fours(problem.x, problem.dim) && reads_fours(problem.y, problem.dim);
}

// As many strips of a block as its shared memory holds beside what all of them share, up to `most`.
inline int strips_of_block(const Device& device, int64_t bytes_of_strip, int64_t bytes_of_all, int most) {
  return static_cast<int>(std::clamp<int64_t>((device.block_bytes - bytes_of_all) / bytes_of_strip, 1, most));
}

// Warp-specialised kernels: strips of a block, of which a multiprocessor holds one.
constexpr int kSpecialisedStrips = 4;
// Rows a lane of those that go forward, or 0 where other blocks are faster. In two rounds of blocks they are still faster than
// others, of which a multiprocessor holds three. Where strips of two rows would have to take turns, those of four are faster, if
// nothing is kept, which backward would want in strips of two. With a penalty, a band or another cost others are far slower.
inline int rows_of_specialised(const Call& call, int rows, const Device& device) {
  const auto fit = [&](int of_rows, int rounds) {
    return call.batch * ceil_div(strips_of(call.n, of_rows), kSpecialisedStrips) <= int64_t{rounds} * device.processors;
  };
  const bool has_rivals = !(is_matrix(call) || is_of_numbers(call)) || (call.is_univariate() && call.is_plain());
  if (rows == 2 && (call.keeps || fit(2, 1))) return !has_rivals || fit(2, 2) ? 2 : 0;
  return !has_rivals || fit(4, 2) ? 4 : 0;
}

// From both ends of a table: strips of a block in forward, and the shared memory of one.
constexpr int kBidirectionalStrips = 8;
constexpr int64_t kBidirectionalBytes = 216 * 1024;
// With many dimensions: strips of a block, and those of both sides that are under way at once, of which in a band a side has some three,
// whatever the length.
constexpr int kManyDimsStrips = 4;
inline int64_t side_strips(const Call& call) {
  const int64_t of_side = strips_of(call.n, 2), of_band = 3;
  return 2 * call.batch * (call.has_band ? std::min(of_side, of_band) : of_side);
}
// Whether blocks have two, of costs that are differences: while a multiprocessor has two at most.
inline bool has_sides_in_twos(const Call& call, const Device& device) { return side_strips(call) <= 2 * device.processors; }
// From so many dimensions on blocks that go from one end have a multiprocessor to themselves, too.
constexpr int64_t kAloneDims = 64;
// From both ends pays up to so many strips for each multiprocessor: of costs that are differences, which take longer than all else, without a
// band in many rounds of blocks.
inline int64_t paying_side_strips(const Call& call) {
  if (!call.is_of_squares()) return call.has_band ? 3 : 16;
  if (call.dim < kAloneDims) return 4;
  return call.has_band ? 2 : 3;
}

// Multivariate forward: whether a block has a multiprocessor to itself. all_fit: no more blocks than multiprocessors; else
// where costs take longer than the sweeps.
inline bool block_is_alone(const Call& call, bool all_fit, bool holds_all_strips) {
  constexpr int64_t kLeastColumns = 256;
  return all_fit || (holds_all_strips && call.dim >= kAloneDims && call.m >= kLeastColumns);
}

}  // namespace softdtw
