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
#include "cuda/kernels/banded/ring_band.cuh"
#include "cuda/select/hard.h"
#include "ring_steps.cuh"

namespace softdtw {

// What a cell adds to the best of its predecessors. Squared differences: a multiplication and an addition are one.
struct HardSquared {
  __device__ explicit HardSquared(Cost) {}
  __device__ __forceinline__ static float add(float u, float best) { return fmaf(u, u, best); }
};
// Every cost of a difference u: d (|u| - h d), where d is 1 (cityblock, and of one dimension euclidean) or |u| up to a corner.
struct HardAnyCost {
  float steepness, corner, half;

  __device__ explicit HardAnyCost(Cost cost)
      : steepness(cost == Cost::kSqEuclidean || cost == Cost::kHuber ? 1 : 0),
        corner(cost == Cost::kSqEuclidean ? INFINITY : 1),
        half(cost == Cost::kHuber ? 0.5f : 0) {}
  __device__ __forceinline__ float add(float u, float best) const {
    const float size = fabsf(u), d = steepness != 0 ? fminf(size, corner) : 1;
    return best + d * fmaf(-half, d, size);
  }
};

struct HardRingLayout : RingLayout {
  bool has_two_sides;

  // x_rows, y_columns: the most that a side has.
  __host__ HardRingLayout(int x_rows, int y_columns, const HardRing& ring)
      : RingLayout(x_rows, y_columns, ring.of_side), has_two_sides(ring.sides == 2) {}
  // Of shared memory, for the rows that meet: a number for every column that the ring holds.
  __host__ __device__ int columns_that_meet() const { return has_two_sides ? lanes * (rows + 1) : 0; }
  __host__ int64_t bytes() const {
    return pairs() * (1 + has_two_sides) * (columns_that_meet() * sizeof(double) + floats_of_pair() * sizeof(float));
  }
};

// Rows of a pair's upper side; the lower one has the others. A pair of one row has no lower side.
__host__ __device__ inline int upper_rows(int n) { return (n + 1) / 2; }

// A lane's entries between two columns. Steps: what it notes of its cells (ring_steps.cuh).
template <int kRows, class CellCost, bool kPenalty, class Steps>
struct HardRingCells {
  using Band = RingBand<kRows>;
  float left[kRows];  // its rows at the column it has just left; infinity outside the band
  float diag;         // the row above them, one column before
  float penalty;
  double reference;
  CellCost cost;
  Steps steps;

  __device__ __forceinline__ HardRingCells(const Band&, const ColumnsAhead<float, 1>&) : cost(Cost::kSqEuclidean) {}
  __device__ __forceinline__ void start(const Problem<float>& problem, int64_t pair) {
#pragma unroll
    for (int k = 0; k < kRows; ++k) left[k] = INFINITY;
    diag = INFINITY;
    penalty = static_cast<float>(problem.penalty_of(pair));
    reference = 0;
    cost = CellCost(problem.cost);
  }
  __device__ __forceinline__ void enter(const Band&) { diag = 0; }
  __device__ __forceinline__ void step(const Band& band, int from, unsigned mask, const ColumnsAhead<float, 1>& columns) {
    float up = __shfl_sync(kAllLanes, left[kRows - 1], from);
    float upper_left = diag;
    diag = up;
#pragma unroll
    for (int k = 0; k < kRows; ++k) {
      // As in hard_strip.cuh: what comes from the column before is off the chain that runs down the rows.
      const float others = lesser(upper_left, kPenalty ? left[k] + penalty : left[k]);
      const float best = lesser(kPenalty ? up + penalty : up, others);
      steps.note(k, best, upper_left, up, left[k]);
      const float difference = Band::is_inside(mask, k) ? band.x[k] - columns.now : INFINITY;
      upper_left = left[k];
      left[k] = up = cost.add(difference, best);
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
template <int kRows, class CellCost, bool kPenalty, bool kTwoSides, class Steps = NoSteps>
class HardRingSide {
  using Band = RingBand<kRows>;
  static constexpr int kGroupsBetweenRenewals = (kWarp + Band::kGroup - 1) / Band::kGroup;
  const Problem<float>& problem;
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
  Band band;

  __device__ HardRingSide(
      const Problem<float>& problem_, const RingLayout& layout, int64_t pair_, bool is_wanted, bool is_lower_)
      : problem(problem_),
        whole(problem.extent(pair_)),
        pair(pair_),
        is_lower(is_lower_),
        band(layout, extent_of_side(whole, is_lower), end_column(extent_of_side(whole, is_lower)), is_wanted) {}
  __device__ __forceinline__ bool is_whole_valid() const { return whole.valid(); }

  // `own`: shared memory for the pair's series.
  __device__ __forceinline__ void read_series(const RingLayout& layout, float* own) {
    const View<const float> x_view = problem.x.pair(pair), y_view = problem.y.pair(pair);
    const int64_t x_step = is_lower ? -x_view.row_stride : x_view.row_stride;
    const int64_t y_step = is_lower ? -y_view.row_stride : y_view.row_stride;
    const int first_row = is_lower && band.fits ? whole.n - 1 : 0, first_column = is_lower && band.fits ? whole.m - 1 : 0;
    const float* const x_line = x_view.data + first_row * x_view.row_stride;
    const float* const y_line = y_view.data + first_column * y_view.row_stride;
    const int last_row = band.fits ? band.extent.n - 1 : 0, last_column = band.fits ? band.extent.m - 1 : 0;
    // Rows and columns past the end, or before the start, repeat the last ones, or the first: no path comes from there.
    constexpr int kAtOnce = 16;
    for (int first = band.lane; first < max(layout.x_floats, layout.y_floats); first += kAtOnce * band.lanes) {
      float of_x[kAtOnce], of_y[kAtOnce];
#pragma unroll
      for (int i = 0; i < kAtOnce; ++i) {
        const int place = first + i * band.lanes;
        of_x[i] = x_line[min(place, last_row) * x_step];
        of_y[i] = y_line[min(max(place - layout.before(), 0), last_column) * y_step];
      }
#pragma unroll
      for (int i = 0; i < kAtOnce; ++i) {
        const int place = first + i * band.lanes;
        if (place < layout.x_floats) own[place] = of_x[i];
        if (place < layout.y_floats) own[layout.x_floats + place] = of_y[i];
      }
    }
    __syncwarp();
    band.find_series(layout, own);
  }
  // Returns the pair's last entry to the lane that holds it, else 0. Of a side instead: its last row goes to `meets`, by its places
  // in the band. `steps`: of the pair, where they are noted.
  __device__ __forceinline__ double sweep(double* meets, RowSteps* steps = nullptr) {
    band.take_rows(band.block(0));
    RingSweep<Band, HardRingCells<kRows, CellCost, kPenalty, Steps>> sweep(band, 0);
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
