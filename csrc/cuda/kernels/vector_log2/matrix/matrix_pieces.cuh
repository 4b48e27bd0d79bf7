// How the lanes of a warp share out the moves of their cells between a turned matrix and shared memory.
#pragma once

#include "core/problem.h"
#include "cuda/hardware/assembly.cuh"
#include "cuda/hardware/vectors.cuh"

namespace softdtw {

// Of a turned matrix: whether four costs, or their gradients, can be moved at a time.
template <typename T>
__device__ __forceinline__ bool has_fours(const View<T>& matrix) {
  return rows_have_fours(View<T>{matrix.data, matrix.batch_stride, matrix.column_stride, matrix.row_stride});
}

// What a lane moves of the cells that its warp's lanes have in some steps. As fours, where all are there, it moves those of two lanes
// side by side, each a half; or else of eight lanes, of each the same of its rows.
template <class Group, typename T>
class MatrixPieces {
  static constexpr int kRows = Group::kRows, kHalves = kRows / 4;
  static_assert(kRows == 8);
  const Group& group;
  const View<T> matrix;            // of the strip's first row on
  const int first_of_eight, rows;  // lane of the warp; rows from the strip's first one on
  const int first_column;          // in the first step, of the group's first lane

  __device__ __forceinline__ int lane_of(int thread) const { return thread & (group.lanes - 1); }

 public:
  __device__ MatrixPieces(const Group& group_, const View<T>& of_pair, int first_column_ = 0)
      : group(group_),
        matrix{&of_pair.at(group_.strip * group_.lanes * kRows, 0), 0, of_pair.row_stride, of_pair.column_stride},
        first_of_eight(threadIdx.x / kRows * kRows),
        rows(group_.extent.n - group_.strip * group_.lanes * kRows),
        first_column(first_column_) {}

  // Calls four(lane of the warp, its half, step, where it is in the matrix) or cell(lane of the warp, its row, step, where it is).
  template <int kCount, class Four, class Cell>
  __device__ __forceinline__ void for_each(bool are_fours, Four&& four, Cell&& cell) const {
    const int lane = lane_of(first_of_eight), most = first_column - lane;
    if (are_fours && (lane + kRows) * kRows <= rows && most >= kRows - 1 && most + kCount <= group.extent.m) {
      const int owner = threadIdx.x / kHalves * kHalves, half = threadIdx.x % kHalves;
      T* at = &matrix.at(0, first_column - lane_of(owner)) + lane_of(owner) * kRows + 4 * half;
#pragma unroll
      for (int t = 0; t < kCount; ++t) {
#pragma unroll
        for (int i = 0; i < kHalves; ++i) four(owner + i, half, t, at + i * (kRows - matrix.column_stride));
        at += matrix.column_stride;
      }
    } else {
      const int k = threadIdx.x % kRows;
      T* at = &matrix.at(lane * kRows + k, most);
#pragma unroll 1
      for (int t = 0; t < kCount; ++t) {
#pragma unroll
        for (int i = 0; i < kRows; ++i)
          if ((lane + i) * kRows + k < rows && static_cast<unsigned>(most + t - i) < static_cast<unsigned>(group.extent.m))
            cell(first_of_eight + i, k, t, at + i * (kRows * matrix.row_stride - matrix.column_stride));
        at += matrix.column_stride;
      }
    }
  }
  // Writes 0 to all of the strip but the columns from `from` to `to` of the group's first lane, and those that others had meanwhile.
  __device__ __forceinline__ void clear(bool are_fours, int from, int to) const {
    for (int first = 4 * group.lane; first < min(group.lanes * kRows, rows); first += 4 * group.lanes) {
      const int lane = first / kRows;
      T* const at = &matrix.at(first, 0);
      const auto fill = [&](int column, int end) {
        if (are_fours && first + 4 <= rows)
          for (; column < end; ++column)
            *reinterpret_cast<float4*>(at + column * matrix.column_stride) = float4{0, 0, 0, 0};
        else
          for (; column < end; ++column)
            for (int i = 0; i < min(4, rows - first); ++i) matrix.at(first + i, column) = 0;
      };
      fill(0, min(from - lane, group.extent.m));
      fill(max(to - lane, 0), group.extent.m);
    }
  }
};

}  // namespace softdtw
