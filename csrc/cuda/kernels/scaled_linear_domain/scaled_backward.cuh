// Gradients, by groups of lanes in the scaled linear domain: strips from the last one, chunks from the right, and of those only where
// E counts. A chunk's entries are rebuilt from its snapshot into shared memory, then (3), (4) and (5) in one reversed sweep.
#pragma once

#include "cuda/gradients/strip_gradient.cuh"
#include "cuda/numbers/pair_status.cuh"
#include "scaled_state.cuh"

namespace softdtw {

constexpr float kNextToNothing = 1.0f / (1ull << 44);  // of E: what flows on of less is left out

template <int kDims, int kRows>
struct ScaledBackwardMemory : ScaledMemory<kDims> {
  using Base = ScaledMemory<kDims>;
  static constexpr int kSteps = Base::kSteps, kGroups = Base::kGroups;
  int4 entries[kSteps][kRows / 4][kWarp];   // a lane's own
  int references[kSteps][kWarp];            // and their units, where they differ
  ScaledNumber raw_below[kGroups][kSteps];  // V of the row below a strip, at the columns of its last lane
  double below[kGroups][kSteps];
  double first_row[kGroups][kSteps];  // V of the strip's own first row
  int first_reference[kGroups][kSteps];
  float sums[kGroups][kSteps][kDims];  // of dy, for the first lane's columns
};

// A lane between two columns of the reversed sweep.
template <int kRows, int kDims>
struct ScaledFlow {
  double right[kRows];       // V of its rows, divided by the last entry, at the column that it has just left
  double diag;               // that of the row below them, one column to the right
  int reference;             // the unit of both is 2^reference
  float rows[kRows][kDims];  // sums of E times the slope of the cost
  float column[kDims];       // of the column that it has just left and all rows below
  float mass;                // E of the last columns
  float first;               // and the most that a cell of the first row had

  __device__ __forceinline__ void stop() {
#pragma unroll
    for (int k = 0; k < kRows; ++k) right[k] = 0;
#pragma unroll
    for (int d = 0; d < kDims; ++d) column[d] = 0;
    diag = 0;
    mass = 0;
  }
  __device__ __forceinline__ void start() {
    stop();
#pragma unroll
    for (int k = 0; k < kRows; ++k)
#pragma unroll
      for (int d = 0; d < kDims; ++d) rows[k][d] = 0;
  }
  __device__ __forceinline__ void move_to(int unit) {
    const double power = power_of_two(min(max(reference - unit, -kBias), kBias));
#pragma unroll
    for (int k = 0; k < kRows; ++k) right[k] *= power;
    diag *= power;
    reference = unit;
  }
  // A column of `entries`. down: V of the row below. With care: `end_row` is the last cell's, where that is in this column, else -1;
  // is_inside: whether the lane is in the table.
  template <bool kWithCare, class Group>
  __device__ __forceinline__ void step(
      const Group& group, int t, double down, const double (&entries)[kRows], int end_row, bool is_inside) {
    using CostType = typename Group::CostType;
    float y[kDims], sum[kDims];
    group.column_at(t, y);
#pragma unroll
    for (int d = 0; d < kDims; ++d) {
      sum[d] = group.from_below(column[d]);
      if (group.is_last_lane()) sum[d] = 0;
    }
    const double end = kWithCare && end_row >= 0 ? 1 / pick(entries, end_row) : 0;
    double lower_right = diag;
    diag = down;
#pragma unroll
    for (int k = kRows - 1; k >= 0; --k) {
      float u[kDims], shares = 0;
#pragma unroll
      for (int d = 0; d < kDims; ++d) {
        u[d] = group.x[k][d] - y[d];
        shares = CostType::share(u[d], shares);
      }
      const double weight =
          ScaledWeight<kWithCare>::of(CostType::finish(shares), group.scale, group.penalty).get(group.penalty);
      double b = fma(lower_right, group.penalty.diagonal(), right[k]) + down;
      if (kWithCare && k == end_row) b = end;
      if (kWithCare && !is_inside) b = 0;
      lower_right = right[k];
      right[k] = down = weight * b;
      float e = LinearNumbers<float>::product(entries[k], b);
      if (kWithCare && !is_inside) e = 0;
      mass += e;
      if (k == 0) first = fmaxf(first, e);
      const float over = CostType::over(e, shares);
#pragma unroll
      for (int d = 0; d < kDims; ++d) {
        rows[k][d] = CostType::add_slope(over, u[d], rows[k][d]);
        sum[d] = CostType::add_slope(over, u[d], sum[d]);
      }
    }
#pragma unroll
    for (int d = 0; d < kDims; ++d) column[d] = sum[d];
  }
};

// What flows up from strip to strip: V of a strip's first row, where it has been written, and where enough E flows with it.
struct ScaledFlows {
  ScaledNumber* line;
  int written_from, written_to, counts_from, counts_to;  // columns; the last ones behind the others

  __device__ __forceinline__ void start() { written_from = counts_from = 1 << 30, written_to = counts_to = 0; }
};

template <class CostType, int kDims, int kRows>
__device__ __forceinline__ void scaled_backward(
    const Problem<float>& problem, const ScaledLayout& layout, ScaledBackwardMemory<kDims, kRows>& memory, int64_t pair,
    bool wanted, char* own, ScaledNumber* line, const Gradient<float>& gradient) {
  using Group = ScaledGroup<CostType, kDims, kRows>;
  using Numbers = LinearNumbers<float>;
  constexpr int kSteps = Group::kSteps;
  Group group(problem, layout, memory, pair, wanted);
  const int lane = group.lane, number = group.group;
  const float scale = gradient_scale(problem, gradient, pair);
  const View<float> dx = gradient.x.pair(pair), dy = gradient.y.pair(pair);
  ScaledFlow<kRows, kDims> flow;
  flow.start();
  flow.reference = 0;
  ScaledFlows flows, flows_below;
  flows.line = line;
  flows.start();
  flows_below = flows;
  group.strip = group.strips - 1;
  group.chunk = group.end_chunk;
  bool starts_strip = true;
  int lowest_chunk = 0;  // that something flows into from below
  while (__any_sync(kAllLanes, group.is_active)) {
    const int strip = group.strip, chunk = group.chunk;
    if (__any_sync(kAllLanes, group.is_active && starts_strip)) {
      if (group.is_active && starts_strip) {
        group.read_rows();
        flow.start();
        flows_below = flows;
        flows.start();
      }
    }
    ScaledSnapshot<kRows> snapshot;
    const int* const words = layout.snapshot(own, strip, chunk) + lane;
#pragma unroll
    for (int k = 0; k < snapshot.kWords; ++k) snapshot.words[k] = group.is_active ? __ldcs(words + k * group.lanes) : 0;
    ScaledState<kRows> state;
    state.take(snapshot);
    group.read_columns([](const auto&) {});
    group.read_edge(layout.edge(own, max(strip - 1, 0)), group.is_active && strip > 0);
    for (int i = lane; i < kSteps; i += group.lanes) {
      const int column = chunk * kSteps + i - (group.lanes - 1);
      const bool is_there = group.is_active && column >= flows_below.written_from && column < flows_below.written_to;
      memory.raw_below[number][i] = is_there ? line[column] : ScaledNumber{0, 0};
    }
    const bool is_plain =
        __all_sync(kAllLanes, !group.is_active || (!snapshot.needs_care() && !group.may_enter() && !group.ends_here()));
    __syncwarp();

    const auto store = [&](int t) {
#pragma unroll
      for (int k = 0; k < kRows; k += 4) memory.entries[t][k / 4][threadIdx.x] = Numbers::pack(state.left + k);
    };
    const auto load = [&](int t, double (&entries)[kRows]) {
#pragma unroll
      for (int k = 0; k < kRows; k += 4) Numbers::unpack(memory.entries[t][k / 4][threadIdx.x], entries + k);
    };
    const auto leave = [&](int t) {
      if (!group.is_first_lane()) return;
      memory.first_row[number][t] = flow.right[0];
      memory.first_reference[number][t] = flow.reference;
#pragma unroll
      for (int d = 0; d < kDims; ++d) memory.sums[number][t][d] = flow.column[d];
    };
    flow.first = 0;
    if (is_plain) {
      state.start_plain(group);
      const double factor_of_below = group.from_below(state.factor);
      const int of_last_lane = group.of_lane(state.reference, group.lanes - 1);
      for (int i = lane; i < kSteps; i += group.lanes)
        memory.below[number][i] = memory.raw_below[number][i].in(-of_last_lane);
#pragma unroll 2
      for (int t = 0; t < kSteps; ++t) {
        state.plain_step(group, t);
        store(t);
      }
      flow.move_to(state.reference);
      __syncwarp();
#pragma unroll 2
      for (int t = kSteps - 1; t >= 0; --t) {
        double entries[kRows], down = group.from_below(flow.right[0]) * factor_of_below;
        if (group.is_last_lane()) down = memory.below[number][t];
        load(t, entries);
        if (t % 2 == 1) flow.mass = 0;  // of the last two columns
        flow.template step<false>(group, t, down, entries, -1, true);
        leave(t);
      }
    } else {
#pragma unroll 1
      for (int t = 0; t < kSteps; ++t) {
        state.careful_step(group, t);
        state.renew_after(group, t);
        store(t);
        memory.references[t][threadIdx.x] = state.reference;
      }
      const int end = group.ends_here() && lane == group.end_lane ? group.end_step - chunk * kSteps : -1;
#pragma unroll 1
      for (int t = kSteps - 1; t >= 0; --t) {
        const int unit = memory.references[t][threadIdx.x], of_below = group.from_below(flow.reference);
        double entries[kRows], down = group.from_below(flow.right[0]);
        down *= power_of_two(min(of_below - unit, kBias));
        if (group.is_last_lane()) down = memory.raw_below[number][t].in(-unit);
        load(t, entries);
        flow.move_to(unit);
        if (t % 2 == 1) flow.mass = 0;
        const int column = group.first_column() + t;
        const bool is_inside = group.has_rows() && column >= 0 && column < group.extent.m;
        flow.template step<true>(group, t, down, entries, t == end ? group.end_row : -1, is_inside);
        leave(t);
      }
    }
    __syncwarp();

    const bool goes_on = group.any_of_group(!(flow.mass <= kNextToNothing));
    const bool counts = group.of_lane(flow.first, 0) > kNextToNothing;
    if (group.is_active && strip > 0) {
      for (int i = lane; i < kSteps; i += group.lanes) {
        const int column = chunk * kSteps + i;
        if (column < group.extent.m)
          line[column] = ScaledNumber::of(memory.first_row[number][i], -memory.first_reference[number][i]);
      }
      flows.written_from = min(flows.written_from, chunk * kSteps);
      flows.written_to = max(flows.written_to, min((chunk + 1) * kSteps, group.extent.m));
      if (counts) {
        flows.counts_from = min(flows.counts_from, chunk * kSteps);
        flows.counts_to = max(flows.counts_to, min((chunk + 1) * kSteps, group.extent.m));
      }
    }
    if (group.is_active && gradient.y.data != nullptr) {
      for (int i = lane; i < kSteps; i += group.lanes) {
        const int column = chunk * kSteps + i;
        if (column < group.extent.m)
#pragma unroll
          for (int d = 0; d < kDims; ++d)
            if (d < problem.dim) dy.at(column, d) -= memory.sums[number][i][d] * scale;
      }
    }
    const bool is_done = chunk == 0 || (!goes_on && chunk <= lowest_chunk);
    __syncwarp();
    if (group.is_active && is_done) {
      // Sums on their way up the lanes go where they would have arrived.
      const int column = chunk * kSteps - lane;
      if (gradient.y.data != nullptr && lane > 0 && column >= 0 && column < group.extent.m)
#pragma unroll
        for (int d = 0; d < kDims; ++d)
          if (d < problem.dim) dy.at(column, d) -= flow.column[d] * scale;
      if (gradient.x.data != nullptr)
#pragma unroll
        for (int k = 0; k < kRows; ++k) {
          const int row = (strip * group.lanes + lane) * kRows + k;
          if (row < group.extent.n)
#pragma unroll
            for (int d = 0; d < kDims; ++d)
              if (d < problem.dim) dx.at(row, d) = flow.rows[k][d] * scale;
        }
      if (flows.counts_to == 0) flows.counts_from = flows.written_from, flows.counts_to = flows.written_to;
      group.strip = strip - 1;
      group.is_active = strip > 0;
      // From the chunk in which the last lane meets the last column that counts to that of the one before the first of them.
      group.chunk = (flows.counts_to - 1 + group.lanes - 1) / kSteps;
      lowest_chunk = max(flows.counts_from - 1 + group.lanes - 1, 0) / kSteps;
    } else if (group.is_active) {
      group.chunk = chunk - 1;
    }
    if (!group.is_active) group.strip = group.chunk = 0;
    starts_strip = is_done;
    __syncwarp();
  }
}

template <class CostType, int kDims, int kRows>
__global__ void __launch_bounds__(kWarp, kScaledBackwardWarps<kDims>) scaled_backward_kernel(
    const __grid_constant__ Problem<float> problem, const __grid_constant__ ScaledLayout layout,
    const __grid_constant__ Gradient<float> gradient, char* saved, int64_t stride, char* flows,
    const PairStatus* statuses) {
  __shared__ ScaledBackwardMemory<kDims, kRows> shared;
  const int64_t place = int64_t{blockIdx.x} * layout.groups() + threadIdx.x / layout.lanes;
  const bool exists = place < problem.batch;
  const int64_t pair = exists ? place : problem.batch - 1;
  scaled_backward<CostType, kDims, kRows>(
      problem, layout, shared, pair, exists && statuses[pair] == PairStatus::kLinearDomain, saved + pair * stride,
      reinterpret_cast<ScaledNumber*>(flows + pair * layout.bytes_of_edge()), gradient);
}

}  // namespace softdtw
