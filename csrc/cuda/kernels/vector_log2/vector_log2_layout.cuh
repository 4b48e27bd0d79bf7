// Where pairs are in integer log2 of vectors (vector_log2.cu): in warps, and in what forward saves of them.
#pragma once

#include "cuda/hardware/assembly.cuh"
#include "cuda/select/blocks.h"

namespace softdtw {

// Warps of a multiprocessor that registers are given out for.
template <int kRows>
constexpr int kVectorForwardWarps = 16;
constexpr int kVectorBackwardWarps = 8;

// An entry s 2^-m on its way between strips: s in [1, 2), m from the table's first cell.
struct EdgeEntry {
  float s;
  int m;
};

// Strips are those of backward, whose groups may have fewer lanes than forward's: a part of these each.
struct VectorLayout {
  static constexpr int kSteps = 8, kMostGroups = kWarp / kFewestVectorLanes;
  int forward_lanes, lanes;  // of a group, in forward; in backward, or, where nothing is kept, in forward again
  int rows;                  // of a lane
  int strips, columns;       // of a pair of the problem's full size
  int chunks;                // of the strips of a group in forward
  bool keeps, has_fours;     // has_fours: vectors can be read four numbers at a time

  __host__ VectorLayout(const Problem<float>& problem, bool keeps_)
      : VectorLayout(problem, keeps_, shape_of_vectors(problem.batch, problem.n, problem.m, problem.dim)) {}
  __host__ VectorLayout(const Problem<float>& problem, bool keeps_, const VectorGroupShape& shape)
      : forward_lanes(shape.lanes),
        lanes(keeps_ ? shape.lanes_back : shape.lanes),
        rows(shape.rows),
        strips(static_cast<int>(ceil_div(problem.n, forward_lanes * rows)) * (forward_lanes / lanes)),
        columns(static_cast<int>(problem.m)),
        chunks((columns + forward_lanes - 1 + kSteps - 1) / kSteps),
        keeps(keeps_),
        has_fours(reads_fours(problem)) {}

  // Of a lane in a chunk: its entries, the one above them, and its reference.
  __host__ __device__ int words() const { return rows + 2; }
  // The rows below all strips but the last: one after the other where they are kept, else each in the place of the one before.
  __host__ __device__ int64_t bytes_of_edge() const { return (columns + 1) / 2 * 2 * int64_t{sizeof(EdgeEntry)}; }
  // Backward: what flows up from strip to strip, a number a column.
  __host__ __device__ int64_t bytes_of_flow() const { return (columns + 3) / 4 * 4 * int64_t{sizeof(float)}; }
  __host__ int64_t bytes_of_pair() const {
    const int64_t snapshots = int64_t{strips} * (chunks - 1) * lanes * words() * sizeof(int);
    return (strips - 1) * bytes_of_edge() + (snapshots + 15) / 16 * 16;
  }
  // Of a pair's part of what is saved.
  __device__ __forceinline__ EdgeEntry* edge(char* memory, int strip) const {
    return reinterpret_cast<EdgeEntry*>(memory + (keeps ? strip : 0) * bytes_of_edge());
  }
  // Of a lane of a strip, its first word; the others are `lanes` apart. Of a chunk that is not the first of the strips in forward,
  // whose start is known, and counted as there.
  __device__ __forceinline__ int* snapshot(char* memory, int strip, int chunk, int lane) const {
    int* const first = reinterpret_cast<int*>(memory + (strips - 1) * bytes_of_edge());
    return first + (int64_t{strip} * (chunks - 1) + chunk - 1) * words() * lanes + lane;
  }
};

}  // namespace softdtw
