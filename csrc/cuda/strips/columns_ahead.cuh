// The columns of a lane that has one in every step.
#pragma once

namespace softdtw {

// y at the column of now and at those that come next, kOrder = 1 or -1 column away, ahead of their use.
template <typename T, int kOrder>
struct ColumnsAhead {
  const T* place;  // of the column of now in the window
  T now, next, after_next;

  __device__ __forceinline__ explicit ColumnsAhead(const T* place_)
      : place(place_), now(place[0]), next(place[kOrder]), after_next(place[2 * kOrder]) {}
  __device__ __forceinline__ void move() {
    place += kOrder;
    now = next;
    next = after_next;
    after_next = place[2 * kOrder];
  }
};

}  // namespace softdtw
