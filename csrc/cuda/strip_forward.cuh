// One warp sweeps one strip forward (strip.cuh), taking the edge above as it comes and leaving its own.
#pragma once

#include "handoff.cuh"
#include "sweep.cuh"

namespace softdtw {

template <class S>
struct ForwardStrip {
  int64_t pair;
  int strip;
  Edge<S> above, own;
  Neighbour producer;            // of the edge above
  Neighbour consumer;            // of the own edge, waited for where the own edge is a ring
  Progress* own_word = nullptr;  // null: nobody watches
  Progress* far_word = nullptr;  // a second one, for another block
  int round = 0;
};

template <class S>
__device__ void forward_strip(
    const Problem<typename S::Scalar>& problem, const Extent& extent, const ForwardStrip<S>& job, const Saved<S>& saved,
    typename S::Scalar* value) {
  using T = typename S::Scalar;
  const int lane = threadIdx.x;
  const auto recurrence = recurrence_of(problem);
  const Surroundings<S> around(extent, job.strip);
  const Strip<S>& strip = around.strip;
  const int chunks = around.is_last && saved.snapshots == nullptr ? around.end_chunk + 1 : strip.chunks;

  const Entry<T> nowhere = {Unreachable<T>::value, T(1)};
  Lane<S> state;
#pragma unroll
  for (int k = 0; k < S::kRows; ++k) state.left[k] = nowhere;
  state.diag = around.is_first && lane == 0 ? Entry<T>{T(0), T(1)} : nowhere;  // R[0,0] = 0
  state.reference = 0;

  for (int chunk = 0; chunk < chunks; ++chunk) {
    const Place<S> place(strip, extent, chunk, lane);
    T costs[S::kRows][S::kSteps];
    const T largest = load_costs(problem, extent, place, job.pair, costs) * recurrence.scale;

    Group<S> top = no_group<S>();
    const int group = chunk + around.above_offset;
    if (!around.is_first && group < around.above.groups() && lane == 0) {
      job.producer.wait(group + S::kSkewChunks + 1);
      job.above.read(group, top);
    }
    __syncwarp();
    renew_reference(state, lane, top.reference);
    const T above = reference_above(lane, state.reference, top.reference);
    if (saved.snapshots != nullptr) {
      T* snapshot = saved.snapshot(job.pair, job.strip, chunk) + lane;
      Lane<S>::each_word(state, [&](int i, T word) { snapshot[i * kWarp] = word; });
    }

    Group<S> bottoms;
    Capture<S> capture;
    bottoms.reference = state.reference;
    const bool plain =
        place.in_band && recurrence.penalty.m == T(0) && recurrence.penalty.s == T(1) && chunk != around.end_chunk;
    if (__all_sync(kAllLanes, plain && largest < Whole<T>::limit)) {
      sweep_forward<false>(recurrence, extent, place, lane, top, above, costs, state, bottoms, capture);
    } else {
      if (chunk == around.end_chunk && lane == around.end_lane) {
        capture.row = around.end_row;
        capture.step = around.end_time % S::kSteps;
      }
      sweep_forward<true>(recurrence, extent, place, lane, top, above, costs, state, bottoms, capture);
      if (capture.row >= 0) {
        const double m = static_cast<double>(bottoms.reference) + static_cast<double>(capture.entry.m);
        const double result = (m - log2(static_cast<double>(capture.entry.s))) * problem.gamma * kLn2;
        value[job.pair] = is_unreachable(capture.entry.m) ? T(INFINITY) : static_cast<T>(result);
      }
    }

    if (lane == kWarp - 1) {
      const int own_group = chunk - S::kSkewChunks;
      if (!around.is_last && own_group >= 0) {
        const int needed = own_group - kRing - around.below_offset + 1;
        if (job.own.is_ring && needed > 0) job.consumer.wait(needed);
        job.own.write(own_group, bottoms);
      }
    }
    __syncwarp();
    if (lane == kWarp - 1) {
      if (job.own_word != nullptr) publish(job.own_word, progress_of(job.round, chunk + 1));
      if (job.far_word != nullptr) publish(job.far_word, progress_of(0, chunk + 1));
    }
  }
}

// The answer for lengths out of range, which only the device can see.
template <typename T>
__device__ __forceinline__ void invalid_forward(T* value, int64_t pair) {
  if (threadIdx.x == 0 && threadIdx.y == 0) value[pair] = T(NAN);
}

}  // namespace softdtw
