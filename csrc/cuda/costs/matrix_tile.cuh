// Ready-made costs of float32, which a strip's warp copies to shared memory as they lie in the matrix, whole groups of columns at a
// time, and reads along its skewed lanes. A lane that read its own cells of the matrix would meet another line with each.
//
// A window of shared memory holds a strip's rows and so many columns: those that the lanes meet in a chunk, or in a stage, and those
// that are on their way. Columns count from the strip's first one, and stand in it modulo its width. Columns that the pair does not
// have are never read: cells there hold numbers of other columns, or 0, on which no result depends.
#pragma once

#include <cuda_pipeline_primitives.h>

#include "tile.cuh"

namespace softdtw {

template <class S, int kColumns_>
class MatrixWindow {
 protected:
  using T = typename S::Scalar;
  static constexpr int kAtOnce = 4;  // columns that are 16 bytes
  static_assert(sizeof(T) == 4);

 public:
  static constexpr int kColumns = kColumns_, kStripRows = S::kStripRows;
  struct alignas(16) Memory {
    T cells[kStripRows][kColumns];
  };

  __device__ __forceinline__ MatrixWindow(
      Memory& memory_, const View<const T>& matrix_, bool reads_fours_, const Extent& extent, const Strip<S>& strip)
      : memory(memory_),
        matrix(matrix_),
        reads_fours(reads_fours_),
        first_row(strip.first_row),
        first_column(strip.first_column),
        last_row(extent.n - 1),
        end_column(extent.m) {}

 protected:
  Memory& memory;
  const View<const T> matrix;
  const bool reads_fours;  // whether four columns can be copied at once
  const int first_row, first_column, last_row, end_column;

  // Which of the window's columns one from -kColumns on is.
  __device__ __forceinline__ static int slot(int column) {
    return static_cast<unsigned>(column + kColumns) % static_cast<unsigned>(kColumns);
  }
  // The lane's cells from `start` on, a slot.
  __device__ __forceinline__ T& cell(int start, int k, int t) {
    constexpr bool kIsPower = (kColumns & (kColumns - 1)) == 0;
    const int at = start + t, column = kIsPower ? at & (kColumns - 1) : at < kColumns ? at : at - kColumns;
    return memory.cells[threadIdx.x * S::kRows + k][column];
  }
  __device__ __forceinline__ void clear() {
#pragma unroll 4
    for (int i = threadIdx.x; i < kStripRows * kColumns / kAtOnce; i += kWarp)
      reinterpret_cast<float4*>(memory.cells)[i] = make_float4(0, 0, 0, 0);
    __syncwarp();
  }
  // Calls f(row, column in a group) for a group of kCount columns, kPiece at a time, by the whole warp.
  template <int kCount, int kPiece, class F>
  __device__ __forceinline__ static void for_each_piece(F&& f) {
    constexpr int kPieces = kCount / kPiece, kRowsAtOnce = kWarp / kPieces;
    static_assert(kWarp % kPieces == 0);
#pragma unroll(kPiece == 1 ? 1 : kStripRows / kRowsAtOnce)
    for (int i = 0; i < kStripRows / kRowsAtOnce; ++i)
      f(i * kRowsAtOnce + static_cast<int>(threadIdx.x) / kPieces, static_cast<int>(threadIdx.x) % kPieces * kPiece);
  }
  // Starts copies of so many columns, which do not go round the window's end. Of those left of the strip's first one: 0.
  template <int kCount>
  __device__ __forceinline__ void fetch_columns(int from) {
    const int to = slot(from), column = first_column + from;
    const auto line = [&](int row) { return matrix.data + min(first_row + row, last_row) * matrix.row_stride; };
    if (from < 0) {
      for_each_piece<kCount, 1>([&](int row, int i) { memory.cells[row][to + i] = 0; });
    } else if (reads_fours && column + kCount <= end_column) {
      for_each_piece<kCount, kAtOnce>(
          [&](int row, int i) { __pipeline_memcpy_async(&memory.cells[row][to + i], line(row) + column + i, 16); });
    } else if (column < end_column) {
      for_each_piece<kCount, 1>([&](int row, int i) {
        if (column + i < end_column)
          __pipeline_memcpy_async(&memory.cells[row][to + i], line(row) + (column + i) * matrix.column_stride, sizeof(T));
      });
    }
    __pipeline_commit();
  }
};

// A lane's costs, read from a window.
template <class S, int kColumns>
class MatrixCosts : public MatrixWindow<S, kColumns> {
  using Window = MatrixWindow<S, kColumns>;
  using T = typename S::Scalar;
  T costs[S::kRows][S::kSteps];

 public:
  static constexpr bool kUnivariate = false;
  using typename Window::Memory;
  T reach = 0;  // no cost of the tile is larger

  __device__ __forceinline__
  MatrixCosts(Memory& memory, const Problem<T>& problem, const Extent& extent, const Strip<S>& strip, int64_t pair)
      : Window(memory, problem.cost_matrix.pair(pair), reads_fours_of(problem.cost_matrix), extent, strip) {
    this->clear();
  }
  __device__ __forceinline__ static bool reads_fours_of(const View<const T>& matrix) {
    return matrix.column_stride == 1 && ((matrix.row_stride | matrix.batch_stride) & 3) == 0 &&
           (reinterpret_cast<uintptr_t>(matrix.data) & 15) == 0;
  }
  // Of a chunk whose columns are there.
  __device__ __forceinline__ void read(const Place<S>& place) {
    const int start = this->slot(place.column - this->first_column);
    reach = 0;
    for_each_cell<S>([&](int k, int t) {
      costs[k][t] = this->cell(start, k, t);
      reach = DeviceMath<T>::max(reach, DeviceMath<T>::abs(costs[k][t]));
    });
  }
  __device__ __forceinline__ T cost(int k, int t) const { return costs[k][t]; }
};

// For kernels that are compiled for a kind of tile.
template <class S>
struct MatrixTile {
  static constexpr bool kUnivariate = false;
  // Lanes meet kWarp - 1 columns beside those of a chunk, and the next chunk's are on their way.
  static constexpr int kForwardColumns = (kWarp - 1 + 2 * S::kSteps + 7) / 8 * 8;
};
template <class Tile>
constexpr bool kIsOfMatrix = false;
template <class S>
constexpr bool kIsOfMatrix<MatrixTile<S>> = true;

// For a warp that goes over a strip chunk by chunk.
template <class S>
class MatrixAhead : public MatrixCosts<S, MatrixTile<S>::kForwardColumns> {
 public:
  using MatrixCosts<S, MatrixTile<S>::kForwardColumns>::MatrixCosts;

  // Once the chunk before has been read. Lane 0 is the first to meet a column.
  __device__ __forceinline__ void fetch(const Place<S>& place) {
    __syncwarp();
    this->template fetch_columns<S::kSteps>(place.column + static_cast<int>(threadIdx.x) - this->first_column);
  }
  __device__ __forceinline__ void use(const Place<S>& place) {
    __pipeline_wait_prior(0);
    __syncwarp();
    this->read(place);
  }
};

}  // namespace softdtw
