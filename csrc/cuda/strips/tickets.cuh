// Tickets: which strips a block takes. Ticket order is the order of the sweep, all pairs side by side. A block waits only for
// earlier tickets, which have started, so any number of blocks may be resident (the idea of PeerWave, Belviranli et al.,
// ICS 2015).
#pragma once

#include "cuda/hardware/handoff.cuh"
#include "strip.cuh"

namespace softdtw {

// Zeroed before every launch.
struct Tickets {
  Progress* words;  // (pair, group of strips): chunks done by the group's last warp
  unsigned* next;

  static int64_t bytes(int64_t batch, int64_t groups) { return batch * groups * sizeof(Progress) + sizeof(Progress); }
  Tickets(void* memory, int64_t batch, int64_t groups)
      : words(static_cast<Progress*>(memory)), next(reinterpret_cast<unsigned*>(words + batch * groups)) {}
};

// What a block is to do: a pair, and which group of its strips, in the order of the sweep.
struct Turn {
  int64_t pair;
  int group;
};

inline __device__ Turn take_turn(const Tickets& tickets, int64_t batch) {
  __shared__ unsigned ticket;
  if (threadIdx.x == 0 && threadIdx.y == 0) ticket = atomicAdd(tickets.next, 1u);
  __syncthreads();
  return {ticket % batch, static_cast<int>(ticket / batch)};
}

// The host's side. Tickets come first in scratch memory, padded to keep what follows aligned.
template <class S>
int64_t groups_of(const Problem<typename S::Scalar>& problem, int strips_of_group) {
  return (Sizes<S>(problem).strips + strips_of_group - 1) / strips_of_group;
}
template <class S>
int64_t ticket_bytes(const Problem<typename S::Scalar>& problem, int strips_of_group) {
  return (Tickets::bytes(problem.batch, groups_of<S>(problem, strips_of_group)) + 255) / 256 * 256;
}

// Zeroes the tickets of a launch and calls launch(tickets, groups, blocks).
template <class S, class Launch>
cudaError_t with_tickets(
    const Problem<typename S::Scalar>& problem, void* memory, int strips_of_group, cudaStream_t stream, Launch&& launch) {
  const int64_t groups = groups_of<S>(problem, strips_of_group);
  const cudaError_t error = cudaMemsetAsync(memory, 0, ticket_bytes<S>(problem, strips_of_group), stream);
  return error != cudaSuccess ? error : launch(Tickets(memory, problem.batch, groups), groups, groups * problem.batch);
}

}  // namespace softdtw
