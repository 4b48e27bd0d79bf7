// The series of hard elastic measures along a band, (11), for rings of lanes (kernels/hard/rings/hard_ring.cuh): a type for each measure.
// One dimension, float32.
//
// What a measure needs to know of a row or a column are up to four numbers, its vector (ring_vectors.cuh). A border that is summed up
// stands in the table, as its row 0 and column 0, whose cells are only met along it.
#pragma once

#include "cuda/kernels/elastic/elastic_match.cuh"
#include "cuda/kernels/elastic/elastic_table.cuh"
#include "cuda/kernels/hard/rings/hard_ring.cuh"

namespace softdtw {

// A problem as the table of a ring.
struct ElasticRingTable : ElasticProblem<float> {
  explicit ElasticRingTable(const ElasticProblem<float>& problem) : ElasticProblem<float>(problem) {}

  SOFTDTW_HD int shift() const { return sum_border ? 1 : 0; }
  SOFTDTW_HD Extent extent(int64_t b) const {
    const Extent own = ElasticProblem<float>::extent(b);
    return own.valid() && sum_border ? with_border(own) : own;
  }
};

// Of x or y. A border has zeros; what is before a series, or beyond, repeats its ends.
struct ElasticLine {
  NumbersView<const float> series, gaps, times;  // without data: 1, and places
  int shift = 0, last = 0;

  __device__ static bool reads_fours() { return false; }
  __device__ __forceinline__ int place(int i) const { return min(max(i - shift, 0), last); }
};
// A number, its gap and its time.
struct LineOfGaps : ElasticLine {
  __device__ __forceinline__ float4 four(int i, int, bool) const {
    const int at = place(i);
    if (i < shift) return {0, 0, 0, 0};
    const float gap = gaps.data != nullptr ? gaps.at(at) : 1.0f;
    return {series.at(at), gap, times.data != nullptr ? times.at(at) : static_cast<float>(i), 0};
  }
};
// A number, and the one before: some number before the first one, which an infinite one is not to be taken from.
struct LineOfNeighbours : ElasticLine {
  __device__ __forceinline__ float4 four(int i, int, bool) const {
    const int at = place(i);
    return {series.at(at), at > 0 ? series.at(at - 1) : 0, 0, 0};
  }
};
struct LineOfNumbers : ElasticLine {
  __device__ __forceinline__ float4 four(int i, int, bool) const { return {series.at(place(i)), 0, 0, 0}; }
};

template <int kRows, class Line>
struct ElasticVectors : RingVectors<kRows, 1, Line> {
  using Vectors = RingVectors<kRows, 1, Line>;
  using Columns = typename Vectors::Columns;
  struct StepCosts {
    float diagonal[kRows], up[kRows], left[kRows];
  };

  __device__ ElasticVectors(const RingLayout& layout, const Extent& extent, int end_column, bool wanted)
      : Vectors(layout, extent, end_column, wanted) {}

  __device__ __forceinline__ void read(
      const ElasticRingTable& problem, const SideOfPair& side, const RingLayout&, float* own) {
    const int shift = problem.shift();
    const auto line_of = [&](const auto& series, const auto& gaps, const auto& times, int length) {
      Line line;
      const int64_t number = series.of(side.pair);
      const View<const float> view = series.pair(side.pair);
      line.series = {view.data, 0, view.row_stride};
      if (gaps.data != nullptr) line.gaps = gaps.of(number);
      if (times.data != nullptr) line.times = times.of(number);
      line.shift = shift, line.last = max(length - 1 - shift, 0);
      return line;
    };
    Vectors::read(
        line_of(problem.x, problem.x_gaps, problem.x_times, side.part.n),
        line_of(problem.y, problem.y_gaps, problem.y_times, side.part.m), own);
  }
  __device__ __forceinline__ static float start() { return 0; }
  __device__ __forceinline__ static float add(const StepCosts&, int, bool is_inside, float best) {
    return is_inside ? best : INFINITY;
  }
};

// Edit, Edr, Lcss.
template <int kRows, template <typename> class Match>
struct EditRing : ElasticVectors<kRows, LineOfGaps>, HasRingStepCosts {
  using Base = ElasticVectors<kRows, LineOfGaps>;
  const Match<float> match;
  const bool has_border;

  __device__ EditRing(
      const ElasticRingTable& problem, int64_t pair, const RingLayout& layout, const Extent& extent, int end_column,
      bool wanted)
      : Base(layout, extent, end_column, wanted), match(problem, pair), has_border(problem.sum_border) {}

  // The border's corner, R[0,0] = 0, is a cell of the table.
  __device__ __forceinline__ float start() const { return has_border ? -match(0) : 0; }
  __device__ __forceinline__ typename Base::StepCosts look_at(const typename Base::Columns& columns, int) const {
    typename Base::StepCosts costs;
    const float4& column = columns.now[0];
#pragma unroll
    for (int k = 0; k < kRows; ++k) {
      const float4& row = this->x[k][0];
      costs.diagonal[k] = match(fabsf(row.x - column.x));
      costs.up[k] = Match<float>::kHasGaps ? row.y : 1;
      costs.left[k] = Match<float>::kHasGaps ? column.y : 1;
    }
    return costs;
  }
};

// Twed. a[i-1,j-1] is what the lane has computed a step ago for the row above, and of its first row the lane above.
template <int kRows>
struct TwedRing : ElasticVectors<kRows, LineOfGaps>, HasRingStepCosts {
  using Base = ElasticVectors<kRows, LineOfGaps>;
  const float unit;  // of times
  float matches[kRows] = {}, match_above = 0;

  __device__ TwedRing(
      const ElasticRingTable& problem, int64_t pair, const RingLayout& layout, const Extent& extent, int end_column,
      bool wanted)
      : Base(layout, extent, end_column, wanted),
        unit(problem.x_times.data != nullptr ? 1 : static_cast<float>(problem.parameter_of(pair))) {}

  __device__ __forceinline__ float start() {
    match_above = 0;  // of the first cell
    return 0;
  }
  __device__ __forceinline__ typename Base::StepCosts look_at(const typename Base::Columns& columns, int from) {
    typename Base::StepCosts costs;
    const float4& column = columns.now[0];
    float before = match_above;
    match_above = __shfl_sync(kAllLanes, matches[kRows - 1], from);
#pragma unroll
    for (int k = 0; k < kRows; ++k) {
      const float4& row = this->x[k][0];
      const float own = fmaf(unit, fabsf(row.z - column.z), fabsf(row.x - column.x));
      costs.diagonal[k] = own + before;
      costs.up[k] = row.y;
      costs.left[k] = column.y;
      before = matches[k];
      matches[k] = own;
    }
    return costs;
  }
};

// Msm. What the steps up in the first row cost, and those to the left in the first column, does not matter: nothing is there.
template <int kRows>
struct MsmRing : ElasticVectors<kRows, LineOfNeighbours>, HasRingStepCosts {
  using Base = ElasticVectors<kRows, LineOfNeighbours>;
  const float parameter;

  __device__ MsmRing(
      const ElasticRingTable& problem, int64_t pair, const RingLayout& layout, const Extent& extent, int end_column,
      bool wanted)
      : Base(layout, extent, end_column, wanted), parameter(static_cast<float>(problem.parameter_of(pair))) {}

  __device__ __forceinline__ typename Base::StepCosts look_at(const typename Base::Columns& columns, int) const {
    typename Base::StepCosts costs;
    const float4& column = columns.now[0];
#pragma unroll
    for (int k = 0; k < kRows; ++k) {
      const float4& row = this->x[k][0];
      costs.diagonal[k] = fabsf(row.x - column.x);
      costs.up[k] = parameter + gap_of_msm(row.x, row.y, column.x);
      costs.left[k] = parameter + gap_of_msm(column.x, column.y, row.x);
    }
    return costs;
  }
};

// Weighted: one cost for all steps, and a weight for each diagonal, which a lane's rows pass down. Those of the band stand in shared
// memory, by column less row, from the lowest on.
template <int kRows>
struct WeightedRing : ElasticVectors<kRows, LineOfNumbers> {
  using Base = ElasticVectors<kRows, LineOfNumbers>;
  struct Column {
    float weights[kRows], distances[kRows];
  };
  const double parameter;
  const float* of_diagonals = nullptr;
  int row = 0;
  float weights[kRows];

  static int floats_of(const RingLayout& layout) { return Base::floats_of(layout) + (layout.widest() + 3) / 4 * 4; }

  __device__ WeightedRing(
      const ElasticRingTable& problem, int64_t pair, const RingLayout& layout, const Extent& extent, int end_column,
      bool wanted)
      : Base(layout, extent, end_column, wanted), parameter(problem.parameter_of(pair)) {}

  __device__ __forceinline__ void read(
      const ElasticRingTable& problem, const SideOfPair& side, const RingLayout& layout, float* own) {
    const int64_t longest = max(this->extent.n, this->extent.m);
    float* const table = own + Base::floats_of(layout);
    for (int i = this->lane; i < this->width; i += this->lanes)
      table[i] = static_cast<float>(Weighted<float>::weight(this->extent.low + i, parameter, longest));
    of_diagonals = table;
    Base::read(problem, side, layout, own);  // which waits for all lanes
    take_weights(0);
  }
  __device__ __forceinline__ void turn(int i, typename Base::Columns& columns) {
    Base::turn(i, columns);
    if (this->age(i) == 0) take_weights(i);
  }
  __device__ __forceinline__ Column look_at(const typename Base::Columns& columns, int) {
    const float4& y = columns.now[0];
#pragma unroll
    for (int k = kRows - 1; k > 0; --k) weights[k] = weights[k - 1];
    weights[0] = weight(columns.column - row);
    Column column;
#pragma unroll
    for (int k = 0; k < kRows; ++k) {
      const float apart = this->x[k][0].x - y.x;
      column.weights[k] = weights[k];
      column.distances[k] = apart * apart;
    }
    return column;
  }
  // Of every sweep to the bit, with a path or without.
  __device__ __forceinline__ static float add(const Column& column, int k, bool is_inside, float best) {
    return is_inside ? fmaf(column.weights[k], column.distances[k], best) : INFINITY;
  }

 private:
  // Of the diagonal nearest to it in the band: cells outside have none.
  __device__ __forceinline__ float weight(int diagonal) const {
    return of_diagonals[min(max(diagonal - this->extent.low, 0), this->width - 1)];
  }
  // Of a block's rows, a column before the first one that they meet.
  __device__ __forceinline__ void take_weights(int i) {
    row = this->block(i) * kRows;
    const int column = this->first_column(i) - 1;
#pragma unroll
    for (int k = 0; k < kRows; ++k) weights[k] = weight(column - row - k);
  }
};

}  // namespace softdtw
