// Ready-made costs in forward: those of half a chunk come in while the other half is swept.
#pragma once

#include "matrix_group.cuh"

namespace softdtw {

template <int kRows, class Penalty, bool kHasBand>
struct MatrixForwardGroup : MatrixGroup<kRows, Penalty, kHasBand> {
  using Base = MatrixGroup<kRows, Penalty, kHasBand>;
  using Memory = typename Base::Memory;
  static constexpr int kHalf = Base::kSteps / 2;
  // A matrix is looked at cell by cell, while it is swept.
  struct Reach {
    __device__ __forceinline__ void look_at(const MatrixForwardGroup&) {}
    __device__ __forceinline__ static bool holds(const MatrixForwardGroup&) { return true; }
  };
  using Base::chunk;
  using Base::memory;
  const float most;   // that a cost may be, in size and in exponents of 2
  float largest = 0;  // of costs as they come, NaN if one is

  __device__ MatrixForwardGroup(const Problem<float>& problem_, bool, int lanes_, Memory& memory_, int64_t own, bool wanted)
      : Base(problem_, lanes_, memory_, own, wanted), most(this->penalty.room(Base::kDeepest)) {}
  // Before a strip's first chunk. In the last strip there are rows that are to stay 0.
  __device__ __forceinline__ void fetch_all(int chunk_, const EdgeEntry* line, bool has_line) {
    memory.costs.clear(max(this->extent.n - (this->strip * this->lanes + this->lane) * kRows, 0));
    this->template fetch_costs<kHalf>(chunk_, 0);
    this->fetch_edge(chunk_, line, has_line);
  }
  __device__ __forceinline__ void fetch_next(int chunk_, const EdgeEntry* line, bool has_line) const {
    this->fetch_edge(chunk_, line, has_line);
  }
  // At the beginning of a chunk, and half way.
  __device__ __forceinline__ void fetch_other_half(bool wanted) const {
    if (!wanted) return;
    this->template fetch_costs<kHalf>(chunk, kHalf);
    __pipeline_commit();
  }
  __device__ __forceinline__ void fetch_half_of_next(bool wanted) const {
    __pipeline_wait_prior(0);
    __syncwarp();
    if (!wanted) return;
    this->template fetch_costs<kHalf>(chunk + 1, 0);
    __pipeline_commit();
  }
  __device__ __forceinline__ typename Base::Column at_step(int t) {
    const auto costs = memory.costs.at_step(t);
#pragma unroll
    for (int k = 0; k < kRows; ++k) largest = greater(largest, fabsf(costs.at[k]));
    return costs;
  }
  __device__ __forceinline__ bool had_costs_in_range() const { return largest * this->factor <= most; }
};

}  // namespace softdtw
