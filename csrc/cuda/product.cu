// Squared Euclidean costs and their gradients beside the sweeps: series of float32 with many dimensions, under the names
// stencil and tiled alike.
//
// Threads to work: a strip (strip.cuh) of 64 rows of a pair has a warp for every stage of its work, so that none waits for
// what another could do meanwhile. Forward: one sweeps, as the robust engine does (product_forward.cuh), and two or four
// compute costs ahead of it (product_costs.cuh). Backward: two or four compute costs, two rebuild what the forward sweep
// computed (product_rebuild.cuh), one sweeps back (product_reverse.cuh), and two or four turn E into gradients behind it
// (product_gradient.cuh). Neither costs nor E leave the chip: they stand in rings in shared memory (product_channel.cuh).
// Series and gradients are read and written vector by vector, D numbers in a row.
//
// A block takes a ticket (tickets.cuh), which stands for a few consecutive strips of one pair, and in backward for one. In
// forward two more warps carry edges between the blocks. The loops are short where they can be: all these warps' code together
// has to fit the instruction cache that a multiprocessor has, or they wait for it more than for anything else.
#include <algorithm>

#include "engines.cuh"
#include "product_forward.cuh"
#include "product_gradient.cuh"
#include "product_reverse.cuh"
#include "products.h"
#include "tickets.cuh"

namespace softdtw {
namespace {

using S = ProductShape;

// Of a block in forward: strips, at most, and for each the warps that compute costs. Many dimensions have more of these where
// there are no more blocks than multiprocessors.
template <bool kFew_, bool kLonely>
struct ForwardBlock {
  static constexpr bool kFew = kFew_;
  static constexpr int kStrips = kFew ? 4 : 2, kCosts = kFew || !kLonely ? 2 : 4;
  static constexpr int kBlocks = kFew || kLonely ? 1 : 2;  // of a multiprocessor
  using Channel = ForwardChannel<kCosts>;

  static constexpr int warps(int strips) { return strips * (1 + kCosts) + kCarriers; }
};

template <bool kFew>
struct BackwardBlock {
  using Warps = ProductWarps<kFew>;
  static constexpr int kWarps = 1 + Warps::kRebuilders + Warps::kCosts + Warps::kGradients;
  static constexpr int kBlocks = kFew ? 2 : 1;  // of a multiprocessor
};

template <class Block, bool kFours>
__global__ void __launch_bounds__(kWarp* Block::warps(Block::kStrips), Block::kBlocks) product_forward(
    const __grid_constant__ Problem<float> problem, float* value, Saved<S> saved, Edges<S> edges, Tickets tickets,
    int64_t groups) {
  using Channel = typename Block::Channel;
  __shared__ EdgeRing<S> rings[Block::kStrips + 1];
  const int lane = threadIdx.x, warp = threadIdx.y, block_strips = Channel::strips();
  if (warp <= block_strips) rings[warp].start(lane);
  if (warp < block_strips) Channel::own().start(lane);
  const auto [pair, group] = take_turn(tickets, problem.batch);
  const Extent extent = problem.extent(pair);
  if (!extent.valid()) {
    if (group == 0) invalid_forward(value, pair);
    return;
  }
  const int strips = strips_of<S>(extent), first = group * block_strips, end = first + block_strips;
  const bool keeps = saved.memory != nullptr;
  Progress* const words = tickets.words + pair * groups;
  const int role = warp / block_strips, own = warp % block_strips, index = first + own;
  if (role <= Block::kCosts) {
    if (index >= strips) return;
    Channel& channel = Channel::own();
    if (role == 0)
      return sweep_strip<Channel>(problem, extent, pair, index, saved, keeps && own > 0, rings[own], rings[own + 1], value);
    using Costs = typename Channel::Costs;
    const Surroundings<S> around(extent, index);
    const StripCosts<Block::kFew, kFours, Costs> costs(problem, extent, around.strip, pair, channel.costs, role - 1);
    const int chunks = chunks_of<false>(around, keeps);
    for (int batch = -kEarlyBatches; batch * kBatchGroups < chunks; ++batch) {
      // The chunk that left the slot's last batch behind.
      const int behind = batch - Costs::kBatches + kEarlyBatches;
      if (behind >= 0) channel.costs.released[Costs::slot(behind)].wait(behind / Costs::kBatches);
      costs.fill(batch);
      if (batch >= 0) channel.costs.filled[Costs::slot(batch)].arrive();
    }
  } else if (warp == blockDim.y - kCarriers) {
    if (first == 0 || first >= strips) return;
    carry_edge_in(edges, extent, pair, first, rings[0], words + group - 1, lane);
  } else if (end < strips) {
    carry_edge_out(edges, extent, pair, end - 1, rings[block_strips], words + group, lane);
  }
}

// A pair whose value is not a number has no gradient either.
__device__ void spoil(const View<float>& out, int64_t pair, int64_t rows, int64_t columns) {
  if (out.data == nullptr) return;
  const int64_t thread = threadIdx.y * blockDim.x + threadIdx.x, threads = blockDim.x * blockDim.y;
  for (int64_t i = thread; i < rows * columns; i += threads) out.pair(pair).at(i / columns, i % columns) = NAN;
}

__device__ __forceinline__ View<float> other_table(const Problem<float>& problem, float* memory) {
  View<float> table{};
  table.data = memory;
  table.batch_stride = problem.m * problem.dim;
  table.row_stride = problem.dim;
  table.column_stride = 1;
  return table;
}

template <bool kFew, bool kFours>
__global__ void __launch_bounds__(kWarp* BackwardBlock<kFew>::kWarps, BackwardBlock<kFew>::kBlocks) product_backward(
    const __grid_constant__ Problem<float> problem, const __grid_constant__ Gradient<float> gradient, Saved<S> saved,
    FlowRows flows, float* other_dy, Tickets tickets, int64_t strips) {
  using Warps = ProductWarps<kFew>;
  using Channel = BackwardChannel<kFew>;
  Channel& channel = pinned(Channel::own());
  channel.start(threadIdx.x);
  const Turn turn = take_turn(tickets, problem.batch);
  const int64_t pair = turn.pair;
  const int above = turn.group;  // the pair's last strip
  const Extent extent = problem.extent(pair);
  if (!extent.valid() || !isfinite(gradient.value[pair])) {
    if (above > 0) return;
    spoil(gradient.x, pair, extent.valid() ? extent.n : problem.n, problem.dim);
    spoil(gradient.y, pair, extent.valid() ? extent.m : problem.m, problem.dim);
    return;
  }
  const int index = strips_of<S>(extent) - 1 - above;
  if (index < 0) return;
  const Surroundings<S> around(extent, index);

  const int role = threadIdx.y;
  constexpr int kFirstCosts = 1 + Warps::kRebuilders, kFirstRows = kFirstCosts + Warps::kCosts,
                kFirstColumns = kFirstRows + Warps::kRows;
  if (role == 0) return reverse_strip(extent, around, pair, index, flows, channel);
  if (role < kFirstCosts)
    return channel.for_each_run(
        [&](int last_chunk) { rebuild_strip(problem, extent, around, pair, index, saved, role - 1, last_chunk, channel); });
  // Batches go from the one where a run, or E, starts to the first one.
  if (role < kFirstRows) {
    using Costs = typename Channel::Costs;
    const StripCosts<kFew, kFours, Costs> costs(problem, extent, around.strip, pair, channel.costs, role - kFirstCosts);
    return channel.for_each_run([&](int last_chunk) {
      const int top = last_chunk / kBatchGroups;
      for (int batch = top; batch >= -kEarlyBatches; --batch) {
        const int slot = Costs::slot(batch), turn = (top - batch) / Costs::kBatches;
        if (turn > 0) {
          channel.costs.released[slot].wait(turn - 1);
          if (channel.costs_end[slot]) return;
        }
        costs.fill(batch);
        channel.costs.filled[slot].arrive();
      }
    });
  }

  auto& ring = channel.alignment;
  const auto add_all = [&](auto&& sums) {
    channel.started.wait(0);
    const int top = channel.first_batch;
    for (int batch = top; batch >= 0; --batch) {
      const int slot = Channel::Alignment::slot(batch);
      sums.prepare(batch);
      ring.filled[slot].wait((top - batch) / Channel::Alignment::kBatches);
      if (channel.alignment_ends[slot]) break;
      sums.add(batch);
      ring.released[slot].arrive();
    }
    sums.finish();
  };
  if (role < kFirstColumns)
    return add_all(RowGradients<kFew>(problem, gradient, extent, around.strip, pair, ring, role - kFirstRows));
  const int warp = role - kFirstColumns;
  GradientChain chain;
  chain.far_word = tickets.words + (pair * strips + above) * Warps::kColumns + warp;
  if (above >= kGradientTables) chain.below.far_word = chain.far_word - kGradientTables * Warps::kColumns;
  chain.start = extent.m / S::kSteps + 2 * S::kSkewChunks;
  View<float> dy = gradient.y;
  if (dy.data != nullptr) dy = above % kGradientTables == 0 ? dy.pair(pair) : other_table(problem, other_dy).pair(pair);
  add_all(ColumnGradients<kFew>(problem, gradient, extent, around.strip, pair, ring, dy, chain, warp));
}

// dy and the strips' other table of it.
__global__ void add_tables(const __grid_constant__ Problem<float> problem, View<float> dy, float* other) {
  const int64_t i = static_cast<int64_t>(blockIdx.x) * blockDim.x + threadIdx.x, size = problem.m * problem.dim;
  if (i < problem.batch * size) dy.pair(i / size).at(i % size / problem.dim, i % problem.dim) += other[i];
}

// Of a block in forward: as many as its shared memory holds, and no more than the pair has.
template <class Block>
int strips_of_block(int64_t strips) {
  constexpr int kOwnBytes = 10 * 1024, kStripBytes = sizeof(typename Block::Channel);  // kOwnBytes: beside what strips have
  int device = 0, bytes = 0;
  if (cudaGetDevice(&device) == cudaSuccess)
    cudaDeviceGetAttribute(&bytes, cudaDevAttrMaxSharedMemoryPerBlockOptin, device);
  const int most = std::clamp((bytes - kOwnBytes) / kStripBytes, 1, Block::kStrips);
  return static_cast<int>(std::min<int64_t>(most, strips));
}
int64_t groups_of(const Sizes<S>& sizes, int strips) { return (sizes.strips + strips - 1) / strips; }
// Of a pair in backward: of all warps that add to dy.
int64_t words_of(const Sizes<S>& sizes) { return sizes.strips * ProductWarps<false>::kColumns; }
// Of the other table of dy.
int64_t table_bytes(const Problem<float>& problem) {
  return Sizes<S>(problem).strips > 1 ? problem.batch * problem.m * problem.dim * sizeof(float) : 0;
}
int64_t padded(int64_t bytes) { return (bytes + 255) / 256 * 256; }

bool reads_fours(const Problem<float>& problem) {
  return softdtw::reads_fours(problem.x, problem.dim) && softdtw::reads_fours(problem.y, problem.dim);
}

// Calls launch(kFew, kFours), which are types.
template <class Launch>
cudaError_t with_kernel(const Problem<float>& problem, Launch&& launch) {
  using Yes = std::true_type;
  using No = std::false_type;
  if (problem.dim <= kFewDims) return reads_fours(problem) ? launch(Yes(), Yes()) : launch(Yes(), No());
  return reads_fours(problem) ? launch(No(), Yes()) : launch(No(), No());
}

// Shared memory is set aside for as many blocks as a multiprocessor will hold and no more: the rest of it caches the series.
template <class Kernel, class... Arguments>
cudaError_t launch(
    Kernel kernel, int64_t blocks, int most_blocks, int warps, int bytes, cudaStream_t stream,
    const Arguments&... arguments) {
  if (blocks > INT32_MAX) return cudaErrorInvalidConfiguration;
  constexpr int kOwnBytes = 8192;  // of a block, beside the dynamic ones
  int device = 0, processors = 1, all_bytes = 1;
  cudaError_t error = cudaGetDevice(&device);
  if (error == cudaSuccess) error = cudaDeviceGetAttribute(&processors, cudaDevAttrMultiProcessorCount, device);
  if (error == cudaSuccess) error = cudaDeviceGetAttribute(&all_bytes, cudaDevAttrMaxSharedMemoryPerMultiprocessor, device);
  if (error == cudaSuccess) error = cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, bytes);
  if (error != cudaSuccess) return error;
  const int64_t resident = std::min<int64_t>((blocks + processors - 1) / processors, most_blocks);
  const int64_t share = std::min<int64_t>((100 * resident * (bytes + kOwnBytes) + all_bytes - 1) / all_bytes, 100);
  error = cudaFuncSetAttribute(kernel, cudaFuncAttributePreferredSharedMemoryCarveout, static_cast<int>(share));
  if (error != cudaSuccess) return error;
  kernel<<<static_cast<unsigned>(blocks), dim3(kWarp, warps), bytes, stream>>>(arguments...);
  return cudaGetLastError();
}

}  // namespace

int64_t Products::saved_bytes(const Problem<float>& problem) {
  return problem.batch * Saved<S>::bytes_of_pair(Sizes<S>(problem));
}

int64_t Products::forward_scratch_bytes(const Problem<float>& problem, bool save) {
  const Sizes<S> sizes(problem);
  return padded(Tickets::bytes(problem.batch, sizes.strips)) +
         (save ? 0 : Edges<S>::bytes_of_rows(problem.batch, sizes.groups));
}

int64_t Products::backward_scratch_bytes(const Problem<float>& problem) {
  const Sizes<S> sizes(problem);
  return padded(Tickets::bytes(problem.batch, words_of(sizes))) + padded(FlowRows::bytes(problem.batch, sizes)) +
         table_bytes(problem);
}

cudaError_t Products::forward(
    const Problem<float>& problem, float* value, void* saved, void* scratch, cudaStream_t stream) {
  const Sizes<S> sizes(problem);
  const Saved<S> kept = saved != nullptr ? Saved<S>(saved, sizes, Saved<S>::bytes_of_pair(sizes)) : Saved<S>();
  char* const row = static_cast<char*>(scratch) + padded(Tickets::bytes(problem.batch, sizes.strips));
  const Edges<S> edges = saved != nullptr ? kept.edges : Edges<S>::rows(row, sizes.groups);
  const auto launch_blocks = [&](auto block, auto fours) {
    using Block = decltype(block);
    const int strips = strips_of_block<Block>(sizes.strips);
    const int64_t groups = groups_of(sizes, strips);
    const cudaError_t error = cudaMemsetAsync(scratch, 0, Tickets::bytes(problem.batch, groups), stream);
    if (error != cudaSuccess) return error;
    return launch(
        product_forward<Block, decltype(fours)::value>, groups * problem.batch, Block::kBlocks, Block::warps(strips),
        strips * static_cast<int>(sizeof(typename Block::Channel)), stream, problem, value, kept, edges,
        Tickets(scratch, problem.batch, groups), groups);
  };
  int device = 0, processors = 0;
  cudaError_t error = cudaGetDevice(&device);
  if (error == cudaSuccess) error = cudaDeviceGetAttribute(&processors, cudaDevAttrMultiProcessorCount, device);
  if (error != cudaSuccess) return error;
  return with_kernel(problem, [&](auto few, auto fours) {
    constexpr bool kFew = decltype(few)::value;
    if constexpr (!kFew)
      if (groups_of(sizes, ForwardBlock<kFew, true>::kStrips) * problem.batch <= processors)
        return launch_blocks(ForwardBlock<kFew, true>(), fours);
    return launch_blocks(ForwardBlock<kFew, false>(), fours);
  });
}

cudaError_t Products::backward(
    const Problem<float>& problem, const Gradient<float>& gradient, const void* saved, void* scratch, cudaStream_t stream) {
  const Sizes<S> sizes(problem);
  const int64_t bytes = padded(Tickets::bytes(problem.batch, words_of(sizes)));
  const int64_t flow_bytes = padded(FlowRows::bytes(problem.batch, sizes)), other_bytes = table_bytes(problem);
  cudaError_t error = cudaMemsetAsync(scratch, 0, bytes + flow_bytes + other_bytes, stream);
  if (error != cudaSuccess) return error;
  const Saved<S> kept(const_cast<void*>(saved), sizes, Saved<S>::bytes_of_pair(sizes));
  char* const flows = static_cast<char*>(scratch) + bytes;
  float* const other_dy = reinterpret_cast<float*>(flows + flow_bytes);
  error = with_kernel(problem, [&](auto few, auto fours) {
    constexpr bool kFew = decltype(few)::value, kFours = decltype(fours)::value;
    return launch(
        product_backward<kFew, kFours>, sizes.strips * problem.batch, BackwardBlock<kFew>::kBlocks,
        BackwardBlock<kFew>::kWarps, static_cast<int>(sizeof(BackwardChannel<kFew>)), stream, problem, gradient, kept,
        FlowRows(flows, problem.batch, sizes), other_dy, Tickets(scratch, problem.batch, words_of(sizes)), sizes.strips);
  });
  if (error != cudaSuccess || gradient.y.data == nullptr || other_bytes == 0) return error;
  constexpr int kThreads = 256;
  const int64_t blocks = (other_bytes / sizeof(float) + kThreads - 1) / kThreads;
  if (blocks > INT32_MAX) return cudaErrorInvalidConfiguration;
  add_tables<<<static_cast<unsigned>(blocks), kThreads, 0, stream>>>(problem, gradient.y, other_dy);
  return cudaGetLastError();
}

}  // namespace softdtw
