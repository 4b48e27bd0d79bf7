// The memory of the linear engine: its edges, and, where forward keeps something for backward, snapshots and verdicts.
//
// Edges have the layout of strip_memory.cuh, of which a float64 takes the place of an entry of two scalars: 2^-e a, with e as
// the group's reference.
#pragma once

#include "linear.cuh"
#include "strip_memory.cuh"

namespace softdtw {

// Whether the linear engine has computed a pair.
enum class Verdict : int { kAccepted, kRejected };

template <class S>
__device__ __forceinline__ double* entries_of(const Edge<S>& edge, int g) {
  return reinterpret_cast<double*>(edge.group(g));
}

// Moves a group of columns to the stage, for the lane that meets it, and returns its unit.
template <class Stage>
__device__ __forceinline__ int fetch_group(const double* entries, const double* unit, bool near, Stage& stage) {
  constexpr int kSteps = sizeof(stage.entries) / sizeof(double);
  double group[kSteps];
  load_group(entries, near, group);
  const int result = static_cast<int>(load(unit, near));
#pragma unroll
  for (int t = 0; t < kSteps; ++t) stage.entries[t] = group[t];
  return result;
}

// A lane's numbers between two chunks, as they are saved: kRows + 1 of them, of which float32 keeps the upper half, rounded (21
// bits, the error of the E that come from them), and their unit.
template <class S>
struct LinearSnapshot {
  static constexpr bool kHalf = sizeof(typename S::Scalar) == 4;
  using Word = std::conditional_t<kHalf, int, double>;
  static constexpr int kWords = S::kRows + 2;
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
  __device__ __forceinline__ static void store(char* memory, int lane, const LinearLane<S>& state) {
    Word* const out = reinterpret_cast<Word*>(memory) + lane;
#pragma unroll
    for (int k = 0; k < S::kRows; ++k) out[k * kWarp] = word_of(state.left[k]);
    out[S::kRows * kWarp] = word_of(state.diag);
    out[(S::kRows + 1) * kWarp] = static_cast<Word>(state.exponent);
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
    lane.exponent = static_cast<int>(words[S::kRows + 1]);
    return lane;
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

// What flows back up through the strips' upper edges in backward, r of their first rows: as Flows, with a unit for each group.
template <class S>
struct LinearFlows {
  using T = typename S::Scalar;
  double* values = nullptr;
  double* units = nullptr;
  T* carries = nullptr;  // as those of Flows
  int64_t strips = 0, groups = 0;

  static int64_t bytes(int64_t batch, const Sizes<S>& sizes, int64_t dim) {
    return batch *
           (sizes.groups * (S::kSteps + 1) * sizeof(double) + (dim > 1 ? sizes.strips * dim * kWarp : 0) * sizeof(T));
  }
  LinearFlows(void* memory, int64_t batch, const Sizes<S>& sizes)
      : values(static_cast<double*>(memory)),
        units(values + batch * sizes.groups * S::kSteps),
        carries(reinterpret_cast<T*>(units + batch * sizes.groups)),
        strips(sizes.strips),
        groups(sizes.groups) {}

  __device__ T* carries_of(int64_t pair, int strip, int64_t dim) const {
    return carries + (pair * strips + strip) * dim * kWarp;
  }
  __device__ double* group(int64_t pair, int g) const { return values + (pair * groups + g) * S::kSteps; }
  __device__ double* unit(int64_t pair, int g) const { return units + pair * groups + g; }
};

}  // namespace softdtw
