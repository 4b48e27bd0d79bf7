// One register of numbers of the instruction set that the including file is compiled for. No include guard and no header of
// its own: a file that sets a target includes this inside its unnamed namespace, so that no symbol is shared between targets.

template <typename T>
struct Lanes;
template <>
struct Lanes<float> {
  using Vector = float __attribute__((vector_size(SOFTDTW_VECTOR_BYTES)));
  using Bits = int32_t __attribute__((vector_size(SOFTDTW_VECTOR_BYTES)));
  static constexpr int kMantissa = 23;
  static constexpr int32_t kBias = 127;
  static constexpr float kEpsilon = 0x1p-23f;
};
template <>
struct Lanes<double> {
  using Vector = double __attribute__((vector_size(SOFTDTW_VECTOR_BYTES)));
  using Bits = int64_t __attribute__((vector_size(SOFTDTW_VECTOR_BYTES)));
  static constexpr int kMantissa = 52;
  static constexpr int64_t kBias = 1023;
  static constexpr double kEpsilon = 0x1p-52;
};

template <typename T>
using Vec = typename Lanes<T>::Vector;
template <typename T>
constexpr int kWidth = SOFTDTW_VECTOR_BYTES / sizeof(T);

using Bytes = uint8_t __attribute__((vector_size(kWidth<double>)));  // one for every lane of float64

#define SOFTDTW_INLINE inline __attribute__((always_inline))
#define SOFTDTW_LAMBDA __attribute__((always_inline))
#define SOFTDTW_APART __attribute__((noinline))

template <typename T>
SOFTDTW_INLINE Vec<T> load(const T* from) {
  Vec<T> v;
  __builtin_memcpy(&v, from, sizeof v);
  return v;
}

template <typename T>
SOFTDTW_INLINE void store(T* to, Vec<T> v) {
  __builtin_memcpy(to, &v, sizeof v);
}

template <typename T>
SOFTDTW_INLINE Vec<T> splat(T a) {
  return a - Vec<T>{};
}

template <typename T, int... I>
struct Shuffle {
  // Lane i is lane i - 1 of v; lane 0 is the last lane of before.
  SOFTDTW_INLINE static Vec<T> from_before(Vec<T> before, Vec<T> v) {
    return __builtin_shufflevector(before, v, (I + kWidth<T> - 1)...);
  }
  // Lane i is lane i + 1 of v; the last lane is lane 0 of after.
  SOFTDTW_INLINE static Vec<T> from_after(Vec<T> v, Vec<T> after) { return __builtin_shufflevector(v, after, (I + 1)...); }
};
template <typename T, int... I>
Shuffle<T, I...> shuffle_of(std::integer_sequence<int, I...>);
template <typename T>
using Neighbour = decltype(shuffle_of<T>(std::make_integer_sequence<int, kWidth<T>>()));

// The nearest whole number, if |t| is far below the rounder.
template <typename T>
SOFTDTW_INLINE Vec<T> nearest_whole(Vec<T> t) {
  return (t + Whole<T>::rounder) - Whole<T>::rounder;
}

#if SOFTDTW_VECTOR_BYTES == 64

SOFTDTW_INLINE Vec<float> minimum(Vec<float> a, Vec<float> b) { return (Vec<float>)_mm512_min_ps((__m512)a, (__m512)b); }
SOFTDTW_INLINE Vec<double> minimum(Vec<double> a, Vec<double> b) {
  return (Vec<double>)_mm512_min_pd((__m512d)a, (__m512d)b);
}
// a 2^n for whole n <= 0.
SOFTDTW_INLINE Vec<float> times_power(Vec<float> a, Vec<float> n) {
  return (Vec<float>)_mm512_scalef_ps((__m512)a, (__m512)n);
}
SOFTDTW_INLINE Vec<double> times_power(Vec<double> a, Vec<double> n) {
  return (Vec<double>)_mm512_scalef_pd((__m512d)a, (__m512d)n);
}
// t minus the nearest whole number.
SOFTDTW_INLINE Vec<float> fraction(Vec<float> t) { return (Vec<float>)_mm512_reduce_ps((__m512)t, 8); }
SOFTDTW_INLINE Vec<double> fraction(Vec<double> t) { return (Vec<double>)_mm512_reduce_pd((__m512d)t, 8); }
template <typename T>
SOFTDTW_INLINE T lowest(Vec<T> v) {
  if constexpr (sizeof(T) == 4) return _mm512_reduce_min_ps((__m512)v);
  if constexpr (sizeof(T) == 8) return _mm512_reduce_min_pd((__m512d)v);
}

#else

// Both give b where one of the two is a NaN.
template <typename V>
SOFTDTW_INLINE V minimum(V a, V b) {
  return a < b ? a : b;
}

template <typename T>
SOFTDTW_INLINE Vec<T> times_power_of(Vec<T> a, Vec<T> n) {
  using L = Lanes<T>;
  const Vec<T> least = splat<T>(-L::kBias);  // becomes a factor of zero
  const Vec<T> clamped = n > least ? n : least;
  // The low bits of the rounder + bias + n are bias + n: shifted into place they are the exponent of 2^n.
  const auto bits = (typename L::Bits)(clamped + (Whole<T>::rounder + L::kBias)) << L::kMantissa;
  return a * (Vec<T>)bits;
}
SOFTDTW_INLINE Vec<float> times_power(Vec<float> a, Vec<float> n) { return times_power_of<float>(a, n); }
SOFTDTW_INLINE Vec<double> times_power(Vec<double> a, Vec<double> n) { return times_power_of<double>(a, n); }

template <typename T>
SOFTDTW_INLINE Vec<T> fraction_of(Vec<T> t) {
  const Vec<T> limit = splat<T>(Whole<T>::rounder / 4);
  return (t < limit) & (t > -limit) ? t - nearest_whole<T>(t) : t - t;
}
SOFTDTW_INLINE Vec<float> fraction(Vec<float> t) { return fraction_of<float>(t); }
SOFTDTW_INLINE Vec<double> fraction(Vec<double> t) { return fraction_of<double>(t); }
template <typename T>
SOFTDTW_INLINE T lowest(Vec<T> v) {
  T least = v[0];
  for (int lane = 1; lane < kWidth<T>; ++lane) least = v[lane] < least ? v[lane] : least;
  return least;
}

#endif

// 1 / a to 14 bits or better, and never to the last bit: see soft/shares.h.
template <typename T>
SOFTDTW_INLINE Vec<T> rough_reciprocal(Vec<T> a) {
#if SOFTDTW_VECTOR_BYTES == 64
  if constexpr (sizeof(T) == 4) return (Vec<T>)_mm512_rcp14_ps((__m512)a);
#endif
  return (1 - 32 * Lanes<T>::kEpsilon) / a;
}

template <typename V>
SOFTDTW_INLINE V maximum(V a, V b) {
  return a > b ? a : b;
}

template <typename T>
SOFTDTW_INLINE T highest(Vec<T> v) {
  return -lowest<T>(-v);
}

// As many floats as a register has lanes of double.
using HalfFloats = float __attribute__((vector_size(SOFTDTW_VECTOR_BYTES / 2)));

SOFTDTW_INLINE Vec<double> widened(HalfFloats narrow) {
#if SOFTDTW_VECTOR_BYTES == 64
  return (Vec<double>)_mm512_cvtps_pd((__m256)narrow);  // of what follows below GCC makes four instructions
#else
  return __builtin_convertvector(narrow, Vec<double>);
#endif
}

SOFTDTW_INLINE Vec<double> load_wide(const double* from) { return load(from); }
SOFTDTW_INLINE Vec<double> load_wide(const float* from) {
  HalfFloats narrow;
  __builtin_memcpy(&narrow, from, sizeof narrow);
  return widened(narrow);
}

SOFTDTW_INLINE void store_narrow(float* to, Vec<double> v) {
#if SOFTDTW_VECTOR_BYTES == 64
  const HalfFloats narrow = (HalfFloats)_mm512_cvtpd_ps((__m512d)v);
#else
  const HalfFloats narrow = __builtin_convertvector(v, HalfFloats);
#endif
  __builtin_memcpy(to, &narrow, sizeof narrow);
}

#if SOFTDTW_VECTOR_BYTES == 64
SOFTDTW_INLINE Vec<float> root(Vec<float> a) { return (Vec<float>)_mm512_sqrt_ps((__m512)a); }
SOFTDTW_INLINE Vec<double> root(Vec<double> a) { return (Vec<double>)_mm512_sqrt_pd((__m512d)a); }
#elif SOFTDTW_VECTOR_BYTES == 32
SOFTDTW_INLINE Vec<float> root(Vec<float> a) { return (Vec<float>)_mm256_sqrt_ps((__m256)a); }
SOFTDTW_INLINE Vec<double> root(Vec<double> a) { return (Vec<double>)_mm256_sqrt_pd((__m256d)a); }
#else
template <typename V>
inline V root(V a) {  // lane by lane, unless the compiler knows better
  for (size_t lane = 0; lane < sizeof a / sizeof a[0]; ++lane) a[lane] = __builtin_sqrt(a[lane]);
  return a;
}
#endif

// a b + c, rounded once where the processor can. Of a sum of two products a compiler may choose which one it rounds.
#if SOFTDTW_VECTOR_BYTES == 64
SOFTDTW_INLINE Vec<float> multiply_add(Vec<float> a, Vec<float> b, Vec<float> c) {
  return (Vec<float>)_mm512_fmadd_ps((__m512)a, (__m512)b, (__m512)c);
}
SOFTDTW_INLINE Vec<double> multiply_add(Vec<double> a, Vec<double> b, Vec<double> c) {
  return (Vec<double>)_mm512_fmadd_pd((__m512d)a, (__m512d)b, (__m512d)c);
}
#elif SOFTDTW_VECTOR_BYTES == 32
SOFTDTW_INLINE Vec<float> multiply_add(Vec<float> a, Vec<float> b, Vec<float> c) {
  return (Vec<float>)_mm256_fmadd_ps((__m256)a, (__m256)b, (__m256)c);
}
SOFTDTW_INLINE Vec<double> multiply_add(Vec<double> a, Vec<double> b, Vec<double> c) {
  return (Vec<double>)_mm256_fmadd_pd((__m256d)a, (__m256d)b, (__m256d)c);
}
#else
template <typename V>
SOFTDTW_INLINE V multiply_add(V a, V b, V c) {
  return a * b + c;
}
#endif

// What costs (core/cost_types.h) compute with.
template <typename T>
struct VectorMath {
  using V = Vec<T>;
  SOFTDTW_INLINE static V fma(V a, V b, V c) { return multiply_add(a, b, c); }
  SOFTDTW_INLINE static V abs(V a) {
    using Bits = typename Lanes<T>::Bits;
    return (V)((Bits)a & ~(Bits)splat(T(-0.0)));
  }
  SOFTDTW_INLINE static V quotient(V a, V b) { return a / b; }
  SOFTDTW_INLINE static V sqrt(V a) { return root(a); }
};

// s 2^-m with s brought to [1, 2). A NaN stays one.
template <typename T>
SOFTDTW_INLINE void normalise(Vec<T>& m, Vec<T>& s) {
  using L = Lanes<T>;
  const auto exponent = (typename L::Bits)s >> L::kMantissa;  // s > 0
  s *= (Vec<T>)((2 * L::kBias - exponent) << L::kMantissa);
  m -= __builtin_convertvector(exponent - L::kBias, Vec<T>);
}

// ((first r + ...) r + ...) r + last.
template <typename T, typename... Rest>
SOFTDTW_INLINE Vec<T> polynomial(Vec<T> r, T first, Rest... rest) {
  Vec<T> sum = splat(first);
  ((sum = sum * r + rest), ...);
  return sum;
}
// 2^-r for |r| <= 1/2: 1 + r q(r), q interpolated at Chebyshev nodes; relative error 5e-9 and 1e-19.
SOFTDTW_INLINE Vec<float> power_of_minus(Vec<float> r) {
  return polynomial<float>(
      r, 1.5453162945e-4f, -1.3390863365e-3f, 9.6180825573e-3f, -5.5503571142e-2f, 2.4022650761e-1f, -6.9314718802e-1f,
      1.0f);
}
SOFTDTW_INLINE Vec<double> power_of_minus(Vec<double> r) {
  return polynomial<double>(
      r, 2.5729324177362304e-11, -4.4558179083360645e-10, 7.0548973041554993e-9, -1.0178057087733941e-7,
      1.3215486808705563e-6, -1.5252733841556773e-5, 1.5403530393370733e-4, -1.3333558146406470e-3, 9.6181291076284795e-3,
      -5.5504108664821627e-2, 2.4022650695910071e-1, -6.9314718055994531e-1, 1.0);
}

// Calls f with Begin, Begin + 1, ... End - 1, or the other way round, as constants where they are few: arrays indexed by them
// then live in registers.
constexpr int kUnrolled = 8;
template <int Index>
struct Constant {
  constexpr operator int() const { return Index; }
};
template <int Begin, int End, typename F>
SOFTDTW_INLINE void ascending(const F& f) {
  if constexpr (End - Begin > kUnrolled) {
    for (int k = Begin; k < End; ++k) f(k);
  } else if constexpr (Begin < End) {
    f(Constant<Begin>{});
    ascending<Begin + 1, End>(f);
  }
}
template <int Begin, int End, typename F>
SOFTDTW_INLINE void descending(const F& f) {
  if constexpr (End - Begin > kUnrolled) {
    for (int k = End - 1; k >= Begin; --k) f(k);
  } else if constexpr (Begin < End) {
    f(Constant<End - 1>{});
    descending<Begin, End - 1>(f);
  }
}
// The same by values, which may be constants.
template <int Begin, int End, typename F>
SOFTDTW_INLINE void ascending(Constant<Begin>, Constant<End>, const F& f) {
  ascending<Begin, End>(f);
}
template <int Begin, int End, typename F>
SOFTDTW_INLINE void descending(Constant<Begin>, Constant<End>, const F& f) {
  descending<Begin, End>(f);
}
template <typename F>
SOFTDTW_INLINE void ascending(int begin, int end, const F& f) {
  for (int k = begin; k < end; ++k) f(k);
}
template <typename F>
SOFTDTW_INLINE void descending(int begin, int end, const F& f) {
  for (int k = end - 1; k >= begin; --k) f(k);
}
