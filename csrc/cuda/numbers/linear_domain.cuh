// The linear domain: equations (2), (3) and (4) as they stand, in float64 and in one unit for a whole pair. The fastest one, for
// series of one dimension and moderate length without a band.
//
// A sum over paths that leaves float64's range does so for two reasons: it has ever more terms, and every step multiplies by a
// weight w <= 1. The first is taken out, by dividing every step up or left by c and every diagonal one by c^2. The entries are
//     A[i,j] = a[i,j] c^-(i+j) 2^kTop = v (A[i-1,j] + A[i,j-1] + A[i-1,j-1] / c),   v = w / c,
// where 1/c goes into the exponent of the weight, so that it costs nothing. c = 2^kTilt, with
//     2 / c + 1 / c^2 < 1,                                                                                             (*)
// wherefore no entry is larger than the largest of those that it comes from: nothing overflows, whatever the weights are. All
// paths to a cell have i + j in common, so E = A B / A[N,M] with
//     B[i,j] = V[i+1,j] + V[i,j+1] + V[i+1,j+1] / c,   V = v B,   B[N,M] = 1,
// which (*) bounds by 1 as well.
//
// What is lost to gradual underflow is at most 3 * 2^-1075 a cell, on its way into the cell's entry. Of that, A[N,M] gets what
// B says, at most all of it: of n m < 2^21 cells less than 2^-1052. So an A[N,M] of 2^kLeast is right to 2^-50, and this is all that
// there is to look at: a pair whose last entry is below is given up. Reverse computes B / A[N,M] <= 2^-kLeast; what that loses is
// again 2^-1075 a cell, and times A <= 2^kTop nothing to E.
//
// With a warp penalty, q = exp(-p / gamma) to every step up or left, the entries are
//     A[i,j] = v (A[i-1,j] + A[i,j-1] + A[i-1,j-1] / (q c)),   v = w q / c,   B likewise,   2 q / c + 1 / c^2 <= 1,
// which is the same number of operations, and bounded in the same way. c is a number of the pair's own, smaller than without a
// penalty, so that steps use up less of the range. 1 / (q c) may be large: the table starts with q 2^kTop, no product with it exceeds
// 2^kTop, and what reverse loses is again nothing to E. A penalty of hundreds of binary orders is beyond what weights can hold.
//
// In float32 problems a weight has float32's 24 bits, an entry that waits for backward its upper 21: the error of the E that come
// from it.
//
// Pairs are given up, too, whose costs are beyond what the weights can hold, or whose series are so far from their origin that
// moving them there would round their differences by too much. integer_log2.cuh computes them in the same call, in float32, and extended_range.cuh
// what is left.
#pragma once

#include "device_math.cuh"
#include "float64_bits.cuh"

namespace softdtw {

constexpr float kTilt = 1.28125f;                     // few bits, so that no path's weight is off by the rounding of it
constexpr double kDiagonal = 0.41143886953849121113;  // 1 / c
static_assert(2 * kDiagonal + kDiagonal * kDiagonal < 0.993);
constexpr int kTop = 1000, kLeast = -1000;
// The exponential unit is too low, by 5e-8 in the mean of results below 1/2, and 0.8e-8 of those within a factor of sqrt(2) of 1,
// measured on an H200: in 2^-29 of the last place, as widen has it. Over hundreds of steps that would add up.
constexpr unsigned kTooLowBelowOne = 5u << 26, kTooLowAroundOne = 3u << 24;

// The constants of a pair's recurrence, by its penalty p in exponents of 2: none, or any up to kMost.
template <typename T>
struct NoLinearPenalty {
  __device__ explicit NoLinearPenalty(double) {}
  __device__ __forceinline__ static bool fits(T deepest, T most) { return deepest <= most; }
  // log2(1 / v) of a cell without a cost: a part for an exponent, and a whole one for a float64's.
  __device__ __forceinline__ static T tilt() { return kTilt; }
  __device__ __forceinline__ static int whole() { return 0; }
  __device__ __forceinline__ static double of_cell() { return static_cast<double>(kTilt); }
  __device__ __forceinline__ static double diagonal() { return kDiagonal; }
  __device__ __forceinline__ static int top() { return kTop; }
  // log2(1 / v) as a whole, and log2(c)
  __device__ __forceinline__ static double of_step() { return static_cast<double>(kTilt); }
};

template <typename T>
class LinearPenalty {
  static constexpr double kMost = 880;  // binary orders that are left above a weight's when `whole` is taken from them
  static constexpr bool kIsFloat32 = sizeof(T) == 4;
  T tilt_;
  int whole_, top_;  // whole_: in place in the upper word of a float64
  double diagonal_, of_step_;
  bool exists;

 public:
  __device__ explicit LinearPenalty(double penalty) : exists(penalty <= kMost) {
    const double p = exists ? penalty : 0;
    // The sum p + log2(c) in 32nds, so that it is exact in every exponent: no less than it has to be for (*), whatever the
    // approximations are off by.
    const float q = DeviceMath<float>::exp2(static_cast<float>(-p));
    const float least = DeviceMath<float>::log2(q + DeviceMath<float>::sqrt(fmaf(q, q, 1.0f)));
    const double sum = ceil((p + static_cast<double>(least)) * 32 + 0.125) / 32;
    // An exponent's part is from 1 to 2, as in pairs without a penalty, since kTooLowBelowOne is of such results.
    const int whole = kIsFloat32 ? static_cast<int>(sum) - 1 : 0;
    whole_ = whole << 20;
    tilt_ = static_cast<T>(sum - whole);
    of_step_ = sum - p;
    const double exponent = p - of_step_, nearest = rint(exponent);
    diagonal_ = DeviceMath<double>::exp2_of_fraction(exponent - nearest) * power_of_two(static_cast<int>(nearest));
    top_ = kTop - static_cast<int>(ceil(p));
  }
  __device__ __forceinline__ bool fits(T deepest, T most) const { return exists && deepest + (kTop - top_) <= most; }
  __device__ __forceinline__ T tilt() const { return tilt_; }
  __device__ __forceinline__ int whole() const { return whole_; }
  __device__ __forceinline__ double of_cell() const { return tilt_ + static_cast<double>(whole_ >> 20); }
  __device__ __forceinline__ double diagonal() const { return diagonal_; }
  __device__ __forceinline__ int top() const { return top_; }
  __device__ __forceinline__ double of_step() const { return of_step_; }
};

// The weights v of differences of a Pair's series, whose costs are exponents of 2, in two parts: what takes long, and has been started
// before it is needed, and the rest. Those of costs that one float32 exponential holds:
struct ShallowWeight {
  static constexpr float kDeepest = 124;
  float value, difference;

  template <class Pair>
  __device__ __forceinline__ static ShallowWeight of(const Pair& pair, float difference) {
    return {DeviceMath<float>::exp2(pair.cost.exponent(difference, pair.penalty.tilt())), difference};
  }
  template <class Pair>
  __device__ __forceinline__ double get(const Pair& pair) const {
    return widen(value, kTooLowBelowOne, pair.penalty.whole());
  }
};

// And those of larger ones, whose whole part goes to the float64's exponent.
struct DeepWeight {
  static constexpr float kDeepest = 1000;
  float fraction;
  int whole;  // its lowest bits
  float difference;

  template <class Pair>
  __device__ __forceinline__ static DeepWeight of(const Pair& pair, float difference) {
    const float exponent = pair.cost.exponent(difference, pair.penalty.tilt());
    const float shifted = fmaxf(exponent, -kDeepest - 8) + Whole<float>::rounder;
    return {DeviceMath<float>::exp2(exponent - (shifted - Whole<float>::rounder)), __float_as_int(shifted), difference};
  }
  template <class Pair>
  __device__ __forceinline__ double get(const Pair& pair) const {
    const double a = widen(fraction, kTooLowAroundOne, pair.penalty.whole());
    return __hiloint2double(__double2hiint(a) + static_cast<int>(static_cast<unsigned>(whole) << 20), __double2loint(a));
  }
};

// Those of float64. Within the range of pairs that fit no exponent needs a look.
struct FullWeight {
  static constexpr double kDeepest = 1000;
  double value, difference;

  template <class Pair>
  __device__ __forceinline__ static FullWeight of(const Pair& pair, double difference) {
    const double exponent = pair.cost.exponent(difference, pair.penalty.tilt());
    const double shifted = exponent + Whole<double>::rounder;
    const double fraction = DeviceMath<double>::exp2_of_fraction(exponent - (shifted - Whole<double>::rounder));
    const int whole = static_cast<int>(static_cast<unsigned>(__double2loint(shifted)) << 20);
    return {__hiloint2double(__double2hiint(fraction) + whole, __double2loint(fraction)), difference};
  }
  template <class Pair>
  __device__ __forceinline__ double get(const Pair&) const {
    return value;
  }
};

// What differs between problems of float32 and of float64.
template <typename T>
struct LinearNumbers;

template <>
struct LinearNumbers<float> {
  using Shallow = ShallowWeight;
  using Deep = DeepWeight;
  // An entry between columns, as it waits for backward: the upper word of a float64.
  using Word = int;

  __device__ __forceinline__ static int word(double a) {
    return __double2hiint(a) + static_cast<int>(static_cast<unsigned>(__double2loint(a)) >> 31);
  }
  __device__ __forceinline__ static double of_word(int word) { return __hiloint2double(word, 0); }
  // Four entries in shared memory. Of the half that is dropped another entry's bits are as good as any.
  static constexpr int kPacked = 4;
  using Packed = int4;

  __device__ __forceinline__ static int4 pack(const double* a) {
    return make_int4(__double2hiint(a[0]), __double2hiint(a[1]), __double2hiint(a[2]), __double2hiint(a[3]));
  }
  __device__ __forceinline__ static void unpack(const int4& four, double* a) {
    a[0] = __hiloint2double(four.x, four.x);
    a[1] = __hiloint2double(four.y, four.x);
    a[2] = __hiloint2double(four.z, four.z);
    a[3] = __hiloint2double(four.w, four.z);
  }
  // A product in [0, 1], by its upper word; 2^-126 is added, so that it is a normal number.
  __device__ __forceinline__ static float product(double a, double b) {
    const double sum = fma(a, b, power_of_two(-126));
    return __int_as_float(((__double2hiint(sum) - ((kBias - 127) << 20)) << 3) + 4);
  }
};

template <>
struct LinearNumbers<double> {
  using Shallow = FullWeight;
  using Deep = FullWeight;
  using Word = double;

  __device__ __forceinline__ static double word(double a) { return a; }
  __device__ __forceinline__ static double of_word(double word) { return word; }
  static constexpr int kPacked = 2;
  using Packed = double2;

  __device__ __forceinline__ static double2 pack(const double* a) { return make_double2(a[0], a[1]); }
  __device__ __forceinline__ static void unpack(const double2& two, double* a) { a[0] = two.x, a[1] = two.y; }
  __device__ __forceinline__ static double product(double a, double b) { return a * b; }
};

}  // namespace softdtw
