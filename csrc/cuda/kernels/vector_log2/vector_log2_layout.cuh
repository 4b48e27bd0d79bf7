// Where pairs are in integer log2 of vectors (vector_log2.cu): in warps, and in what forward saves of them.
#pragma once

#include "cuda/hardware/assembly.cuh"
#include "cuda/select/blocks.h"

namespace softdtw {

// Warps of a multiprocessor that registers are given out for.
constexpr int kVectorForwardWarps = 16, kVectorBackwardWarps = 8;

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
  int chunks;                // of the strips of a group in forward, at most
  bool keeps, has_fours;     // has_fours: vectors can be read four numbers at a time

  __host__ VectorLayout(const Problem<float>& problem, bool keeps_)
      : VectorLayout(problem, keeps_, width_of_bands(problem), call_of(problem, keeps_)) {}
  __host__ VectorLayout(const Problem<float>& problem, bool keeps_, int64_t width, const Call& call)
      : VectorLayout(problem, keeps_, width, shape_of_vectors(call, width)) {}
  __host__ VectorLayout(const Problem<float>& problem, bool keeps_, int64_t width, const VectorGroupShape& shape)
      : forward_lanes(shape.lanes),
        lanes(keeps_ ? shape.lanes_back : shape.lanes),
        rows(shape.rows),
        strips(static_cast<int>(ceil_div(problem.n, forward_lanes * rows)) * (forward_lanes / lanes)),
        columns(static_cast<int>(problem.m)),
        chunks(
            static_cast<int>(std::min<int64_t>(
                ceil_div(columns + forward_lanes - 1, kSteps), ceil_div(forward_lanes * (rows + 1) + width, kSteps) + 2))),
        keeps(keeps_),
        has_fours(reads_fours(problem)) {}
  // Columns of all pairs' bands, at most: those of lengths and bands of their own may be anywhere.
  __host__ static int64_t width_of_bands(const Problem<float>& problem) {
    const bool is_known = problem.bandwidth >= 0 && !problem.bandwidths && !problem.x_lengths && !problem.y_lengths;
    if (!is_known || problem.bandwidth >= problem.m) return problem.m;
    return std::min(problem.m, 2 * problem.bandwidth + 1 + std::abs(problem.n - problem.m));
  }

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
  // Of a lane of a strip, its first word; the others are `lanes` apart. chunk: counted from the first one of the group's strip in
  // forward, whose start is known.
  __device__ __forceinline__ int* snapshot(char* memory, int strip, int chunk, int lane) const {
    int* const first = reinterpret_cast<int*>(memory + (strips - 1) * bytes_of_edge());
    return first + (int64_t{strip} * (chunks - 1) + chunk - 1) * words() * lanes + lane;
  }
};

}  // namespace softdtw
