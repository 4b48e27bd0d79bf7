// Ready-made costs of float32, which a strip's warp copies to shared memory as they lie in the matrix, whole groups of columns at a
// time, and reads along its skewed lanes. A lane that read its own cells of the matrix would meet another line with each.
//
// A slab of shared memory holds a strip's rows and so many columns: those that the lanes meet in a chunk, or in a stage, and those
// that are on their way. Lanes are each a column behind the one above, so each eight of them have their columns 8 further left than the
// eight above, and the slab stands askew as the lanes do: 8 q columns to the left for the lanes from 8 q on. So columns are counted
// here: from the strip's first one, and 8 q more. They stand in the slab modulo its width. Those that the pair does not have are never
// read: their cells hold numbers of other columns, or 0, on which no result depends.
#pragma once

#include <cuda_pipeline_primitives.h>

#include "cuda/hardware/vectors.cuh"
#include "tile.cuh"

namespace softdtw {

template <class S, int kColumns_>
class MatrixSlab {
 protected:
  using T = typename S::Scalar;
  static constexpr int kAtOnce = 4;  // columns that are 16 bytes
  static constexpr int kGroup = 8, kGroups = kWarp / kGroup, kGroupRows = kGroup * S::kRows;
  static_assert(sizeof(T) == 4 && kColumns_ % kGroup == 0);

 public:
  static constexpr int kColumns = kColumns_, kStripRows = S::kStripRows;
  // Groups of lanes are in banks of their own.
  struct alignas(16) Memory {
    T cells[kStripRows * kColumns + kGroups * kGroup];
  };

  __device__ __forceinline__
  MatrixSlab(Memory& memory, const View<const T>& matrix_, bool reads_fours_, const Extent& extent, const Strip<S>& strip)
      : cells(memory.cells),
        matrix(matrix_),
        reads_fours(reads_fours_),
        first_row(strip.first_row),
        first_column(strip.first_column),
        last_row(extent.n - 1),
        end_column(extent.m) {}

 protected:
  T* const cells;
  const View<const T> matrix;
  const bool reads_fours;  // whether four columns can be copied at once
  const int first_row, first_column, last_row, end_column;

  // Which of the slab's columns one from -kColumns on is.
  __device__ __forceinline__ static int slot(int column) {
    return static_cast<unsigned>(column + kColumns) % static_cast<unsigned>(kColumns);
  }
  // Calls f(row, group of its lane, column, its place in the slab) for so many columns, kPiece at a time, by the whole warp.
  template <int kCount, int kPiece, class F>
  __device__ __forceinline__ static void for_each_piece(int from, F&& f) {
    constexpr int kPieces = kCount / kPiece, kRowsAtOnce = kWarp / kPieces;
    static_assert(kWarp % kPieces == 0 && kGroupRows % kRowsAtOnce == 0);
    const int own = static_cast<int>(threadIdx.x) % kPieces * kPiece, row = static_cast<int>(threadIdx.x) / kPieces;
    const int place = row * kColumns + slot(from + own / kGroup * kGroup) + own % kGroup;
#pragma unroll(kPiece == 1 ? 1 : kStripRows / kRowsAtOnce)
    for (int i = 0; i < kStripRows; i += kRowsAtOnce) {
      const int group = i / kGroupRows;
      f(row + i, group, from + own, place + i * kColumns + group * kGroup);
    }
  }
  // Starts copies of so many columns. Of those left of the strip's first one: 0.
  template <int kCount>
  __device__ __forceinline__ void fetch_columns(int from) {
    const T* const first = matrix.data + first_column * matrix.column_stride;
    const bool is_inside = from >= (kGroups - 1) * kGroup && first_column + from + kCount <= end_column &&
                           first_row + kStripRows - 1 <= last_row;
    const auto copy = [&](int row, int column, int place) {
      if (column < 0)
        cells[place] = 0;
      else if (first_column + column < end_column)
        __pipeline_memcpy_async(
            &cells[place], first + min(first_row + row, last_row) * matrix.row_stride + column * matrix.column_stride,
            sizeof(T));
    };
    if (reads_fours && is_inside)
      for_each_piece<kCount, kAtOnce>(from, [&](int row, int group, int column, int place) {
        __pipeline_memcpy_async(&cells[place], first + (first_row + row) * matrix.row_stride + column - group * kGroup, 16);
      });
    else if (reads_fours)
      for_each_piece<kCount, kAtOnce>(from, [&](int row, int group, int column, int place) {
        const int own = column - group * kGroup;
        if (own >= 0 && first_column + own + kAtOnce <= end_column)
          __pipeline_memcpy_async(&cells[place], first + min(first_row + row, last_row) * matrix.row_stride + own, 16);
        else
#pragma unroll 1
          for (int i = 0; i < kAtOnce; ++i) copy(row, own + i, place + i);
      });
    else
      for_each_piece<kCount, 1>(
          from, [&](int row, int group, int column, int place) { copy(row, column - group * kGroup, place); });
    __pipeline_commit();
  }
  __device__ __forceinline__ void clear() {
#pragma unroll 4
    for (int i = threadIdx.x * kAtOnce; i < static_cast<int>(sizeof(Memory) / sizeof(T)); i += kWarp * kAtOnce)
      *reinterpret_cast<float4*>(cells + i) = make_float4(0, 0, 0, 0);
    __syncwarp();
  }

  // The cells of a lane in a chunk.
  struct Chunk {
    int upto;       // as many steps are before the slab's end
    int near, far;  // where step 0 is, and where it would be if the slab began there
  };
  __device__ __forceinline__ Chunk chunk_of(const Place<S>& place) const {
    const int lane = threadIdx.x, start = slot(place.column - first_column + lane / kGroup * kGroup);
    const int line = lane * S::kRows * kColumns + lane / kGroup * kGroup + start;
    return {kColumns - start, line, line - kColumns};
  }
  __device__ __forceinline__ T& cell(const Chunk& chunk, int k, int t) const {
    return cells[(t < chunk.upto ? chunk.near : chunk.far) + k * kColumns + t];
  }
};

// A lane's costs, read from a slab.
template <class S, int kColumns>
class MatrixCosts : public MatrixSlab<S, kColumns> {
  using Slab = MatrixSlab<S, kColumns>;
  using T = typename S::Scalar;
  T costs[S::kRows][S::kSteps];

 public:
  static constexpr bool kUnivariate = false, kIsMatrix = true;
  using typename Slab::Memory;
  T reach = 0;  // no cost of the tile is larger; NaN if one is NaN

  __device__ __forceinline__
  MatrixCosts(Memory& memory, const Problem<T>& problem, const Extent& extent, const Strip<S>& strip, int64_t pair)
      : Slab(memory, problem.cost_matrix.pair(pair), rows_have_fours(problem.cost_matrix), extent, strip) {
    this->clear();
  }
  // Of a chunk whose columns are there.
  __device__ __forceinline__ void read(const Place<S>& place) {
    const auto chunk = this->chunk_of(place);
    reach = 0;
    for_each_cell<S>([&](int k, int t) {
      costs[k][t] = this->cell(chunk, k, t);
      reach = greater(reach, DeviceMath<T>::abs(costs[k][t]));
    });
  }
  __device__ __forceinline__ T cost(int k, int t) const { return costs[k][t]; }
};

// A lane's own cells, straight from the matrix.
template <class S>
struct MatrixTile {
  using T = typename S::Scalar;
  static constexpr bool kUnivariate = false, kIsMatrix = true;
  const View<const T> matrix;
  const Extent& extent;
  T costs[S::kRows][S::kSteps];
  T reach = 0;  // as in MatrixCosts

  __device__ MatrixTile(const Problem<T>& problem, const Extent& extent_, const Strip<S>&, int64_t pair, int)
      : matrix(problem.cost_matrix.pair(pair)), extent(extent_) {}
  __device__ __forceinline__ void fetch(const Place<S>&) {}
  __device__ __forceinline__ void use(const Place<S>& place) { reach = load_ready_made(matrix, extent, place, costs); }
  __device__ __forceinline__ T cost(int k, int t) const { return costs[k][t]; }
};

// For a warp that goes over a strip chunk by chunk: eight lanes meet 15 columns in a chunk, and those of the next ones are on their way.
template <class S, int kAhead>
class MatrixAhead : public MatrixCosts<S, (2 + kAhead) * S::kSteps> {
  using Base = MatrixCosts<S, (2 + kAhead) * S::kSteps>;

 public:
  using typename Base::Memory;

  __device__ __forceinline__ MatrixAhead(
      Memory& memory, const Problem<typename S::Scalar>& problem, const Extent& extent, const Strip<S>& strip, int64_t pair)
      : Base(memory, problem, extent, strip, pair) {
#pragma unroll 1
    for (int chunk = 0; chunk < kAhead - 1; ++chunk) this->template fetch_columns<S::kSteps>(chunk * S::kSteps);
  }
  // Of a chunk: those that it needs, or that one needs which is kAhead - 1 further. Once the chunk before has been read. Lane 0 is the
  // first to meet a column.
  __device__ __forceinline__ void fetch(const Place<S>& place) {
    __syncwarp();
    const int first = place.column + static_cast<int>(threadIdx.x) - this->first_column;
    this->template fetch_columns<S::kSteps>(first + (kAhead - 1) * S::kSteps);
  }
  __device__ __forceinline__ void use(const Place<S>& place) {
    __pipeline_wait_prior(kAhead - 1);
    __syncwarp();
    this->read(place);
  }
};
// Of a warp that sweeps itself.
template <class S>
using MatrixNext = MatrixAhead<S, 1>;

// Of a warp that does nothing else, and of few that share a multiprocessor: memory answers later than it takes to split a chunk's costs.
template <class S>
struct TileAhead<MatrixTile<S>> : MatrixAhead<S, 3> {
  __device__ TileAhead(
      typename MatrixAhead<S, 3>::Memory& memory, const Problem<float>& problem, const Extent& extent,
      const Strip<S>& strip, int64_t pair, int /* lane */)
      : MatrixAhead<S, 3>(memory, problem, extent, strip, pair) {}
};

}  // namespace softdtw
