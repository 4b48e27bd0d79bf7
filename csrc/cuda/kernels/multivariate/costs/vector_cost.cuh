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

// |x|^2 + |y|^2 - 2 x.y cancels where x is near y: a cost below this share of |x|^2 + |y|^2 has lost more than four bits.
constexpr float kCancelled = 1.0f / 16;

// Not of vectors, but ready-made, in a matrix.
struct ReadyMade {
  using Sum = void;
  static constexpr bool kOverCost = false;
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

// Two costs in one set of kernels, which branch by the problem's cost where the two differ. The second may be two again.
template <class First_, class Second_>
struct EitherVectorCost {
  using First = First_;
  using Second = Second_;
  static constexpr bool kHasOneSum = std::is_same_v<typename First::Sum, typename Second::Sum>;
  using Sum = std::conditional_t<kHasOneSum, typename First::Sum, void>;
  static constexpr bool kOverCost = First::kOverCost || Second::kOverCost;

  __device__ __forceinline__ static bool is_first(Cost cost) {
    return with_cost<VectorCosts>(cost, [](auto type) { return std::is_same_v<decltype(type), First>; });
  }
};
template <class CostType>
constexpr bool kIsEither = false;
template <class First, class Second>
constexpr bool kIsEither<EitherVectorCost<First, Second>> = true;

using Roots = VectorCost<EuclideanVectors>;
using SquaresAndRoots = EitherVectorCost<Squared, Roots>;
using CityblockAndHuber = EitherVectorCost<VectorCost<CityblockVectors>, VectorCost<HuberVectors>>;
using NotSquared = EitherVectorCost<Roots, CityblockAndHuber>;
// What kernels of many dimensions are compiled for, in the order of Cost.
using CostsOfMany = std::tuple<Squared, Roots, CityblockAndHuber, CityblockAndHuber>;

// f(type): of one cost that one, of two the one that `cost` is. To be called outside the loops over cells and dimensions.
template <class CostType, class F>
__device__ __forceinline__ void with_kind(Cost cost, F&& f) {
  if constexpr (!kIsEither<CostType>)
    f(CostType());
  else if (CostType::is_first(cost))
    f(typename CostType::First());
  else
    with_kind<typename CostType::Second>(cost, f);
}
// The same on the host, for kernels that squared Euclidean costs alone have of their own.
template <class F>
auto with_squared_or_not(Cost cost, F&& f) {
  return cost == Cost::kSqEuclidean ? f(Squared()) : f(NotSquared());
}

}  // namespace softdtw
