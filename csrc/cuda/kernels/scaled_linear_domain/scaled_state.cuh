// A lane's entries in the scaled linear domain, and a step of its sweep: with care, where lanes enter the table, where the pair ends and
// where costs are deep, or plain, of a whole chunk in one unit.
#pragma once

#include "scaled_group.cuh"

namespace softdtw {

template <int kRows>
struct ScaledState {
  static constexpr int kLeastWord = (kScaledLeast + kBias) << 20, kNotFinite = 0x7ff00000;
  double left[kRows];  // the lane's rows at the column that it has just left
  double diag;         // the row above them, one column before
  double factor;       // from the unit of the lane above to its own
  int reference;
  int handed;  // upper word of the least entry that was handed down since the lane was renewed
  bool is_exact;

  // Before a strip's first chunk. `top`: the reference of all lanes.
  __device__ __forceinline__ void start(bool is_first, int top) {
#pragma unroll
    for (int k = 0; k < kRows; ++k) left[k] = 0;
    diag = is_first ? power_of_two(kScaledTop) : 0;
    factor = 1;
    reference = top;
    handed = kNotFinite;
    is_exact = true;
  }
  // A column with the weights of y. `edge`: what the first lane has above it.
  template <bool kIsDeep, class Group>
  __device__ __forceinline__ void step(const Group& group, const float (&y)[Group::kDims], double edge) {
    double up = group.from_above(left[kRows - 1]) * factor;
    if (group.is_first_lane()) up = edge;
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
  }
  // Brings the lane's largest entry to 2^kScaledTop. `counts`: whether all its rows are in the table.
  template <class Group>
  __device__ __forceinline__ void renew(const Group& group, bool counts) {
    int most = __double2hiint(diag), least = __double2hiint(left[0]);
    most = max(most, least);
#pragma unroll
    for (int k = 1; k < kRows; ++k) {
      most = max(most, __double2hiint(left[k]));
      least = min(least, __double2hiint(left[k]));
    }
    const int by = kScaledTop - exponent_of(most);
    const bool is_empty = most == 0;
    least = min(min(least, handed), least + min(by, 0) * (1 << 20));
    is_exact = is_exact && (!counts || (least >= kLeastWord && most < kNotFinite));
    if (!is_empty) {
      const double power = power_of_two(by);
#pragma unroll
      for (int k = 0; k < kRows; ++k) left[k] *= power;
      diag *= power;
      reference += by;
    }
    handed = kNotFinite;
    const int above = group.from_above(reference);
    if (is_empty) reference = above;
    set_factor(group, above);
    is_exact = is_exact && (!counts || group.is_first_lane() || reference - above >= -kFarthestReferences);
  }
  // Nothing comes to lanes below the table.
  template <class Group>
  __device__ __forceinline__ void set_factor(const Group& group, int above) {
    factor = group.has_rows() ? power_of_two(reference - above) : 0;
  }
  // With care: in step t. The lane is renewed.
  template <class Group>
  __device__ __forceinline__ void careful_step(const Group& group, int t) {
    float y[Group::kDims];
    group.column_at(t, y);
    step<true>(group, y, group.memory.raw_edge[group.group][t].in(reference));
  }
  template <class Group>
  __device__ __forceinline__ void renew_after(const Group& group, int t) {
    const int column = group.first_column() + t;
    renew(group, group.has_rows() && column >= 0 && column < group.extent.m);
  }
  // Without, in the unit that the lane has had since the chunk's start.
  template <class Group>
  __device__ __forceinline__ void plain_step(const Group& group, int t) {
    float y[Group::kDims];
    group.column_at(t, y);
    step<false>(group, y, group.memory.edge[group.group][t]);
  }
  template <class Group>
  __device__ __forceinline__ void keep(const Group& group, bool needs_care, int* words) const {
    using Numbers = LinearNumbers<float>;
#pragma unroll
    for (int k = 0; k < kRows; ++k) words[k * group.lanes + group.lane] = Numbers::word(left[k]);
    words[kRows * group.lanes + group.lane] = Numbers::word(diag);
    words[(kRows + 1) * group.lanes + group.lane] = reference * 2 + (needs_care ? 1 : 0);
  }
  template <class Group>
  __device__ __forceinline__ void take(const Group& group, const ScaledSnapshot<kRows>& snapshot) {
    using Numbers = LinearNumbers<float>;
#pragma unroll
    for (int k = 0; k < kRows; ++k) left[k] = Numbers::of_word(snapshot.words[k]);
    diag = Numbers::of_word(snapshot.words[kRows]);
    reference = snapshot.reference();
    handed = kNotFinite;
    is_exact = true;
    set_factor(group, group.from_above(reference));
  }
};

}  // namespace softdtw
