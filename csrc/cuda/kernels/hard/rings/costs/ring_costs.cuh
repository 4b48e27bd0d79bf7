// Costs of a ring that come from other warps of its block (cost_warps.cuh): for few pairs of series of several dimensions, whose cells
// take a sweep longer than all else. Lanes and rows are those of any ring; a warp is one ring.
//
// Costs come a group of steps at a time, through a pipeline in shared memory.
#pragma once

#include "cuda/hardware/pipeline.cuh"
#include "cuda/kernels/hard/rings/ring_series.cuh"

namespace softdtw {

// Of a group: what the lanes meet in each step, four rows after four rows.
template <int kRows>
struct GroupOfCosts {
  float4 cells[kRows + 1][kRows / 4][kWarp];
};

// Shared memory of a block. Behind it are the vectors that costs are computed from (StageOfVectors).
template <int kRows>
struct alignas(16) RingCostMemory {
  Pipeline<GroupOfCosts<kRows>, kWarp, cost_ring_groups(kRows)> groups;
};

// The series of a side, of which the sweep sees costs alone (ring_series.cuh has what it asks for).
template <int kRows_>
struct HardCosts : RingBand<kRows_> {
  static constexpr int kRows = kRows_;
  using Band = RingBand<kRows>;
  using Memory = RingCostMemory<kRows>;
  static constexpr bool kIsOfVectors = true, kIsOfFewPairs = true;
  struct Columns {
    int step;  // of the group
  };
  struct Column {
    float costs[kRows];
  };
  static int floats_of(const RingLayout&) { return 0; }
  SideOfSeries of_x = SideOfSeries({}, false, 0, 0), of_y = of_x;
  const Cost cost;
  Memory* memory = nullptr;

  __device__ HardCosts(
      const Problem<float>& problem, int64_t, const RingLayout& layout, const Extent& extent, int end_column, bool wanted)
      : Band(layout, extent, end_column, wanted), cost(problem.cost) {}

  __device__ __forceinline__ void read(
      const Problem<float>& problem, const SideOfPair& side, const RingLayout&, float* own) {
    of_x = side.x(problem), of_y = side.y(problem);
    memory = reinterpret_cast<Memory*>(own);
  }
  __device__ __forceinline__ static float start() { return 0; }
  __device__ __forceinline__ Columns columns(int) const { return {0}; }
  __device__ __forceinline__ void turn(int i, Columns& columns_) {
    if (i > 0) memory->groups.release(i - 1);
    group = &memory->groups.wait(i);
    columns_.step = 0;
  }
  __device__ __forceinline__ void move(Columns& columns_) const { ++columns_.step; }
  __device__ __forceinline__ Column look_at(const Columns& columns_, int) const {
    Column column;
#pragma unroll
    for (int q = 0; q < kRows / 4; ++q) {
      const float4 four = group->cells[columns_.step][q][this->lane];
      column.costs[4 * q] = four.x, column.costs[4 * q + 1] = four.y;
      column.costs[4 * q + 2] = four.z, column.costs[4 * q + 3] = four.w;
    }
    return column;
  }
  __device__ __forceinline__ static float add(const Column& column, int k, bool is_inside, float best) {
    return best + (is_inside ? column.costs[k] : INFINITY);
  }

 private:
  const GroupOfCosts<kRows>* group = nullptr;
};

}  // namespace softdtw
