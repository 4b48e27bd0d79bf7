// Where pairs are in the scaled linear domain (scaled_linear_domain.cu): in warps, and in what forward saves of them.
#pragma once

#include "cuda/hardware/assembly.cuh"
#include "cuda/select/blocks.h"

namespace softdtw {

// Warps of a multiprocessor that registers are given out for.
template <int kDims>
constexpr int kScaledForwardWarps = 16;
template <int kDims>
constexpr int kScaledBackwardWarps = 12;

struct ScaledNumber;

struct ScaledLayout {
  static constexpr int64_t kBytesOfNumber = 8;  // of a ScaledNumber
  static constexpr int kSteps = 8, kMostGroups = kWarp / kFewestScaledLanes;
  int lanes, rows, strips, columns;  // of a group, of a lane; of a pair of the problem's full size
  int chunks;                        // of a strip
  bool keeps;

  __host__ ScaledLayout(const Problem<float>& problem, bool keeps_)
      : lanes(scaled_lanes(problem.batch, problem.n, problem.m, scaled_rows(problem.dim))),
        rows(scaled_rows(problem.dim)),
        strips(static_cast<int>(ceil_div(problem.n, lanes * rows))),
        columns(static_cast<int>(problem.m)),
        chunks((columns + lanes - 1 + kSteps - 1) / kSteps),
        keeps(keeps_) {}
  __host__ __device__ int groups() const { return kWarp / lanes; }

  // Of a chunk: the lanes' entries, the ones above them, and their references.
  __host__ __device__ int words_of_chunk() const { return (rows + 2) * lanes; }
  // The rows below all strips but the last: one after the other where they are kept, else each in the place of the one before.
  __host__ __device__ int64_t bytes_of_edge() const { return (columns + 1) / 2 * 2 * kBytesOfNumber; }
  __host__ int64_t bytes_of_edges() const { return keeps ? (strips - 1) * bytes_of_edge() : bytes_of_edge(); }
  __host__ int64_t bytes_of_pair() const {
    const int64_t snapshots = int64_t{strips} * chunks * words_of_chunk() * sizeof(int);
    return (strips - 1) * bytes_of_edge() + (snapshots + 15) / 16 * 16;
  }
  // Of a pair's part of what is saved.
  __device__ __forceinline__ ScaledNumber* edge(char* memory, int strip) const {
    return reinterpret_cast<ScaledNumber*>(memory + (keeps ? strip : 0) * bytes_of_edge());
  }
  __device__ __forceinline__ int* snapshot(char* memory, int strip, int chunk) const {
    int* const first = reinterpret_cast<int*>(memory + (strips - 1) * bytes_of_edge());
    return first + (int64_t{strip} * chunks + chunk) * words_of_chunk();
  }
};

// The entries of a chunk's start, as they wait for backward: upper words, and beside a lane's reference whether the chunk was swept with care.
template <int kRows>
struct ScaledSnapshot {
  static constexpr int kWords = kRows + 2;
  int words[kWords];

  __device__ __forceinline__ int reference() const { return words[kRows + 1] >> 1; }
  __device__ __forceinline__ bool needs_care() const { return words[kRows + 1] & 1; }
};

}  // namespace softdtw
