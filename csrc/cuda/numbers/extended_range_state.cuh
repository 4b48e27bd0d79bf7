// The extended range's state between chunks, narrow or wide, and the sweep of a chunk with the width that it needs.
#pragma once

#include <type_traits>

#include "cuda/costs/exact_costs.cuh"
#include "cuda/costs/tile.cuh"
#include "cuda/strips/strip_memory.cuh"
#include "extended_range.cuh"

namespace softdtw {

// A lane's entries and reference between chunks, m narrow (T) or wide (float64), the same in the whole warp.
template <class S>
struct ExtendedState {
  using T = typename S::Scalar;
  static constexpr bool kWideExists = sizeof(T) == 4;
  Lane<S, T> narrow;
  Lane<S, double> wide;
  double reference = -floor_of_m<S>();
  bool is_wide = false;

  // What the general sweep works on.
  __device__ __forceinline__ auto& general() {
    if constexpr (kWideExists)
      return wide;
    else
      return narrow;
  }
  __device__ __forceinline__ void start(bool holds_corner) {
#pragma unroll
    for (int i = 0; i <= S::kRows; ++i) narrow.at(i) = {nowhere<S>(), T(1)};
    if (holds_corner) narrow.diag.m = floor_of_m<S>();  // R[0,0] = 0
    reference = -floor_of_m<S>();
    is_wide = false;
  }
  __device__ __forceinline__ void renew(int lane, double top_reference) {
    if (kWideExists && is_wide)
      softdtw::renew(wide, reference, lane, top_reference);
    else
      softdtw::renew(narrow, reference, lane, top_reference);
  }
  __device__ __forceinline__ void lower(int lane, const ExtendedTop<S>& top) {
    softdtw::lower(general(), reference, lane, top);
  }
  // Whether the lane's entries, and what they may grow by in a stage, fit the narrow type.
  __device__ __forceinline__ bool fits() const {
    return !kWideExists || (is_wide ? is_narrow<S>(wide) : is_narrow<S>(narrow));
  }
  // Brings m to the width that the whole warp needs.
  __device__ __forceinline__ void become(bool wanted_wide) {
    if constexpr (kWideExists) {
      if (__builtin_expect(is_wide == wanted_wide, 1)) return;
      if (wanted_wide)
        wide = convert<S, double>(narrow);
      else
        narrow = convert<S, T>(wide);
      is_wide = wanted_wide;
    }
  }
  __device__ __forceinline__ void store(char* memory, int lane) const {
    if (kWideExists && is_wide)
      store(wide, memory, lane);
    else
      store(narrow, memory, lane);
  }
  __device__ __forceinline__ void load(const char* memory, int lane) {
    Snapshot<S> snapshot;
    snapshot.load(memory, lane, floor_of_m<S>());
    is_wide = kWideExists;
#pragma unroll
    for (int i = 0; i <= S::kRows; ++i) general().at(i) = {snapshot.m[i], snapshot.s[i]};
    reference = snapshot.reference;
  }

 private:
  template <typename M>
  __device__ __forceinline__ void store(const Lane<S, M>& state, char* memory, int lane) const {
    Entry<T, M> entries[S::kRows + 1];
#pragma unroll
    for (int i = 0; i <= S::kRows; ++i) entries[i] = state.at(i);
    Snapshot<S>::store(memory, lane, entries, reference);
  }
};

// What references of the row above exceed the lane's own by. Where there is no such row any number will do.
template <class S>
__device__ __forceinline__ double above_of(const ExtendedTop<S>& top, const ExtendedState<S>& state, int lane) {
  const double above = __shfl_up_sync(kAllLanes, state.reference, 1);
  return lane == 0 && !top.exists ? 0 : (lane == 0 ? top.reference : above) - state.reference;
}

// What the plain sweep adds to m of the row above: of the lane above it is the same until references change.
template <class S>
__device__ __forceinline__ typename S::Scalar shift_of_lane_above(const ExtendedState<S>& state) {
  return shift_of<S>(__shfl_up_sync(kAllLanes, state.reference, 1) - state.reference);
}
template <class S>
__device__ __forceinline__ typename S::Scalar shift_of(
    const ExtendedTop<S>& top, const ExtendedState<S>& state, int lane, typename S::Scalar of_lane_above) {
  return lane > 0 ? of_lane_above : top.exists ? shift_of<S>(top.reference - state.reference) : 0;
}

// A pair's value, from its last entry.
template <typename T, typename Fraction>
__device__ __forceinline__ void store_value(
    const Problem<T>& problem, int64_t pair, double reference, double m, Fraction s, T* value) {
  const double scale = static_cast<T>(problem.scale_of(pair));
  const double unit = scale > 0 && scale < INFINITY ? 1 / scale : problem.gamma_of(pair) * kLn2;
  const double result = (reference + m - log2(static_cast<double>(s))) * unit;
  value[pair] = is_unreachable(m) && s == s ? T(INFINITY) : static_cast<T>(result);
}

// The recurrences of the two widths of m.
template <class S>
struct Recurrences {
  using T = typename S::Scalar;
  using Plain = SoftDtw<T, T, DeviceMath, false>;
  using General = SoftDtw<T, double, DeviceMath, true>;
  Plain plain;
  General general;
  bool has_penalty;

  __device__ Recurrences(const Problem<T>& problem, int64_t pair) {
    const T scale = static_cast<T>(problem.scale_of(pair));
    const double warp_penalty = problem.penalty_of(pair);
    // The same rounded number in both: gamma may be off by a rounding, but the costs of one pair must be in one unit.
    general.scale = plain.scale = scale;
    const Entry<double> penalty = SoftDtw<double, double, DeviceMath, true>::split(warp_penalty * scale, 1.0);
    general.penalty = {penalty.m, static_cast<T>(penalty.s)};
    has_penalty = warp_penalty != 0;
  }
  // What differs where the penalty is paid by cells (PenalisedRecurrences): a cell of the general sweep, what the cost of a cell
  // adds to m at most, and a cell's reference without what m has too much.
  template <class Cell>
  __device__ __forceinline__ static Cell charged(Cell cell) {
    return cell;
  }
  __device__ __forceinline__ T rise(T reach) const { return reach * plain.scale; }
  // Whether costs of up to `reach` may be so large that they are to be computed in float64, in the general sweep.
  __device__ __forceinline__ bool need_exact_costs(T reach) const {
    return sizeof(T) == 4 && !(reach * plain.scale < kMostRounded);
  }
  __device__ __forceinline__ static double uncharged(double reference, int, int) { return reference; }
};

// The warp penalty, without an instruction more in a sweep.
//
// A path to cell (i, j), counted from 1, has L cells and so 2 L - (i + j) steps up or left. So (1) with a penalty p is (1) without one
// where every cell costs 2 p more, but for p (i + j): the same for every path, it changes no share of E, and is taken off the
// pair's value. 2 p adds to m and multiplies s as costs do, wherever they are split.
//
// m rises by 2 p a cell then. Where that is more than float32 holds for long, steps pay the penalty themselves, in the general sweep.
template <class S>
struct PenalisedRecurrences : Recurrences<S> {
  using T = typename S::Scalar;
  static constexpr double kMostOfCell = kMostRounded / 2;  // as is_exact() counts on
  Entry<T> of_cell = {0, 1};

  __device__ PenalisedRecurrences(const Problem<T>& problem, int64_t pair) : Recurrences<S>(problem, pair) {
    const double penalty = 2 * problem.penalty_of(pair) * static_cast<double>(this->plain.scale);
    if (!(penalty <= kMostOfCell)) return;
    const double whole = rint(penalty);
    of_cell = {static_cast<T>(whole), static_cast<T>(exp2(whole - penalty))};
    this->general.penalty = {0, 1};
    this->has_penalty = false;
  }
  __device__ __forceinline__ bool charges() const { return of_cell.m != T(0) || of_cell.s != T(1); }
  template <class Cell>
  __device__ __forceinline__ Cell charged(Cell cell) const {
    return {cell.m + of_cell.m, cell.s * of_cell.s};
  }
  __device__ __forceinline__ T rise(T reach) const { return DeviceMath<T>::fma(reach, this->plain.scale, of_cell.m + 1); }
  // Whole numbers first, which are exact.
  __device__ double uncharged(double reference, int row, int column) const {
    const double half = (static_cast<double>(row) + column + 2) / 2;
    return reference - static_cast<double>(of_cell.m) * half + log2(static_cast<double>(of_cell.s)) * half;
  }
};

// Which sweep the chunks of a stage need: decided chunk by chunk, since a stage only gets wider.
template <class S>
struct Width {
  using T = typename S::Scalar;
  static constexpr T kLimit = Whole<T>::limit / 2;
  bool fits = false;
  T spent = 0;  // a bound on what the costs so far have added to m

  __device__ __forceinline__ void start(const ExtendedState<S>& state) {
    fits = state.fits();
    spent = 0;
  }
  // Counts a chunk, from what m may rise by in it.
  __device__ __forceinline__ void spend(T rise, T shift, bool top_is_wide) {
    spent += rise;
    fits = fits && spent < kLimit && shift > -kLimit && !top_is_wide;
  }
  // Whether the reference is to be renewed: while it is not, the lane's smallest m stays below half of the limit, so that what
  // shift_of() leaves out of the row above is small next to it.
  __device__ __forceinline__ bool is_spent(const Lane<S, T>& state) const {
    T lowest = state.diag.m;
#pragma unroll
    for (int k = 0; k < S::kRows; ++k) lowest = DeviceMath<T>::min(lowest, state.left[k].m);
    const bool is_near = DeviceMath<T>::abs(lowest - floor_of_m<S>()) < kLimit / 8 || lowest >= nowhere<S>() / 2;
    return !(fits && spent < kLimit / 4 && is_near);
  }
  // True if the coming chunk may take the plain sweep, to which the state is brought.
  template <class Own>
  __device__ __forceinline__ bool plain(
      const Own& recurrences, const ExtendedTop<S>& top, T shift, T reach, bool may_be, ExtendedState<S>& state) {
    if (!ExtendedState<S>::kWideExists)
      return __all_sync(kAllLanes, may_be && reach * recurrences.plain.scale < Whole<T>::limit / 16);
    return plain(rise_of(recurrences, reach, may_be), shift, top.wide, state);
  }
  // The same for float32, from what m may rise by in the chunk.
  __device__ __forceinline__ bool plain(T rise, T shift, bool top_is_wide, ExtendedState<S>& state) {
    spend(rise, shift, top_is_wide);
    const bool narrow = __all_sync(kAllLanes, fits);
    state.become(!narrow);
    return narrow;
  }
  template <class Own>
  __device__ __forceinline__ static T rise_of(const Own& recurrences, T reach, bool may_be) {
    return may_be && !recurrences.need_exact_costs(reach) ? recurrences.rise(reach) * (S::kRows + S::kSteps) : T(INFINITY);
  }
};

// Calls sweep(cost) for the general sweep of a chunk, `cost(k, t)` being a cell's cost, of a step t that is known at run time only: computed in
// float64, where the tile of any lane needs it.
template <class S, class Own, class Tile, class Sweep>
__device__ __forceinline__ void with_general_costs(
    const Problem<typename S::Scalar>& problem, const Extent& extent, int64_t pair, const Place<S>& place,
    const Own& recurrences, const Tile& tile, Sweep&& sweep) {
  double costs[S::kRows * S::kSteps];
  constexpr bool kMayBeExact = sizeof(typename S::Scalar) == 4 && !kIsOfMatrix<Tile>;
  bool are_exact = false;
  if constexpr (kMayBeExact) {
    are_exact = problem.cost != Cost::kMatrix && __any_sync(kAllLanes, recurrences.need_exact_costs(tile.reach));
    if (are_exact) {
      if constexpr (Tile::kUnivariate)
        for_each_cell<S>([&](int k, int t) { costs[k * S::kSteps + t] = tile.exact_cost(k, t); });
      else if constexpr (kHasExactCosts<Tile>)
        tile.exact_costs(problem, place, costs);
      else
        exact_costs<S>(problem, problem.x.pair(pair), problem.y.pair(pair), extent, place.row, place.column, costs);
    }
  }
  const double* const known = costs;
  const auto cost = [known](int k, int t) { return known[k * S::kSteps + t]; };
  if constexpr (std::is_floating_point_v<decltype(tile.cost(0, 0))>) {
    if (!are_exact) for_each_cell<S>([&](int k, int t) { costs[k * S::kSteps + t] = tile.cost(k, t); });
    sweep(cost);
  } else {
    if constexpr (kMayBeExact)
      if (are_exact) return sweep(cost);
    decltype(tile.cost(0, 0)) split[S::kRows * S::kSteps];
    for_each_cell<S>([&](int k, int t) { split[k * S::kSteps + t] = tile.cost(k, t); });
    sweep([&](int k, int t) { return split[k * S::kSteps + t]; });
  }
}

// The plain sweep, `sweep(state)`, over a chunk. False if that turns out not to be exact: then the state is as before, and wide.
template <bool kByBits, class S, class Sweep>
__device__ __forceinline__ bool sweep_plain(Width<S>& width, ExtendedState<S>& state, Sweep&& sweep) {
  const auto before = state.narrow;
  sweep(state.narrow);
  if (__all_sync(kAllLanes, is_exact<kByBits>(state.narrow))) {
    normalise(state.narrow);
    return true;
  }
  state.narrow = before;
  state.become(true);
  width.fits = false;
  return false;
}

// An entry of the row above a strip, whichever sweep has left it.
template <class S>
__device__ __forceinline__ Entry<typename S::Scalar, double> top_entry(const ExtendedTop<S>& top, int t) {
  using T = typename S::Scalar;
  const T m = pick(top.m, t), s = pick(top.s, t);
  const PackedEntry packed = {__float_as_uint(static_cast<float>(m)), __float_as_uint(static_cast<float>(s))};
  if (top.wide) return {packed.m(), static_cast<T>(packed.s())};
  return {convert_m<double>(m), s};
}

// The general sweep over a chunk, for cells outside the table, too: in a loop, to be small, since few chunks need it. It may lower
// references first, so they are to be handed on behind it; `of_lane_above` is then another one. `visit` and `column` are those of
// sweep_extended().
template <class S, class Where, class Visit, class Column>
__device__ __forceinline__ void sweep_general(
    const Extent& extent, const Where& place, int lane, const ExtendedTop<S>& top, typename S::Scalar& of_lane_above,
    ExtendedState<S>& state, Visit&& visit, Column&& column) {
  double above = above_of(top, state, lane);
  if (__builtin_expect(__any_sync(kAllLanes, above < -kFarAbove<S>), 0)) {
    state.lower(lane, top);
    above = above_of(top, state, lane);
    of_lane_above = shift_of_lane_above(state);
  }
  auto& entries = state.general();
  using Cell = Entry<typename S::Scalar, double>;
  constexpr int kCellsAtOnce = 4;  // so that costs of the next ones are split meanwhile
#pragma unroll(kCellsAtOnce / S::kRows)
  for (int t = 0; t < S::kSteps; ++t) {
    const Cell bottom = entries.left[S::kRows - 1];
    Cell up = {__shfl_up_sync(kAllLanes, bottom.m, 1), __shfl_up_sync(kAllLanes, bottom.s, 1)};
    if (lane == 0) up = top_entry(top, t);
    up.m += above;
    Cell diag = entries.diag;
    entries.diag = up;
#pragma unroll
    for (int k = 0; k < S::kRows; ++k) {
      const Cell left = entries.left[k];
      up = visit(k, t, diag, up, left);
      if (!place.holds(extent, k, t)) up = {Unreachable<double>::value, 1};
      entries.left[k] = up;
      diag = left;
    }
    column(t, bottom);
  }
  normalise(entries);
}

}  // namespace softdtw
