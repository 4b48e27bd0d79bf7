#include "choice.h"

#include <algorithm>
#include <initializer_list>
#include <vector>

#include "blocks.h"

namespace softdtw {
namespace {

// Tables of what holds up to a length, or up to a number of dimensions, the last row for all.
constexpr int64_t kAny = INT64_MAX;
// Pairs are counted on the GPU that the sweeps in benchmarks/results ran on. Another one has a number of multiprocessors of its own.
constexpr int64_t kSweptProcessors = 132;

constexpr int64_t kAlways = 0, kNever = INT64_MAX;

// From how many pairs on stencil, whose pairs have a block each, is faster than tiled, which spreads them over blocks. Several
// numbers: from the first on it is, from the second on it is not, and so forth, as either starts another round of blocks.
struct Turns {
  int64_t at[3];

  constexpr Turns(int64_t first, int64_t second = kNever, int64_t third = kNever) : at{first, second, third} {}
};

struct OfLength {
  int64_t longest;
  Turns turns;
};
using ByLength = std::vector<OfLength>;
struct OfDims {
  int64_t most;
  ByLength by_length;
};
using ByDims = std::vector<OfDims>;

const Turns& find(const ByLength& table, int64_t n) {
  for (const OfLength& row : table)
    if (n <= row.longest) return row.turns;
  return table.back().turns;
}
const Turns& find(const ByDims& table, int64_t dim, int64_t n) {
  for (const OfDims& row : table)
    if (dim <= row.most) return find(row.by_length, n);
  return find(table.back().by_length, n);
}

constexpr int64_t kRound = kSweptProcessors, kTwoRounds = 2 * kRound + 1, kThreeRounds = 3 * kRound + 1;
constexpr int64_t kShort = 144, kLong = 512, kLongAlone = 256;  // few pairs of one dimension would each be one warp's
const ByLength kManyDims = {{256, {kAlways}}, {kAny, {kNever}}};

// Costs in float32 for which tiled has warps of their own where there are several dimensions. With gradients, of which a
// multiprocessor has fewer pairs at once. Those of one dimension up to kLong are the means over kinds of data and gammas: in stencil
// pairs may have to try several number formats, while tiled takes about as long whatever they are.
const ByDims kOfGradients = {
    {1,
     {{kShort, {kAlways}},
      {kLongAlone, {kRound + 1}},
      {350, {kRound * 3 / 2}},
      {kLong, {kThreeRounds}},
      {768, {kTwoRounds}},
      {1400, {245}},
      {kAny, {205}}}},
    {2, {{kLongestVectors, {kNever}}, {kAny, {296}}}},
    {3, {{kLongestVectors, {kNever}}, {kAny, {330, kThreeRounds, 460}}}},
    {4, {{kLongestVectors, {kNever}}, {kAny, {660}}}},
    {5, {{kLongestVectors, {kNever}}, {kAny, {1150}}}},
    {7, {{kLongestVectors, {kNever}}, {kAny, {1536}}}},
    {8, {{kLongestVectors, {kNever}}, {kAny, {1850}}}},
    {kStencilMultivariateDims - 1, {{128, {900}}, {256, {3000}}, {kLong, {1024}}, {kAny, {1536}}}},
    {kAny, kManyDims},
};
// And without:
const ByDims kOfValues = {
    {1, {{kShort, {kAlways}}, {kLong, {kRound + 1}}, {1024, {kTwoRounds}}, {kAny, {352}}}},
    {4, {{256, {kRound + 1}}, {kLong, {kTwoRounds}}, {kAny, {176}}}},
    {8, {{256, {kRound + 1}}, {kLong, {kTwoRounds}}, {kAny, {216}}}},
};
// One dimension with a band that a ring holds. Values alone as without one.
const ByLength kOfRingGradients = {
    {kShort, {kAlways}}, {kLong, {kRound + 1}}, {768, {kTwoRounds}}, {1400, {245}}, {kAny, {205}}};
// Several dimensions with a band, or with a penalty alone: stencil's general sweep takes what tiled has faster ones for.
const ByDims kOfBands = {
    {4, {{kLong, {kNever}}, {kLongestVectors, {190}}, {kAny, {950}}}},
    {kFewDims, {{kLong, {kNever}}, {kLongestVectors, {225}}, {kAny, {700}}}},
    {kAny, {{kAny, {kNever}}}},
};
const ByDims kOfBandGradients = {
    {4, {{kLongestVectors, {kNever}}, {kAny, {1400}}}},
    {kFewDims, {{kAny, {kNever}}}},
    {kAny, {{kAny, {1500}}}},
};
const ByDims kOfPenalties = {{4, {{kLongestVectors, {kNever}}, {kAny, {1600}}}}, {kAny, {{kAny, {kNever}}}}};
const ByDims kOfPenaltyGradients = {{4, {{kLongestVectors, {kNever}}, {kAny, {4096}}}}, {kAny, {{kAny, {kNever}}}}};
// From how many pairs on integer log2 of vectors is the fastest of all, whatever the cost: the figures above are of the others. Of
// series up to kLong the blocks of tiled take one turn up to kRound pairs and two up to kTwoRounds, and others are slower.
const ByDims kOfVectorValues = {
    {1, {{768, {600}}, {kAny, {1000}}}},
    {3, {{256, {kRound + 1}}, {kLong, {kTwoRounds}}, {768, {300}}, {kAny, {340}}}},
    {4, {{64, {2000}}, {128, {500}}, {256, {kTwoRounds}}, {400, {600}}, {kAny, {400}}}},
    {kAny, {{64, {2000}}, {128, {kTwoRounds}}, {400, {530}}, {kAny, {660}}}},
};
const ByDims kOfVectorGradients = {
    {1, {{768, {450}}, {kAny, {900}}}},
    {3, {{64, {kTwoRounds}}, {96, {150}}, {128, {kTwoRounds}}, {kAny, {185}}}},
    {4, {{64, {kTwoRounds}}, {96, {200}}, {128, {kTwoRounds}}, {256, {190}}, {400, {225}}, {kAny, {205}}}},
    {kAny, {{64, {kTwoRounds}}, {96, {166}}, {256, {kTwoRounds}}, {kLong, {285}}, {kAny, {315}}}},
};
// With a penalty others are slower, and with a band, of which strips have few columns.
constexpr int64_t kOfVectorPenalties = kTwoRounds;
const ByDims kOfVectorBands = {
    {4, {{128, {kRound + 1}}, {kLong, {kTwoRounds}}, {kAny, {430}}}},
    {kAny, {{kLong, {kTwoRounds}}, {kAny, {400}}}},
};
const ByDims kOfVectorBandGradients = {
    {4, {{256, {kTwoRounds}}, {kLong, {232}}, {kAny, {kTwoRounds}}}},
    {kAny, {{256, {kTwoRounds}}, {kAny, {331}}}},
};
// And from how many on a ring of vectors is, where the band is narrow: of short pairs its steps take as long as those of a strip.
const ByLength kOfVectorRings = {{256, {1000}}, {kLong, {kTwoRounds}}, {kAny, {kRound + 1}}},
               kOfVectorRingGradients = {{kLong, {1000}}, {kAny, {170}}};
// Likewise of ready-made costs. The few pairs whose values are too small for it take a launch more, as long as one alone: with that it is
// to be faster, too.
const ByLength kOfMatrixValues = {{64, {5000}}, {128, {3000}}, {450, {1100}}, {kAny, {700}}};
const ByLength kOfMatrixGradients = {{64, {2500}}, {128, {1100}}, {450, {560}}, {1200, {400}}, {kAny, {520}}};
// Fewer of these, by warps of their own or by the sweep's.
const ByLength kOfFewMatrixValues = {
    {64, {kAlways}}, {256, {kRound + 1}}, {768, {kTwoRounds}}, {1200, {kThreeRounds}}, {kAny, {450}}};
const ByLength kOfFewMatrixGradients = {{128, {kTwoRounds}}, {256, {480}}, {kAny, {kNever}}};
Turns of_values(int64_t dim, int64_t n) {  // of nine to fifteen dimensions
  return n <= 128 ? 256 + 32 * dim : n <= 256 ? 60 * dim - 160 : 500;
}
// Euclidean costs with gradients, of nine to fifteen dimensions: all of them from differences, where E counts in many cells.
const ByLength kOfEuclidean = {{128, {kThreeRounds}}, {256, {1000}}, {kLong, {800}}, {kAny, {kThreeRounds}}};
// Other costs of one dimension, and ready-made ones where no warps of a strip's own take them:
const ByLength kOfOthers = {{kLongAlone, {kAlways}}, {kLong, {65}}, {kAny, {512}}};
const ByLength kOfFloat64 = {{kLong, {kAlways}}, {768, {80}}, {1200, {112}}, {1700, {140}}, {kAny, {160}}},
               kOfFloat64Gradients = {{kLong, {kAlways}}, {768, {56}}, {1200, {140}}, {1700, {185}}, {kAny, {200}}};

// One dimension with a penalty or another cost: short pairs, and longer ones, for which stencil has nothing as fast with a penalty but
// integer log2 of many (are_many_vectors).
const ByLength kOfShortPairs = {{kShort, {kAlways}}, {kAny, {kRound + 1}}},
               kOfShortPairGradients = {{kShort, {kAlways}}, {350, {kRound + 1}}, {kAny, {180}}};
constexpr Turns kOfLongPenalties = kNever;

Turns turns_of(const Call& call, const Device& device) {
  const int64_t dim = call.cost == Cost::kMatrix ? 1 : call.dim;
  if (call.is_float64) return find(call.keeps ? kOfFloat64Gradients : kOfFloat64, call.n);
  const bool is_plain = call.cost == Cost::kSqEuclidean && !call.has_penalty;
  if (has_ring(call) && call.dim == 1) return call.keeps ? find(kOfRingGradients, call.n) : find(kOfValues, 1, call.n);
  if (!is_plain && are_short_pairs(call)) return find(call.keeps ? kOfShortPairGradients : kOfShortPairs, call.n);
  if (is_of_numbers(call) && call.has_penalty && call.n > kLong) return kOfLongPenalties;
  if (is_matrix(call) && device.has_pipelines())
    return find(call.keeps ? kOfFewMatrixGradients : kOfFewMatrixValues, call.n);
  if (call.cost != Cost::kSqEuclidean && !call.is_multivariate()) return find(kOfOthers, call.n);
  if (call.is_multivariate() && !call.is_plain() && dim < kStencilMultivariateDims) {
    const ByDims& of_values = call.has_band ? kOfBands : kOfPenalties;
    const ByDims& of_gradients = call.has_band ? kOfBandGradients : kOfPenaltyGradients;
    return find(call.keeps ? of_gradients : of_values, dim, call.n);
  }
  const bool is_slow = call.cost == Cost::kEuclidean && dim > kFewDims && dim < kStencilMultivariateDims;
  if (call.keeps) return is_slow ? find(kOfEuclidean, call.n) : find(kOfGradients, dim, call.n);
  if (dim >= kStencilMultivariateDims) return find(kManyDims, call.n);
  if (dim > 8) return of_values(dim, call.n);
  return find(kOfValues, dim, call.n);
}

// Whether so many pairs, or strips, are at least `least` of the GPU of the sweeps, for each of its multiprocessors.
bool are_at_least(int64_t count, int64_t least, const Device& device) {
  if (least == kNever) return false;
  return count * kSweptProcessors > (least - 1) * device.processors || least == kAlways;
}

constexpr int64_t kFewPairs = 512;       // with fewer, a pair's strips had better be swept all at once
constexpr int64_t kTwoRowsLongest = 64;  // short pairs leave lanes idle in strips of four rows a lane

int rows_of_vectors(const Call& call, const Device& device) {
  const auto are = [&](int64_t least) { return are_at_least(call.batch, least, device); };
  if (call.keeps) {  // where E does not count is left out, and strips of fewer rows leave out more
    const bool fills = call.n <= 128 ? are(2 * kFewPairs) : call.n <= 256 && are(kFewPairs) && !are(2 * kFewPairs);
    return fills && call.n > kTwoRowsLongest ? 4 : 2;
  }
  // A lane can hold the vectors of four rows if they have four numbers (few_dims_tile.cuh), else a tile of costs.
  const bool fills = are(2 * kFewPairs) && call.n > kTwoRowsLongest;
  return (call.dim == 3 || call.dim == 4) && (call.n > 256 || fills) ? 4 : 2;
}

}  // namespace

bool are_many_bands(const Call& call, const Device& device) {
  return call.n <= kLongAlone || are_at_least(call.batch, kFewPairs, device);
}

bool ring_of_vectors_pays(const Call& call, const Device& device) {
  constexpr int kRowsOfAStep = 3;  // that a step of a lane costs beside its rows
  if (call.dim == 1 || !has_ring(call)) return false;
  const Ring ring = ring_of(call);
  const int64_t fewest = find(call.keeps ? kOfVectorRingGradients : kOfVectorRings, call.n).at[0];
  const int64_t rows = ring.lanes * (ring.rows + kRowsOfAStep);  // of every column
  const bool is_tall = ring.rows > kFewRows || ring.lanes < kLanes;
  return are_at_least(call.batch, fewest, device) && (call.keeps ? is_tall && 2 * rows <= call.n : rows <= call.n);
}

bool are_many_vectors(const Call& call, const Device& device) {
  if (are_matrices(call)) {
    const int64_t fewest = find(call.keeps ? kOfMatrixGradients : kOfMatrixValues, call.n).at[0];
    return are_at_least(call.batch, fewest, device);
  }
  if (!are_vectors(call)) return false;
  const ByDims& of_band = call.keeps ? kOfVectorBandGradients : kOfVectorBands;
  const ByDims& of_plain = call.keeps ? kOfVectorGradients : kOfVectorValues;
  int64_t fewest = find(call.has_band ? of_band : of_plain, call.dim, call.n).at[0];
  if (call.has_penalty && !call.has_band) fewest = std::min(fewest, kOfVectorPenalties);
  return are_at_least(call.batch, fewest, device);
}

Kernel fastest_kernel(const Call& call, const Device& device) {
  if (are_many_vectors(call, device) || ring_of_vectors_pays(call, device)) return Kernel::kStencil;
  int turns = 0;
  for (const int64_t turn : turns_of(call, device).at) turns += are_at_least(call.batch, turn, device);
  return turns % 2 == 1 ? Kernel::kStencil : Kernel::kTiled;
}

int fastest_rows(Kernel kernel, const Call& call, const Device& device) {
  if (call.is_float64) return 2;
  if (kernel == Kernel::kStencil) {
    if (call.is_multivariate()) return rows_of_vectors(call, device);
    // A tile of costs takes registers.
    if (call.cost == Cost::kMatrix || (!call.keeps && call.cost != Cost::kSqEuclidean)) return 2;
    const bool at_once = strips_of(call.n, 2) <= kStencilWarps && !are_at_least(call.batch, kFewPairs, device);
    return at_once || call.n <= kTwoRowsLongest ? 2 : 4;
  }
  if (call.batch > 1 && call.keeps) return 2;
  constexpr int64_t kFourRows = 8192, kFourRowsAlone = 1024;  // from so many strips on
  return are_at_least(call.batch * strips_of(call.n, 4), call.batch == 1 ? kFourRowsAlone : kFourRows, device) ? 4 : 2;
}

}  // namespace softdtw
