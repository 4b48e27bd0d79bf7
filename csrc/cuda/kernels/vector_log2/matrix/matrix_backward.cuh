// Ready-made costs in backward, and their gradients. Costs come in once the chunk before is rebuilt and needs its own no more.
#pragma once

#include "cuda/kernels/integer_log2/integer_log2_flow.cuh"
#include "matrix_group.cuh"

namespace softdtw {

template <class Group>
class MatrixGradient;

template <int kRows, class Penalty, bool kHasBand>
struct MatrixBackwardGroup : MatrixGroup<kRows, Penalty, kHasBand> {
  using Base = MatrixGroup<kRows, Penalty, kHasBand>;
  using Memory = typename Base::Memory;
  using Column = typename Base::Column;
  using Leaving = MatrixGradient<MatrixBackwardGroup>;
  using Base::from_below;
  using Base::memory;

  __device__ MatrixBackwardGroup(
      const Problem<float>& problem_, bool, int lanes_, Memory& memory_, int64_t own, bool wanted)
      : Base(problem_, lanes_, memory_, own, wanted) {}
  // The first chunk of a strip; of one before another what comes early, and late. The last strip is the first one, and its rows that are
  // to stay 0 are.
  __device__ __forceinline__ void fetch_all(int chunk_, const EdgeEntry* line, bool has_line) const {
    this->template fetch_costs<Base::kSteps>(chunk_, 0);
    this->fetch_edge(chunk_, line, has_line);
  }
  __device__ __forceinline__ void fetch_before(int chunk_, const EdgeEntry* line, bool has_line) const {
    this->fetch_edge(chunk_, line, has_line);
  }
  __device__ __forceinline__ void fetch_late(bool wanted, int chunk_) const {
    __syncwarp();
    if (!wanted) return;
    this->template fetch_costs<Base::kSteps>(chunk_, 0);
    __pipeline_commit();
  }
  __device__ __forceinline__ Column at_step(int t) const { return memory.costs.at_step(t); }
  __device__ __forceinline__ Column at_step_back(int) const { return {}; }
  // E of the column's cells.
  __device__ __forceinline__ void add_slopes(int k, const Column&, float e, Column&, Column& sum) const { sum.at[k] = e; }
  __device__ __forceinline__ Column from_below(const Column&) const { return {}; }
};

// What backward leaves: E of all cells. A chunk's stands in the place of the shares that it has flowed by. Cells that E does not come to
// are 0; in a problem with lengths or bands all are before.
template <class Group>
class MatrixGradient {
  static constexpr int kSteps = Group::kSteps, kRows = Group::kRows;
  using Table = Log2Table<kRows>;

 public:
  struct Memory {
    float4 last[kRows / 4][kWarp];  // of a chunk's last step
  };

 private:
  const View<float> matrix;
  const bool writes_fours;
  const float scale;
  Memory& memory;
  Table& table;
  int end_of_visited = 0;  // a column, of the first lane

  __device__ __forceinline__ float4& four_of(int owner, int four, int t) const {
    return t < kSteps - 1 ? table.shares[t][four][owner] : memory.last[four][owner];
  }

 public:
  __device__ MatrixGradient(
      const Group& group, const Gradient<float>& gradient, float scale_, Memory& memory_, Table& table_)
      : matrix(gradient.cost.pair(group.pair)),
        writes_fours(has_fours(gradient.cost)),
        scale(scale_),
        memory(memory_),
        table(table_) {}
  __device__ __forceinline__ void begin_strip(const Group& group) { end_of_visited = (group.chunk + 1) * kSteps; }
  __device__ __forceinline__ void step(const Group&, int t, const typename Group::Column& e) {
#pragma unroll
    for (int f = 0; f < kRows / 4; ++f)
      four_of(threadIdx.x, f, t) = float4{e.at[4 * f], e.at[4 * f + 1], e.at[4 * f + 2], e.at[4 * f + 3]};
  }
  // By all lanes, once they have their E.
  __device__ __forceinline__ void end_chunk(const Group& group) {
    if (!group.is_active) return;
    MatrixPieces(group, matrix, group.chunk * kSteps)
        .template for_each<kSteps>(
            writes_fours,
            [&](int owner, int half, int t, float* at) {
              const float4 e = four_of(owner, half, t);
              *reinterpret_cast<float4*>(at) = {e.x * scale, e.y * scale, e.z * scale, e.w * scale};
            },
            [&](int owner, int k, int t, float* at) {
              *at = reinterpret_cast<const float*>(&four_of(owner, k / 4, t))[k % 4] * scale;
            });
  }
  __device__ __forceinline__ void end_strip(const Group& group, const typename Group::Column (&)[kRows]) {
    if (group.problem.ragged()) return;
    MatrixPieces(group, matrix).clear(writes_fours, group.chunk * kSteps, end_of_visited);
  }
};

}  // namespace softdtw
