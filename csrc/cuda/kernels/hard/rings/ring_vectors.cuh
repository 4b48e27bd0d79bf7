// Vectors of a ring (kernels/banded/ring_band.cuh), of up to 4 kFours numbers: those of a lane's rows in its registers, those of the
// columns in shared memory, as many as the lanes of the ring are at. With every group come kRows more, and the rows of the next block,
// a part of both to each lane, which reads them a group ahead. So series may be of any length.
//
// Lines: where the vectors of a series come from. It has reads_fours(), and four(i, f, fours), numbers 4 f to 4 f + 3 of vector i, of any i.
#pragma once

#include "cuda/kernels/banded/ring_band.cuh"
#include "cuda/select/hard.h"

namespace softdtw {

template <int kRows, int kFours, class Lines>
class RingVectors : public RingBand<kRows> {
  using Band = RingBand<kRows>;
  static constexpr int kCount = kRows * kFours, kFewestLanes = fewest_lanes_of_vectors(kRows);
  static constexpr int kPieces = (kCount + kFewestLanes - 1) / kFewestLanes, kFewestSlots = 16;
  const int slots;
  bool reads_fours = false;
  float4 next_rows[kPieces], next_columns[kPieces];
  float4* memory = nullptr;  // the rows of a block, and columns, four numbers after four numbers

 protected:
  Lines of_x, of_y;
  float4 x[kRows][kFours];

 public:
  static constexpr bool kIsOfVectors = true, kIsOfFewPairs = false;
  struct Columns {
    int column;
    float4 now[kFours];
  };
  __host__ __device__ static int floats_of(const RingLayout& layout) { return 4 * (kCount + kFours * slots_of(layout)); }

  __device__ RingVectors(const RingLayout& layout, const Extent& extent, int end_column, bool wanted)
      : Band(layout, extent, end_column, wanted), slots(slots_of(layout)) {}

  __device__ __forceinline__ void read(const Lines& of_x_, const Lines& of_y_, float* own) {
    of_x = of_x_, of_y = of_y_;
    memory = reinterpret_cast<float4*>(own);
    reads_fours = of_x.reads_fours() && of_y.reads_fours();
    const int first_row = this->block(0) * kRows, first_column = this->column_of_newest(0);
#pragma unroll
    for (int k = 0; k < kRows; ++k)
#pragma unroll
      for (int f = 0; f < kFours; ++f) x[k][f] = of_x.four(first_row + k, f, reads_fours);
#pragma unroll
    for (int f = 0; f < kFours; ++f)
      place(first_column + this->lane, f) = of_y.four(first_column + this->lane, f, reads_fours);
    fetch(0);
    __syncwarp();
  }
  __device__ __forceinline__ Columns columns(int i) const { return at(this->first_column(i)); }
  __device__ __forceinline__ void turn(int i, Columns& columns_) {
    __syncwarp();
    const int first_column = this->column_of_newest(i) + this->lanes;
    for_each_piece([&](int piece, int own) {
      memory[piece] = next_rows[own];
      place(first_column + piece / kFours, piece % kFours) = next_columns[own];
    });
    fetch(i + 1);
    __syncwarp();
    columns_ = columns(i);
    if (this->age(i) != 0) return;
#pragma unroll
    for (int k = 0; k < kRows; ++k)
#pragma unroll
      for (int f = 0; f < kFours; ++f) x[k][f] = memory[k * kFours + f];
  }
  __device__ __forceinline__ void move(Columns& columns) const { columns = at(columns.column + 1); }

 private:
  __host__ __device__ static int slots_of(const RingLayout& layout) {
    return layout.lanes < kFewestSlots / 2 ? kFewestSlots : 2 * layout.lanes;
  }
  __device__ __forceinline__ float4& place(int column, int f) const {
    return memory[kCount + f * slots + (column & (slots - 1))];
  }
  __device__ __forceinline__ Columns at(int column) const {
    Columns columns;
    columns.column = column;
#pragma unroll
    for (int f = 0; f < kFours; ++f) columns.now[f] = place(column, f);
    return columns;
  }
  template <class F>
  __device__ __forceinline__ void for_each_piece(F&& f) const {
#pragma unroll
    for (int own = 0; own < kPieces; ++own) {
      const int piece = own * this->lanes + this->lane;
      if (piece < kCount) f(piece, own);
    }
  }
  // What is new in group i: the rows of the block that enters, and columns on the right.
  __device__ __forceinline__ void fetch(int i) {
    const int first_row = (this->first_group + i) * kRows, first_column = this->column_of_newest(i) + this->lanes;
    for_each_piece([&](int piece, int own) {
      next_rows[own] = of_x.four(first_row + piece / kFours, piece % kFours, reads_fours);
      next_columns[own] = of_y.four(first_column + piece / kFours, piece % kFours, reads_fours);
    });
  }
};

}  // namespace softdtw
