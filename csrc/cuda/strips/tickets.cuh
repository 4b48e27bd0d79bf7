// Tickets: which strips a block takes. Ticket order is the order of the sweep, all pairs side by side. A block waits only for
// earlier tickets, which have started, so any number of blocks may be resident (the idea of PeerWave, Belviranli et al.,
// ICS 2015).
#pragma once

#include "handoff.cuh"

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

}  // namespace softdtw
