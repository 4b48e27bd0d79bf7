// The memory of strips (strip.cuh): edges, snapshots, and what flows back up.
//
// Saved for backward: the edges, and every lane's entries at the start of every stage (a snapshot). Backward rebuilds a stage
// from its snapshot into shared memory, so no N x M tensor exists. Where nothing is saved, a single row per pair is every
// strip's edge in turn: a strip reads a group of columns before it writes it.
#pragma once

#include <type_traits>

#include "cuda/numbers/device_math.cuh"
#include "cuda/numbers/packed_entry.cuh"
#include "strip.cuh"

namespace softdtw {

// A strip's last row: per column two scalars, per group of kSteps columns a reference that they are relative to.
template <class S>
struct Edge {
  using T = typename S::Scalar;
  T* entries = nullptr;
  double* references = nullptr;

  __device__ __forceinline__ T* group(int g) const { return entries + static_cast<int64_t>(g) * 2 * S::kSteps; }
};

// Edges of all pairs, `stride` bytes apart, either every strip's or a single row per pair that holds every strip's edge in turn.
// Groups count from the strip's first column in the first case and from column 0 in the second.
template <class S>
struct Edges {
  using T = typename S::Scalar;
  char* memory = nullptr;
  int64_t slots = 0, length = 0, stride = 0;  // edges per pair, groups per edge
  bool in_turn = false;

  static int64_t bytes_of_pair(int64_t slots, int64_t length) {
    return (slots * length * (2 * S::kSteps * sizeof(T) + sizeof(double)) + 15) / 16 * 16;
  }
  Edges() = default;
  Edges(void* memory_, int64_t slots_, int64_t length_, int64_t stride_)
      : memory(static_cast<char*>(memory_)), slots(slots_), length(length_), stride(stride_) {}
  // A row per pair.
  static int64_t bytes_of_rows(int64_t batch, int64_t length) { return batch * bytes_of_pair(1, length); }
  static Edges rows(void* memory, int64_t length) {
    Edges edges(memory, 1, length, bytes_of_pair(1, length));
    edges.in_turn = true;
    return edges;
  }

  __device__ Edge<S> of(int64_t pair, int index, const Strip<S>& strip) const {
    T* const entries = reinterpret_cast<T*>(memory + pair * stride);
    double* const references = reinterpret_cast<double*>(entries + slots * length * 2 * S::kSteps);
    const int64_t first = in_turn ? strip.first_column / S::kSteps : index * length;
    return {entries + first * 2 * S::kSteps, references + first};
  }
};

// A lane's entries between two columns, as they are saved: kRows + 1 entries s 2^-m, s in [1, 2), and what all m are relative
// to. In float32 m is an int, or, where an int or the reference's bits do not suffice, the lane's entries are packed.
template <class S>
struct Snapshot {
  using T = typename S::Scalar;
  using Whole = std::conditional_t<sizeof(T) == 4, int, double>;
  static constexpr int kEntries = S::kRows + 1;
  // A fraction's word has eight bits to spare in float32, which hold the reference where there are five of them.
  static constexpr bool kPacksReference = sizeof(T) == 4 && kEntries >= 5;
  static constexpr int64_t kBytes =
      kWarp * ((sizeof(T) + sizeof(Whole)) * kEntries + (kPacksReference ? 0 : sizeof(double)));
  static constexpr int kFar = 1 << 30;  // an int's m of a cell that no path reaches

  double m[kEntries];
  T s[kEntries];
  double reference = 0;

  // Of an M of float32 none but that of a cell that no path reaches is as large as kFar.
  template <typename M>
  __device__ __forceinline__ static void store(
      char* memory, int lane, const Entry<T, M> (&entries)[kEntries], double reference) {
    Whole* const wholes = reinterpret_cast<Whole*>(memory) + lane;
    T* const fractions = reinterpret_cast<T*>(memory + kWarp * sizeof(Whole) * kEntries) + lane;
    if constexpr (!kPacksReference)
      reinterpret_cast<double*>(memory + kWarp * (sizeof(Whole) + sizeof(T)) * kEntries)[lane] = reference;
    if constexpr (sizeof(T) == 8) {
#pragma unroll
      for (int i = 0; i < kEntries; ++i) {
        wholes[i * kWarp] = entries[i].m;
        fractions[i * kWarp] = entries[i].s;
      }
    } else {
      bool fits = !kPacksReference || fabs(reference) < 5e11;
      if constexpr (sizeof(M) == 8) {
#pragma unroll
        for (int i = 0; i < kEntries; ++i) fits = fits && (entries[i].m < kFar || is_unreachable(entries[i].m));
      }
      const auto bits = static_cast<unsigned long long>(static_cast<long long>(reference));
#pragma unroll
      for (int i = 0; i < kEntries; ++i) {
        int whole = static_cast<int>(DeviceMath<M>::min(entries[i].m, static_cast<M>(kFar)));
        unsigned word = __float_as_uint(entries[i].s) & 0x7fffffffu;
        if (kPacksReference) word = (word & 0x007fffffu) | (static_cast<unsigned>(bits >> 8 * i) & 0xffu) << 23;
        if (__builtin_expect(!fits, 0)) {
          const PackedEntry packed = PackedEntry::of(convert_m<double>(entries[i].m) + reference, entries[i].s);
          whole = static_cast<int>(packed.low);
          word = packed.high;
        }
        wholes[i * kWarp] = whole;
        fractions[i * kWarp] = __uint_as_float(word);
      }
    }
  }
  // Where nothing else says what m is relative to, the smallest becomes `floor`.
  __device__ __forceinline__ void load(const char* memory, int lane, double floor) {
    constexpr double nowhere = Unreachable<double>::value;
    const Whole* const wholes = reinterpret_cast<const Whole*>(memory) + lane;
    const T* const fractions = reinterpret_cast<const T*>(memory + kWarp * sizeof(Whole) * kEntries) + lane;
    if constexpr (!kPacksReference)
      reference = reinterpret_cast<const double*>(memory + kWarp * (sizeof(Whole) + sizeof(T)) * kEntries)[lane];
    unsigned long long bits = 0;
    bool is_packed = false;
#pragma unroll
    for (int i = 0; i < kEntries; ++i) {
      s[i] = fractions[i * kWarp];
      const Whole whole = wholes[i * kWarp];
      m[i] = whole;
      if constexpr (sizeof(T) == 4) {
        const PackedEntry packed = {static_cast<unsigned>(whole), __float_as_uint(s[i])};
        bits |= static_cast<unsigned long long>(packed.high >> 23 & 0xffu) << 8 * i;
        s[i] = __uint_as_float((packed.high & 0x007fffffu) | 0x3f800000u);
        if (whole == kFar) m[i] = nowhere;
        if (packed.exists()) {
          is_packed = true;
          m[i] = packed.m();
          s[i] = packed.s();
        }
      }
    }
    if constexpr (kPacksReference)
      reference = static_cast<double>(static_cast<long long>(bits << (64 - 8 * kEntries)) >> (64 - 8 * kEntries));
    if (is_packed) {  // absolute
      double lowest = nowhere;
#pragma unroll
      for (int i = 0; i < kEntries; ++i) lowest = fmin(lowest, m[i]);
      reference = lowest < nowhere / 2 ? lowest - floor : -floor;
#pragma unroll
      for (int i = 0; i < kEntries; ++i)
        if (m[i] < nowhere / 2) m[i] -= reference;
    }
  }
};

// Forward's saved state, `stride` bytes a pair: the snapshots of every stage but the first, whose start is known, and the edges
// of all strips but the last. Without a band or lengths every byte is written.
template <class S>
struct Saved {
  char* memory = nullptr;
  Edges<S> edges;
  int64_t stages = 0, stride = 0;

  static int64_t stages_of(const Sizes<S>& sizes) { return (sizes.chunks + S::kStage - 1) / S::kStage; }
  static int64_t snapshot_bytes(const Sizes<S>& sizes) {
    return sizes.strips * (stages_of(sizes) - 1) * Snapshot<S>::kBytes;
  }
  static int64_t bytes_of_pair(const Sizes<S>& sizes) {
    return snapshot_bytes(sizes) + Edges<S>::bytes_of_pair(sizes.strips - 1, sizes.chunks - S::kSkewChunks);
  }
  Saved() = default;
  Saved(void* memory_, const Sizes<S>& sizes, int64_t stride_)
      : memory(static_cast<char*>(memory_)), stages(stages_of(sizes)), stride(stride_) {
    edges = Edges<S>(memory + snapshot_bytes(sizes), sizes.strips - 1, sizes.chunks - S::kSkewChunks, stride);
  }

  __device__ __forceinline__ bool keeps() const { return memory != nullptr; }
  // What a strip leaves for the one below.
  __device__ __forceinline__ Edge<S> edge(int64_t pair, int strip, const Strip<S>& geometry) const {
    return edges.of(pair, strip, geometry);
  }
  // Stages count from 1.
  __device__ __forceinline__ char* stage(int64_t pair, int strip, int stage) const {
    return memory + pair * stride + (strip * (stages - 1) + stage - 1) * Snapshot<S>::kBytes;
  }
};

// What flows back up through the strips' upper edges in backward: a single row per pair under way, written group by group by a strip
// after it has read what the strip below wrote there. Groups count from column 0.
template <class S>
struct Flows {
  using T = typename S::Scalar;
  T* values = nullptr;
  T* carries = nullptr;  // (row, strip, dim, lane): each lane's part of the sums of dy, between chunks, for dim > 1
  int64_t strips = 0, groups = 0;

  static int64_t scalars(int64_t rows, const Sizes<S>& sizes, int64_t dim) {
    return rows * (sizes.groups * S::kSteps + (dim > 1 ? sizes.strips * dim * kWarp : 0));
  }
  Flows(void* memory, int64_t rows, const Sizes<S>& sizes)
      : values(static_cast<T*>(memory)),
        carries(values + rows * sizes.groups * S::kSteps),
        strips(sizes.strips),
        groups(sizes.groups) {}

  __device__ T* carries_of(int64_t row, int strip, int64_t dim) const {
    return carries + (row * strips + strip) * dim * kWarp;
  }
  __device__ T* group(int64_t row, const Strip<S>& strip, int g) const {
    return values + (row * groups + strip.first_column / S::kSteps + g) * S::kSteps;
  }
};

}  // namespace softdtw
