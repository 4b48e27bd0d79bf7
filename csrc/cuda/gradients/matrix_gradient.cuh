// Ready-made costs of float32 in backward: of a strip's stages, from right to left, costs come in and their gradients go out through one
// slab of shared memory (matrix_tile.cuh). A cell holds its cost until its stage is rebuilt, and E from then on. When a stage is done,
// so are its columns: other stages have had what the skew of the lanes leaves of them. They are written to memory as they lie there, and
// the columns that the stage before it meets first come in their place.
#pragma once

#include "cuda/costs/matrix_tile.cuh"

namespace softdtw {

template <class S>
constexpr int kStageColumns = S::kStage * S::kSteps;

template <class S>
class MatrixStages : public MatrixCosts<S, S::kSteps + kStageColumns<S>> {
  using Base = MatrixCosts<S, S::kSteps + kStageColumns<S>>;
  using T = typename S::Scalar;
  static constexpr int kCount = kStageColumns<S>;
  const View<T> out;
  const bool writes_fours;
  const int end_of_strip;  // its columns
  const T scale;
  typename Base::Chunk chunk = {};

 public:
  using typename Base::Memory;

  // `last_stage`: the first one to be gone over, of whose chunks there are `parts`.
  __device__ __forceinline__ MatrixStages(
      Memory& memory, const Problem<T>& problem, const Gradient<T>& gradient, const Extent& extent, const Strip<S>& strip,
      int64_t pair, T scale_, int last_stage)
      : Base(memory, problem, extent, strip, pair),
        out(gradient.cost.pair(pair)),
        writes_fours(rows_have_fours(gradient.cost)),
        end_of_strip(strip.end_column),
        scale(scale_) {
    this->template fetch_columns<S::kSteps>(last_stage * kCount - S::kSteps);
    this->template fetch_columns<kCount>(last_stage * kCount);
  }
  __device__ __forceinline__ void fetch(const Place<S>&) {}
  __device__ __forceinline__ void use(const Place<S>& place) { this->read(place); }
  // Before a stage is rebuilt, or left out.
  __device__ __forceinline__ void await() {
    __pipeline_wait_prior(0);
    __syncwarp();
  }
  // Before `put`.
  __device__ __forceinline__ void stand(const Place<S>& place) { chunk = this->chunk_of(place); }
  __device__ __forceinline__ void put(int k, int t, T e) { this->cell(chunk, k, t) = e * scale; }
  // A chunk in which E is 0.
  __device__ __forceinline__ void leave_out(const Place<S>& place) {
    stand(place);
    for_each_cell<S>([&](int k, int t) { this->cell(chunk, k, t) = 0; });
  }
  // When all chunks of a stage have their E.
  __device__ __forceinline__ void finish(int stage) {
    __syncwarp();
    const int from = stage * kCount, first = this->first_column, end = end_of_strip - first;
    const auto store = [&](int row, int column, int place) {
      if (column >= 0 && column < end && this->first_row + row <= this->last_row)
        out.at(this->first_row + row, first + column) = this->cells[place];
    };
    if (writes_fours)
      this->template for_each_piece<kCount, 4>(from, [&](int row, int group, int column, int place) {
        const int own = column - group * Base::kGroup;
        if (own >= 0 && own + 4 <= end && this->first_row + row <= this->last_row)
          *reinterpret_cast<float4*>(&out.at(this->first_row + row, 0) + first + own) =
              *reinterpret_cast<const float4*>(this->cells + place);
        else
#pragma unroll 1
          for (int i = 0; i < 4; ++i) store(row, own + i, place + i);
      });
    else
      this->template for_each_piece<kCount, 1>(
          from, [&](int row, int group, int column, int place) { store(row, column - group * Base::kGroup, place); });
    __syncwarp();
    if (stage > 0) this->template fetch_columns<kCount>(from - S::kSteps - kCount);
  }
};

// What a strip's warp leaves of E: it goes to the tile itself.
template <class S>
struct MatrixSink {
  using T = typename S::Scalar;

  template <class... Arguments>
  __device__ explicit MatrixSink(const Arguments&...) {}
  __device__ __forceinline__ void begin(const Place<S>&) {}
  __device__ __forceinline__ void cell(MatrixStages<S>& tile, int k, int t, T e) { tile.put(k, t, e); }
  __device__ __forceinline__ void step(int) {}
  __device__ __forceinline__ void end(const Place<S>&, bool) {}
  __device__ __forceinline__ void put_away(const Place<S>&) {}
  __device__ __forceinline__ void take_up(const Place<S>&) {}
  __device__ __forceinline__ void leave_out(const Place<S>&) {}
  __device__ __forceinline__ void finish(const Strip<S>&, const Extent&) {}
};

}  // namespace softdtw
