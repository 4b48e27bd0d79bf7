// What tests ask of the emulated GPU.
#include <cuda_runtime_api.h>

namespace {

// Kernels that do wrong, by number, and the name that test_emulated_gpu.py knows them by.
void wait_for_nobody() {
  auto& gate = emulation::shared<emulation::Mbarrier>("gate");
  const unsigned address = static_cast<unsigned>(__cvta_generic_to_shared(&gate));
  if (threadIdx.x == 0 && threadIdx.y == 0) emulation::mbarrier_init(address, 1);
  __syncthreads();
  for (unsigned open = 0; threadIdx.y == 1 && open == 0;) emulation::mbarrier_try(open, address, 0);
}
void wait_at_a_barrier_that_others_pass() {
  if (threadIdx.y == 1) emulation::bar_sync(2 * emulation::kLanes);
}
void part() {
  if (threadIdx.x < 7)
    __syncwarp();
  else
    __shfl_sync(~0u, 1.0f, 0);
}
void use_a_gate_that_was_not_started() {
  auto& gate = emulation::shared<emulation::Mbarrier>("gate");
  emulation::mbarrier_arrive(static_cast<unsigned>(__cvta_generic_to_shared(&gate)));
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
