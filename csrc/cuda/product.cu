// Squared Euclidean costs and their gradients from matrix products, beside the sweep: series of float32 with many dimensions,
// under the names stencil and tiled alike.
//
// Threads to work: a block of 2 W warps takes a ticket (tickets.cuh), which stands for W consecutive strips of 64 rows
// (strip.cuh) of one pair. Each strip has a sweep warp, which is the robust engine's, and a product warp, which computes the
// costs of a batch of columns ahead of it (product_costs.cuh) and, in backward, takes E of a batch behind it and adds to the
// gradients (product_gradient.cuh). Neither costs nor E leave the chip: they stand in a ring in shared memory
// (product_channel.cuh). Series and gradients are read and written vector by vector, D numbers in a row.
#include <algorithm>

#include "engines.cuh"
#include "product_gradient.cuh"
#include "product_tile.cuh"
#include "products.h"
#include "tickets.cuh"

namespace softdtw {
namespace {

using S = ProductShape;
constexpr int kForwardStrips = 4, kBackwardStrips = 2;  // of a block, at most
constexpr int kForwardBlocks = 2, kBackwardBlocks = 3;  // of a multiprocessor
constexpr int64_t kFewStrips = 512;

// A block's strips of a pair. Groups of strips count from the pair's first one in forward and from its last in backward.
struct Block {
  int64_t pair;
  int group, warp, strips;  // warp: of the sweep or of the products, both count from 0
  bool sweeps;

  __device__ Block(unsigned ticket, int64_t batch)
      : pair(ticket % batch), group(static_cast<int>(ticket / batch)), strips(blockDim.y / 2) {
    sweeps = threadIdx.y < strips;
    warp = threadIdx.y % strips;
  }
  __device__ int index() const { return group * strips + warp; }
  // The neighbour whose results the calling warp's strip waits for, and who waits for it.
  __device__ Neighbour before(const Progress* near, const Progress* far) const {
    if (warp > 0) return {near + warp - 1, nullptr};
    return {nullptr, group > 0 ? far + group - 1 : nullptr};
  }
  __device__ Watchers watchers(Progress* near, Progress* far) const {
    return {near + warp, warp == strips - 1 ? far + group : nullptr};
  }
};

template <bool kFours>
__global__ void __launch_bounds__(2 * kWarp * kForwardStrips, kForwardBlocks) product_forward(
    const __grid_constant__ Problem<float> problem, float* value, Saved<S> saved, Edges<S> edges, Tickets tickets,
    int64_t groups) {
  __shared__ Progress words[kForwardStrips];
  if (threadIdx.x == 0 && threadIdx.y < kForwardStrips) words[threadIdx.y] = 0;
  if (threadIdx.y >= blockDim.y / 2) own_channel<false>().start(threadIdx.x);
  const Block block(take_ticket(tickets), problem.batch);
  const Extent extent = problem.extent(block.pair);
  if (!extent.valid()) {
    if (block.group == 0) invalid_forward(value, block.pair);
    return;
  }
  const int index = block.index();
  if (index >= strips_of<S>(extent)) return;

  if (block.sweeps) {
    Progress* const far = tickets.words + block.pair * groups;
    ForwardStrip<S> job;
    static_cast<Watchers&>(job) = block.watchers(words, far);
    job.pair = block.pair;
    job.strip = index;
    job.edges = edges;
    job.producer = block.before(words, far);
    robust_forward_strip<S, ProductTile<false>>(problem, extent, job, saved, value);
    return;
  }
  Channel& channel = own_channel<false>();
  const Surroundings<S> around(extent, index);
  const StripCosts<kFours> costs(problem, extent, around.strip, block.pair, channel);
  const int chunks = chunks_of<false>(around, saved.memory != nullptr);
  for (int batch = -kEarlyBatches; batch * kBatchGroups < chunks; ++batch) {
    // The chunk that left the slot's last batch behind.
    const int behind = batch - kBatches + kEarlyBatches;
    if (behind >= 0) channel.swept[Channel::slot(behind)].wait(behind / kBatches);
    costs.fill(batch);
    if (batch >= 0) channel.filled[Channel::slot(batch)].arrive();
  }
}

// A pair whose value is not a number has no gradient either.
__device__ void spoil(const View<float>& out, int64_t pair, int64_t rows, int64_t columns) {
  if (out.data == nullptr) return;
  const int64_t thread = threadIdx.y * blockDim.x + threadIdx.x, threads = blockDim.x * blockDim.y;
  for (int64_t i = thread; i < rows * columns; i += threads) out.pair(pair).at(i / columns, i % columns) = NAN;
}

template <bool kFours>
__global__ void __launch_bounds__(2 * kWarp * kBackwardStrips, kBackwardBlocks) product_backward(
    const __grid_constant__ Problem<float> problem, const __grid_constant__ Gradient<float> gradient, Saved<S> saved,
    Flows<S> flows, Tickets sweep_tickets, Tickets product_tickets, int64_t groups) {
  __shared__ Progress sweep_words[kBackwardStrips], product_words[kBackwardStrips];
  if (threadIdx.x == 0 && threadIdx.y < kBackwardStrips) sweep_words[threadIdx.y] = product_words[threadIdx.y] = 0;
  if (threadIdx.y >= blockDim.y / 2) own_channel<true>().start(threadIdx.x);
  const Block block(take_ticket(sweep_tickets), problem.batch);
  const Extent extent = problem.extent(block.pair);
  if (!extent.valid() || !isfinite(gradient.value[block.pair])) {
    if (block.group > 0) return;
    spoil(gradient.x, block.pair, extent.valid() ? extent.n : problem.n, problem.dim);
    spoil(gradient.y, block.pair, extent.valid() ? extent.m : problem.m, problem.dim);
    return;
  }
  const int index = strips_of<S>(extent) - 1 - block.index();
  if (index < 0) return;

  if (block.sweeps) {
    Progress* const far = sweep_tickets.words + block.pair * groups;
    BackwardStrip job;
    static_cast<Watchers&>(job) = block.watchers(sweep_words, far);
    job.pair = block.pair;
    job.strip = index;
    job.producer = block.before(sweep_words, far);
    robust_backward_strip<S, ProductTile<true>>(problem, gradient, extent, job, saved, flows);
    return;
  }
  Progress* const far = product_tickets.words + block.pair * groups;
  GradientChain chain;
  static_cast<Watchers&>(chain) = block.watchers(product_words, far);
  chain.below = block.before(product_words, far);
  chain.start = extent.m / S::kSteps + 2 * S::kSkewChunks;
  Channel& channel = own_channel<true>();
  const Surroundings<S> around(extent, index);
  const StripCosts<kFours> costs(problem, extent, around.strip, block.pair, channel);
  StripGradient sums(problem, gradient, extent, around.strip, block.pair, chain);
  const int top = (chunks_of<true>(around, true) - 1) / kBatchGroups;
  // Fills kBatches batches, then one for every one that the sweep has left behind.
  for (int batch = top, behind = top; behind >= 0; --batch) {
    if (batch <= top - kBatches) {
      channel.swept[Channel::slot(behind)].wait((top - behind) / kBatches);
      sums.add(channel, behind--);
    }
    if (batch >= -kEarlyBatches) {
      costs.fill(batch);
      channel.filled[Channel::slot(batch)].arrive();
    }
  }
  sums.finish();
}

int64_t groups_of(const Sizes<S>& sizes, int strips) { return (sizes.strips + strips - 1) / strips; }

constexpr int kForwardBytes = sizeof(Channel), kBackwardBytes = RobustStage<S>::kBytes + kForwardBytes;  // of a strip

// Strips of a block: fewer where the blocks would not fill the device, or its shared memory does not hold more.
int strips_per_block(const Problem<float>& problem, int most, int strip_bytes) {
  int device = 0, block_bytes = 0;
  if (cudaGetDevice(&device) == cudaSuccess)
    cudaDeviceGetAttribute(&block_bytes, cudaDevAttrMaxSharedMemoryPerBlockOptin, device);
  const int64_t strips = Sizes<S>(problem).strips;
  const int wanted = problem.batch * strips < kFewStrips ? std::min(most, 2) : most;
  return static_cast<int>(std::min<int64_t>(std::clamp(block_bytes / strip_bytes, 1, wanted), strips));
}

int64_t padded(int64_t bytes) { return (bytes + 255) / 256 * 256; }

bool reads_fours(const Problem<float>& problem) {
  return softdtw::reads_fours(problem.x, problem.dim) && softdtw::reads_fours(problem.y, problem.dim);
}

// Shared memory is set aside for as many blocks as a multiprocessor will hold and no more: the rest of it caches the series.
template <class Kernel, class... Arguments>
cudaError_t launch(
    Kernel kernel, int64_t blocks, int most_blocks, int strips, int strip_bytes, cudaStream_t stream,
    const Arguments&... arguments) {
  if (blocks > INT32_MAX) return cudaErrorInvalidConfiguration;
  constexpr int kOwnBytes = 2048;  // of a block, beside the dynamic ones
  const int bytes = strips * strip_bytes;
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
  kernel<<<static_cast<unsigned>(blocks), dim3(kWarp, 2 * strips), bytes, stream>>>(arguments...);
  return cudaGetLastError();
}

}  // namespace

int64_t Products::saved_bytes(const Problem<float>& problem) {
  return problem.batch * Saved<S>::bytes_of_pair(Sizes<S>(problem));
}

int64_t Products::forward_scratch_bytes(const Problem<float>& problem, bool save) {
  const Sizes<S> sizes(problem);
  return padded(Tickets::bytes(problem.batch, groups_of(sizes, strips_per_block(problem, kForwardStrips, kForwardBytes)))) +
         (save ? 0 : Edges<S>::bytes_of_rows(problem.batch, sizes.groups));
}

int64_t Products::backward_scratch_bytes(const Problem<float>& problem) {
  const Sizes<S> sizes(problem);
  return 2 * padded(
                 Tickets::bytes(
                     problem.batch, groups_of(sizes, strips_per_block(problem, kBackwardStrips, kBackwardBytes)))) +
         sizeof(float) * Flows<S>::scalars(problem.batch, sizes, 1);
}

cudaError_t Products::forward(
    const Problem<float>& problem, float* value, void* saved, void* scratch, cudaStream_t stream) {
  const Sizes<S> sizes(problem);
  const int strips = strips_per_block(problem, kForwardStrips, kForwardBytes);
  const int64_t groups = groups_of(sizes, strips), bytes = padded(Tickets::bytes(problem.batch, groups));
  const cudaError_t error = cudaMemsetAsync(scratch, 0, bytes, stream);
  if (error != cudaSuccess) return error;
  const Saved<S> kept = saved != nullptr ? Saved<S>(saved, sizes, Saved<S>::bytes_of_pair(sizes)) : Saved<S>();
  const Edges<S> edges = saved != nullptr ? kept.edges : Edges<S>::rows(static_cast<char*>(scratch) + bytes, sizes.groups);
  return launch(
      reads_fours(problem) ? product_forward<true> : product_forward<false>, groups * problem.batch,
      kForwardBlocks * kForwardStrips / strips, strips, kForwardBytes, stream, problem, value, kept, edges,
      Tickets(scratch, problem.batch, groups), groups);
}

cudaError_t Products::backward(
    const Problem<float>& problem, const Gradient<float>& gradient, const void* saved, void* scratch, cudaStream_t stream) {
  const Sizes<S> sizes(problem);
  const int strips = strips_per_block(problem, kBackwardStrips, kBackwardBytes);
  const int64_t groups = groups_of(sizes, strips), bytes = padded(Tickets::bytes(problem.batch, groups));
  const cudaError_t error = cudaMemsetAsync(scratch, 0, 2 * bytes, stream);
  if (error != cudaSuccess) return error;
  char* const memory = static_cast<char*>(scratch);
  const Flows<S> flows(reinterpret_cast<float*>(memory + 2 * bytes), problem.batch, sizes);
  const Saved<S> kept(const_cast<void*>(saved), sizes, Saved<S>::bytes_of_pair(sizes));
  return launch(
      reads_fours(problem) ? product_backward<true> : product_backward<false>, groups * problem.batch,
      kBackwardBlocks * kBackwardStrips / strips, strips, kBackwardBytes, stream, problem, gradient, kept, flows,
      Tickets(scratch, problem.batch, groups), Tickets(memory + bytes, problem.batch, groups), groups);
}

}  // namespace softdtw
