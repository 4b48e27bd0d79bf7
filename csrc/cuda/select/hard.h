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
};

struct HardPlan {
  HardSpecialization sweep;
  int rows;  // of a lane
};

constexpr int kTallRows = 16;
constexpr int64_t kHardMultivariateDims = 9;  // from so many on; lanes hold fewer

// call.keeps: a path is wanted.
inline HardPlan hard_plan(const Call& call, const Device& device) {
  if (call.is_float64) return {HardSpecialization::kDense, 2};
  if (call.is_multivariate() && call.cost == Cost::kSqEuclidean && call.dim >= kHardMultivariateDims &&
      device.has_pipelines())
    return {HardSpecialization::kMultivariate, 2};
  // Taller strips have fewer lanes beyond the table's ends in their chunks and fewer hand-overs, but there have to be enough of
  // them.
  if (!call.keeps && call.is_univariate() && strips_of(call.n, 2) > 1) {
    constexpr int kWarpsOfProcessor = 8, kOfCell = 4,
                  kOfColumn = 12;  // instructions: of a cell, and of a column beside them
    const int64_t tall = strips_of(call.n, kTallRows), low = strips_of(call.n, 4);
    const bool is_cheaper = tall * (kTallRows * kOfCell + kOfColumn) < low * (4 * kOfCell + kOfColumn);
    if (is_cheaper && call.batch * tall >= int64_t{kWarpsOfProcessor} * device.processors)
      return {HardSpecialization::kTall, kTallRows};
  }
  const int rows = strips_of(call.n, 2) == 1 ? 2 : 4;
  if (call.is_univariate()) return {HardSpecialization::kUnivariate, rows};
  if (call.cost != Cost::kSqEuclidean || call.dim > 8) return {HardSpecialization::kDense, rows};
  return {call.dim <= 4 ? HardSpecialization::kFourDims : HardSpecialization::kEightDims, rows};
}

// Elastic measures of one dimension in float32: rows of a lane. With a path, whose steps have to fit, up to kElasticTallRows. Taller
// strips have fewer hand-overs and fewer instructions a column, but there have to be enough of them, and a block has all that a
// pair has.
constexpr int kElasticRows = 4, kElasticTallRows = 8, kElasticTallestRows = 16;

inline int elastic_rows(const Call& call, const Device& device) {
  constexpr int kWarpsOfProcessor = 8, kMostStrips = 8, kOfCell = 8, kOfColumn = 20;  // instructions
  const auto time = [&](int rows) { return strips_of(call.n, rows) * (rows * kOfCell + kOfColumn); };
  int best = kElasticRows;
  for (const int rows : {kElasticTallRows, kElasticTallestRows}) {
    const int64_t strips = strips_of(call.n, rows);
    const bool fits = strips <= kMostStrips && call.batch * strips >= int64_t{kWarpsOfProcessor} * device.processors;
    if (fits && !(call.keeps && rows > kElasticTallRows) && time(rows) < time(best)) best = rows;
  }
  return best;
}

}  // namespace softdtw
