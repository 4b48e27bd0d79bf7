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
  __device__ __forceinline__ void store_with_unit(int t, double a, int e) const {
    const int own = exponent_of(__double2hiint(a));
    const bool some = a > 0;
    slots[t] = SlotOf<S>::with_exponent(some ? Scaling(-own)(a) : 0.0, some ? own + e : 0);
  }
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

// A lane's numbers between two chunks, as they are saved: kRows + 1 of them, of which float32 keeps the upper half, rounded (21
// bits, the error of the E that come from them), and their unit.
template <class S>
struct LinearSnapshot {
  static constexpr bool kHalf = sizeof(typename S::Scalar) == 4;
  using Word = std::conditional_t<kHalf, int, double>;
  static constexpr int kWords = S::kRows + 2;
  static constexpr int kUnitWord = S::kRows + 1;
  static constexpr int64_t kBytes = kWarp * kWords * sizeof(Word);

  Word words[kWords];

  __device__ __forceinline__ static Word word_of(double a) {
    if constexpr (kHalf)
      return __double2hiint(a) + static_cast<int>(static_cast<unsigned>(__double2loint(a)) >> 31);
    else
      return a;
  }
  __device__ __forceinline__ static double number_of(Word word) {
    if constexpr (kHalf)
      return __hiloint2double(word, 0);
    else
      return word;
  }
  // `careful`: the sweep that the coming chunk takes.
  __device__ __forceinline__ static void store(char* memory, int lane, const LinearLane<S>& state, bool careful) {
    Word* const out = reinterpret_cast<Word*>(memory) + lane;
#pragma unroll
    for (int k = 0; k < S::kRows; ++k) out[k * kWarp] = word_of(state.left[k]);
    out[S::kRows * kWarp] = word_of(state.diag);
    store_unit(memory, lane, state.exponent, careful);
  }
  __device__ __forceinline__ static void store_unit(char* memory, int lane, int unit, bool careful) {
    (reinterpret_cast<Word*>(memory) + lane)[kUnitWord * kWarp] = static_cast<Word>(2 * unit + careful);
  }
  __device__ __forceinline__ void fetch(const char* memory, int lane) {
    const Word* const in = reinterpret_cast<const Word*>(memory) + lane;
#pragma unroll
    for (int i = 0; i < kWords; ++i) words[i] = __ldcs(in + i * kWarp);
  }
  __device__ __forceinline__ LinearLane<S> state() const {
    LinearLane<S> lane;
#pragma unroll
    for (int k = 0; k < S::kRows; ++k) lane.left[k] = number_of(words[k]);
    lane.diag = number_of(words[S::kRows]);
    lane.exponent = static_cast<int>(words[kUnitWord]) >> 1;
    return lane;
  }
  __device__ __forceinline__ bool careful() const { return static_cast<int>(words[kUnitWord]) & 1; }
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
