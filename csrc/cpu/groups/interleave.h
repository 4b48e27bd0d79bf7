// Series into lanes, register by register.

// Lane k of register i becomes lane i of register k.
template <int kHalf = 1, typename T, int... I>
SOFTDTW_INLINE void transpose(Vec<T>* v, std::integer_sequence<int, I...> lanes) {
  for (int i = 0; i < kWidth<T>; ++i) {
    if (i & kHalf) continue;
    const Vec<T> a = v[i], b = v[i + kHalf];
    v[i] = __builtin_shufflevector(a, b, (I & kHalf ? kWidth<T> + I - kHalf : I)...);
    v[i + kHalf] = __builtin_shufflevector(a, b, (I & kHalf ? kWidth<T> + I : I + kHalf)...);
  }
  if constexpr (2 * kHalf < kWidth<T>) transpose<2 * kHalf, T>(v, lanes);
}

// A lane for each of some series of `count` numbers. A series whose numbers are not all below the limit, whatever their sign, does not
// fit; NaN is not below.
template <typename From, typename T>
void interleave(const From* const* series, int64_t count, T* to, T limit, bool* fits) {
  constexpr int kLanes = kWidth<T>;
  const Vec<T> limits = splat(limit);
  Vec<T> fitting = splat(T(1));
  const auto see = [&](Vec<T> v) SOFTDTW_LAMBDA { fitting = VectorMath<T>::abs(v) < limits ? fitting : Vec<T>{}; };
  int64_t i = 0;
  for (; i + kLanes <= count; i += kLanes) {
    Vec<T> v[kLanes];
    ascending<0, kLanes>([&](int lane) SOFTDTW_LAMBDA {
      if constexpr (sizeof(T) == sizeof(double))
        v[lane] = load_wide(series[lane] + i);
      else
        v[lane] = load(series[lane] + i);
    });
    transpose<1, T>(v, std::make_integer_sequence<int, kLanes>());
    ascending<0, kLanes>([&](int k) SOFTDTW_LAMBDA {
      see(v[k]);
      store(to + (i + k) * kLanes, v[k]);
    });
  }
  for (; i < count; ++i) {
    Vec<T> v;
    for (int lane = 0; lane < kLanes; ++lane) v[lane] = series[lane][i];
    see(v);
    store(to + i * kLanes, v);
  }
  for (int lane = 0; lane < kLanes; ++lane) fits[lane] = fits[lane] && fitting[lane] != T(0);
}
