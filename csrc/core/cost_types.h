// The costs, a type each, for host and device: C = finish(sum over the coordinates of share(x_d - y_d)), and
// dC/dx_d = kFactor slope(x_d - y_d), divided by C where kOverCost says so. A new cost is a type here, and its place in Costs.
//
//   kName            what users call it
//   share(u, sum)    sum, and what a difference u adds to it: at least as much as a smaller one, which bounds a tile's costs
//   Sum              the type that share and slope are of: what is compiled for them alone is compiled once
//
// Math has V, a number or a register of them, and fma(a, b, c), abs(a), sqrt(a) and quotient(a, b).
//
// No include guard: cost.h includes this for everyone, and cpu/kernels.h again for every instruction set, whose registers only
// code that stands behind its target may touch.

template <class Math, typename V = typename Math::V>
struct SqEuclidean {
  using Sum = SqEuclidean;
  static constexpr const char* kName = "sqeuclidean";
  static constexpr int kFactor = 2;
  static constexpr bool kOverCost = false;
  SOFTDTW_HD static V share(V u, V sum) { return Math::fma(u, u, sum); }
  SOFTDTW_HD static V finish(V sum) { return sum; }
  SOFTDTW_HD static V slope(V u) { return u; }
};

template <class Math, typename V = typename Math::V>
struct Euclidean : SqEuclidean<Math> {
  static constexpr const char* kName = "euclidean";
  static constexpr int kFactor = 1;
  static constexpr bool kOverCost = true;
  SOFTDTW_HD static V finish(V sum) { return Math::sqrt(sum); }
};

template <class Math, typename V = typename Math::V>
struct Cityblock : SqEuclidean<Math> {
  using Sum = Cityblock;
  static constexpr const char* kName = "cityblock";
  static constexpr int kFactor = 1;
  SOFTDTW_HD static V share(V u, V sum) { return sum + Math::abs(u); }
  SOFTDTW_HD static V slope(V u) { return u > V{} ? V{} + 1 : u < V{} ? V{} - 1 : V{}; }
};

// u^2 / 2 up to a difference of 1, |u| - 1/2 beyond.
template <class Math, typename V = typename Math::V>
struct Huber : SqEuclidean<Math> {
  using Sum = Huber;
  static constexpr const char* kName = "huber";
  static constexpr int kFactor = 1;
  SOFTDTW_HD static V share(V u, V sum) { return Math::fma(slope(u), u - slope(u) / 2, sum); }
  SOFTDTW_HD static V slope(V u) { return u > V{} + 1 ? V{} + 1 : u < V{} - 1 ? V{} - 1 : u; }
};

// In the order of Cost.
template <class Math>
using Costs = std::tuple<SqEuclidean<Math>, Euclidean<Math>, Cityblock<Math>, Huber<Math>>;

// e / cost for kOverCost, 0 where the cost is: the subgradient there.
template <class Math, typename V>
SOFTDTW_HD V over_cost(V e, V cost) {
  return cost > V{} ? Math::quotient(e, cost) : V{};
}
