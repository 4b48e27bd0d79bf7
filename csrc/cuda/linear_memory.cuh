// The memory of the linear engine: its edges, and, where forward keeps something for backward, snapshots and verdicts.
//
// Edges have the layout of strip_memory.cuh, with a Slot in the place of an entry of two scalars. A group of columns either has
// one unit, as its reference, and its slots are float64 numbers; or, after a careful sweep, each has its own.
#pragma once

#include "linear_lane.cuh"
#include "strip_memory.cuh"

namespace softdtw {

constexpr double kOwnUnits = 1e300;  // in the place of a group's unit

// A number in 8 bytes for float32 problems and 16 for float64: one of the problem's type in a unit that is kept elsewhere, or
// one in [1, 2], or 0, with its exponent.
template <typename T>
struct Slot;

template <>
struct alignas(8) Slot<float> {
  float a;
  int e;

  __device__ __forceinline__ int exponent() const { return e; }
};

template <>
struct alignas(16) Slot<double> {
  double a, e;

  __device__ __forceinline__ int exponent() const { return static_cast<int>(e); }
};

// A group of columns in memory.
template <class S>
struct LinearGroup {
  using T = typename S::Scalar;
  using Word = std::conditional_t<sizeof(T) == 4, int2, double2>;  // what a lane moves at once
  Slot<T>* slots;
  double* unit;

  __device__ __forceinline__ static LinearGroup of(const Edge<S>& edge, int g) {
    return {reinterpret_cast<Slot<T>*>(edge.group(g)), edge.references + g};
  }
  __device__ __forceinline__ void store(int t, T a) const { slots[t].a = a; }
  __device__ __forceinline__ void store(int t, const Wide& x) const {
    Slot<T> slot;
    slot.a = static_cast<T>(x.a);
    slot.e = x.e;
    slots[t] = slot;
  }
  // To the stage, by all lanes of the warp, one of which has waited for the group. Of numbers with units of their own all in one,
  // where that holds them: the same for every lane are the sweep that can take them, and the unit.
  template <class Stage>
  __device__ __forceinline__ int fetch(bool near, int lane, Stage& stage, int& result) const {
    union {
      Word word;
      Slot<T> slot;
    };
    const int t = lane % S::kSteps;
    word = load(reinterpret_cast<const Word*>(slots + t), near);
    const double reference = load(unit, near);
    if (__builtin_expect(reference != kOwnUnits, 1)) {
      result = static_cast<int>(reference);
      if (lane < S::kSteps) stage.set_entry(t, slot.a, slot.a, result);
      return kPlain;
    }
    const bool exists = slot.a != 0;
    int highest = exists ? slot.exponent() : kNoExponent, lowest = exists ? slot.exponent() : -kNoExponent;
#pragma unroll
    for (int distance = S::kSteps / 2; distance > 0; distance /= 2) {
      highest = max(highest, __shfl_xor_sync(kAllLanes, highest, distance));
      lowest = min(lowest, __shfl_xor_sync(kAllLanes, lowest, distance));
    }
    if (highest == kNoExponent) highest = lowest = 0;
    result = highest;
    const bool fits = highest - lowest <= -Range<double>::kLowest;
    const double scaled = fits && exists ? slot.a * power_of_two(slot.exponent() - highest) : slot.a;
    if (lane < S::kSteps) stage.set_entry(t, static_cast<T>(scaled), scaled, fits ? highest : slot.exponent());
    return highest - lowest <= -Range<T>::kLowest ? kPlain : fits ? kWide : kCareful;
  }
};

// Numbers a 2^e of a float32 problem in 32 bits: the upper bits of a, rounded, which is the error of the E that come from it, and
// e, relative to a base, in what they leave: 12 bits where that is enough, or 16.
struct PackedNumber {
  static constexpr int kNothing = 1 << 31, kMostBits = 20, kLeastBits = 16;
  static constexpr int kFinestUnits = (1 << (31 - kMostBits)) - 128;

  __device__ __forceinline__ static int of(double a, int e, int base, int bits) {
    const int dropped = kMostBits - bits, high = __double2hiint(a) - (kBias << 20);
    return a > 0 ? ((high + (1 << dropped >> 1)) >> dropped) + ((e - base) << bits) : kNothing;
  }
  __device__ __forceinline__ static Wide unpack(int word, int base, int bits) {
    if (word == kNothing) return Wide();
    return {__hiloint2double((word & ((1 << bits) - 1)) << (kMostBits - bits) | kBias << 20, 0), base + (word >> bits)};
  }
};

// How the coming chunk, and the strip's first one, are swept: what a snapshot says beside its numbers, and whether those have
// few bits.
__device__ __forceinline__ int sweeps_of(int coming, int first) { return first << 2 | coming; }
constexpr int kHasFewBits = 16, kSweepBits = 5;

// A lane's numbers between two chunks, as they are saved, in kRows + 2 words: its rows, the row above, and units, to which bits
// are added that say how chunks are swept.
//
// Before a plain chunk of a float32 problem all of a row but its fraction follows from the factors: a row's word is its fraction
// and its factor's exponent, nothing is rounded. Before others rows are PackedNumbers. float64 has the units of the
// other rows and of the row above in 16 bits each, relative to that of the first row.
template <class S>
struct LinearSnapshot {
  static constexpr bool kHalf = sizeof(typename S::Scalar) == 4;
  using Word = std::conditional_t<kHalf, int, double>;
  using PlainFactors = Factors<S, typename S::Scalar, false>;
  static constexpr int kWords = S::kRows + 2, kUnitWord = S::kRows + 1;
  static constexpr int64_t kBytes = kWarp * kWords * sizeof(Word);
  static_assert(kHalf || S::kRows == 2);

  Word words[kWords];

  // Before a plain chunk; the lane is renewed, and has become its factors' unit.
  __device__ __forceinline__ static void store_plain(
      char* memory, int lane, const LinearLane<S>& state, const PlainFactors& factors, int sweeps) {
    if constexpr (kHalf) {
      Word* const out = reinterpret_cast<Word*>(memory) + lane;
#pragma unroll
      for (int k = 0; k < S::kRows; ++k)
        out[k * kWarp] = (__float_as_int(state.left[k]) & 0x007fffff) | __float_as_int(factors.row[k]);
      out[S::kRows * kWarp] = factors.far_units != 0 ? static_cast<int>(factors.far_units) : __float_as_int(state.diag);
      out[kUnitWord * kWarp] = state.exponent[0] << kSweepBits | sweeps;
    } else {
      store(memory, lane, state, sweeps);
    }
  }
  template <typename Number>
  __device__ __forceinline__ static void store(char* memory, int lane, const LinearLane<S, Number>& state, int sweeps) {
    Word* const out = reinterpret_cast<Word*>(memory) + lane;
    const int base = state.left[0] > 0 ? state.exponent[0] : state.above;
    const int units = static_cast<int>(static_cast<unsigned>(base) << kSweepBits) | sweeps;
    if constexpr (kHalf) {
      const bool has_few_bits = state.farthest_unit() > PackedNumber::kFinestUnits;
      const int bits = has_few_bits ? PackedNumber::kLeastBits : PackedNumber::kMostBits;
#pragma unroll
      for (int k = 0; k < S::kRows; ++k) out[k * kWarp] = PackedNumber::of(state.left[k], state.exponent[k], base, bits);
      out[S::kRows * kWarp] = PackedNumber::of(state.diag, state.above, base, bits);
      out[kUnitWord * kWarp] = units | (has_few_bits ? kHasFewBits : 0);
    } else {
#pragma unroll
      for (int k = 0; k < S::kRows; ++k) out[k * kWarp] = state.left[k];
      out[S::kRows * kWarp] = state.diag;
      const int next = state.left[1] > 0 ? state.exponent[1] - base : 0, above = state.diag > 0 ? state.above - base : 0;
      out[kUnitWord * kWarp] = __hiloint2double(next << 16 | (above & 0xffff), units);
    }
  }
  __device__ __forceinline__ void fetch(const char* memory, int lane) {
    const Word* const in = reinterpret_cast<const Word*>(memory) + lane;
#pragma unroll
    for (int i = 0; i < kWords; ++i) words[i] = __ldcs(in + i * kWarp);
  }
  // Before a plain chunk; in float64 it has yet to become the unit above, and has no factors.
  __device__ __forceinline__ LinearLane<S> plain_state(bool is_pairs_first, PlainFactors& factors) const {
    LinearLane<S> lane;
    if constexpr (!kHalf) {
      lane = LinearLane<S>(state());
      lane.renew();
    } else {
      using Limits = Range<float>;
      int unit = words[kUnitWord] >> kSweepBits;
      lane.above = unit + (words[0] >> Limits::kExponentShift) - Limits::kBias;
      lane.diag = __int_as_float(words[S::kRows]);
#pragma unroll
      for (int k = 0; k < S::kRows; ++k) {
        if (k > 0) unit -= (words[k] >> Limits::kExponentShift) - Limits::kBias;
        lane.exponent[k] = unit;
        lane.left[k] =
            __int_as_float((words[k] & 0x007fffff) | (Limits::kBias + Limits::kRenewed) << Limits::kExponentShift);
        factors.row[k] = __int_as_float(words[k] & 0x7f800000);
      }
      if (is_pairs_first) place_far_rows(lane);
    }
    return lane;
  }
  // Before another one.
  __device__ __forceinline__ LinearLane<S, double> state() const {
    Wide rows[S::kRows], corner;
    if constexpr (kHalf) {
      const int base = words[kUnitWord] >> kSweepBits;
      const int bits = words[kUnitWord] & kHasFewBits ? PackedNumber::kLeastBits : PackedNumber::kMostBits;
#pragma unroll
      for (int k = 0; k < S::kRows; ++k) rows[k] = PackedNumber::unpack(words[k], base, bits);
      corner = PackedNumber::unpack(words[S::kRows], base, bits);
    } else {
      const int base = __double2loint(words[kUnitWord]) >> kSweepBits, offsets = __double2hiint(words[kUnitWord]);
#pragma unroll
      for (int k = 0; k < S::kRows; ++k) rows[k] = Wide::of(words[k], base + (k > 0 ? offsets >> 16 : 0));
      corner = Wide::of(words[S::kRows], base + static_cast<short>(offsets & 0xffff));
    }
    LinearLane<S, double> lane;
    lane.take(rows, corner);
    return lane;
  }
  // As sweeps_of has them.
  __device__ __forceinline__ int coming() const { return sweeps() & 3; }
  __device__ __forceinline__ int first() const { return sweeps() >> 2 & 3; }

 private:
  // Of the pair's first lane, above which there is nothing: its word holds the units of rows whose factor is 0.
  __device__ __forceinline__ void place_far_rows(LinearLane<S>& lane) const {
    unsigned far = words[S::kRows], missing = 0;
    lane.diag = 0;
    if (far >> 16 != 0) far = far >> 16 | far << 16;  // in the order of rows
#pragma unroll
    for (int k = 1; k < S::kRows; ++k) {
      if (words[k] >> Range<float>::kExponentShift == 0) {
        missing += (far & 0xffff) - Range<float>::kBias;
        far >>= 16;
      }
      lane.exponent[k] += missing;
    }
  }
  __device__ __forceinline__ int sweeps() const {
    if constexpr (kHalf)
      return words[kUnitWord];
    else
      return __double2loint(words[kUnitWord]);
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
