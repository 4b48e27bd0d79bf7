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

// An entry of the table times what a step from it costs: s 2^-m.
struct SoftTerm {
  Vec<double> m, s;

  SOFTDTW_INLINE SoftTerm(const double* from_m, const double* from_s, Vec<double> cost, Vec<double> scale) {
    const Vec<double> most = splat(Unreachable<double>::value);
    const Vec<double> scaled = minimum(cost * scale, most), rest = fraction(scaled);
    m = load(from_m) + (scaled - rest);
    s = load(from_s) * power_of_minus(rest);
  }
  SOFTDTW_INLINE Vec<double> at(Vec<double> least) const { return times_power(s, least - m); }
};

template <typename T>
SOFTDTW_INLINE void soft_elastic_cells(
    const StepCosts<const T*>& costs, double scale, const double* before_m, const double* before_s, const double* last_m,
    const double* last_s, double* now_m, double* now_s, double* shares, int64_t stride, int64_t count) {
  using V = Vec<double>;
  const V unit = splat(scale);
  for (int64_t k = 0; k < count; k += kWidth<double>) {
    const SoftTerm up(last_m + k - 1, last_s + k - 1, load_wide(costs.up + k), unit);
    const SoftTerm left(last_m + k, last_s + k, load_wide(costs.left + k), unit);
    const SoftTerm diagonal(before_m + k - 1, before_s + k - 1, load_wide(costs.diagonal + k), unit);
    V m = minimum(minimum(left.m, up.m), diagonal.m);
    const V from_up = up.at(m), from_left = left.at(m), from_diagonal = diagonal.at(m);
    V s = (from_left + from_up) + from_diagonal;
    const V inverse = 1.0 / s;
    store(shares + k, from_diagonal * inverse);
    store(shares + stride + k, from_up * inverse);
    store(shares + 2 * stride + k, from_left * inverse);
    normalise<double>(m, s);
    store(now_m + k, m);
    store(now_s + k, s);
  }
}

template <typename T, class Type, ElasticWanted kWanted>
class ElasticSweep {
 public:
  ElasticSweep(const ElasticPair<T>& pair, const ElasticStrip& strip) : pair_(pair), strip_(strip), costs_(pair, strip) {}

  // Whether all went well: no cost is NaN, and nobody asked to stop.
  bool operator()() {
    const Extent& extent = pair_.extent;
    const int64_t first = strip_.first_diagonal(extent), last = strip_.last_diagonal(extent);
    const int64_t stride = ElasticStrip::stride(strip_.rows);
    for (int k = 0; k < 3; ++k) {
      m_[k] = strip_.entries + k * stride + kElasticSlack;
      s_[k] = strip_.entries + (3 + k) * stride + kElasticSlack;
      for (int64_t i = -kElasticSlack; i < stride - kElasticSlack; ++i) {
        m_[k][i] = kFar;
        if (kIsSoft) s_[k][i] = 1;
      }
    }
    bool spoiled = false;
    for (int64_t d = first - 2; d < first; ++d) {
      take_above(d);
      if (d + 1 >= 0) take_border(d);
    }
    costs_.enter(first);
    uint8_t* steps = strip_.steps;
    double* shares = strip_.shares;
    for (int64_t d = first; d <= last; ++d) {
      const StripRows own(extent, strip_.row, strip_.rows, d);
      const int64_t count = own.last - own.first + 1;
      if (stop_asked(count > 0 ? count : 1)) return false;
      const int now = place(d), before = place(d + 1), left = place(d + 2);
      if (count > 0) {
        constexpr int64_t kLanes = kWidth<double>;
        const int64_t rounded = (count + kLanes - 1) / kLanes * kLanes, k = own.first;
        const StepCosts<const T*> costs = costs_(d, k, rounded, spoiled);
        if constexpr (kIsSoft)
          soft_elastic_cells<T>(
              costs, pair_.scale, m_[before] + k, s_[before] + k, m_[left] + k, s_[left] + k, m_[now] + k, s_[now] + k,
              shares + k, stride, rounded);
        else
          hard_elastic_cells<T, kWanted == ElasticWanted::kSteps>(
              costs, m_[before] + k, m_[left] + k, m_[now] + k, steps + k, rounded);
      }
      set(now, own.first - 1, kFar, 1);
      set(now, own.last + 1, kFar, 1);
      if (own.first == 0) take_above(d);
      if (own.last == d) take_border(d);
      if (count > 0 && own.last == strip_.rows - 1) {
        const int64_t column = d - own.last;
        strip_.last_m[column] = m_[now][own.last];
        if (kIsSoft) strip_.last_s[column] = s_[now][own.last];
      }
      if (kWanted == ElasticWanted::kSteps) steps += stride;
      if (kWanted == ElasticWanted::kShares) shares += 3 * stride;
    }
    return !spoiled;
  }

 private:
  static constexpr bool kIsSoft = kWanted == ElasticWanted::kShares;
  static constexpr double kFar = kIsSoft ? Unreachable<double>::value : __builtin_inf();

  static int place(int64_t diagonal) { return int((diagonal + 3) % 3); }
  void set(int place, int64_t row, double m, double s) {
    m_[place][row] = m;
    if (kIsSoft) s_[place][row] = s;
  }
  // What the row above the strip has on a diagonal.
  void take_above(int64_t d) {
    const int64_t column = d + 1;
    const bool is_there = column < pair_.extent.m && pair_.in_band(strip_.row - 1, column);
    set(place(d), -1, is_there ? strip_.above_m[column] : kFar, is_there && kIsSoft ? strip_.above_s[column] : 1);
  }
  // What column -1 has.
  void take_border(int64_t d) {
    const int64_t row = d + 1;
    if (row >= strip_.rows || !pair_.in_band(strip_.row + row, -1)) return;
    set(place(d), row, strip_.border_m[row], kIsSoft ? strip_.border_s[row] : 1);
  }

  const ElasticPair<T>& pair_;
  const ElasticStrip& strip_;
  ElasticCosts<T, Type> costs_;
  double *m_[3], *s_[3];
};

template <typename T>
bool elastic_sweep(const ElasticPair<T>& pair, const ElasticStrip& strip) {
  return with_costs(pair, [&](auto type) {
    using Type = decltype(type);
    switch (strip.wanted) {
      case ElasticWanted::kHard:
        return ElasticSweep<T, Type, ElasticWanted::kHard>(pair, strip)();
      case ElasticWanted::kSteps:
        return ElasticSweep<T, Type, ElasticWanted::kSteps>(pair, strip)();
      default:
        return ElasticSweep<T, Type, ElasticWanted::kShares>(pair, strip)();
    }
  });
}
