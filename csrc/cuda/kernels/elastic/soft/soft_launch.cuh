// The kernels of soft elastic measures by strips, and their launch.
//
// Threads to work: a warp for each strip. Where there are pairs enough a block has one pair, whose strips its warps take in turns; else the
// strips of a pair are spread over blocks, which draw tickets (tickets.cuh). Either way a warp waits for the strip before only.
#pragma once

#include "cuda/hardware/launch.cuh"
#include "cuda/select/hard.h"
#include "cuda/strips/tickets.cuh"
#include "soft_backward.cuh"
#include "soft_forward.cuh"
#include "soft_strips.h"

namespace softdtw {

// By all warps of a block: calls sweep(pair, i, job) for the strips that the warp has, the i-th of the sweep's order, with a Job that
// knows whom it waits for. strips_of_pair(pair): how many there are, 0 if the pair has none to be swept.
template <class Job, class StripsOf, class Sweep>
__device__ __forceinline__ void for_each_strip(
    int64_t batch, const Tickets& tickets, int64_t groups, StripsOf&& strips_of_pair, Sweep&& sweep) {
  __shared__ Progress words[kSoftWarps];
  const int warp = threadIdx.y, warps = blockDim.y;
  const bool has_pair = groups == 1;
  if (threadIdx.x == 0) words[warp] = 0;
  Turn turn = {static_cast<int64_t>(blockIdx.x), 0};
  if (has_pair)
    __syncthreads();
  else
    turn = take_turn(tickets, batch);
  const int strips = strips_of_pair(turn.pair);
  Progress* const pair_words = tickets.words + turn.pair * groups;
  for (int i = turn.group * warps + warp, round = 0; i < strips; i += warps, ++round) {
    Job job;
    job.pair = turn.pair;
    job.round = round;
    if (warps > 1 || !has_pair) job.own_word = &words[warp];
    if (has_pair && warps > 1 && i > 0) job.producer = {&words[(warp + warps - 1) % warps], nullptr, round - (warp == 0)};
    if (!has_pair && i > 0)
      job.producer = warp > 0 ? Neighbour{&words[warp - 1], nullptr} : Neighbour{nullptr, pair_words + turn.group - 1};
    if (!has_pair && warp == warps - 1) job.far_word = pair_words + turn.group;
    sweep(i, job);
    if (!has_pair) break;
  }
}

template <class Tile, class S = typename Tile::S>
__global__ void __launch_bounds__(kWarp* kSoftWarps, sizeof(typename S::Scalar) == 4 ? Tile::kForwardBlocks : 2)
    soft_forward(
        const __grid_constant__ ElasticTable<typename S::Scalar> problem, typename S::Scalar* value,
        const __grid_constant__ SoftSaved<S> saved, const __grid_constant__ Edges<S> edges,
        const __grid_constant__ Tickets tickets, int64_t groups) {
  Extent extent{};
  const auto strips_of_pair = [&](int64_t pair) {
    extent = problem.extent(pair);
    if (extent.valid()) return strips_of<S>(extent);
    if (threadIdx.x == 0 && threadIdx.y == 0) value[pair] = static_cast<typename S::Scalar>(NAN);
    return 0;
  };
  for_each_strip<ForwardStrip<S>>(problem.batch, tickets, groups, strips_of_pair, [&](int i, ForwardStrip<S>& job) {
    job.strip = i;
    job.edges = edges;
    soft_forward_strip<Tile>(problem, extent, job, saved, value);
  });
}

template <class Tile, bool kAll, class S = typename Tile::S>
__global__ void __launch_bounds__(kWarp* kSoftWarps, sizeof(typename S::Scalar) == 4 && !kAll ? Tile::kBackwardBlocks : 2)
    soft_backward(
        const __grid_constant__ ElasticTable<typename S::Scalar> problem,
        const __grid_constant__ ElasticGradient<typename S::Scalar> gradient, const __grid_constant__ SoftSaved<S> saved,
        const __grid_constant__ Flows<S> flows, SoftNumbers* numbers, const __grid_constant__ Tickets tickets,
        int64_t groups) {
  Extent extent{};
  const auto strips_of_pair = [&](int64_t pair) {
    extent = problem.extent(pair);
    if (has_gradient(gradient, extent, pair)) return strips_of<S>(extent);
    spoil_steps(problem, gradient, pair);
    return 0;
  };
  for_each_strip<BackwardStrip>(problem.batch, tickets, groups, strips_of_pair, [&](int i, BackwardStrip& job) {
    job.row = job.pair;
    job.strip = strips_of<S>(extent) - 1 - i;
    soft_backward_strip<Tile, kAll>(
        problem, gradient, extent, job, saved, flows, kAll ? numbers + job.pair * flows.strips + job.strip : nullptr);
  });
}

template <class Kernel, class... Arguments>
cudaError_t launch_soft(
    Kernel kernel, const SoftBlocks& blocks, int64_t batch, int bytes_of_warp, char* memory, cudaStream_t stream,
    const Arguments&... arguments) {
  if (blocks.groups > 1) {
    const cudaError_t error = cudaMemsetAsync(memory, 0, Tickets::bytes(batch, blocks.groups), stream);
    if (error != cudaSuccess) return error;
  }
  return launch_kernel(
      kernel, batch * blocks.groups, dim3(kWarp, blocks.warps), blocks.warps * bytes_of_warp, stream, arguments...,
      Tickets(memory, batch, blocks.groups), blocks.groups);
}

template <class Tile, typename T>
cudaError_t launch_soft_forward(
    const ElasticProblem<T>& problem, T* value, void* memory, Scratch& scratch, cudaStream_t stream) {
  using S = typename Tile::S;
  const ElasticTable<T> table(problem);
  const Sizes<S> sizes(table.sizes());
  const SoftBlocks blocks = soft_blocks(table.batch, sizes.strips, current_device());
  const SoftSaved<S> saved(memory, table);
  const auto parts = scratch.parts(
      Tickets::bytes(table.batch, blocks.groups),
      memory != nullptr ? 0 : Edges<S>::bytes_of_rows(table.batch, sizes.groups));
  const Edges<S> edges = memory != nullptr ? saved.strips.edges : Edges<S>::rows(parts[1], sizes.groups);
  return launch_soft(
      soft_forward<Tile>, blocks, table.batch, sizeof(typename Tile::Memory), parts[0], stream, table, value, saved, edges);
}

template <class Tile, bool kAll, typename T>
cudaError_t launch_soft_backward(
    const ElasticProblem<T>& problem, const ElasticGradient<T>& gradient, const void* memory, Scratch& scratch,
    cudaStream_t stream) {
  using S = typename Tile::S;
  const ElasticTable<T> table(problem);
  const Sizes<S> sizes(table.sizes());
  const SoftBlocks blocks = soft_blocks(table.batch, sizes.strips, current_device());
  const auto parts = scratch.parts(
      Tickets::bytes(table.batch, blocks.groups), Flows<S>::scalars(table.batch, sizes, 1) * sizeof(T),
      kAll ? table.batch * sizes.strips * sizeof(SoftNumbers) : 0);
  SoftNumbers* const numbers = kAll ? reinterpret_cast<SoftNumbers*>(parts[2]) : nullptr;
  const cudaError_t error = launch_soft(
      soft_backward<Tile, kAll>, blocks, table.batch, ExtendedStage<S>::kBytes + sizeof(typename Tile::Memory), parts[0],
      stream, table, gradient, SoftSaved<S>(const_cast<void*>(memory), table), Flows<S>(parts[1], table.batch, sizes),
      numbers);
  return error != cudaSuccess || !kAll ? error : launch_soft_numbers(problem, gradient, numbers, stream);
}

}  // namespace softdtw

#define SOFTDTW_INSTANTIATE_SOFT_FORWARD(Tile, T)                  \
  template cudaError_t launch_soft_forward<Tile<SoftShape<T>>, T>( \
      const ElasticProblem<T>&, T*, void*, Scratch&, cudaStream_t);
#define SOFTDTW_INSTANTIATE_SOFT_BACKWARD(Tile, kAll, T)                  \
  template cudaError_t launch_soft_backward<Tile<SoftShape<T>>, kAll, T>( \
      const ElasticProblem<T>&, const ElasticGradient<T>&, const void*, Scratch&, cudaStream_t);
