// The memory of the linear engine: its edges, and, where forward keeps something for backward, snapshots and verdicts.
//
// Edges have the layout of strip_memory.cuh, with a Slot in the place of an entry of two scalars. A group of columns either has
// one unit, as its reference, and its slots are float64 numbers; or, after a careful sweep, each has its own.
#pragma once

#include "linear.cuh"
#include "strip_memory.cuh"

namespace softdtw {

// Whether the linear engine has computed a pair.
enum class Verdict : int { kAccepted, kRejected };

constexpr double kOwnUnits = 1e300;  // in the place of a group's unit

// A number in 8 bytes for float32 problems and 16 for float64: a float64 in a unit that is kept elsewhere, or one in [1, 2), or
// 0, with its exponent, in the first case with 24 bits.
template <typename T>
struct Slot;

template <>
struct Slot<float> {
  double word;

  __device__ __forceinline__ static Slot with_exponent(double a, int e) {
    return {__hiloint2double(e, __float_as_int(__double2float_rz(a)))};  // rounding up to 2 would leave [1, 2)
  }
  __device__ __forceinline__ double plain() const { return word; }
  __device__ __forceinline__ double fraction() const { return __int_as_float(__double2loint(word)); }
  __device__ __forceinline__ int exponent() const { return __double2hiint(word); }
};

template <>
struct alignas(16) Slot<double> {
  double a, e;

  __device__ __forceinline__ static Slot with_exponent(double a, int e) { return {a, static_cast<double>(e)}; }
  __device__ __forceinline__ double plain() const { return a; }
  __device__ __forceinline__ double fraction() const { return a; }
  __device__ __forceinline__ int exponent() const { return static_cast<int>(e); }
};

template <class S>
using SlotOf = Slot<typename S::Scalar>;

// A group of columns in memory.
template <class S>
struct LinearGroup {
  SlotOf<S>* slots;
  double* unit;

  __device__ __forceinline__ static LinearGroup of(const Edge<S>& edge, int g) {
    return {reinterpret_cast<SlotOf<S>*>(edge.group(g)), edge.references + g};
  }
  __device__ __forceinline__ void store(int t, double a) const { reinterpret_cast<double&>(slots[t]) = a; }
  __device__ __forceinline__ void store(int t, const Wide& x) const { slots[t] = SlotOf<S>::with_exponent(x.a, x.e); }
  // To the stage, for the lane that meets the group; of numbers with units of their own all in one, where that holds them.
  // Returns whether it did, and the unit.
  template <class Stage>
  __device__ __forceinline__ bool fetch(bool near, Stage& stage, int& result) const {
    constexpr int kWords = S::kSteps * sizeof(SlotOf<S>) / sizeof(double);
    union {
      double words[kWords];
      SlotOf<S> own[S::kSteps];
    };
    load_group(reinterpret_cast<const double*>(slots), near, words);
    const double reference = load(unit, near);
    if (__builtin_expect(reference != kOwnUnits, 1)) {
      result = static_cast<int>(reference);
#pragma unroll
      for (int t = 0; t < S::kSteps; ++t) {
        stage.entries[t] = own[t].plain();
        stage.units[t] = result;
      }
      return true;
    }
    int highest = kNoExponent, lowest = -kNoExponent;
#pragma unroll
    for (int t = 0; t < S::kSteps; ++t) {
      if (own[t].fraction() == 0) continue;
      highest = max(highest, own[t].exponent());
      lowest = min(lowest, own[t].exponent());
    }
    if (highest == kNoExponent) highest = lowest = 0;
    const bool fits = highest - lowest <= -kLowest;
    result = highest;
#pragma unroll
    for (int t = 0; t < S::kSteps; ++t) {
      const double a = own[t].fraction();
      stage.entries[t] = fits && a != 0 ? a * power_of_two(own[t].exponent() - highest) : a;
      stage.units[t] = fits ? highest : own[t].exponent();
    }
    return fits;
  }
};

// Numbers a 2^e of a float32 problem in 32 bits: e, relative to a base, in 16 bits, and the upper 16 bits of a, rounded, which is
// the error of the E that come from it.
struct PackedNumber {
  static constexpr int kNothing = 1 << 31, kFractionBits = 16,
                       kDropped = 20 - kFractionBits;  // of the high word's fraction

  __device__ __forceinline__ static int of(double a, int e, int base) {
    return a > 0 ? ((__double2hiint(a) + (1 << (kDropped - 1))) >> kDropped) + ((e - base) << kFractionBits) : kNothing;
  }
  __device__ __forceinline__ static Wide unpack(int word, int base) {
    if (word == kNothing) return Wide();
    return {
        __hiloint2double((word & ((1 << kFractionBits) - 1)) << kDropped | kBias << 20, 0),
        base + (word >> kFractionBits) - kBias};
  }
};

// Whether the coming chunk, and the strip's first one, is swept carefully.
constexpr int kCareful = 1, kFirstCareful = 2;

// A lane's numbers between two chunks, as they are saved, in kRows + 2 words: its rows, the row above, and units, to which two bits
// are added that say how chunks are swept. float64 has the units of the other rows and of the row above
// in 16 bits each, relative to that of the first row.
template <class S>
struct LinearSnapshot {
  static constexpr bool kHalf = sizeof(typename S::Scalar) == 4;
  using Word = std::conditional_t<kHalf, int, double>;
  static constexpr int kWords = S::kRows + 2, kUnitWord = S::kRows + 1;
  static constexpr int64_t kBytes = kWarp * kWords * sizeof(Word);
  static_assert(kHalf || S::kRows == 2);

  Word words[kWords];

  __device__ __forceinline__ static void store(char* memory, int lane, const LinearLane<S>& state, int sweeps) {
    Word* const out = reinterpret_cast<Word*>(memory) + lane;
    const int base = state.left[0] > 0 ? state.exponent[0] : state.above;
    if constexpr (kHalf) {
#pragma unroll
      for (int k = 0; k < S::kRows; ++k) out[k * kWarp] = PackedNumber::of(state.left[k], state.exponent[k], base);
      out[S::kRows * kWarp] = PackedNumber::of(state.diag, state.above, base);
    } else {
#pragma unroll
      for (int k = 0; k < S::kRows; ++k) out[k * kWarp] = state.left[k];
      out[S::kRows * kWarp] = state.diag;
    }
    store_units(memory, lane, state, sweeps);
  }
  __device__ __forceinline__ static void store_units(char* memory, int lane, const LinearLane<S>& state, int sweeps) {
    Word* const out = reinterpret_cast<Word*>(memory) + lane;
    const int base = state.left[0] > 0 ? state.exponent[0] : state.above;
    if constexpr (kHalf) {
      out[kUnitWord * kWarp] = 4 * base + sweeps;
    } else {
      const int next = state.left[1] > 0 ? state.exponent[1] - base : 0, above = state.diag > 0 ? state.above - base : 0;
      out[kUnitWord * kWarp] = __hiloint2double(next << 16 | (above & 0xffff), 4 * base + sweeps);
    }
  }
  __device__ __forceinline__ void fetch(const char* memory, int lane) {
    const Word* const in = reinterpret_cast<const Word*>(memory) + lane;
#pragma unroll
    for (int i = 0; i < kWords; ++i) words[i] = __ldcs(in + i * kWarp);
  }
  // Rows are in [1, 2), or 0.
  __device__ __forceinline__ LinearLane<S> state() const {
    LinearLane<S> lane;
    const auto take = [&](int i, int offset, double& a, int& e) {
      if constexpr (kHalf) {
        const Wide x = PackedNumber::unpack(words[i], words[kUnitWord] >> 2);
        a = x.a, e = x.e;
      } else {
        const Wide x = Wide::of(words[i], (__double2loint(words[kUnitWord]) >> 2) + offset);
        a = x.a, e = x.e;
      }
    };
    int next = 0, above = 0;
    if constexpr (!kHalf) {
      const int offsets = __double2hiint(words[kUnitWord]);
      next = offsets >> 16, above = static_cast<short>(offsets & 0xffff);
    }
#pragma unroll
    for (int k = 0; k < S::kRows; ++k) take(k, k > 0 ? next : 0, lane.left[k], lane.exponent[k]);
    take(S::kRows, above, lane.diag, lane.above);
    return lane;
  }
  // Of kCareful and kFirstCareful.
  __device__ __forceinline__ int sweeps() const {
    if constexpr (kHalf)
      return words[kUnitWord] & 3;
    else
      return __double2loint(words[kUnitWord]) & 3;
  }
};

// Forward's saved state, `stride` bytes a pair: the snapshots of every chunk but the first, whose start is known, and the edges
// of all strips but the last.
template <class S>
struct LinearSaved {
  char* memory = nullptr;
  Edges<S> edges;
  int64_t chunks = 0, stride = 0;

  static int64_t snapshot_bytes(const Sizes<S>& sizes) {
    return sizes.strips * (sizes.chunks - 1) * LinearSnapshot<S>::kBytes;
  }
  static int64_t bytes_of_pair(const Sizes<S>& sizes) {
    return snapshot_bytes(sizes) + Edges<S>::bytes_of_pair(sizes.strips - 1, sizes.chunks - S::kSkewChunks);
  }
  LinearSaved() = default;
  LinearSaved(void* memory_, const Sizes<S>& sizes, int64_t stride_)
      : memory(static_cast<char*>(memory_)), chunks(sizes.chunks), stride(stride_) {
    edges = Edges<S>(memory + snapshot_bytes(sizes), sizes.strips - 1, sizes.chunks - S::kSkewChunks, stride);
  }

  // Chunks count from 1.
  __device__ __forceinline__ char* chunk(int64_t pair, int strip, int chunk) const {
    return memory + pair * stride + (strip * (chunks - 1) + chunk - 1) * LinearSnapshot<S>::kBytes;
  }
};

// What flows back up through the strips' upper edges in backward, r of their first rows: as Flows, in the layout of edges.
template <class S>
struct LinearFlows {
  using T = typename S::Scalar;
  Edges<S> edges;
  T* carries = nullptr;  // as those of Flows
  int64_t strips = 0;

  static int64_t bytes(int64_t batch, const Sizes<S>& sizes, int64_t dim) {
    return Edges<S>::bytes_of_rows(batch, sizes.groups) + batch * (dim > 1 ? sizes.strips * dim * kWarp : 0) * sizeof(T);
  }
  LinearFlows(void* memory, int64_t batch, const Sizes<S>& sizes)
      : edges(Edges<S>::rows(memory, sizes.groups)),
        carries(reinterpret_cast<T*>(static_cast<char*>(memory) + Edges<S>::bytes_of_rows(batch, sizes.groups))),
        strips(sizes.strips) {}

  __device__ T* carries_of(int64_t pair, int strip, int64_t dim) const {
    return carries + (pair * strips + strip) * dim * kWarp;
  }
};

}  // namespace softdtw
