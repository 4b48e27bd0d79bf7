// The series of a side of a pair (hard_ring.cuh), and what cells cost: a type for numbers, and one for vectors. Beside what RingSweep asks
// for (ring_band.cuh) they have
//
//     floats_of(layout)                of shared memory for a side of a pair
//     read(of_x, of_y, layout, own)    before the first group; own: that memory
//     look_at(columns)                 what a column costs, for
//     add(column, k, is_inside, best)  the entry of row k: infinity outside the band
#pragma once

#include "cuda/hardware/vectors.cuh"
#include "cuda/kernels/banded/ring_band.cuh"
#include "cuda/kernels/multivariate/costs/vector_cost.cuh"
#include "cuda/select/hard.h"

namespace softdtw {

// What a cell adds to the best of its predecessors. Squared differences: a multiplication and an addition are one.
struct HardSquared {
  __device__ explicit HardSquared(Cost) {}
  __device__ __forceinline__ static float add(float u, float best) { return fmaf(u, u, best); }
};
// Every cost of a difference u: d (|u| - h d), where d is 1 (cityblock, and of one dimension euclidean) or |u| up to a corner.
struct HardAnyCost {
  float steepness, corner, half;

  __device__ explicit HardAnyCost(Cost cost)
      : steepness(cost == Cost::kSqEuclidean || cost == Cost::kHuber ? 1 : 0),
        corner(cost == Cost::kSqEuclidean ? INFINITY : 1),
        half(cost == Cost::kHuber ? 0.5f : 0) {}
  __device__ __forceinline__ float add(float u, float best) const {
    const float size = fabsf(u), d = steepness != 0 ? fminf(size, corner) : 1;
    return best + d * fmaf(-half, d, size);
  }
};

// Where the lines of a side's x and y begin, and how far rows are apart: the lower side's from the end on.
struct SideOfSeries {
  const float* line;
  int64_t step, column_stride;
  int last;

  __device__ SideOfSeries(const View<const float>& series, bool is_reversed, int length, int own_length)
      : line(series.data + (is_reversed ? length - 1 : 0) * series.row_stride),
        step(is_reversed ? -series.row_stride : series.row_stride),
        column_stride(series.column_stride),
        last(own_length - 1) {}
  // Rows and columns past the end, or before the start, repeat the last ones, or the first: no path comes from there.
  __device__ __forceinline__ const float* at(int i) const { return line + min(max(i, 0), last) * step; }
};

// One dimension.
template <int kRows, class CellCost>
struct HardNumbers : RingNumbers<kRows> {
  using Numbers = RingNumbers<kRows>;
  using Columns = typename Numbers::Columns;
  static int floats_of(const RingLayout& layout) { return layout.floats_of_pair(); }
  const CellCost cost;

  __device__ HardNumbers(
      const Problem<float>& problem, const RingLayout& layout, const Extent& extent, int end_column, bool wanted)
      : Numbers(layout, extent, end_column, wanted), cost(problem.cost) {}

  __device__ __forceinline__ void read(
      const SideOfSeries& of_x, const SideOfSeries& of_y, const RingLayout& layout, float* own) {
    constexpr int kAtOnce = 16;
    for (int first = this->lane; first < max(layout.x_floats, layout.y_floats); first += kAtOnce * this->lanes) {
      float x[kAtOnce], y[kAtOnce];
#pragma unroll
      for (int i = 0; i < kAtOnce; ++i) {
        const int place = first + i * this->lanes;
        x[i] = *of_x.at(place);
        y[i] = *of_y.at(place - layout.before());
      }
#pragma unroll
      for (int i = 0; i < kAtOnce; ++i) {
        const int place = first + i * this->lanes;
        if (place < layout.x_floats) own[place] = x[i];
        if (place < layout.y_floats) own[layout.x_floats + place] = y[i];
      }
    }
    __syncwarp();
    this->find_series(layout, own);
    this->take_rows(this->block(0));
  }
  __device__ __forceinline__ float look_at(const Columns& columns) const { return columns.now; }
  __device__ __forceinline__ float add(float column, int k, bool is_inside, float best) const {
    return cost.add(is_inside ? this->x[k] - column : INFINITY, best);
  }
};

// Any cost of vectors, by a jump for every column.
struct AnyVectorCost {};

// Vectors of up to 4 kFours numbers; CostType: of vector_cost.cuh, or AnyVectorCost. A lane holds those of its rows. What its columns are
// stands in shared memory, as many as the lanes of the ring are at. With every group come kRows more, and the rows of the next block,
// a part of both to each lane, which reads them a group ahead.
template <int kRows, int kFours, class CostType>
class HardVectors : public RingBand<kRows> {
  using Band = RingBand<kRows>;
  static constexpr int kCount = kRows * kFours, kFewestLanes = fewest_lanes_of_vectors(kRows);
  static constexpr int kPieces = (kCount + kFewestLanes - 1) / kFewestLanes, kFewestSlots = 16;
  const Cost cost;
  const int dim, slots;
  SideOfSeries of_x, of_y;
  bool reads_fours = false;
  float4 x[kRows][kFours], next_rows[kPieces], next_columns[kPieces];
  float4* memory = nullptr;  // the rows of a block, and columns, four dimensions after four dimensions

 public:
  struct Columns {
    int column;
    float4 now[kFours];
  };
  struct Column {
    float costs[kRows];
  };
  static int floats_of(const RingLayout& layout) { return 4 * (kCount + kFours * slots_of(layout)); }

  __device__ HardVectors(
      const Problem<float>& problem, const RingLayout& layout, const Extent& extent, int end_column, bool wanted)
      : Band(layout, extent, end_column, wanted),
        cost(problem.cost),
        dim(static_cast<int>(problem.dim)),
        slots(slots_of(layout)),
        of_x({}, false, 0, 0),
        of_y({}, false, 0, 0) {}

  __device__ __forceinline__ void read(
      const SideOfSeries& of_x_, const SideOfSeries& of_y_, const RingLayout&, float* own) {
    of_x = of_x_, of_y = of_y_;
    memory = reinterpret_cast<float4*>(own);
    reads_fours = dim % 4 == 0 && stands_in_fours(of_x) && stands_in_fours(of_y);
    const int first_row = this->block(0) * kRows, first_column = column_of_newest(0);
#pragma unroll
    for (int k = 0; k < kRows; ++k)
#pragma unroll
      for (int f = 0; f < kFours; ++f) x[k][f] = four_of(of_x, first_row + k, f);
#pragma unroll
    for (int f = 0; f < kFours; ++f) place(first_column + this->lane, f) = four_of(of_y, first_column + this->lane, f);
    fetch(0);
    __syncwarp();
  }
  __device__ __forceinline__ Columns columns(int i) const { return at(this->first_column(i)); }
  __device__ __forceinline__ void turn(int i, Columns& columns_) {
    __syncwarp();
    const int first_column = column_of_newest(i) + this->lanes;
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
  __device__ __forceinline__ Column look_at(const Columns& columns) const {
    Column column;
    const auto look = [&](auto type) {
      using Type = decltype(type);
#pragma unroll
      for (int k = 0; k < kRows; ++k) {
        float sum = 0;
#pragma unroll
        for (int f = 0; f < kFours; ++f) sum = add_shares<Type>(x[k][f] - columns.now[f], sum);
        column.costs[k] = Type::finish(sum);
      }
    };
    if constexpr (std::is_same_v<CostType, AnyVectorCost>)
      with_cost<VectorCosts>(cost, look);
    else
      look(CostType());
    return column;
  }
  __device__ __forceinline__ static float add(const Column& column, int k, bool is_inside, float best) {
    return best + (is_inside ? column.costs[k] : INFINITY);
  }

 private:
  __host__ __device__ static int slots_of(const RingLayout& layout) {
    return layout.lanes < kFewestSlots / 2 ? kFewestSlots : 2 * layout.lanes;
  }
  __device__ __forceinline__ static bool stands_in_fours(const SideOfSeries& series) {
    return series.column_stride == 1 && series.step % 4 == 0 && reinterpret_cast<uintptr_t>(series.line) % 16 == 0;
  }
  // Coordinates 4 f to 4 f + 3 of a vector; 0 past the last one.
  __device__ __forceinline__ float4 four_of(const SideOfSeries& series, int i, int f) const {
    const float* const vector = series.at(i);
    if (reads_fours) return load_four<true>(vector, 4 * f, dim);
    const auto number = [&](int d) { return d < dim ? __ldg(vector + d * series.column_stride) : 0; };
    return {number(4 * f), number(4 * f + 1), number(4 * f + 2), number(4 * f + 3)};
  }
  // The column of the newest block's lane in the first step of group i: the others are further right, one by one.
  __device__ __forceinline__ int column_of_newest(int i) const {
    return (this->first_group + i) * kRows + this->extent.low - 1;
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
    const int first_row = (this->first_group + i) * kRows, first_column = column_of_newest(i) + this->lanes;
    for_each_piece([&](int piece, int own) {
      next_rows[own] = four_of(of_x, first_row + piece / kFours, piece % kFours);
      next_columns[own] = four_of(of_y, first_column + piece / kFours, piece % kFours);
    });
  }
};

}  // namespace softdtw
