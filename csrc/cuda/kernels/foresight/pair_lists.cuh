// Of large batches: lists of pairs, so that those of a kind go through the same kernel side by side, and no block waits for one of
// another kind.
#pragma once

#include <cstdint>

#include "cuda/hardware/assembly.cuh"
#include "cuda/numbers/pair_status.cuh"

namespace softdtw {

// The pairs that others leave to a kernel: those given up by their statuses, or of a list. All of them where there is neither.
struct PairsLeft {
  const PairStatus* statuses = nullptr;
  const int *count = nullptr, *list = nullptr;

  // By statuses.
  __device__ __forceinline__ bool has(int64_t pair) const {
    return statuses == nullptr || statuses[pair] == PairStatus::kGivenUp;
  }
  // The block's own pair of that number, by whole warps; -1 where it has fewer, and how many it has up to that one. Whoever goes on to
  // the next one looks again from the first one: that keeps nothing in registers.
  __device__ __noinline__ int64_t pair_of_block(int64_t batch, int number, int& seen) const {
    const int64_t end = list == nullptr ? batch : *count;
    seen = 0;
    for (int64_t first = blockIdx.x; first < end; first += int64_t{kWarp} * gridDim.x) {
      const int64_t own = first + int64_t{threadIdx.x} * gridDim.x;
      unsigned there = __ballot_sync(kAllLanes, own < end && (list != nullptr || has(own)));
      for (; there != 0; there &= there - 1)
        if (seen++ == number) {
          const int64_t i = first + int64_t{__ffs(there) - 1} * gridDim.x;
          return list == nullptr ? i : list[i];
        }
    }
    return -1;
  }
};

// Pairs that wait for a number format: those that foresight sends to the linear domain, in the order of their depth (ShallowWeight), and
// to integer log2, and those that the linear domain leaves to this.
enum class Waiting : int { kDeep, kShallow, kForeseen, kLeft };

// By status, behind the statuses themselves; those given up are the extended range's. And those that wait, two lists filled from both ends.
// The order in a list is that of chance; no result depends on it.
class PairLists {
  static constexpr int kWaiting = 4;
  int *counts, *pairs;
  int64_t batch;

  __host__ __device__ int* counter(PairStatus status) const { return counts + static_cast<int>(status); }
  __device__ int* counter(Waiting queue) const { return counts + kPairStatuses + static_cast<int>(queue); }
  __host__ __device__ int* list(PairStatus status) const { return pairs + static_cast<int>(status) * batch; }
  __device__ int* place_in(PairStatus status, int64_t place) const { return list(status) + place; }
  __device__ int* place_in(Waiting queue, int64_t place) const {
    const int number = static_cast<int>(queue);
    return pairs + (kPairStatuses + number / 2) * batch + (number % 2 == 0 ? place : batch - 1 - place);
  }

 public:
  static constexpr int64_t kCountBytes = (kPairStatuses + kWaiting) * sizeof(int);

  __host__ __device__ PairLists(PairStatus* statuses, int64_t batch_)
      : counts(reinterpret_cast<int*>(statuses + batch_)), pairs(counts + kPairStatuses + kWaiting), batch(batch_) {}
  static constexpr int64_t bytes(int64_t batch) {
    return kCountBytes + (kPairStatuses + kWaiting / 2) * batch * static_cast<int64_t>(sizeof(int));
  }
  int* counters() const { return counts; }
  PairsLeft given_up() const { return {nullptr, counter(PairStatus::kGivenUp), list(PairStatus::kGivenUp)}; }

  // Of a PairStatus or a Waiting. Past the nearest cache, since kernels that overlap read what one of them writes.
  template <class Kind>
  __device__ int count(Kind kind) const {
    return __ldcg(counter(kind));
  }
  template <class Kind>
  __device__ void append(Kind kind, int64_t pair) const {
    *place_in(kind, atomicAdd(counter(kind), 1)) = static_cast<int>(pair);
  }
  // -1 behind the list's end.
  template <class Kind>
  __device__ int64_t pair(Kind kind, int64_t place) const {
    return place < count(kind) ? __ldcg(place_in(kind, place)) : -1;
  }
  __device__ int64_t linear_pair(int64_t place) const {
    const int deep = count(Waiting::kDeep);
    return place < deep ? __ldcg(place_in(Waiting::kDeep, place)) : pair(Waiting::kShallow, place - deep);
  }
};

}  // namespace softdtw
