// What the steps into the cells of a lane's tile cost, for the sweep of hard_strip.cuh: a type for each measure, over any distances
// (elastic_distances.cuh). costs_of(t) is called for every column of every chunk in turn, so tiles hold what the next one needs.
#pragma once

#include "cuda/kernels/elastic/elastic_match.cuh"
#include "cuda/kernels/hard/hard_strip.cuh"
#include "elastic_distances.cuh"

namespace softdtw {

template <class S>
struct ElasticColumn {
  typename S::Scalar diagonal[S::kRows], up[S::kRows], left[S::kRows];
};

// u and l where they do not depend on the cell: as they are given, or 1.
template <bool kAreGiven, class S>
struct ElasticGaps {
  using T = typename S::Scalar;
  T rows[S::kRows];
  ElasticColumns<S> columns;

  __device__ ElasticGaps(const ElasticTable<T>& problem, const ElasticPlace& at, int64_t pair, int row)
      : columns(problem.y_gaps.of(problem.y.of(pair)).data, problem.y_gaps.stride, at) {
    if constexpr (kAreGiven)
      load_rows<S, 0>(problem.x_gaps.of(problem.x.of(pair)).data, problem.x_gaps.stride, at, row, rows);
  }
  __device__ __forceinline__ void fetch(const Place<S>& place) {
    if constexpr (kAreGiven) columns.fetch(place);
  }
  __device__ __forceinline__ void use() {
    if constexpr (kAreGiven) columns.use();
  }
  template <int kBy>
  __device__ __forceinline__ void skip() {
    if constexpr (kAreGiven) columns.template skip<kBy>();
  }
  __device__ __forceinline__ T of_column(int t) const { return kAreGiven ? columns.now[t] : T(1); }
  __device__ __forceinline__ void put(int t, ElasticColumn<S>& costs) const {
#pragma unroll
    for (int k = 0; k < S::kRows; ++k) {
      costs.up[k] = kAreGiven ? rows[k] : T(1);
      costs.left[k] = of_column(t);
    }
  }
};

// Row 0 of a summed border, above the first strip: for its first lane, whose columns begin with 0.
template <class S>
class ElasticBorder {
  using T = typename S::Scalar;
  static constexpr bool kIsRelative = sizeof(T) == 4;  // to the sum before the chunk
  double sum = 0;

 public:
  // By the whole warp. left(t): l of the lane's columns.
  template <class Left>
  __device__ __forceinline__ void put(const Extent& extent, const Place<S>& place, HardTop<S>& top, Left&& left) {
    top.reference = kIsRelative ? __shfl_sync(kAllLanes, sum, 0) : 0;
    T within = kIsRelative ? T(0) : static_cast<T>(sum);
#pragma unroll
    for (int t = 0; t < S::kSteps; ++t) {
      if (place.column + t > 0) within += left(t);
      top.entries[t] = extent.in_band(-1, place.column + t) ? within : T(INFINITY);
    }
    sum = kIsRelative ? sum + static_cast<double>(within) : static_cast<double>(within);
  }
};

// Edit, Edr, Lcss.
template <template <typename> class Match, class S, template <int> class Distances>
struct EditTile : HasStepCosts {
  using Shape = S;
  using T = typename S::Scalar;
  struct Memory {};
  Distances<0> distances;
  ElasticGaps<Match<T>::kHasGaps, S> gaps;
  const Match<T> match;
  const bool has_border;
  ElasticBorder<S> border;

  __device__ EditTile(
      const ElasticTable<T>& problem, const Extent& extent, const Strip<S>& strip, int64_t pair, int lane, Memory&)
      : EditTile(problem, ElasticPlace(problem, extent), pair, strip.first_row + lane * S::kRows) {}
  __device__ __forceinline__ void fetch(const Place<S>& place) {
    distances.fetch(place);
    gaps.fetch(place);
  }
  __device__ __forceinline__ void use(const Place<S>& place) {
    distances.use(place);
    gaps.use();
  }
  __device__ __forceinline__ ElasticColumn<S> costs_of(int t) const {
    ElasticColumn<S> costs;
    gaps.put(t, costs);
#pragma unroll
    for (int k = 0; k < S::kRows; ++k) costs.diagonal[k] = match(distances.of(k, t));
    return costs;
  }
  template <int kBy>
  __device__ __forceinline__ void skip() {
    distances.template skip<kBy>();
    gaps.template skip<kBy>();
  }
  __device__ __forceinline__ void put_border(const Extent& extent, const Place<S>& place, HardTop<S>& top) {
    border.put(extent, place, top, [&](int t) { return gaps.of_column(t); });
  }

 private:
  __device__ EditTile(const ElasticTable<T>& problem, const ElasticPlace& at, int64_t pair, int row)
      : distances(problem, at, pair, row),
        gaps(problem, at, pair, row),
        match(problem, pair),
        has_border(problem.sum_border) {}
};

// Twed. a[i-1,j-1] is what the lane has computed a step ago, for the row above among others. kHasTimes: of calls that give times; without
// they are places, whose differences the compiler knows but for the chunk's. Where that does not matter, such a tile takes both.
template <class S, template <int> class Distances, bool kHasTimes>
struct TwedTile : HasStepCosts {
  static constexpr bool has_border = false;
  using Shape = S;
  using T = typename S::Scalar;
  using Type = Twed<T>;
  struct Memory {};
  Distances<1> distances;
  ElasticGaps<true, S> gaps;
  T x_times[S::kRows + 1];
  ElasticColumns<S> y_times;
  const bool are_given;
  const T unit;
  T place_apart = 0;        // row less column of the chunk's first cell
  T before[S::kRows] = {};  // a of the upper left neighbours, 0 for the first cell

  __device__ TwedTile(
      const ElasticTable<T>& problem, const Extent& extent, const Strip<S>& strip, int64_t pair, int lane, Memory&)
      : TwedTile(problem, ElasticPlace(problem, extent), pair, strip.first_row + lane * S::kRows) {}
  __device__ __forceinline__ void fetch(const Place<S>& place) {
    distances.fetch(place);
    gaps.fetch(place);
    if (kHasTimes && are_given) y_times.fetch(place);
  }
  __device__ __forceinline__ void use(const Place<S>& place) {
    distances.use(place);
    gaps.use();
    place_apart = static_cast<T>(place.row - place.column);
    if constexpr (kHasTimes) {
      if (are_given)
        y_times.use();
      else
#pragma unroll
        for (int t = 0; t < S::kSteps; ++t) y_times.now[t] = unit * (static_cast<T>(t) - place_apart);
    }
  }
  __device__ __forceinline__ ElasticColumn<S> costs_of(int t) {
    ElasticColumn<S> costs;
    gaps.put(t, costs);
    T above = match(-1, t);
#pragma unroll
    for (int k = 0; k < S::kRows; ++k) {
      const T own = match(k, t);
      costs.diagonal[k] = own + before[k];
      before[k] = above;
      above = own;
    }
    return costs;
  }
  template <int kBy>
  __device__ __forceinline__ void skip() {
    distances.template skip<kBy>();
    gaps.template skip<kBy>();
    place_apart -= kBy;
    if constexpr (kHasTimes) y_times.template skip<kBy>();
  }
  __device__ __forceinline__ void put_border(const Extent&, const Place<S>&, HardTop<S>&) {}

 private:
  __device__ TwedTile(const ElasticTable<T>& problem, const ElasticPlace& at, int64_t pair, int row)
      : distances(problem, at, pair, row),
        gaps(problem, at, pair, row),
        y_times(problem.y_times.of(problem.y.of(pair)).data, problem.y_times.stride, at),
        are_given(problem.x_times.data != nullptr),
        unit(static_cast<T>(problem.parameter_of(pair))) {
    if constexpr (kHasTimes) {
      if (are_given)
        load_rows<S, 1>(problem.x_times.of(problem.x.of(pair)).data, problem.x_times.stride, at, row, x_times);
      else
#pragma unroll
        for (int k = 0; k <= S::kRows; ++k) x_times[k] = unit * static_cast<T>(k - 1);
    }
  }
  __device__ __forceinline__ T match(int k, int t) const {
    const T between = kHasTimes ? x_times[k + 1] - y_times.now[t] : unit * (place_apart + static_cast<T>(k - t));
    return Type::match(distances.of(k, t), between);
  }
};

// Msm. What the steps up in the first row cost, and those to the left in the first column, does not matter: nothing is there.
template <class S, template <int> class Distances>
struct MsmTile : HasStepCosts {
  static constexpr bool has_border = false;
  using Shape = S;
  using T = typename S::Scalar;
  struct Memory {};
  Distances<1> distances;
  const T parameter;
  T y_before = 0;  // the column before

  __device__ MsmTile(
      const ElasticTable<T>& problem, const Extent& extent, const Strip<S>& strip, int64_t pair, int lane, Memory&)
      : distances(problem, ElasticPlace(problem, extent), pair, strip.first_row + lane * S::kRows),
        parameter(static_cast<T>(problem.parameter_of(pair))) {
    if (strip.first_row + lane == 0)
      distances.x[0] = 0;  // above the first row; what is infinite there is not taken from itself
  }
  __device__ __forceinline__ void fetch(const Place<S>& place) { distances.fetch(place); }
  __device__ __forceinline__ void use(const Place<S>& place) { distances.use(place); }
  __device__ __forceinline__ ElasticColumn<S> costs_of(int t) {
    ElasticColumn<S> costs;
    const T y = distances.y.now[t];
#pragma unroll
    for (int k = 0; k < S::kRows; ++k) {
      const T above = distances.x[k], own = distances.x[k + 1];
      costs.diagonal[k] = distances.of(k, t);
      costs.up[k] = parameter + gap_of_msm(own, above, y);
      costs.left[k] = parameter + gap_of_msm(y, y_before, own);
    }
    y_before = y;
    return costs;
  }
  template <int kBy>
  __device__ __forceinline__ void skip() {
    distances.template skip<kBy>();
  }
  __device__ __forceinline__ void put_border(const Extent&, const Place<S>&, HardTop<S>&) {}
};

// Weighted: one cost for all steps, and a weight for each diagonal, which a lane's rows pass down.
template <class S, template <int> class Distances>
struct WeightedTile : SweptInParts {
  using Shape = S;
  using T = typename S::Scalar;
  using Type = Weighted<T>;
  struct Memory {};
  struct Column {
    T weights[S::kRows], distances[S::kRows];
    // Of every sweep to the bit, with a path or without.
    __device__ __forceinline__ T add(int k, T best, bool is_inside) const {
      return is_inside ? DeviceMath<T>::fma(weights[k], distances[k], best) : T(INFINITY);
    }
  };
  Distances<0> distances;
  const double parameter;
  const int64_t longest;
  int apart = 0;  // row less column of the chunk's first cell
  T weights[S::kRows];

  __device__ WeightedTile(
      const ElasticTable<T>& problem, const Extent& extent, const Strip<S>& strip, int64_t pair, int lane, Memory&)
      : distances(problem, ElasticPlace(problem, extent), pair, strip.first_row + lane * S::kRows),
        parameter(problem.parameter_of(pair)),
        longest(max(extent.n, extent.m)) {
    const int first = strip.first_row + lane * S::kRows - (strip.first_column - lane);
#pragma unroll
    for (int k = 0; k < S::kRows; ++k) weights[k] = weight(first + k + 1);
  }
  __device__ __forceinline__ void fetch(const Place<S>& place) { distances.fetch(place); }
  __device__ __forceinline__ void use(const Place<S>& place) {
    distances.use(place);
    apart = place.row - place.column;
  }
  __device__ __forceinline__ Column costs_of(int t) {
#pragma unroll
    for (int k = S::kRows - 1; k > 0; --k) weights[k] = weights[k - 1];
    weights[0] = weight(apart - t);
    Column column;
#pragma unroll
    for (int k = 0; k < S::kRows; ++k) {
      column.weights[k] = weights[k];
      column.distances[k] = distances.of(k, t);
    }
    return column;
  }
  template <int kBy>
  __device__ __forceinline__ void skip() {
    distances.template skip<kBy>();
    apart -= kBy;
  }

 private:
  __device__ __forceinline__ T weight(int k) const { return static_cast<T>(Type::weight(k, parameter, longest)); }
};

// Ready-made costs.
template <class S>
struct ReadyTile : HasStepCosts {
  using Shape = S;
  using T = typename S::Scalar;
  struct Memory {};
  const ElasticCells<Ready, DeviceMath<T>, T> cells;
  const ElasticPlace at;
  const bool has_border;
  ElasticBorder<S> border;
  StepCosts<T> costs[S::kRows][S::kSteps];

  __device__ ReadyTile(const ElasticTable<T>& problem, const Extent& extent, const Strip<S>&, int64_t pair, int, Memory&)
      : cells(problem, pair), at(problem, extent), has_border(problem.sum_border) {}
  __device__ __forceinline__ void fetch(const Place<S>&) {}
  // The costs of a border's steps stand in the column and the row beside it.
  __device__ __forceinline__ void use(const Place<S>& place) {
    for_each_cell<S>([&](int k, int t) { costs[k][t] = cells(at.row(place.row + k), at.column(place.column + t)); });
  }
  __device__ __forceinline__ ElasticColumn<S> costs_of(int t) const {
    ElasticColumn<S> column;
#pragma unroll
    for (int k = 0; k < S::kRows; ++k) {
      column.diagonal[k] = costs[k][t].diagonal;
      column.up[k] = costs[k][t].up;
      column.left[k] = costs[k][t].left;
    }
    return column;
  }
  template <int kBy>
  __device__ __forceinline__ void skip() {
#pragma unroll
    for (int k = 0; k < S::kRows; ++k) softdtw::skip<kBy>(costs[k]);
  }
  __device__ __forceinline__ void put_border(const Extent& extent, const Place<S>& place, HardTop<S>& top) {
    border.put(extent, place, top, [&](int t) { return costs[0][t].left; });
  }
};

}  // namespace softdtw
