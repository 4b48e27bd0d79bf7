// What tests ask of the emulated GPU.
#include <cuda_runtime_api.h>

#include "cuda/hardware/assembly.cuh"

namespace {

namespace ptx = softdtw::ptx;

// Kernels that do wrong, by number, and the name that test_emulated_gpu.py knows them by.
void wait_for_nobody() {
  const unsigned gate = ptx::shared_address(&emulation::shared<ptx::Mbarrier>("gate"));
  if (threadIdx.x == 0 && threadIdx.y == 0) ptx::mbarrier_init<1>(gate);
  __syncthreads();
  while (threadIdx.y == 1 && !ptx::mbarrier_try_wait(gate, 0)) {
  }
}
void wait_at_a_barrier_that_others_pass() {
  if (threadIdx.y == 1) ptx::bar_sync(2 * emulation::kLanes);
}
void part() {
  if (threadIdx.x < 7)
    __syncwarp();
  else
    __shfl_sync(~0u, 1.0f, 0);
}
void use_a_gate_that_was_not_started() {
  ptx::mbarrier_arrive(ptx::shared_address(&emulation::shared<ptx::Mbarrier>("gate")));
}
void take_all_memory() {
  struct Much {
    char bytes[emulation::kSharedBytes];
  };
  auto& much = emulation::shared<Much>("much");
  much.bytes[0] = emulation::shared<char>("more");
}
void (*const kWrong[])() = {
    wait_for_nobody, wait_at_a_barrier_that_others_pass, part, use_a_gate_that_was_not_started, take_all_memory};

}  // namespace

#define EXPORT extern "C" __attribute__((visibility("default")))

// Another seed is another order of events; `resident`: blocks at a time.
EXPORT void set_order(unsigned seed, int resident) { emulation::machine().set_order(seed, resident); }

// The failure of a block of two warps.
EXPORT const char* failure_of(int number) {
  static std::string message;
  emulation::Launch(1, dim3(emulation::kLanes, 2)).run(kWrong[number]);
  message = emulation::machine().take_failure();
  return message.c_str();
}
