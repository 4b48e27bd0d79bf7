// Products of small float32 matrices by a warp, m16n8k8, on the tensor cores where there are any.
//
// A tensor core multiplies TF32 numbers, of 11 bits. Each factor is split into two such, a = high + low to about 22 bits, and
// three of the four products are summed in float32, so a product is about as good as one of float32; the fourth is below its
// rounding. Before sm_80 factors stay whole, and the lanes exchange them.
//
// A lane is member lane % 4 of group g = lane / 4. With t its member number, it holds
//   of the left factor, 16 x 8:   (g, t), (g + 8, t), (g, t + 4), (g + 8, t + 4)
//   of the right factor, 8 x 8:   (t, g), (t + 4, g)
//   of the sum, 16 x 8:           (g, 2 t), (g, 2 t + 1), (g + 8, 2 t), (g + 8, 2 t + 1)
#pragma once

#include "math.cuh"

namespace softdtw {

struct Factor {
  float high, low;

  Factor() = default;
  __device__ __forceinline__ explicit Factor(float a) {
#if __CUDA_ARCH__ >= 800
    high = rounded(a);
    low = rounded(a - high);
  }
  __device__ __forceinline__ static float rounded(float a) {
    unsigned bits;
    asm("cvt.rna.tf32.f32 %0, %1;" : "=r"(bits) : "f"(a));
    return __uint_as_float(bits);
  }
#else
    high = a;
    low = 0;
  }
#endif
};

#if __CUDA_ARCH__ >= 800
__device__ __forceinline__ void multiply_tf32(
    float (&sum)[4], float a0, float a1, float a2, float a3, float b0, float b1) {
  asm("mma.sync.aligned.m16n8k8.row.col.f32.tf32.tf32.f32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, {%0,%1,%2,%3};"
      : "+f"(sum[0]), "+f"(sum[1]), "+f"(sum[2]), "+f"(sum[3])
      : "r"(__float_as_uint(a0)), "r"(__float_as_uint(a1)), "r"(__float_as_uint(a2)), "r"(__float_as_uint(a3)),
        "r"(__float_as_uint(b0)), "r"(__float_as_uint(b1)));
}
#endif

// sum += left right.
__device__ __forceinline__ void multiply_add(float (&sum)[4], const Factor (&left)[4], const Factor (&right)[2]) {
#if __CUDA_ARCH__ >= 800
  multiply_tf32(sum, left[0].low, left[1].low, left[2].low, left[3].low, right[0].high, right[1].high);
  multiply_tf32(sum, left[0].high, left[1].high, left[2].high, left[3].high, right[0].low, right[1].low);
  multiply_tf32(sum, left[0].high, left[1].high, left[2].high, left[3].high, right[0].high, right[1].high);
#else
  const int lane = threadIdx.x, group = lane / 4, member = lane % 4;
#pragma unroll
  for (int k = 0; k < 8; ++k) {
    const int half = k / 4;
    const float upper = __shfl_sync(kAllLanes, left[2 * half].high, 4 * group + k % 4);
    const float lower = __shfl_sync(kAllLanes, left[2 * half + 1].high, 4 * group + k % 4);
#pragma unroll
    for (int i = 0; i < 2; ++i) {
      const float column = __shfl_sync(kAllLanes, right[half].high, 4 * (2 * member + i) + k % 4);
      sum[i] = fmaf(upper, column, sum[i]);
      sum[2 + i] = fmaf(lower, column, sum[2 + i]);
    }
  }
#endif
}

// The sum over the four members of a group.
__device__ __forceinline__ float sum_of_group(float a) {
  a += __shfl_xor_sync(kAllLanes, a, 1);
  return a + __shfl_xor_sync(kAllLanes, a, 2);
}

// The greatest of the warp's numbers, none of them negative; NaN if one is NaN.
__device__ __forceinline__ float greatest_of_warp(float a) {
  unsigned bits = __float_as_uint(a) & 0x7fffffffu;  // ordered as the numbers are, NaN above all others
#if __CUDA_ARCH__ >= 800
  bits = __reduce_max_sync(kAllLanes, bits);
#else
  for (int distance = kWarp / 2; distance > 0; distance /= 2)
    bits = max(bits, __shfl_xor_sync(kAllLanes, bits, distance));
#endif
  return __uint_as_float(bits);
}

}  // namespace softdtw
