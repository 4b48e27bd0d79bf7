// Squared Euclidean costs and their gradients beside the sweeps: series of float32 with many dimensions, under the names
// stencil and tiled alike.
//
// Threads to work: a strip (strip.cuh) of 64 rows of a pair has a warp for every stage of its work, so that none waits for
// what another could do meanwhile. Forward: one sweeps, as the robust engine does, and one or four compute costs ahead of it
// (product_costs.cuh). Backward: two or four compute costs, two rebuild what the forward sweep computed, one sweeps back
// (product_sweep.cuh), and two or four turn E into gradients behind it (product_gradient.cuh). Neither costs nor E leave the
// chip: they stand in rings in shared memory (product_channel.cuh). Series and gradients are read and written vector by
// vector, D numbers in a row.
//
// A block takes a ticket (tickets.cuh), which stands for up to kForwardStrips consecutive strips of one pair, and in backward
// for one. The loops are short where they can be: all these warps' code together has to fit the instruction cache that a
// multiprocessor has, or they wait for it more than for anything else.
#include <algorithm>

#include "engines.cuh"
#include "product_gradient.cuh"
#include "product_sweep.cuh"
#include "products.h"
#include "tickets.cuh"

namespace softdtw {
namespace {

using S = ProductShape;
constexpr int kForwardStrips = 2;  // of a block, at most

template <bool kFew>
struct Threads {
  using Warps = ProductWarps<kFew>;
  static constexpr int kForwardWarps = 1 + Warps::kForwardCosts,
                       kBackwardWarps = 1 + Warps::kRebuilders + Warps::kCosts + Warps::kGradients;  // of a strip
  static constexpr int kForwardBlocks = kFew ? 3 : 2, kBackwardBlocks = kFew ? 2 : 1;                // of a multiprocessor
};

template <bool kFew, bool kFours>
__global__ void __launch_bounds__(kWarp * kForwardStrips * Threads<kFew>::kForwardWarps, Threads<kFew>::kForwardBlocks)
    product_forward(
        const __grid_constant__ Problem<float> problem, float* value, Saved<S> saved, Edges<S> edges, Tickets tickets,
        int64_t groups) {
  using Channel = ForwardChannel<kFew>;
  __shared__ Progress words[kForwardStrips];
  Channel& channel = Channel::own();
  const int strips = Channel::strips(), warp = threadIdx.y % strips, role = threadIdx.y / strips;
  if (role == 0) {
    if (threadIdx.x == 0) words[warp] = 0;
    channel.start(threadIdx.x);
  }
  const auto [pair, group] = take_turn(tickets, problem.batch);
  const int index = group * strips + warp;
  const Extent extent = problem.extent(pair);
  if (!extent.valid()) {
    if (group == 0) invalid_forward(value, pair);
    return;
  }
  if (index >= strips_of<S>(extent)) return;

  if (role == 0) {
    Progress* const far = tickets.words + pair * groups;
    ForwardStrip<S> job;
    job.own_word = words + warp;
    if (warp == strips - 1) job.far_word = far + group;
    if (index > 0) job.producer = warp > 0 ? Neighbour{words + warp - 1, nullptr} : Neighbour{nullptr, far + group - 1};
    job.pair = pair;
    job.strip = index;
    job.edges = edges;
    robust_forward_strip<S, ProductTile<Channel, false>, true>(problem, extent, job, saved, value);
    return;
  }
  using Costs = typename Channel::Costs;
  const Surroundings<S> around(extent, index);
  const StripCosts<kFew, kFours, Costs> costs(problem, extent, around.strip, pair, channel.costs, role - 1);
  const int chunks = chunks_of<false>(around, saved.memory != nullptr);
  for (int batch = -kEarlyBatches; batch * kBatchGroups < chunks; ++batch) {
    // The chunk that left the slot's last batch behind.
    const int behind = batch - Costs::kBatches + kEarlyBatches;
    if (behind >= 0) channel.costs.released[Costs::slot(behind)].wait(behind / Costs::kBatches);
    costs.fill(batch);
    if (batch >= 0) channel.costs.filled[Costs::slot(batch)].arrive();
  }
}

// A pair whose value is not a number has no gradient either.
__device__ void spoil(const View<float>& out, int64_t pair, int64_t rows, int64_t columns) {
  if (out.data == nullptr) return;
  const int64_t thread = threadIdx.y * blockDim.x + threadIdx.x, threads = blockDim.x * blockDim.y;
  for (int64_t i = thread; i < rows * columns; i += threads) out.pair(pair).at(i / columns, i % columns) = NAN;
}

template <bool kFew, bool kFours>
__global__ void __launch_bounds__(kWarp* Threads<kFew>::kBackwardWarps, Threads<kFew>::kBackwardBlocks) product_backward(
    const __grid_constant__ Problem<float> problem, const __grid_constant__ Gradient<float> gradient, Saved<S> saved,
    FlowRows flows, Tickets tickets, int64_t strips) {
  using Warps = ProductWarps<kFew>;
  using Channel = BackwardChannel<kFew>;
  Channel& channel = Channel::own();
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
  if (above > 0) chain.below.far_word = chain.far_word - Warps::kColumns;
  chain.start = extent.m / S::kSteps + 2 * S::kSkewChunks;
  add_all(ColumnGradients<kFew>(problem, gradient, extent, around.strip, pair, ring, chain, warp));
}

int strips_per_block(const Sizes<S>& sizes) { return static_cast<int>(std::min<int64_t>(kForwardStrips, sizes.strips)); }
int64_t groups_of(const Sizes<S>& sizes, int strips) { return (sizes.strips + strips - 1) / strips; }
// Of a pair in backward: of all warps that add to dy.
int64_t words_of(const Sizes<S>& sizes) { return sizes.strips * ProductWarps<false>::kColumns; }
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
  constexpr int kOwnBytes = 2048;  // of a block, beside the dynamic ones
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
  return padded(Tickets::bytes(problem.batch, groups_of(sizes, strips_per_block(sizes)))) +
         (save ? 0 : Edges<S>::bytes_of_rows(problem.batch, sizes.groups));
}

int64_t Products::backward_scratch_bytes(const Problem<float>& problem) {
  const Sizes<S> sizes(problem);
  return padded(Tickets::bytes(problem.batch, words_of(sizes))) + FlowRows::bytes(problem.batch, sizes);
}

cudaError_t Products::forward(
    const Problem<float>& problem, float* value, void* saved, void* scratch, cudaStream_t stream) {
  const Sizes<S> sizes(problem);
  const int strips = strips_per_block(sizes);
  const int64_t groups = groups_of(sizes, strips), bytes = padded(Tickets::bytes(problem.batch, groups));
  const cudaError_t error = cudaMemsetAsync(scratch, 0, bytes, stream);
  if (error != cudaSuccess) return error;
  const Saved<S> kept = saved != nullptr ? Saved<S>(saved, sizes, Saved<S>::bytes_of_pair(sizes)) : Saved<S>();
  const Edges<S> edges = saved != nullptr ? kept.edges : Edges<S>::rows(static_cast<char*>(scratch) + bytes, sizes.groups);
  return with_kernel(problem, [&](auto few, auto fours) {
    constexpr bool kFew = decltype(few)::value, kFours = decltype(fours)::value;
    return launch(
        product_forward<kFew, kFours>, groups * problem.batch, Threads<kFew>::kForwardBlocks * kForwardStrips / strips,
        strips * Threads<kFew>::kForwardWarps, strips * static_cast<int>(sizeof(ForwardChannel<kFew>)), stream, problem,
        value, kept, edges, Tickets(scratch, problem.batch, groups), groups);
  });
}

cudaError_t Products::backward(
    const Problem<float>& problem, const Gradient<float>& gradient, const void* saved, void* scratch, cudaStream_t stream) {
  const Sizes<S> sizes(problem);
  const int64_t bytes = padded(Tickets::bytes(problem.batch, words_of(sizes)));
  const cudaError_t error = cudaMemsetAsync(scratch, 0, bytes + FlowRows::bytes(problem.batch, sizes), stream);
  if (error != cudaSuccess) return error;
  const Saved<S> kept(const_cast<void*>(saved), sizes, Saved<S>::bytes_of_pair(sizes));
  return with_kernel(problem, [&](auto few, auto fours) {
    constexpr bool kFew = decltype(few)::value, kFours = decltype(fours)::value;
    return launch(
        product_backward<kFew, kFours>, sizes.strips * problem.batch, Threads<kFew>::kBackwardBlocks,
        Threads<kFew>::kBackwardWarps, static_cast<int>(sizeof(BackwardChannel<kFew>)), stream, problem, gradient, kept,
        FlowRows(static_cast<char*>(scratch) + bytes, problem.batch, sizes),
        Tickets(scratch, problem.batch, words_of(sizes)), sizes.strips);
  });
}

}  // namespace softdtw
