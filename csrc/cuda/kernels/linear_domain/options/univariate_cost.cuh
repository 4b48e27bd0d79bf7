// The cost of two numbers in exponents of 2, for sweeps of short pairs (kernels/linear_domain, kernels/integer_log2). A type each, by
// a type of core/cost_types.h:
//
//   cost(u)               of a difference u
//   exponent(u, tilt)     -cost(u) - tilt, of a weight
//   slope(u)              its derivative, but for kFactor
//   kIsRooted             of numbers that were stretched by the root of 1 / (gamma ln 2), so that costs need no factor; slopes come
//                         stretched, too. Stretched numbers have to be near their origin, or they are rounded by too much. Else of
//                         numbers as they are
//
// Made of that root, or of the factor; UnivariateCost of the kind of a cost.
#pragma once

#include <type_traits>

#include "core/cost.h"
#include "cuda/numbers/device_math.cuh"

namespace softdtw {

template <typename T>
struct SquaredDifference {
  using Type = SqEuclidean<DeviceMath<T>>;
  static constexpr bool kIsRooted = true;

  __device__ explicit SquaredDifference(T) {}
  __device__ __forceinline__ static T cost(T u) { return u * u; }
  __device__ __forceinline__ static T exponent(T u, T tilt) { return DeviceMath<T>::fma(-u, u, -tilt); }
  __device__ __forceinline__ static T slope(T u) { return Type::slope(u); }
};

// Cityblock, and of one dimension euclidean. Not of stretched numbers, whose difference may be rounded to 0, where the slope leaps.
template <typename T>
struct AbsoluteDifference {
  static constexpr bool kIsRooted = false;
  T factor;

  __device__ explicit AbsoluteDifference(T factor_) : factor(factor_) {}
  __device__ __forceinline__ T cost(T u) const { return DeviceMath<T>::abs(u) * factor; }
  __device__ __forceinline__ T exponent(T u, T tilt) const { return -cost(u) - tilt; }
  // As Cityblock has it, by the bit of the sign.
  __device__ __forceinline__ static T slope(T u) { return copysign(u != T(0) ? T(1) : T(0), u); }
};

template <typename T>
struct HuberDifference {
  static constexpr bool kIsRooted = true;
  T corner;  // 1, stretched

  __device__ explicit HuberDifference(T stretch) : corner(stretch) {}
  __device__ __forceinline__ T cost(T u) const { return slope(u) * rest(u); }
  __device__ __forceinline__ T exponent(T u, T tilt) const { return DeviceMath<T>::fma(-slope(u), rest(u), -tilt); }
  __device__ __forceinline__ T slope(T u) const { return DeviceMath<T>::min(DeviceMath<T>::max(u, -corner), corner); }

 private:
  __device__ __forceinline__ T rest(T u) const { return DeviceMath<T>::fma(T(-0.5), slope(u), u); }
};

// Any of them, by its kind, of numbers as they are: d (|u| - h d), with d = |u| up to a corner, and the corner beyond it. The slope is d, with the sign of u.
//
//   squared   d = |u|             h = 0
//   huber     d = min(|u|, 1)     h = 1/2
//   absolute  d = 1, 0 where u is 0; h = 0         cityblock, and of one dimension euclidean
template <typename T>
class UnivariateCost {
  T steepness, corner, half;

  __device__ __forceinline__ T d(T u) const { return DeviceMath<T>::min(DeviceMath<T>::abs(u) * steepness, corner); }

 public:
  static constexpr bool kIsRooted = false;

  __device__ explicit UnivariateCost(Cost cost) {
    const bool is_squared = cost == Cost::kSqEuclidean, is_huber = cost == Cost::kHuber;
    constexpr T largest = sizeof(T) == 4 ? T(3.40282347e38) : T(1.7976931348623157e308);
    constexpr T steepest =
        sizeof(T) == 4 ? T(8.507059e37) : T(4.49423283715579e307);  // makes 1 of the smallest normal number
    steepness = is_squared || is_huber ? T(1) : steepest;
    corner = is_squared ? largest : T(1);
    half = is_huber ? T(0.5) : T(0);
  }
  __device__ __forceinline__ T cost(T u) const { return d(u) * DeviceMath<T>::fma(-half, d(u), DeviceMath<T>::abs(u)); }
  __device__ __forceinline__ T slope(T u) const { return copysign(d(u), u); }
};

// Of a problem, by its kind or by what other costs are made of.
template <class OfDifference, typename T>
__device__ __forceinline__ OfDifference cost_of_problem(Cost kind, T number) {
  if constexpr (std::is_constructible_v<OfDifference, Cost>)
    return OfDifference(kind);
  else
    return OfDifference(number);
}

// What a sweep of short pairs is compiled for.
template <template <typename> class Cost_, bool kHasPenalty_, bool kHasBand_ = false>
struct ShortPairOptions {
  template <typename T>
  using Cost = Cost_<T>;
  static constexpr bool kHasPenalty = kHasPenalty_, kHasBand = kHasBand_;
};
using PlainOptions = ShortPairOptions<SquaredDifference, false>;
// With a band; and one for every other cost and for penalties, in integer log2 alone.
using BandOptions = ShortPairOptions<SquaredDifference, false, true>;
using AnyBandOptions = ShortPairOptions<UnivariateCost, true, true>;
template <class Options>
constexpr bool kHasLinearDomain = !std::is_same_v<Options, AnyBandOptions>;

// f(options) for a problem of short pairs (are_short_pairs in select/blocks.h). Only squared differences have a sweep of their own
// without a penalty: the others' are no slower with one of 0.
template <typename T, class F>
auto with_short_pair_options(const Problem<T>& problem, F&& f) {
  const bool has_penalty = problem.warp_penalties != nullptr || problem.warp_penalty != 0;
  if constexpr (sizeof(T) == 4)
    if (problem.bandwidths != nullptr || problem.bandwidth >= 0)
      return problem.cost == Cost::kSqEuclidean && !has_penalty ? f(BandOptions()) : f(AnyBandOptions());
  if (problem.cost == Cost::kSqEuclidean)
    return has_penalty ? f(ShortPairOptions<SquaredDifference, true>()) : f(PlainOptions());
  if (problem.cost == Cost::kCityblock) return f(ShortPairOptions<AbsoluteDifference, true>());
  static_assert(
      std::is_same_v<std::tuple_element_t<static_cast<int>(Cost::kHuber), Costs<PlainMath<T>>>, Huber<PlainMath<T>>>);
  return f(ShortPairOptions<HuberDifference, true>());
}

}  // namespace softdtw
