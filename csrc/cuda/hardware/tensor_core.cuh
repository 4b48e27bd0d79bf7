// Products of small float32 matrices by a warp, m16n8k8, on the tensor cores.
//
// A tensor core multiplies TF32 numbers, of 11 bits. Each factor is split into such: a = high + low to about 22 bits, and
// high low, low high and high high are summed in float32, so a product is about as good as one of float32. A fourth product,
// with what is left of the right factor, makes it exact where the left one is 1.
//
// A lane is member lane % 4 of group g = lane / 4. With t its member number, it holds
//   of the left factor, 16 x 8:   (g, t), (g + 8, t), (g, t + 4), (g + 8, t + 4)
//   of the right factor, 8 x 8:   (t, g), (t + 4, g)
//   of the sum, 16 x 8:           (g, 2 t), (g, 2 t + 1), (g + 8, 2 t), (g + 8, 2 t + 1)
#pragma once

#include "assembly.cuh"

namespace softdtw {

struct Factor {
  float high, low, rest;

  Factor() = default;
  __device__ __forceinline__ explicit Factor(float a) {
    // `high` is rounded, the others are cut off. A NaN may get lost in `high`, never in `low`.
    high = cut_off(__uint_as_float(__float_as_uint(a) + 0x1000u));
    low = a - high;
    rest = low - cut_off(low);
  }
  __device__ __forceinline__ static float cut_off(float a) { return __uint_as_float(__float_as_uint(a) & 0xffffe000u); }
};

// The same of a left factor that is kept: what is left over is not, and `low` is cut off already.
struct CutFactor {
  float high, low;

  CutFactor() = default;
  __device__ __forceinline__ CutFactor(float high_, float low_) : high(high_), low(low_) {}
  __device__ __forceinline__ explicit CutFactor(float a) {
    const Factor whole(a);
    high = whole.high;
    low = Factor::cut_off(whole.low);
  }
};
__device__ __forceinline__ float low_of(const Factor& factor) { return Factor::cut_off(factor.low); }
__device__ __forceinline__ float low_of(const CutFactor& factor) { return factor.low; }

using Sums = float[4];

// sum += one term of left right: high high, high low, low high, or high and the rest of the right factor. Before sm_80 the
// first term is all.
template <int kTerm, class Left>
__device__ __forceinline__ void add_term(Sums& sum, const Left (&left)[4], const Factor (&right)[2]) {
  const auto a = [&](int j) { return __float_as_uint(kTerm == 2 ? low_of(left[j]) : left[j].high); };
  const auto b = [&](int j) {
    return __float_as_uint(kTerm == 3 ? right[j].rest : kTerm == 1 ? Factor::cut_off(right[j].low) : right[j].high);
  };
  ptx::mma_m16n8k8_tf32(sum, a(0), a(1), a(2), a(3), b(0), b(1));
}

// sums[i] += left[i] right[i] for several independent sums, so that the tensor cores, which add slowly, need not wait.
// kTerms: 3 or 4 products of parts.
template <int kTerms, int kCount, class Left>
__device__ __forceinline__ void multiply_add(
    Sums (&sums)[kCount], const Left (*const (&left)[kCount])[4], const Factor (*const (&right)[kCount])[2]) {
#pragma unroll
  for (int i = 0; kTerms == 4 && i < kCount; ++i) add_term<3>(sums[i], *left[i], *right[i]);
#pragma unroll
  for (int i = 0; i < kCount; ++i) add_term<2>(sums[i], *left[i], *right[i]);
#pragma unroll
  for (int i = 0; i < kCount; ++i) add_term<1>(sums[i], *left[i], *right[i]);
#pragma unroll
  for (int i = 0; i < kCount; ++i) add_term<0>(sums[i], *left[i], *right[i]);
}

// The terms of left right in sums of their own, for a product whose sum is alone and would wait for itself.
__device__ __forceinline__ void multiply_add_apart(Sums (&terms)[4], const Factor (&left)[4], const Factor (&right)[2]) {
  add_term<0>(terms[0], left, right);
  add_term<1>(terms[1], left, right);
  add_term<2>(terms[2], left, right);
  add_term<3>(terms[3], left, right);
}

// The sum over the four members of a group.
__device__ __forceinline__ float sum_of_group(float a) {
  a += __shfl_xor_sync(kAllLanes, a, 1);
  return a + __shfl_xor_sync(kAllLanes, a, 2);
}

// The greatest of the warp's numbers, none of them negative; NaN if one is NaN.
__device__ __forceinline__ float greatest_of_warp(float a) {
  const unsigned bits = __float_as_uint(a) & 0x7fffffffu;  // ordered as the numbers are, NaN above all others
  return __uint_as_float(ptx::reduce_max(bits));
}

}  // namespace softdtw
