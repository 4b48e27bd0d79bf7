// The sweep of (11) down a strip, compiled once per instruction set.

// Cells of a diagonal, and more up to a whole register: rows that do not lie on it, whose entries nothing reads. `step` (if it is
// wanted) has the step into each.
template <typename T, bool kWithSteps>
SOFTDTW_INLINE void hard_elastic_cells(
    const StepCosts<const T*>& costs, const double* before, const double* last, double* now, uint8_t* steps,
    int64_t count) {
  using V = Vec<double>;
  using Bits = typename Lanes<double>::Bits;
  for (int64_t k = 0; k < count; k += kWidth<double>) {
    const V up = load(last + k - 1) + load_wide(costs.up + k), left = load(last + k) + load_wide(costs.left + k);
    const V diagonal = load(before + k - 1) + load_wide(costs.diagonal + k);
    const V side = minimum(left, up);
    store(now + k, minimum(side, diagonal));
    if constexpr (kWithSteps) {
      const Bits sideways = side < diagonal;
      const Bits step = (sideways & (Bits{} + int64_t(kUp))) + (sideways & (left < up) & (Bits{} + int64_t(kLeft - kUp)));
      const Bytes bytes = __builtin_convertvector(step, Bytes);
      __builtin_memcpy(steps + k, &bytes, sizeof bytes);
    }
  }
}

template <typename T, class Type, bool kWithSteps>
class ElasticSweep {
 public:
  ElasticSweep(const ElasticPair<T>& pair, const ElasticStrip& strip) : pair_(pair), strip_(strip), costs_(pair, strip) {}

  // Whether all went well: no cost is NaN, and nobody asked to stop.
  bool operator()() {
    const Extent& extent = pair_.extent;
    const int64_t first = strip_.first_diagonal(extent), last = strip_.last_diagonal(extent);
    const int64_t stride = ElasticStrip::stride(strip_.rows);
    for (int k = 0; k < 3; ++k) {
      r_[k] = strip_.entries + k * stride + kElasticSlack;
      for (int64_t i = -kElasticSlack; i < stride - kElasticSlack; ++i) r_[k][i] = kFar;
    }
    bool spoiled = false;
    for (int64_t d = first - 2; d < first; ++d) {
      take_above(d);
      if (d + 1 >= 0) take_border(d);
    }
    costs_.enter(first);
    uint8_t* steps = strip_.steps;
    for (int64_t d = first; d <= last; ++d) {
      const StripRows own(extent, strip_.row, strip_.rows, d);
      const int64_t count = own.last - own.first + 1;
      if (stop_asked(count > 0 ? count : 1)) return false;
      const int now = place(d), before = place(d + 1), left = place(d + 2);
      if (count > 0) {
        constexpr int64_t kLanes = kWidth<double>;
        const int64_t rounded = (count + kLanes - 1) / kLanes * kLanes, k = own.first;
        const StepCosts<const T*> costs = costs_(d, k, rounded, spoiled);
        hard_elastic_cells<T, kWithSteps>(costs, r_[before] + k, r_[left] + k, r_[now] + k, steps + k, rounded);
      }
      r_[now][own.first - 1] = r_[now][own.last + 1] = kFar;
      if (own.first == 0) take_above(d);
      if (own.last == d) take_border(d);
      if (count > 0 && own.last == strip_.rows - 1) strip_.last[d - own.last] = r_[now][own.last];
      if (kWithSteps) steps += stride;
    }
    return !spoiled;
  }

 private:
  static constexpr double kFar = __builtin_inf();

  static int place(int64_t diagonal) { return int((diagonal + 3) % 3); }
  // What the row above the strip has on a diagonal.
  void take_above(int64_t d) {
    const int64_t column = d + 1;
    const bool is_there = column < pair_.extent.m && pair_.in_band(strip_.row - 1, column);
    r_[place(d)][-1] = is_there ? strip_.above[column] : kFar;
  }
  // What column -1 has.
  void take_border(int64_t d) {
    const int64_t row = d + 1;
    if (row >= strip_.rows || !pair_.in_band(strip_.row + row, -1)) return;
    r_[place(d)][row] = strip_.border[row];
  }

  const ElasticPair<T>& pair_;
  const ElasticStrip& strip_;
  ElasticCosts<T, Type> costs_;
  double* r_[3];
};

template <typename T>
bool elastic_sweep(const ElasticPair<T>& pair, const ElasticStrip& strip) {
  return with_costs(pair, [&](auto type) {
    using Type = decltype(type);
    if (strip.steps) return ElasticSweep<T, Type, true>(pair, strip)();
    return ElasticSweep<T, Type, false>(pair, strip)();
  });
}
