// The cost of matching two vectors: from what a problem calls it (problem.h) to its type (cost_types.h).
#pragma once

#include <cmath>
#include <tuple>
#include <type_traits>

#include "problem.h"

namespace softdtw {

// Arithmetic as the compiler has it.
template <typename T>
struct PlainMath {
  using V = T;
  SOFTDTW_HD static T fma(T a, T b, T c) { return a * b + c; }
  SOFTDTW_HD static T abs(T a) { return std::fabs(a); }
  SOFTDTW_HD static T sqrt(T a) { return std::sqrt(a); }
  SOFTDTW_HD static T quotient(T a, T b) { return a / b; }
};

#include "cost_types.h"

// f(type) with one of Types, which are Costs, for a cost that is no matrix.
template <class Types, int kPlace = 0, class F>
SOFTDTW_HD auto with_cost(Cost cost, F&& f) {
  using Own = std::tuple_element_t<kPlace, Types>;
  if constexpr (kPlace + 1 == std::tuple_size_v<Types>)
    return f(Own{});
  else
    return cost == static_cast<Cost>(kPlace) ? f(Own{}) : with_cost<Types, kPlace + 1>(cost, f);
}

// f(type::Sum): once in the machine code for all types that have the same.
template <class Types, int kPlace = 0, class F>
SOFTDTW_HD auto with_sum(Cost cost, F&& f) {
  using Own = std::tuple_element_t<kPlace, Types>;
  const auto has_own = [](auto type) { return std::is_same_v<typename decltype(type)::Sum, Own>; };
  if constexpr (kPlace + 1 == std::tuple_size_v<Types>)
    return f(typename Own::Sum{});
  else if constexpr (!has_own(Own{}))
    return with_sum<Types, kPlace + 1>(cost, f);
  else
    return with_cost<Types>(cost, has_own) ? f(Own{}) : with_sum<Types, kPlace + 1>(cost, f);
}

// What kernels see: of one dimension the root of a square is what is squared, without what squares lose.
inline Cost cost_of_dim(Cost cost, int64_t dim) { return cost == Cost::kEuclidean && dim == 1 ? Cost::kCityblock : cost; }

// The members of a cost's type. Of a matrix, whose gradient is E itself, there are kFactor = 1 and kOverCost = false.
SOFTDTW_HD int factor_of(Cost cost) {
  return cost == Cost::kMatrix ? 1 : with_cost<Costs<PlainMath<float>>>(cost, [](auto type) { return type.kFactor; });
}
SOFTDTW_HD bool is_over_cost(Cost cost) {
  return cost != Cost::kMatrix && with_cost<Costs<PlainMath<float>>>(cost, [](auto type) { return type.kOverCost; });
}
template <class Math, typename T>
SOFTDTW_HD T add_share(Cost cost, T u, T sum) {
  return with_sum<Costs<Math>>(cost, [&](auto type) { return type.share(u, sum); });
}
template <class Math, typename T>
SOFTDTW_HD T finish_cost(Cost cost, T sum) {
  return with_cost<Costs<Math>>(cost, [&](auto type) { return type.finish(sum); });
}
template <class Math, typename T>
SOFTDTW_HD T slope_of(Cost cost, T u) {
  return with_sum<Costs<Math>>(cost, [&](auto type) { return type.slope(u); });
}

// From two vectors, in the type of Math.
template <class Math, typename T>
SOFTDTW_HD typename Math::V cost_of_vectors(
    const Problem<T>& problem, const View<const T>& x, const View<const T>& y, int row, int column) {
  using V = typename Math::V;
  V sum = 0;
  for (int64_t d = 0; d < problem.dim; ++d) sum = add_share<Math>(problem.cost, V(x.at(row, d)) - V(y.at(column, d)), sum);
  return finish_cost<Math>(problem.cost, sum);
}

// Rounding a cost to float32 may change it by some 2^-23 of it. From so many exponents of 2 on costs are computed in float64: those below
// are off by 2^-7 gamma at most, which moves E by up to 2e-5 in random problems.
constexpr float kMostRounded = 65536;

}  // namespace softdtw
