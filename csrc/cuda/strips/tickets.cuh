// Tickets: which strips a block takes. Ticket order is the order of the sweep, all pairs side by side. A block waits only for
// earlier tickets, which have started, so any number of blocks may be resident (the idea of PeerWave, Belviranli et al.,
// ICS 2015).
#pragma once

#include "cuda/hardware/handoff.cuh"
#include "cuda/scratch.h"
#include "strip_memory.cuh"

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

// The host's side. A ticket for so many strips of a pair.
template <class S>
int64_t groups_of(const Problem<typename S::Scalar>& problem, int strips_of_group) {
  return (Sizes<S>(problem).strips + strips_of_group - 1) / strips_of_group;
}
template <class S>
int64_t ticket_bytes(const Problem<typename S::Scalar>& problem, int strips_of_group) {
  return Tickets::bytes(problem.batch, groups_of<S>(problem, strips_of_group));
}

// What forward saves of all pairs, for backward; nothing, if there is no memory.
template <class S>
Saved<S> saved_at(const Problem<typename S::Scalar>& problem, const void* memory) {
  const Sizes<S> sizes(problem);
  return memory == nullptr ? Saved<S>() : Saved<S>(const_cast<void*>(memory), sizes, Saved<S>::bytes_of_pair(sizes));
}

// The memory of forward: tickets, what it saves, and its edges, which have a row for every pair where nothing is saved.
template <class S>
struct ForwardMemory {
  char* tickets;
  Saved<S> saved;
  Edges<S> edges;

  ForwardMemory(const Problem<typename S::Scalar>& problem, int strips_of_group, void* kept, Scratch& scratch)
      : saved(saved_at<S>(problem, kept)), edges(saved.edges) {
    const int64_t groups = Sizes<S>(problem).groups;
    const auto parts = scratch.parts(
        ticket_bytes<S>(problem, strips_of_group), kept != nullptr ? 0 : Edges<S>::bytes_of_rows(problem.batch, groups));
    tickets = parts[0];
    if (kept == nullptr) edges = Edges<S>::rows(parts[1], groups);
  }
};

// Zeroes the tickets of a launch and calls launch(tickets, groups, blocks).
template <class S, class Launch>
cudaError_t with_tickets(
    const Problem<typename S::Scalar>& problem, void* memory, int strips_of_group, cudaStream_t stream, Launch&& launch) {
  const int64_t groups = groups_of<S>(problem, strips_of_group);
  const cudaError_t error = cudaMemsetAsync(memory, 0, ticket_bytes<S>(problem, strips_of_group), stream);
  return error != cudaSuccess ? error : launch(Tickets(memory, problem.batch, groups), groups, groups * problem.batch);
}

}  // namespace softdtw
