// No include guard: elastic.h includes this for everyone, and cpu/isa again for every instruction set, whose registers only code
// that stands behind its target may touch.

// The measures' arithmetic, a type each, for host and device. `distance` is what the problem's cost says of two vectors; V is
// a number, or a register of them.

// d = distance, u and l of each row and column: edit distance with real penalty, or any gap costs.
template <typename V>
struct Edit {
  static constexpr const char* kName = "edit";
  SOFTDTW_HD static V match(V distance, V /*epsilon*/) { return distance; }
};

// Edit distance on real sequences: 0 where vectors are nearer than epsilon (`parameter`), else 1; gaps cost 1. NaN stays NaN,
// and what is infinite becomes it, so that the pair is spoiled.
template <typename V>
struct Edr {
  static constexpr const char* kName = "edr";
  SOFTDTW_HD static V match(V distance, V epsilon) { return distance < epsilon ? V{} : V{} + 1 + (distance - distance); }
};

// Longest common subsequence as costs: a match, within epsilon, is 0, anything else what two gaps cost, 1 each.
template <typename V>
struct Lcss {
  static constexpr const char* kName = "lcss";
  SOFTDTW_HD static V match(V distance, V epsilon) { return distance <= epsilon ? V{} : V{} + 2 + (distance - distance); }
};

// Time warp edit distance: d = a[i,j] + a[i-1,j-1], a[i,j] = distance + |t_i - s_j|, a = 0 where i or j is 0.
template <typename V>
struct Twed {
  static constexpr const char* kName = "twed";
  SOFTDTW_HD static V match(V distance, V between_times) {
    return distance + (between_times < V{} ? -between_times : between_times);
  }
};

// Move-split-merge, one dimension: d = distance, u = c + gap(x_i; x_i-1, y_j), l = c + gap(y_j; y_j-1, x_i), c = `parameter`.
// gap(v; a, b) is how far v is from the interval between a and b. There is no step up or left into row or column 1 (x_0, y_0).
template <typename V>
struct Msm {
  static constexpr const char* kName = "msm";
  SOFTDTW_HD static V gap(V v, V a, V b) {
    const V p = a - v, q = b - v;
    const V low = p < q ? p : q, high = p < q ? q : p;
    const V outside = low > -high ? low : -high;
    return outside > V{} ? outside : V{};
  }
  // d gap / d v, a, b: v moves away from the nearer end, which moves towards it. Of equal ends the first; at a kink 0.
  struct Slopes {
    V v, a, b;
  };
  SOFTDTW_HD static Slopes slopes(V v, V a, V b) {
    const V p = a - v, q = b - v;
    const bool below = p > V(0) && q > V(0), above = p < V(0) && q < V(0);
    const V side = below ? V(-1) : above ? V(1) : V(0);
    const bool is_first = below ? p <= q : p >= q;
    return {side, is_first ? -side : V(0), is_first ? V(0) : -side};
  }
};

// Weighted DTW: every step into (i, j) costs w(i - j) distance, w(k) = 1 / (1 + exp(-g (|k| - max(N, M) / 2))), g = `parameter`,
// N and M the pair's own lengths.
template <typename V>
struct Weighted {
  static constexpr const char* kName = "weighted";
  SOFTDTW_HD static double weight(int64_t k, double g, int64_t longest) {
    return 1 / (1 + std::exp(-g * (double(k < 0 ? -k : k) - double(longest) / 2)));
  }
  // dw / dg.
  SOFTDTW_HD static double slope(int64_t k, double g, int64_t longest) {
    const double w = weight(k, g, longest);
    return w * (1 - w) * (double(k < 0 ? -k : k) - double(longest) / 2);
  }
};

// In the order of Measure.
template <typename V>
using Measures = std::tuple<Edit<V>, Edr<V>, Lcss<V>, Twed<V>, Msm<V>, Weighted<V>>;
