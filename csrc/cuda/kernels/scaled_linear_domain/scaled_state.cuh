// A lane's entries in the scaled linear domain, and a step of its sweep: with care, where lanes enter the table, where the pair ends and
// where costs are deep, or plain, of a whole chunk in one unit.
#pragma once

#include "scaled_group.cuh"

namespace softdtw {

template <int kRows>
struct ScaledState {
  static constexpr int kLeastWord = (kScaledLeast + kBias) << 20, kNotFinite = 0x7ff00000;
  static constexpr int kMostRise = 100;  // above the reference of the lane above
  static constexpr int kLostApart = 64;  // binary orders
  double left[kRows];                    // the lane's rows at the column that it has just left
  double diag;                           // the row above them, one column before
  double factor;                         // from the unit of the lane above to its own
  int reference;
  int handed,
      risen;  // upper words since the lane was renewed: the least entry that it handed down, a bound on what came to lost rows
  int lost;            // rows, the lane's first ones, that are upper bounds
  bool is_above_lost;  // whether the row above them is one, too
  bool is_exact;

  // Before a strip's first chunk. `top`: the reference of all lanes.
  __device__ __forceinline__ void start(bool is_first, int top) {
#pragma unroll
    for (int k = 0; k < kRows; ++k) left[k] = 0;
    diag = is_first ? power_of_two(kScaledTop) : 0;
    factor = 1;
    risen = 0;
    reference = top;
    handed = kNotFinite;
    lost = 0;
    is_above_lost = false;
    is_exact = true;
  }
  // A column with the weights of y. `up`: what the lane has above it there.
  template <bool kIsDeep, class Group>
  __device__ __forceinline__ void step(const Group& group, const float (&y)[Group::kDims], double up) {
    double upper_left = diag;
    diag = up;
    ScaledWeight<kIsDeep> weights[kRows];
#pragma unroll
    for (int k = 0; k < kRows; ++k) weights[k] = group.template weight<kIsDeep>(k, y);
#pragma unroll
    for (int k = 0; k < kRows; ++k) {
      const double weight = weights[k].get(group.penalty);
      const double others = fma(upper_left, group.penalty.diagonal(), left[k]);
      upper_left = left[k];
      left[k] = up = weight * (others + up);
    }
    handed = min(handed, __double2hiint(left[kRows - 1]));
    if (!kIsDeep) risen = max(risen, __double2hiint(diag));
  }
  // Brings the lane's largest entry to 2^kScaledTop. `counts`: whether all its rows are in the table. kMayLose: this is the case
  // after every step, and rows may be lost.
  template <bool kMayLose, class Group>
  __device__ __forceinline__ void renew(const Group& group, bool counts) {
    int most = __double2hiint(diag), least = kNotFinite;
#pragma unroll
    for (int k = 0; k < kRows; ++k) {
      most = max(most, __double2hiint(left[k]));
      if (kMayLose || k >= lost) least = min(least, __double2hiint(left[k]));
    }
    const int by = kScaledTop - exponent_of(most);
    if (!kMayLose) least = min(least, handed);
    least += min(by, 0) * (1 << 20);
    const bool is_low = counts && least < kLeastWord;
    is_exact = is_exact && (!counts || most < kNotFinite);
    if (!kMayLose) {
      // No more than `risen` has come down from lost rows in any step, and it has not grown.
      const int apart = (kLostApart + 8 + static_cast<int>(group.penalty.of_cell())) << 20;
      is_exact = is_exact && !is_low && !(counts && lost > 0 && least < risen + apart);
    }
    const bool looks = kMayLose && __any_sync(kAllLanes, is_low || (counts && (lost > 0 || is_above_lost)));
    if (looks && counts) raise();
    if (most != 0) {
      const double power = power_of_two(by);
#pragma unroll
      for (int k = 0; k < kRows; ++k) left[k] *= power;
      diag *= power;
      reference += by;
    }
    if (looks && counts) {
      raise();
      find_lost(static_cast<int>(group.penalty.of_cell()));
    } else if (!kMayLose && lost > 0) {
      raise();
    }
    handed = kNotFinite;
  }
  // Rows below the least that a lane holds become upper bounds.
  __device__ __forceinline__ void raise() {
#pragma unroll
    for (int k = 0; k < kRows; ++k)
      if (!(__double2hiint(left[k]) >= kLeastWord)) {
        left[k] = power_of_two(kScaledLeast);
        lost = max(lost, k + 1);
      }
  }
  // And with them rows that are not far enough above those for it to be nothing that comes down from them.
  __device__ __forceinline__ void find_lost(int penalty) {
    const int apart = (kLostApart + penalty) << 20;
    int bound = is_above_lost ? __double2hiint(diag) : 0;
#pragma unroll
    for (int k = 0; k < kRows; ++k)
      if (k < lost) bound = max(bound, __double2hiint(left[k]));
#pragma unroll
    for (int k = 0; k < kRows; ++k)
      if (k >= lost && (lost > 0 || is_above_lost) && __double2hiint(left[k]) < bound + apart) {
        lost = k + 1;
        bound = max(bound, __double2hiint(left[k]));
      }
    is_exact = is_exact && lost < kRows;
  }
  // Before a step, or a chunk of plain ones: lanes that are to enter the table take over the reference of the lane above, and where far
  // better entries come from there a lane goes to a lower one. At first there may be only one column to come from, and then there are two.
  // What a lane's own entries lose by that is nothing to those that come after them. Returns the reference of the lane above.
  template <class Group>
  __device__ __forceinline__ int meet(const Group& group, const ScaledNumber& edge) {
    int most = __double2hiint(diag);
#pragma unroll
    for (int k = 0; k < kRows; ++k) most = max(most, __double2hiint(left[k]));
    int above = group.from_above(reference);
    if (group.is_first_lane()) above = edge.s == 0 ? reference : edge.m + kScaledTop;
    const int by = most == 0 ? 0 : min(above + kMostRise - reference, 0);
    if (__any_sync(kAllLanes, by < 0)) {
      const double power = power_of_two(by);
      diag *= power;
#pragma unroll
      for (int k = 0; k < kRows; ++k) left[k] *= power;
    }
    reference = most == 0 ? above : reference + by;
    return above;
  }
  // From the unit of the lane above to its own; nothing comes to lanes below the table. Returns whether that is no more than a bound.
  template <class Group>
  __device__ __forceinline__ bool set_factor(const Group& group, int above) {
    const int by = max(reference - above, -kFarthestReferences);
    factor = group.has_rows() ? power_of_two(by) : 0;
    return by > reference - above && !group.is_first_lane();
  }
  // With care: step t. The lane above hands down what it has before it goes to another reference.
  template <class Group>
  __device__ __forceinline__ void careful_step(const Group& group, int t) {
    float y[Group::kDims];
    group.column_at(t, y);
    const ScaledNumber edge = group.memory.raw_edge[group.group][t];
    const double from_above = group.from_above(left[kRows - 1]);
    is_above_lost = set_factor(group, meet(group, edge));
    step<true>(group, y, group.is_first_lane() ? edge.in(reference) : from_above * factor);
  }
  template <class Group>
  __device__ __forceinline__ void renew_after(const Group& group, int t) {
    const int column = group.first_column() + t;
    renew<true>(group, group.has_rows() && column >= 0 && column < group.extent.m);
  }
  // Without: before a chunk's steps, and one of them, in the unit that the lane has then.
  template <class Group>
  __device__ __forceinline__ void start_plain(Group& group) {
    meet(group, group.memory.raw_edge[group.group][0]);
    handed = __double2hiint(left[kRows - 1]);
    risen = __double2hiint(diag);
#pragma unroll
    for (int k = 0; k < kRows; ++k)
      if (k < lost) risen = max(risen, __double2hiint(left[k]));
    const bool is_bound = set_factor(group, group.from_above(reference));
    is_exact = is_exact && !(is_bound && group.has_rows());
    group.bring_edge(group.of_lane(reference, 0));
    __syncwarp();
  }
  template <class Group>
  __device__ __forceinline__ void plain_step(const Group& group, int t) {
    float y[Group::kDims];
    group.column_at(t, y);
    const double from_above = group.from_above(left[kRows - 1]) * factor;
    step<false>(group, y, group.is_first_lane() ? group.memory.edge[group.group][t] : from_above);
  }
  template <class Group>
  __device__ __forceinline__ void keep(const Group& group, int* words) const {
    using Numbers = LinearNumbers<float>;
#pragma unroll
    for (int k = 0; k < kRows; ++k) words[k * group.lanes + group.lane] = Numbers::word(left[k]);
    words[kRows * group.lanes + group.lane] = Numbers::word(diag);
  }
  // And how the chunk was swept from there on.
  template <class Group>
  __device__ __forceinline__ static void keep_reference(const Group& group, int reference, bool needs_care, int* words) {
    words[(kRows + 1) * group.lanes + group.lane] = reference * 2 + (needs_care ? 1 : 0);
  }
  // To shared memory, and from there again.
  using Spare = double[kRows + 1][kWarp];
  __device__ __forceinline__ void put_aside(Spare& spare) const {
#pragma unroll
    for (int k = 0; k < kRows; ++k) spare[k][threadIdx.x] = left[k];
    spare[kRows][threadIdx.x] = diag;
  }
  __device__ __forceinline__ void take_again(const Spare& spare, int reference_, int lost_) {
#pragma unroll
    for (int k = 0; k < kRows; ++k) left[k] = spare[k][threadIdx.x];
    diag = spare[kRows][threadIdx.x];
    reference = reference_;
    handed = kNotFinite;
    lost = lost_;
    is_above_lost = false;
    is_exact = true;
  }
  __device__ __forceinline__ void take(const ScaledSnapshot<kRows>& snapshot) {
    using Numbers = LinearNumbers<float>;
#pragma unroll
    for (int k = 0; k < kRows; ++k) left[k] = Numbers::of_word(snapshot.words[k]);
    diag = Numbers::of_word(snapshot.words[kRows]);
    reference = snapshot.reference();
    handed = kNotFinite;
    lost = 0;
    is_above_lost = false;
    is_exact = true;
    factor = 0;
    risen = 0;
  }
};

}  // namespace softdtw
