// The costs of float32 vectors for kernels that add them up themselves: those of core/cost_types.h, in the same order, with what the GPU
// does faster in another way. A type each has beside their members
//
//   add_slope(weight, u, sum)    sum + weight slope(u), of a weight that is not negative
//   over(e, shares)              e; of kOverCost e / finish(shares), 0 where that is 0
#pragma once

#include "core/cost.h"
#include "cuda/numbers/device_math.cuh"

namespace softdtw {

template <class Type>
struct PlainVectorCost : Type {
  __device__ __forceinline__ static float add_slope(float weight, float u, float sum) {
    return fmaf(weight, Type::slope(u), sum);
  }
  __device__ __forceinline__ static float over(float e, float shares) {
    return Type::kOverCost ? over_cost<DeviceMath<float>>(e, Type::finish(shares)) : e;
  }
};
template <class Type>
struct VectorCost : PlainVectorCost<Type> {};

using EuclideanVectors = Euclidean<DeviceMath<float>>;
template <>
struct VectorCost<EuclideanVectors> : PlainVectorCost<EuclideanVectors> {
  // NaN, as in the other kernels, where the shares are infinite.
  __device__ __forceinline__ static float over(float e, float shares) {
    return shares > 0 ? e * fmaf(shares, 0.0f, rsqrtf(shares)) : 0.0f;
  }
};

using CityblockVectors = Cityblock<DeviceMath<float>>;
template <>
struct VectorCost<CityblockVectors> : PlainVectorCost<CityblockVectors> {
  __device__ __forceinline__ static float add_slope(float weight, float u, float sum) {
    return u != 0 ? sum + copysignf(weight, u) : sum;
  }
};

// By lesser and greater numbers, which may make a number of the slope of NaN, but not of its cost.
using HuberVectors = Huber<DeviceMath<float>>;
template <>
struct VectorCost<HuberVectors> : PlainVectorCost<HuberVectors> {
  __device__ __forceinline__ static float share(float u, float sum) {
    const float slope = fminf(fabsf(u), 1.0f);
    return fmaf(slope, fmaf(-0.5f, slope, fabsf(u)), sum);
  }
  __device__ __forceinline__ static float add_slope(float weight, float u, float sum) {
    return fmaf(weight, fminf(fmaxf(u, -1.0f), 1.0f), sum);
  }
};

template <class Types>
struct VectorCostsOf;
template <class... Types>
struct VectorCostsOf<std::tuple<Types...>> {
  using type = std::tuple<VectorCost<Types>...>;
};
using VectorCosts = typename VectorCostsOf<Costs<DeviceMath<float>>>::type;

using SquaredVectors = SqEuclidean<DeviceMath<float>>;
using Squared = VectorCost<SquaredVectors>;
// Whether a cost follows from |x - y|^2, and with many dimensions from products of matrices.
template <class CostType>
constexpr bool kIsOfSquares = std::is_same_v<typename CostType::Sum, SquaredVectors>;

}  // namespace softdtw
