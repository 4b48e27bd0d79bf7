// Costs and their gradients beside the sweeps: series of float32 with several dimensions, under the names stencil and tiled alike.
//
// Threads to work: a strip (strip.cuh) of 64 rows of a pair has a warp for every stage of its work, so that none waits for
// what another could do meanwhile. Forward: one sweeps, as the extended range does (multivariate_forward.cuh), and two compute costs
// ahead of it (multivariate_costs_few.cuh, multivariate_costs_many.cuh). Backward: two compute costs, two rebuild what the forward sweep computed (multivariate_rebuild.cuh),
// one sweeps back (multivariate_reverse.cuh), for which another looks for what comes from the strip below (multivariate_flows.cuh), and two
// or six turn E into gradients behind it (multivariate_gradient.cuh). Neither costs nor E leave the chip: they stand in pipelines in shared
// memory (multivariate_channel.cuh). Series and gradients are read and written vector by vector, D numbers in a row.
//
// The forward kernel is multivariate_block.cuh's; few pairs of a few dimensions go forward in tiled's teams instead (tiled.cu), which
// keep the same. A block takes a ticket (tickets.cuh), which stands for a few consecutive strips of one pair, and in backward for
// one. In forward two more warps carry edges between the blocks. The loops are short where they can be: all these warps' code
// together has to fit the instruction cache that a multiprocessor has, or they wait for it more than for anything else.
#pragma once

#include "cuda/gradients/multivariate_dx.cuh"
#include "cuda/gradients/multivariate_dy.cuh"
#include "cuda/gradients/ready_made_gradient.cuh"
#include "cuda/hardware/launch.cuh"
#include "cuda/kernels/extended_range/engines.cuh"
#include "cuda/select/face.h"
#include "cuda/strips/tickets.cuh"
#include "multivariate_block.cuh"
#include "multivariate_forward.cuh"
#include "multivariate_reverse.cuh"

namespace softdtw {
namespace {

using S = MultivariateShape;

// Of a block in backward: what each of its warps does. Every fourth one has the same scheduler, so these are apart: those that
// have the most to do, and the sweep, which all strips above wait for. Those that do the same are together, also with
// the multiprocessor's other block, since their instructions are cached once.
template <bool kFew>
struct BackwardBlock {
  using Warps = MultivariateWarps<kFew>;
  static constexpr int kWarps = 2 + Warps::kRebuilders + Warps::kCosts + Warps::kGradients;
  static constexpr int kBlocks = kFew ? 2 : 1;  // of a multiprocessor
  enum Role { kSweep, kRebuild, kCosts, kHalo, kRows, kColumns };
  Role role;
  int number;  // among those of the role

  //   kSweep     kRebuild 0   kRebuild 1   kCosts 0
  //   kHalo     kRows 0      kColumns 0   kCosts 1
  //   kColumns 3 kRows 1      kColumns 1   kColumns 2
  __device__ explicit BackwardBlock(int warp) {
    // A digit a warp, from the right.
    constexpr uint64_t kRoles = 0x554525432110, kNumbers = 0x211310000100;
    role = static_cast<Role>(kRoles >> 4 * warp & 0xf);
    number = static_cast<int>(kNumbers >> 4 * warp & 0xf);
  }
};
static_assert(BackwardBlock<true>::kWarps == 8 && BackwardBlock<false>::kWarps == 12);

// What multivariate_forward() does for soft-DTW.
template <class CostType_>
struct MultivariateSweep {
  using CostType = CostType_;
  using Edge = EdgeSlot<S>;
  static constexpr bool kTakesSplitCosts = true;
  float* value;
  Saved<S> saved;
  Edges<S> edges;

  __device__ __forceinline__ bool keeps() const { return saved.memory != nullptr; }
  __device__ void spoil(int64_t pair) const { invalid_forward(value, pair); }
  template <bool kHasOptions, class Costs>
  __device__ void sweep(
      const Problem<float>& problem, const Extent& extent, int64_t pair, int index, int own, Pipeline<Edge>& above,
      Pipeline<Edge>& below, Costs& costs) const {
    multivariate_sweep<kHasOptions>(problem, extent, pair, index, saved, keeps() && own > 0, above, below, costs, value);
  }
};

template <bool kFew, class CostType>
using BackwardChannelOf = BackwardChannel<kFew, !kFew && CostType::kOverCost>;
// With few dimensions gradients are products for squared Euclidean costs alone; others read vectors.
template <bool kFew, class CostType>
constexpr bool kHasSlopes = kFew && !std::is_same_v<CostType, Squared>;
template <bool kFew, bool kFours, class CostType>
using RowGradientsOf =
    std::conditional_t<kHasSlopes<kFew, CostType>, RowSlopes<CostType, kFours>, RowGradients<kFew, CostType>>;

template <bool kFew, class CostType, class Fours>
__global__ void __launch_bounds__(kWarp* BackwardBlock<kFew>::kWarps, BackwardBlock<kFew>::kBlocks) multivariate_backward(
    const __grid_constant__ Problem<float> problem, const __grid_constant__ Gradient<float> gradient, Saved<S> saved,
    FlowRows flows, float* other_dy, Tickets tickets, int64_t strips, bool has_fours, Held held_memory) {
  using Warps = MultivariateWarps<kFew>;
  using Channel = BackwardChannelOf<kFew, CostType>;
  __shared__ FlowItems flow_items;
  Channel& channel = pinned(Channel::own());
  FlowItems& items = pinned(flow_items);
  channel.start(threadIdx.x);
  if (threadIdx.y == 0) items.start(threadIdx.x);
  const Turn turn = take_turn(tickets, problem.batch);
  const int64_t pair = turn.pair;
  const int above = turn.group;  // the pair's last strip
  const Extent extent = problem.extent(pair);
  if (!has_gradient(gradient, extent, pair)) {
    if (above == 0) invalid_backward(problem, gradient, pair);
    return;
  }
  const int index = strips_of<S>(extent) - 1 - above;
  if (index < 0) return;
  const Surroundings<S> around(extent, index);

  using Block = BackwardBlock<kFew>;
  const Block own(threadIdx.y);
  const auto role = own.role;
  const int number = own.number;
  if (role == Block::kSweep) return reverse_strip(extent, around, pair, index, flows, items, channel);
  if (role == Block::kHalo) return carry_flows_in(flows, around, pair, index, chunks_of<true>(around, true) - 1, items);
  if (role == Block::kRebuild)
    return channel.for_each_run(
        [&](int last_chunk) { rebuild_strip(problem, extent, around, pair, index, saved, number, last_chunk, channel); });
  const HeldRows held(stage_memory + sizeof(Channel), 0, held_memory.row_blocks);
  // Batches go from the one where a run, or E, starts to the first one.
  if (role == Block::kCosts) {
    using Costs = typename Channel::Costs;
    return with_fours<Fours>(has_fours, [&](auto fours) {
      StripCosts<CostType, kFew, fours(), Costs, Channel::kIsDivided> costs(
          problem, extent, around.strip, pair, channel.costs, number, held);
      channel.for_each_run([&](int last_chunk) {
        const int top = last_chunk / kBatchGroups, begin = costs.first_own(top, -1);
        costs.fetch(begin);
        for (int batch = begin; batch >= -kEarlyBatches; batch -= costs.kStride) {
          const int slot = Costs::slot(batch), turn = (top - batch) / Costs::kBatches;
          if (turn > 0) {
            channel.costs.released[slot].wait(turn - 1);
            if (channel.costs_end[slot]) return;
          }
          costs.fill(batch, batch - costs.kStride);
          channel.costs.filled[slot].arrive();
        }
      });
    });
  }

  auto& pipeline = channel.alignment;
  const auto add_all = [&](auto&& sums) {
    channel.started.wait(0);
    const int top = channel.first_batch;
    for (int batch = top; batch >= 0; --batch) {
      const int slot = Channel::Alignment::slot(batch);
      sums.prepare(batch);
      pipeline.filled[slot].wait((top - batch) / Channel::Alignment::kBatches);
      if (channel.alignment_ends[slot]) break;
      sums.add(batch);
      pipeline.released[slot].arrive();
    }
    sums.finish();
  };
  if constexpr (std::is_same_v<CostType, ReadyMade>) {
    const int warp = role == Block::kRows ? number : Warps::kRows + number;
    return add_all(ReadyMadeGradient<Channel>(problem, gradient, extent, around.strip, pair, pipeline, warp));
  } else {
    const auto with_gradients = [&](auto&& f) {
      with_kind<CostType>(problem.cost, [&](auto type) {
        static_assert(StripGradient<kFew, decltype(type)>::kDivides == Channel::kIsDivided);
        if constexpr (kHasSlopes<kFew, decltype(type)>)
          with_fours<Fours>(has_fours, [&](auto fours) { f(type, fours); });
        else
          f(type, std::true_type());
      });
    };
    if (role == Block::kRows)
      return with_gradients([&](auto type, auto fours) {
        using Rows = RowGradientsOf<kFew, fours(), decltype(type)>;
        const HeldSums row_sums{held_memory.has_sums ? held.end() : nullptr};
        add_all(Rows(problem, gradient, extent, around.strip, pair, pipeline, number, row_sums));
      });
    GradientChain chain;
    chain.far_word = tickets.words + (pair * strips + above) * Warps::kColumns + number;
    if (above >= kGradientTables) chain.below.far_word = chain.far_word - kGradientTables * Warps::kColumns;
    chain.start = extent.m / S::kSteps + 2 * S::kSkewChunks;
    View<float> dy = gradient.y;
    const View<float> other = {other_dy, problem.m * problem.dim, problem.dim, 1};
    if (dy.data != nullptr) dy = (above % kGradientTables == 0 ? dy : other).pair(pair);
    with_gradients([&](auto type, auto fours) {
      using Columns = ColumnGradients<kFew, fours(), decltype(type)>;
      add_all(Columns(problem, gradient, extent, around.strip, pair, pipeline, dy, chain, number));
    });
  }
}

// dy and the strips' other table of it, both without gaps, as new_series_gradient() makes them.
__global__ void add_tables(float* dy, const float* other, int64_t count) {
  const int64_t i = 4 * (static_cast<int64_t>(blockIdx.x) * blockDim.x + threadIdx.x);
  if (i + 4 <= count) {
    float4& sum = *reinterpret_cast<float4*>(dy + i);
    const float4 own = sum, added = *reinterpret_cast<const float4*>(other + i);
    sum = {own.x + added.x, own.y + added.y, own.z + added.z, own.w + added.w};
  } else {
    for (int64_t j = i; j < count; ++j) dy[j] += other[j];
  }
}

}  // namespace

// What a Face has, of a cost or of either of two (vector_cost.cuh).
template <bool kFew, class CostType>
cudaError_t forward_of_vectors(
    const Problem<float>& problem, float* value, void* saved, Scratch& scratch, cudaStream_t stream) {
  const ForwardMemory<S> memory(problem, 1, saved, scratch);
  return launch_multivariate_forward<kFew>(
      problem, MultivariateSweep<CostType>{value, memory.saved, memory.edges}, memory.tickets, stream);
}

template <bool kFew, class CostType>
cudaError_t backward_of_vectors(
    const Problem<float>& problem, const Gradient<float>& gradient, const void* saved, Scratch& scratch,
    cudaStream_t stream) {
  const Sizes<S> sizes(problem);
  const int64_t words = sizes.strips * MultivariateWarps<false>::kColumns;  // of all warps of a pair that add to dy
  const bool has_tables = !std::is_same_v<CostType, ReadyMade> && sizes.strips > 1;
  const int64_t other_bytes = has_tables ? problem.batch * problem.m * problem.dim * sizeof(float) : 0;
  const auto parts =
      scratch.parts(Tickets::bytes(problem.batch, words), FlowRows::bytes(problem.batch, sizes), other_bytes);
  float* const other_dy = reinterpret_cast<float*>(parts[2]);
  cudaError_t error = cudaMemsetAsync(parts[0], 0, parts[2] + other_bytes - parts[0], stream);
  if (error != cudaSuccess) return error;
  const bool has_fours = reads_fours(problem);  // of series
  const bool has_sums = has_products<CostType>(problem.dim) && gradient.x.data != nullptr;
  const int64_t sums_bytes = has_sums ? HeldSums::bytes(problem.dim, 8 * kRowEights) : 0;
  error = with_kernel_of_fours<CostType>(has_fours, [&](auto fours) {
    return launch_multivariate<CostType>(
        multivariate_backward<kFew, CostType, decltype(fours)>, sizes.strips * problem.batch, BackwardBlock<kFew>::kBlocks,
        BackwardBlock<kFew>::kWarps, 1, sizeof(BackwardChannelOf<kFew, CostType>), problem.dim, sums_bytes, stream, problem,
        gradient, saved_at<S>(problem, saved), FlowRows(parts[1], problem.batch, sizes), other_dy,
        Tickets(parts[0], problem.batch, words), sizes.strips, has_fours);
  });
  if (error != cudaSuccess || gradient.y.data == nullptr || other_bytes == 0) return error;
  const View<float>& dy = gradient.y;
  if (dy.column_stride != 1 || dy.row_stride != problem.dim || dy.batch_stride != problem.m * problem.dim)
    return cudaErrorInvalidValue;
  constexpr int kThreads = 256;
  const int64_t count = other_bytes / sizeof(float), blocks = (count + 4 * kThreads - 1) / (4 * kThreads);
  return launch_kernel(add_tables, blocks, kThreads, 0, stream, dy.data, other_dy, count);
}

#define SOFTDTW_VECTOR_GRADIENTS(prefix, kFew, CostType)           \
  prefix template cudaError_t backward_of_vectors<kFew, CostType>( \
      const Problem<float>&, const Gradient<float>&, const void*, Scratch&, cudaStream_t);
#define SOFTDTW_VECTOR_KERNELS(prefix, kFew, CostType)               \
  prefix template cudaError_t forward_of_vectors<kFew, CostType>(    \
      const Problem<float>&, float*, void*, Scratch&, cudaStream_t); \
  SOFTDTW_VECTOR_GRADIENTS(prefix, kFew, CostType)

}  // namespace softdtw
