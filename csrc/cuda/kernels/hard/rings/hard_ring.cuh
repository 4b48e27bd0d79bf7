// One warp sweeps the bands of its pairs in hard DTW, (9), by rings of lanes (kernels/banded/banded.cu has where they are).
//
// Entries are relative to a reference of their pair, as a strip's are (hard_strip.cuh): every few groups it becomes the smallest entry
// that a lane of the ring holds. Cells outside the band cost infinity.
//
// Few pairs have two rings, each of a warp of its own: one sweeps the upper half of the rows, the other one, with both series
// reversed, the lower half. The path takes one step from the upper half's last row down, so with F and B the entries of the rows on
// either side of it
//
//     value = min over j of F[j] + min(B[j + 1], B[j] + p)                                                              (*)
//
// where F[j] ends at column j and B[j] begins there. Both stand in shared memory by their place in the band: the k-th column of F
// is the (W - 1 - k)-th of B, of W columns, since B counts from the right; and B's row begins one column further right than F's.
#pragma once

#include <cfloat>

#include "cuda/costs/tile.cuh"
#include "cuda/kernels/hard/paths/ring_steps.cuh"
#include "cuda/select/hard.h"
#include "ring_series.cuh"

namespace softdtw {

struct HardRingLayout : RingLayout {
  bool has_two_sides;
  int floats_of_series;  // of shared memory, for a side of a pair

  // x_rows, y_columns: the most that a side has.
  __host__ HardRingLayout(int x_rows, int y_columns, const HardRing& ring, int (*floats_of)(const RingLayout&))
      : RingLayout(x_rows, y_columns, ring.of_side), has_two_sides(ring.sides == 2), floats_of_series(floats_of(*this)) {}
  // Of shared memory, for the rows that meet: a number for every column that the ring holds.
  __host__ __device__ int columns_that_meet() const { return has_two_sides ? lanes * (rows + 1) : 0; }
  __host__ int64_t bytes() const {
    return pairs() * (1 + has_two_sides) * (columns_that_meet() * sizeof(double) + floats_of_series * sizeof(float));
  }
};

// Rows of a pair's upper side; the lower one has the others. A pair of one row has no lower side.
__host__ __device__ inline int upper_rows(int n) { return (n + 1) / 2; }

// Series of which every step into a cell has a cost of its own, as of a strip's tile (HasStepCosts of hard_strip.cuh): look_at() gives
// diagonal[k], up[k] and left[k]. start() is what stands before the table's first cell.
struct HasRingStepCosts {};
template <class Series>
constexpr bool kHasRingStepCosts = std::is_base_of_v<HasRingStepCosts, Series>;

// A lane's entries between two columns. Series: of ring_series.cuh. Steps: what it notes of its cells (paths/ring_steps.cuh).
//
// kInTwos: rows are computed two at a time. With a and b the best that comes to either from the column before and the diagonal, c and d
// their costs and u what comes from above,
//
//     lower row = min(min(b + d, a + c + d), u + c + d)
//
// so one sum and one minimum lead from u to the row after the next: half of the chain that few pairs wait for, by half as many
// instructions more. Of numbers, which have the most rows a lane, these take longer than the chain; and of many pairs.
template <class Series, bool kPenalty, class Steps, bool kInTwos>
struct HardRingCells {
  static constexpr int kRows = Series::kRows;
  using Columns = typename Series::Columns;
  float left[kRows];  // its rows at the column it has just left; infinity outside the band
  float diag;         // the row above them, one column before
  float penalty;
  double reference;
  Steps steps;

  __device__ __forceinline__ HardRingCells(const Series&, const Columns&) {}
  template <class P>
  __device__ __forceinline__ void start(const P& problem, int64_t pair) {
#pragma unroll
    for (int k = 0; k < kRows; ++k) left[k] = INFINITY;
    diag = INFINITY;
    penalty = static_cast<float>(problem.penalty_of(pair));
    reference = 0;
  }
  __device__ __forceinline__ void enter(Series& series) { diag = series.start(); }
  __device__ __forceinline__ void step(Series& series, int from, unsigned mask, const Columns& columns) {
    float up = __shfl_sync(kAllLanes, left[kRows - 1], from);
    float upper_left = diag;
    diag = up;
    const auto column = series.look_at(columns, from);
    if constexpr (kInTwos) {
#pragma unroll
      for (int k = 0; k < kRows; k += 2) {
        const float cost = series.add(column, k, Series::is_inside(mask, k), 0.0f);
        const float lower_cost = series.add(column, k + 1, Series::is_inside(mask, k + 1), 0.0f);
        const float both = cost + lower_cost;
        const auto stepped = [&](float a) { return kPenalty ? a + penalty : a; };
        const float others = lesser(upper_left, stepped(left[k])), lower_others = lesser(left[k], stepped(left[k + 1]));
        const float to_lower = stepped(both), through_both = stepped(to_lower);
        const float beside = lesser(lower_others + lower_cost, others + to_lower);
        const float best = lesser(stepped(up), others), upper = best + cost;
        steps.note(k, best, upper_left, up, left[k]);
        steps.note(k + 1, lesser(stepped(upper), lower_others), left[k], upper, left[k + 1]);
        upper_left = left[k + 1];
        left[k] = upper;
        left[k + 1] = up = lesser(beside, up + through_both);
      }
    } else {
#pragma unroll
      for (int k = 0; k < kRows; ++k) {
        float before = left[k];
        if constexpr (kHasRingStepCosts<Series>) {
          upper_left += column.diagonal[k];
          up += column.up[k];
          before += column.left[k];
        }
        // As in hard_strip.cuh: what comes from the column before is off the chain that runs down the rows.
        const float others = lesser(upper_left, kPenalty ? before + penalty : before);
        const float best = lesser(kPenalty ? up + penalty : up, others);
        steps.note(k, best, upper_left, up, before);
        upper_left = left[k];
        left[k] = up = series.add(column, k, Series::is_inside(mask, k), best);
      }
    }
  }
  // By the whole warp. No cell to come is below the smallest entry that a lane of the ring holds.
  __device__ __forceinline__ void renew(int lanes) {
    float lowest = diag;
#pragma unroll
    for (int k = 0; k < kRows; ++k) lowest = lesser(lowest, left[k]);
    for (int distance = lanes / 2; distance > 0; distance /= 2)
      lowest = lesser(lowest, __shfl_xor_sync(kAllLanes, lowest, distance));
    if (!(fabsf(lowest) <= FLT_MAX)) return;
#pragma unroll
    for (int k = 0; k < kRows; ++k) left[k] -= lowest;
    diag -= lowest;
    reference += static_cast<double>(lowest);
  }
  __device__ __forceinline__ double entry(int k) const { return reference + static_cast<double>(pick(left, k)); }
};

// A warp's part: of each of its pairs the whole table, or a side of it.
template <class Series, bool kPenalty, bool kTwoSides, class P, class Steps = NoSteps>
class HardRingSide {
  static constexpr int kRows = Series::kRows;
  static constexpr int kGroupsBetweenRenewals = (kWarp + Series::kGroup - 1) / Series::kGroup;
  const P& problem;
  const Extent whole;
  const int64_t pair;
  const bool is_lower;

  __device__ static Extent extent_of_side(const Extent& whole, bool is_lower) {
    if (!kTwoSides || !whole.valid()) return whole;
    const int upper = upper_rows(whole.n);
    return {is_lower ? whole.n - upper : upper, whole.m, whole.low, whole.high};  // a band is its own mirror image
  }
  __device__ static int end_column(const Extent& own) { return kTwoSides ? min(own.m, own.n + own.high) - 1 : own.m - 1; }

 public:
  Series band;

  __device__ HardRingSide(const P& problem_, const RingLayout& layout, int64_t pair_, bool is_wanted, bool is_lower_)
      : problem(problem_),
        whole(problem.extent(pair_)),
        pair(pair_),
        is_lower(is_lower_),
        band(
            problem, pair, layout, extent_of_side(whole, is_lower), end_column(extent_of_side(whole, is_lower)),
            is_wanted) {}
  __device__ __forceinline__ bool is_whole_valid() const { return whole.valid(); }

  // `own`: shared memory for the pair's series.
  __device__ __forceinline__ void read_series(const RingLayout& layout, float* own) {
    const bool is_reversed = is_lower && band.fits;
    const Extent part = band.fits ? band.extent : Extent{1, 1, 0, 0};
    band.read(problem, {pair, is_reversed, whole, part}, layout, own);
  }
  // Returns the pair's last entry to the lane that holds it, else 0. Of a side instead: its last row goes to `meets`, by its places
  // in the band. `steps`: of the pair, where they are noted.
  __device__ __forceinline__ double sweep(double* meets, RowSteps* steps = nullptr) {
    constexpr bool kInTwos = Series::kIsOfVectors && (kTwoSides || Series::kIsOfFewPairs);
    RingSweep<Series, HardRingCells<Series, kPenalty, Steps, kInTwos>> sweep(band, 0);
    auto& cells = sweep.cells;
    cells.start(problem, pair);
    const int last_row = band.extent.n - 1, end_row = last_row % kRows;
    // The first group in which the last row is swept: before it no step is looked at.
    const int first_end = kTwoSides ? max(band.last_block() - band.first_group, 0) : band.groups - 1;
    double last = 0;
    for (int i = 0; i < band.most_groups; ++i) {
      if (i % kGroupsBetweenRenewals == 0 && i > 0) cells.renew(band.lanes);
      sweep.turn(i);
      const bool ends = i >= first_end && i < band.groups;
      if (i == 0 || __any_sync(kAllLanes, ends)) {
        const bool has_end = ends && band.is_block_of_last_row(i) && band.fits;
        const int first_column = band.first_column(i), first_place = first_column - last_row - band.extent.low;
        sweep.template group<true>(i, [&](int r) {
          if constexpr (kTwoSides) {
            const bool is_inside = static_cast<unsigned>(first_place + r) < static_cast<unsigned>(band.width) &&
                                   static_cast<unsigned>(first_column + r) < static_cast<unsigned>(band.extent.m);
            if (has_end && is_inside) meets[first_place + r] = cells.entry(end_row);
          } else if (has_end && i == band.groups - 1 && r == band.last_step) {
            last = cells.entry(end_row);
          }
        });
      } else {
        sweep.template group<false>(i, [](int) {});
      }
      cells.steps.leave_group(band, i, steps);
    }
    return last;
  }
  __device__ __forceinline__ bool holds_last_cell() const {
    return band.fits && band.is_block_of_last_row(band.groups - 1);
  }
  // (*), by the lanes of the upper side.
  __device__ __forceinline__ double meeting(const double* upper, const double* lower) const {
    if (whole.n == 1) return upper[whole.m - 1 - band.extent.low];
    const double penalty = static_cast<double>(static_cast<float>(problem.penalty_of(pair)));
    const double outside = INFINITY;
    double best = INFINITY;
    for (int k = band.lane; k < band.width; k += band.lanes) {
      const double down = k > 0 ? lower[band.width - k] : outside;
      best = lesser(best, upper[k] + lesser(lower[band.width - 1 - k], down + penalty));
    }
    for (int distance = band.lanes / 2; distance > 0; distance /= 2)
      best = lesser(best, __shfl_xor_sync(kAllLanes, best, distance));
    return best;
  }
};

}  // namespace softdtw
