// Gradients, by groups of lanes in integer log2: strips from the last one, chunks from the right, and of those only where E counts. A
// chunk's entries are rebuilt from its snapshot, the shares that E flows back in into shared memory, then (3), (4) and (5) in one
// reversed sweep. E itself goes up from strip to strip.
#pragma once

#include "cuda/gradients/strip_gradient.cuh"
#include "cuda/kernels/integer_log2/integer_log2_flow.cuh"
#include "cuda/numbers/pair_status.cuh"
#include "lane_group.cuh"

namespace softdtw {

// Of E: what flows on of less is left out. Sums of dy that are then on their way up the lanes are as little: of cells whose E has not
// left the strip yet.
constexpr float kNextToNothing = 1.0f / (1ull << 44);

template <class Group>
struct VectorBackwardMemory : Group::Memory {
  static constexpr int kSteps = GroupEdges::kSteps, kGroups = GroupEdges::kGroups;
  Log2Table<Group::kRows> table;
  int words[Log2State<Group::kRows>::kWords][kWarp];  // a lane's own, before the next chunk
  float below[2][kGroups][kSteps];  // what flows up into a strip, at the columns of its last lane, as edges are
  float above[kGroups][kSteps];     // and out of it, at those of its first one
  typename Group::Leaving::Memory leaving;
};

// Columns in which E flows up from a strip: where it has been written, and where it counts; the last ones behind the others.
struct FlowColumns {
  int written_from = 1 << 30, written_to = 0, counts_from = 1 << 30, counts_to = 0;

  __device__ __forceinline__ void add(int from, int to, bool counts) {
    written_from = min(written_from, from);
    written_to = max(written_to, to);
    if (!counts) return;
    counts_from = min(counts_from, from);
    counts_to = max(counts_to, to);
  }
  __device__ __forceinline__ bool has(int column) const { return column >= written_from && column < written_to; }
};

template <class Group>
__device__ __forceinline__ void vector_backward(
    const Problem<float>& problem, const VectorLayout& layout, VectorBackwardMemory<Group>& memory, int64_t pair,
    bool wanted, char* own, float* line, const Gradient<float>& gradient) {
  constexpr int kSteps = Group::kSteps, kRows = Group::kRows;
  using Column = typename Group::Column;
  using State = Log2State<kRows>;
  Group group(problem, layout.has_fours, layout.lanes, memory, pair, wanted);
  const int lane = group.lane, number = group.group;
  typename Group::Leaving leaving(group, gradient, gradient_scale(problem, gradient, pair), memory.leaving, memory.table);
  Log2Flow<kRows, Column> flow;
  FlowColumns flows, flows_below;
  group.strip = group.strips - 1;
  group.chunk = group.end_chunk;
  bool starts_strip = true;
  int lowest_chunk = group.end_chunk;  // that something flows into from below, or a higher one
  // What a chunk of the group's strip needs, copied while another one is swept, which has its columns but those before it.
  const auto fetch = [&](int chunk, auto is_beside_another) {
    const EdgeEntry* const edge = layout.edge(own, max(group.strip - 1, 0));
    if (lane < kSteps) {
      const int column = chunk * kSteps + lane - (group.lanes - 1);
      float& below = memory.below[chunk & 1][number][lane];
      if (flows_below.has(column))
        __pipeline_memcpy_async(&below, line + column, sizeof(float));
      else
        below = 0;
    }
    if (chunk > group.first_chunk()) {
      // As forward counts chunks, in its own strips.
      const int parts = layout.forward_lanes / layout.lanes, later = group.strip % parts * (group.lanes / kSteps);
      const int first = group.first_chunk_of(group.strip / parts * layout.forward_lanes * kRows);
      const int* const from = layout.snapshot(own, group.strip, chunk + later - first, lane);
#pragma unroll
      for (int k = 0; k < State::kWords; ++k)
        __pipeline_memcpy_async(&memory.words[k][threadIdx.x], from + k * group.lanes, sizeof(int));
    }
    if (is_beside_another())
      group.fetch_before(chunk, edge, group.strip > 0);
    else
      group.fetch_all(chunk, edge, group.strip > 0);
  };
  if (group.is_active) fetch(group.chunk, std::false_type());
  while (__any_sync(kAllLanes, group.is_active)) {
    const int strip = group.strip, chunk = group.chunk;
    if (group.is_active && starts_strip) {
      group.begin_strip();
      leaving.begin_strip(group);
      flow = Log2Flow<kRows, Column>();
    }
    __pipeline_wait_prior(0);
    __syncwarp();
    group.meet_edge();
    const int first_chunk = group.first_chunk();
    State state;
    if (chunk > first_chunk) {
      int words[State::kWords];
#pragma unroll
      for (int k = 0; k < State::kWords; ++k) words[k] = memory.words[k][threadIdx.x];
      state.take_words(words);
    } else {
      state.start(group.is_top_lane());
      state.reference = group.edge_reference;
    }
    state.look_above(group);
    if (group.is_active && chunk > first_chunk) fetch(chunk - 1, std::true_type());
    const bool may_enter_here = __any_sync(kAllLanes, group.is_active && may_enter(group.lanes, chunk));
    const bool ends_here = __any_sync(kAllLanes, group.is_active && group.ends_here());

    Weights<float> weights[kRows];
    const auto rebuild = [&](int t, auto is_careful) {
      const int column = chunk * kSteps + t - lane;
      group.bring_edge(t);
      state.template step<is_careful()>(
          group, group.at_step(t), column,
          [&](int k, const Log2Cell& cell, const auto& diag, const auto& up, const auto& left) {
            return cell.entry(diag, up, left, weights[k]);
          });
      log2_edges_of_table<is_careful()>(group, column, weights);
      if (t < kSteps - 1) memory.table.store(t, weights);
    };
    float most_above = 0;
    const int end = group.is_active ? group.step_of_end() : -1;
    const auto step_back = [&](int t, auto is_careful) {
      const int column = chunk * kSteps + t - lane;
      group.flow_below = memory.below[chunk & 1][number][t];
      flow.template step<is_careful()>(group, group.at_step_back(t), weights, column >= 0, t == end ? group.end_row : -1);
      if (t > 0) memory.table.load(t - 1, weights);
      leaving.step(group, t, flow.column);
      most_above = fmaxf(most_above, flow.handed);
      if (group.is_first_lane()) memory.above[number][t] = flow.handed;
    };
    if (may_enter_here) {
#pragma unroll 1
      for (int t = 0; t < kSteps; ++t) rebuild(t, std::true_type());
    } else {
#pragma unroll 2
      for (int t = 0; t < kSteps; ++t) rebuild(t, std::false_type());
    }
    group.fetch_late(group.is_active && chunk > first_chunk, chunk - 1);
    if (may_enter_here || ends_here) {
#pragma unroll 1
      for (int t = kSteps - 1; t >= 0; --t) step_back(t, std::true_type());
    } else {
#pragma unroll 2
      for (int t = kSteps - 1; t >= 0; --t) step_back(t, std::false_type());
    }
    __syncwarp();

    const bool goes_on = group.any_of_group(!(flow.left_behind() <= kNextToNothing));
    const bool counts = group.of_lane(most_above, 0) > kNextToNothing;
    const int from = chunk * kSteps, to = min(from + kSteps, group.extent.m);
    if (group.is_active && strip > 0) {
      for (int i = lane; from + i < to; i += group.lanes) line[from + i] = memory.above[number][i];
      flows.add(from, to, counts);
    }
    leaving.end_chunk(group);
    const bool is_done = chunk == first_chunk || (!goes_on && chunk <= lowest_chunk);
    // For what of this strip is not needed any more.
    if (__any_sync(kAllLanes, group.is_active && is_done)) __pipeline_wait_prior(0);
    __syncwarp();
    if (group.is_active && is_done) {
      leaving.end_strip(group, flow.rows);
      if (flows.counts_to == 0) flows.counts_from = flows.written_from, flows.counts_to = flows.written_to;
      group.strip = strip - 1;
      group.is_active = strip > 0;
      // From the chunk in which the last lane meets the last column that counts to that of the one before the first of them.
      group.chunk = min((flows.counts_to - 1 + group.lanes - 1) / kSteps, group.last_chunk());
      lowest_chunk = max(flows.counts_from - 1 + group.lanes - 1, 0) / kSteps;
      flows_below = flows;
      flows = FlowColumns();
    } else if (group.is_active) {
      group.chunk = chunk - 1;
    }
    if (group.is_active && is_done) fetch(group.chunk, std::false_type());
    if (!group.is_active) group.strip = group.chunk = 0;
    starts_strip = is_done;
  }
}

template <class Group>
__global__ void __launch_bounds__(kWarp, kVectorBackwardWarps) vector_backward_kernel(
    const __grid_constant__ Problem<float> problem, const __grid_constant__ VectorLayout layout,
    const __grid_constant__ Gradient<float> gradient, char* saved, int64_t stride, char* flows,
    const PairStatus* statuses) {
  __shared__ VectorBackwardMemory<Group> shared;
  const int64_t place = int64_t{blockIdx.x} * (kWarp / layout.lanes) + threadIdx.x / layout.lanes;
  const bool exists = place < problem.batch;
  const int64_t pair = exists ? place : problem.batch - 1;
  vector_backward<Group>(
      problem, layout, shared, pair, exists && statuses[pair] == PairStatus::kIntegerLog2, saved + pair * stride,
      reinterpret_cast<float*>(flows + pair * layout.bytes_of_flow()), gradient);
}

}  // namespace softdtw
