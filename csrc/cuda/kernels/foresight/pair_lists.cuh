// Of large batches: lists of pairs, so that those of a kind go through the same kernel side by side, and no block waits for one of
// another kind.
#pragma once

#include <cstdint>

#include "cuda/numbers/pair_status.cuh"

namespace softdtw {

// By status, behind the statuses themselves: those that the linear domain gave up, or was not to try, wait for integer log2. And
// those that the linear domain is to try, one list from both ends. The order in a list is that of chance; no result depends on it.
class PairLists {
  static constexpr int kLinear = kPairStatuses, kShallow = kLinear + 1;  // kShallow: at the far end
  int *counts, *pairs;
  int64_t batch;

 public:
  static constexpr int64_t kCountBytes = 8 * sizeof(int);

  __host__ __device__ PairLists(PairStatus* statuses, int64_t batch_)
      : counts(reinterpret_cast<int*>(statuses + batch_)), pairs(counts + kCountBytes / sizeof(int)), batch(batch_) {}
  static constexpr int64_t bytes(int64_t batch) {
    return kCountBytes + (kPairStatuses + 1) * batch * static_cast<int64_t>(sizeof(int));
  }
  int* counters() const { return counts; }

  __device__ int count(PairStatus status) const { return counts[static_cast<int>(status)]; }
  // -1 behind the list's end.
  __device__ int64_t pair(PairStatus status, int64_t place) const {
    return place < count(status) ? pairs[static_cast<int>(status) * batch + place] : -1;
  }
  __device__ void append(PairStatus status, int64_t pair) const {
    const int place = atomicAdd(counts + static_cast<int>(status), 1);
    pairs[static_cast<int>(status) * batch + place] = static_cast<int>(pair);
  }
  // In the order of their depth (ShallowWeight).
  __device__ int64_t linear_pair(int64_t place) const {
    const int deep = counts[kLinear];
    if (place < deep) return pairs[kLinear * batch + place];
    return place - deep < counts[kShallow] ? pairs[(kLinear + 1) * batch - 1 - (place - deep)] : -1;
  }
  __device__ void append_linear(int64_t pair, bool is_shallow) const {
    const int place = atomicAdd(counts + (is_shallow ? kShallow : kLinear), 1);
    pairs[is_shallow ? (kLinear + 1) * batch - 1 - place : kLinear * batch + place] = static_cast<int>(pair);
  }
};

}  // namespace softdtw
