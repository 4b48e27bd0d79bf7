// A group of lanes that has a pair: which one, the rows of its strip, and what comes in to a chunk through shared memory.
#pragma once

#include "cuda/kernels/multivariate/costs/vector_cost.cuh"
#include "scaled_layout.cuh"
#include "scaled_numbers.cuh"

namespace softdtw {

static_assert(sizeof(ScaledNumber) == ScaledLayout::kBytesOfNumber);

// The groups' shared memory that both passes have.
template <int kDims>
struct ScaledMemory {
  static constexpr int kSteps = ScaledLayout::kSteps, kGroups = ScaledLayout::kMostGroups;
  static constexpr int kSlots = kWarp + (kSteps - 1) * kGroups;  // columns that a chunk's lanes meet, of all groups
  static constexpr int kFours = (kDims + 3) / 4;
  float4 columns[kFours][kSlots];
  ScaledNumber raw_edge[kGroups][kSteps];  // the row above a strip, at the columns of its first lane
  double edge[kGroups][kSteps];            // and in the unit of that lane
};

// The vectors of a lane's rows in one strip after the other; all the group's lanes are in the same chunk.
template <class CostType_, int kDims_, int kRows_>
struct ScaledGroup {
  using CostType = CostType_;
  using Memory = ScaledMemory<kDims_>;
  static constexpr int kDims = kDims_, kRows = kRows_, kSteps = ScaledLayout::kSteps;
  const Problem<float>& problem;
  const ScaledLayout& layout;
  Memory& memory;
  const int lanes, lane, group;
  const int64_t pair;
  Extent extent;
  const float scale;
  const LinearPenalty<float> penalty;
  const View<const float> rows, columns;
  float x[kRows][kDims];
  int strips, end_lane, end_row, end_step, end_chunk;  // of the pair; the last cell's, in the last strip
  bool is_active;
  int strip, chunk = 0;

  __device__ ScaledGroup(
      const Problem<float>& problem_, const ScaledLayout& layout_, Memory& memory_, int64_t own, bool wanted)
      : problem(problem_),
        layout(layout_),
        memory(memory_),
        lanes(layout_.lanes),
        lane(threadIdx.x & (layout_.lanes - 1)),
        group(threadIdx.x / layout_.lanes),
        pair(own),
        extent(problem_.extent(own)),
        scale(static_cast<float>(problem_.scale_of(own))),
        penalty(problem_.penalty_of(own) * problem_.scale_of(own)),
        rows(problem_.x.pair(own)),
        columns(problem_.y.pair(own)),
        is_active(wanted && extent.valid()) {
    if (!extent.valid()) extent.n = extent.m = 1;
    const int last = extent.n - 1, of_strip = lanes * kRows;
    strips = last / of_strip + 1;
    end_lane = last % of_strip / kRows;
    end_row = last % kRows;
    end_step = extent.m - 1 + end_lane;
    end_chunk = end_step / kSteps;
    strip = 0;
  }
  __device__ __forceinline__ bool is_first_lane() const { return lane == 0; }
  __device__ __forceinline__ bool is_last_lane() const { return lane == lanes - 1; }
  __device__ __forceinline__ bool is_last_strip() const { return strip == strips - 1; }
  __device__ __forceinline__ int last_chunk() const {
    return is_last_strip() ? end_chunk : (extent.m - 1 + lanes - 1) / kSteps;
  }
  // Where the lane has its last row in a strip, or all of its rows.
  __device__ __forceinline__ bool has_rows() const { return !is_last_strip() || lane <= end_lane; }
  // Of step 0.
  __device__ __forceinline__ int first_column() const { return chunk * kSteps - lane; }
  // Whether lanes may be left of the table in a chunk.
  __device__ __forceinline__ bool may_enter() const { return chunk * kSteps < lanes - 1; }
  __device__ __forceinline__ bool ends_here() const { return is_last_strip() && chunk == end_chunk; }

  // Rows past the pair's end repeat its last one: such cells hold finite numbers that no result depends on.
  __device__ __forceinline__ void read_rows() {
#pragma unroll
    for (int k = 0; k < kRows; ++k) {
      const float* const row = rows.data + min((strip * lanes + lane) * kRows + k, extent.n - 1) * rows.row_stride;
#pragma unroll
      for (int d = 0; d < kDims; ++d) x[k][d] = d < problem.dim ? row[d * rows.column_stride] : 0;
    }
  }
  // In exponents of 2, between some of the pair's rows and their mean.
  __device__ __forceinline__ float mean_cost() const {
    constexpr int kSamples = 4;
    float samples[kSamples][kDims], middle[kDims] = {}, cost = 0;
#pragma unroll
    for (int i = 0; i < kSamples; ++i) {
      const int place = static_cast<int>((int64_t{2} * (lane * kSamples + i) + 1) * extent.n / (2 * kSamples * lanes));
      const float* const row = rows.data + min(place, extent.n - 1) * rows.row_stride;
#pragma unroll
      for (int d = 0; d < kDims; ++d) middle[d] += samples[i][d] = d < problem.dim ? row[d * rows.column_stride] : 0;
    }
#pragma unroll
    for (int d = 0; d < kDims; ++d) {
      for (int distance = lanes / 2; distance > 0; distance /= 2)
        middle[d] += __shfl_xor_sync(kAllLanes, middle[d], distance);
      middle[d] /= static_cast<float>(kSamples * lanes);
    }
#pragma unroll
    for (int i = 0; i < kSamples; ++i) cost += CostType::finish(share_of(samples[i], middle));
    for (int distance = lanes / 2; distance > 0; distance /= 2) cost += __shfl_xor_sync(kAllLanes, cost, distance);
    return cost / static_cast<float>(kSamples * lanes) * scale;
  }
  // The columns of a chunk to shared memory; visit(vector) sees each of those that the lane brings.
  template <class Visit>
  __device__ __forceinline__ void read_columns(Visit&& visit) {
    const int before = chunk * kSteps - (lanes - 1);
    float4* const slots = memory.columns[0] + group * (lanes + kSteps - 1);
    for (int i = lane; i < lanes + kSteps - 1; i += lanes) {
      const float* const column = columns.data + min(max(before + i, 0), extent.m - 1) * columns.row_stride;
      float vector[4 * Memory::kFours];
#pragma unroll
      for (int d = 0; d < 4 * Memory::kFours; ++d)
        vector[d] = d < kDims && d < problem.dim ? column[d * columns.column_stride] : 0;
#pragma unroll
      for (int f = 0; f < Memory::kFours; ++f)
        slots[f * Memory::kSlots + i] = make_float4(vector[4 * f], vector[4 * f + 1], vector[4 * f + 2], vector[4 * f + 3]);
      visit(vector);
    }
  }
  // Of step t.
  __device__ __forceinline__ void column_at(int t, float (&y)[kDims]) const {
    const float4* const slot = memory.columns[0] + group * (lanes + kSteps - 1) + lanes - 1 - lane + t;
#pragma unroll
    for (int f = 0; f < Memory::kFours; ++f) {
      const float4 four = slot[f * Memory::kSlots];
      const float own[4] = {four.x, four.y, four.z, four.w};
#pragma unroll
      for (int d = 0; d < 4; ++d)
        if (4 * f + d < kDims) y[4 * f + d] = own[d];
    }
  }
  // The row above the strip to shared memory, if there is one; then in the unit of the first lane, whose `reference` it is.
  __device__ __forceinline__ void read_edge(const ScaledNumber* line, bool exists) {
    for (int i = lane; i < kSteps; i += lanes)
      memory.raw_edge[group][i] = exists ? line[min(chunk * kSteps + i, extent.m - 1)] : ScaledNumber{0, 0};
  }
  __device__ __forceinline__ void bring_edge(int reference) {
    for (int i = lane; i < kSteps; i += lanes) memory.edge[group][i] = memory.raw_edge[group][i].in(reference);
  }
  __device__ __forceinline__ static float share_of(const float (&x)[kDims], const float (&y)[kDims]) {
    float sum = 0;
#pragma unroll
    for (int d = 0; d < kDims; ++d) sum = CostType::share(x[d] - y[d], sum);
    return sum;
  }
  template <bool kIsDeep>
  __device__ __forceinline__ ScaledWeight<kIsDeep> weight(int k, const float (&y)[kDims]) const {
    return ScaledWeight<kIsDeep>::of(CostType::finish(share_of(x[k], y)), scale, penalty);
  }
  __device__ __forceinline__ int first_of_group() const { return threadIdx.x & ~(lanes - 1); }
  __device__ __forceinline__ unsigned votes_of_group(bool vote) const {
    return __ballot_sync(kAllLanes, vote) >> first_of_group() & (0xffffffffu >> (kWarp - lanes));
  }
  __device__ __forceinline__ bool any_of_group(bool vote) const { return votes_of_group(vote) != 0; }
  __device__ __forceinline__ bool all_of_group(bool vote) const { return votes_of_group(!vote) == 0; }
  template <typename Number>
  __device__ __forceinline__ Number from_above(Number a) const {
    return __shfl_up_sync(kAllLanes, a, 1, lanes);
  }
  template <typename Number>
  __device__ __forceinline__ Number from_below(Number a) const {
    return __shfl_down_sync(kAllLanes, a, 1, lanes);
  }
  template <typename Number>
  __device__ __forceinline__ Number of_lane(Number a, int from) const {
    return __shfl_sync(kAllLanes, a, from, lanes);
  }
};

}  // namespace softdtw
