// The warp penalty in integer log2 (kernels/integer_log2/integer_log2.cuh): a whole number for m of a step up or left, and the rest of
// it in costs.
#pragma once

#include "cuda/hardware/assembly.cuh"

namespace softdtw {

struct NoLog2Penalty {
  __device__ explicit NoLog2Penalty(double) {}
  // What is left for a cell's cost of `most`, the deepest that a cell may be; below 0 where nothing is.
  __device__ __forceinline__ static float room(float most) { return most; }
  __device__ __forceinline__ static bool fits(float deepest, float most) { return deepest <= most; }
  __device__ __forceinline__ static int without_tilt(int reference, int) { return reference; }
};

class Log2Penalty {
  static constexpr double kMost = 1048576;
  int whole;
  float of_cell_;
  bool exists;

 public:
  // In exponents of 2.
  __device__ explicit Log2Penalty(double penalty) : exists(penalty <= kMost) {
    const double p = exists ? penalty : 0;
    whole = static_cast<int>(p);
    of_cell_ = static_cast<float>(2 * (p - whole));
  }
  __device__ __forceinline__ float room(float most) const { return exists ? most - static_cast<float>(whole + 1) : -1; }
  __device__ __forceinline__ bool fits(float deepest, float most) const { return deepest <= room(most); }
  // A reference, but for what entries have been multiplied with so many steps from the table's corner.
  __device__ __forceinline__ double without_tilt(int reference, int steps) const {
    return reference - static_cast<double>(of_cell_) / 2 * steps;
  }
  // What a cell costs beside its cost.
  __device__ __forceinline__ float of_cell() const { return of_cell_; }
  // m of the predecessor that is best, by the bits of whole numbers in [2^23, 2^24); and so much lower as left and up pay.
  __device__ __forceinline__ float lowest_of(float left, float diag, float up) const {
    return __int_as_float(__viaddmin_s32(min(__float_as_int(left), __float_as_int(up)), whole, __float_as_int(diag)));
  }
  __device__ __forceinline__ float below(float low) const { return __int_as_float(__float_as_int(low) - whole); }
};

}  // namespace softdtw
