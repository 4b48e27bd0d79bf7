// What tests ask of the emulated GPU.
#include <cuda_pipeline_primitives.h>
#include <cuda_runtime_api.h>

#include "cuda/hardware/assembly.cuh"
#include "cuda/hardware/launch.cuh"

namespace {

namespace ptx = softdtw::ptx;

// Kernels that do wrong, by number: in the order of WRONG in test_emulated_gpu.py, and then of RACES in watch.py.
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
// Races: nothing but this run's order of events keeps two accesses apart.
void read_what_another_warp_writes() {
  auto& word = emulation::shared<int>("word");
  if (threadIdx.x == 0 && threadIdx.y == 0) word = 1;
  if (threadIdx.x == 0 && threadIdx.y == 1) emulation::shared<int>("seen") = word;
}
void order_memory_by_a_shuffle() {
  auto& words = emulation::shared<int[2][emulation::kLanes]>("words");
  auto& seen = emulation::shared<int[2][emulation::kLanes]>("seen");
  words[threadIdx.y][threadIdx.x] = 1;
  seen[threadIdx.y][threadIdx.x] = words[threadIdx.y][__shfl_sync(~0u, threadIdx.x ^ 1, threadIdx.x)];
}
void wait_for_a_copy_of_another_lane() {
  auto& words = emulation::shared<int[2]>("words");
  auto& seen = emulation::shared<int[2]>("seen");
  static const int kGiven = 1;
  if (threadIdx.x == 0) __pipeline_memcpy_async(&words[threadIdx.y], &kGiven, sizeof kGiven);
  __pipeline_commit();
  __pipeline_wait_prior(0);
  if (threadIdx.x == 1) seen[threadIdx.y] = words[threadIdx.y];
}
// None, thanks to a barrier.
void read_what_another_warp_has_written() {
  auto& word = emulation::shared<int>("word");
  if (threadIdx.x == 0 && threadIdx.y == 0) word = 1;
  __syncthreads();
  if (threadIdx.x == 0 && threadIdx.y == 1) emulation::shared<int>("seen") = word;
}
void (*const kWrong[])() = {
    wait_for_nobody,
    wait_at_a_barrier_that_others_pass,
    part,
    use_a_gate_that_was_not_started,
    take_all_memory,
    read_what_another_warp_writes,
    order_memory_by_a_shuffle,
    wait_for_a_copy_of_another_lane,
    read_what_another_warp_has_written};

}  // namespace

#define EXPORT extern "C" __attribute__((visibility("default")))

// Another seed is another order of events; `resident`: blocks at a time; `watches`: for accesses that nothing orders.
EXPORT void set_order(unsigned seed, int resident, bool watches) {
  emulation::machine().set_order(seed, resident, watches);
}

// The failure of a block of two warps.
EXPORT const char* failure_of(int number) {
  static std::string message;
  emulation::machine().run(1, dim3(emulation::kLanes, 2), 0, kWrong[number]);
  message = emulation::machine().take_failure();
  return message.c_str();
}

// What another thread does between what the next launch asks for and the launch itself.
EXPORT void before_next_launch(void (*call)()) { emulation::runtime().before_launch = call; }

// Of the next question for a device, no answer but an error.
EXPORT void fail_next_query() { emulation::runtime().failing_queries = 1; }

// An error of somebody else's, which nobody has asked for yet.
EXPORT void leave_error() { emulation::runtime().noted(cudaErrorInvalidDevice); }
EXPORT bool has_error() { return cudaGetLastError() != cudaSuccess; }

// What comes of a grid of so many blocks, in words; "" if it runs. One word counts the blocks that ran.
EXPORT const char* launch_of(int64_t blocks_of_x, int64_t blocks_of_y, int* ran) {
  static std::string message;
  void (*const count)(int*) = [](int* counted) {
    if (threadIdx.x == 0) ++*counted;
  };
  const cudaError_t error =
      softdtw::launch_kernel(count, softdtw::Blocks(blocks_of_x, blocks_of_y), emulation::kLanes, 0, nullptr, ran);
  message = error == cudaSuccess ? "" : softdtw::in_words(error);
  return message.c_str();
}
