// The forward kernel of strips that have warps for their costs (product.cu), whatever the sweep makes of them: a block has a few
// consecutive strips of one pair, for each a warp that sweeps and several that compute costs ahead of it (product_costs.cuh), and two
// warps that carry edges between blocks.
//
// A Sweep has, as a parameter of the kernel,
//     Edge                                     a group of a strip's last row, as rings hand it over
//     keeps()                                  whether the last strip is swept to its end
//     sweep<Channel>(...)                      what a sweeping warp does: the strip `index`, the block's `own`th
//     carry_edge_in(...), carry_edge_out(...)  what carriers do
//     spoil(pair)                              for a pair that cannot be computed
#pragma once

#include <algorithm>
#include <type_traits>

#include "product_costs.cuh"
#include "product_tile.cuh"
#include "products.h"
#include "tickets.cuh"

namespace softdtw {

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

template <class Sweep, class Block, bool kFours>
__global__ void __launch_bounds__(kWarp* Block::warps(Block::kStrips), Block::kBlocks) product_forward(
    const __grid_constant__ Problem<float> problem, const __grid_constant__ Sweep sweep, Tickets tickets, int64_t groups) {
  using S = ProductShape;
  using Channel = typename Block::Channel;
  __shared__ Ring<typename Sweep::Edge> rings[Block::kStrips + 1];
  const int lane = threadIdx.x, warp = threadIdx.y, block_strips = Channel::strips();
  if (warp <= block_strips) rings[warp].start(lane);
  if (warp < block_strips) Channel::own().start(lane);
  const auto [pair, group] = take_turn(tickets, problem.batch);
  const Extent extent = problem.extent(pair);
  if (!extent.valid()) {
    if (group == 0) sweep.spoil(pair);
    return;
  }
  const int strips = strips_of<S>(extent), first = group * block_strips, end = first + block_strips;
  Progress* const words = tickets.words + pair * groups;
  const int role = warp / block_strips, own = warp % block_strips, index = first + own;
  if (role <= Block::kCosts) {
    if (index >= strips) return;
    Channel& channel = Channel::own();
    if (role == 0) return sweep.template sweep<Channel>(problem, extent, pair, index, own, rings[own], rings[own + 1]);
    using Costs = typename Channel::Costs;
    const Surroundings<S> around(extent, index);
    StripCosts<Block::kFew, kFours, Costs> costs(problem, extent, around.strip, pair, channel.costs, role - 1);
    const int chunks = chunks_of<false>(around, sweep.keeps());
    costs.fetch(-kEarlyBatches);
    for (int batch = -kEarlyBatches; batch * kBatchGroups < chunks; ++batch) {
      // The chunk that left the slot's last batch behind.
      const int behind = batch - Costs::kBatches + kEarlyBatches;
      if (behind >= 0) channel.costs.released[Costs::slot(behind)].wait(behind / Costs::kBatches);
      costs.fill(batch, batch + 1);
      if (batch >= 0) channel.costs.filled[Costs::slot(batch)].arrive();
    }
  } else if (warp == blockDim.y - kCarriers) {
    if (first == 0 || first >= strips) return;
    sweep.carry_edge_in(extent, pair, first, rings[0], words + group - 1, lane);
  } else if (end < strips) {
    sweep.carry_edge_out(extent, pair, end - 1, rings[block_strips], words + group, lane);
  }
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
inline int64_t product_groups(const Sizes<ProductShape>& sizes, int strips) { return (sizes.strips + strips - 1) / strips; }

// Calls launch(kFew, kFours), which are types. kMayBeFew: problems of few dimensions are among those that come.
template <bool kMayBeFew, class Launch>
cudaError_t with_product_kernel(const Problem<float>& problem, Launch&& launch) {
  using Yes = std::true_type;
  using No = std::false_type;
  if constexpr (kMayBeFew)
    if (problem.dim <= kFewDims) return reads_fours(problem) ? launch(Yes(), Yes()) : launch(Yes(), No());
  return reads_fours(problem) ? launch(No(), Yes()) : launch(No(), No());
}

// Shared memory is set aside for as many blocks as a multiprocessor will hold and no more: the rest of it caches the series.
template <class Kernel, class... Arguments>
cudaError_t launch_products(
    Kernel kernel, int64_t blocks, int most_blocks, int warps, int bytes, cudaStream_t stream,
    const Arguments&... arguments) {
  if (blocks > INT32_MAX) return cudaErrorInvalidConfiguration;
  constexpr int kReservedBytes = 1024;  // of every block
  int device = 0, processors = 1, all_bytes = 1;
  cudaFuncAttributes attributes{};
  cudaError_t error = cudaGetDevice(&device);
  if (error == cudaSuccess) error = cudaFuncGetAttributes(&attributes, kernel);
  if (error == cudaSuccess) error = cudaDeviceGetAttribute(&processors, cudaDevAttrMultiProcessorCount, device);
  if (error == cudaSuccess) error = cudaDeviceGetAttribute(&all_bytes, cudaDevAttrMaxSharedMemoryPerMultiprocessor, device);
  if (error == cudaSuccess) error = cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, bytes);
  if (error != cudaSuccess) return error;
  const int64_t resident = std::min<int64_t>((blocks + processors - 1) / processors, most_blocks);
  const int64_t own_bytes = bytes + static_cast<int64_t>(attributes.sharedSizeBytes) + kReservedBytes;
  const int64_t share = std::min<int64_t>((100 * resident * own_bytes + all_bytes - 1) / all_bytes, 100);
  error = cudaFuncSetAttribute(kernel, cudaFuncAttributePreferredSharedMemoryCarveout, static_cast<int>(share));
  if (error != cudaSuccess) return error;
  kernel<<<static_cast<unsigned>(blocks), dim3(kWarp, warps), bytes, stream>>>(arguments...);
  return cudaGetLastError();
}

// `scratch`: for the tickets, as many as there are strips.
template <bool kMayBeFew, class Sweep>
cudaError_t launch_product_forward(const Problem<float>& problem, const Sweep& sweep, void* scratch, cudaStream_t stream) {
  const Sizes<ProductShape> sizes(problem);
  const auto launch_blocks = [&](auto block, auto fours) {
    using Block = decltype(block);
    const int strips = strips_of_block<Block>(sizes.strips);
    const int64_t groups = product_groups(sizes, strips);
    const cudaError_t error = cudaMemsetAsync(scratch, 0, Tickets::bytes(problem.batch, groups), stream);
    if (error != cudaSuccess) return error;
    return launch_products(
        product_forward<Sweep, Block, decltype(fours)::value>, groups * problem.batch, Block::kBlocks, Block::warps(strips),
        strips * static_cast<int>(sizeof(typename Block::Channel)), stream, problem, sweep,
        Tickets(scratch, problem.batch, groups), groups);
  };
  int device = 0, processors = 0;
  cudaError_t error = cudaGetDevice(&device);
  if (error == cudaSuccess) error = cudaDeviceGetAttribute(&processors, cudaDevAttrMultiProcessorCount, device);
  if (error != cudaSuccess) return error;
  return with_product_kernel<kMayBeFew>(problem, [&](auto few, auto fours) {
    constexpr bool kFew = decltype(few)::value;
    if constexpr (!kFew)
      if (product_groups(sizes, ForwardBlock<kFew, true>::kStrips) * problem.batch <= processors)
        return launch_blocks(ForwardBlock<kFew, true>(), fours);
    return launch_blocks(ForwardBlock<kFew, false>(), fours);
  });
}

}  // namespace softdtw
