// Pairs to the workers of torch's pool.
//
// A Pass says what is done with one pair:
//   Task                                       a pair that is being worked at
//   pair_bytes(), worker_bytes()               the memory for a pair, and for a worker whatever pair it works at
//   void prepare(index, memory, Task&) const   sets task.turns, the number of its turns, 0 if there is nothing to do
//   void turn(task, turn, memory) const        a strip
//   void finish(index, task) const             unless task.turns is 0
#pragma once

#include <atomic>

#include "../checks.h"

namespace softdtw {
namespace cpu {

// Bytes of scratch memory, aligned to a cache line.
class Memory {
 public:
  Memory(const Tensor& like, int64_t count) : tensor_(new_bytes(like, count + 64)) {
    char* const unaligned = static_cast<char*>(tensor_.mutable_data_ptr());
    base_ = unaligned + (64 - reinterpret_cast<uintptr_t>(unaligned) % 64) % 64;
  }
  char* operator+(int64_t offset) const { return base_ + offset; }

 private:
  Tensor tensor_;
  char* base_;
};

// Workers claim pairs one by one: lengths may differ.
template <class Pass>
void run(const Pass& pass, int64_t count, const Tensor& like) {
  const int64_t threads = torch::stable::get_num_threads();
  const int64_t workers = count < threads ? count : threads, bytes = pass.pair_bytes() + pass.worker_bytes();
  const Memory memory(like, workers * bytes);
  std::atomic<int64_t> next{0};
  torch::stable::parallel_for(0, workers, 1, [&](int64_t begin, int64_t end) {
    for (int64_t worker = begin; worker < end; ++worker)
      for (int64_t index = next++; index < count; index = next++) {
        typename Pass::Task task;
        pass.prepare(index, memory + worker * bytes, task);
        for (int64_t turn = 0; turn < task.turns; ++turn)
          pass.turn(task, turn, memory + (worker * bytes + pass.pair_bytes()));
        if (task.turns > 0) pass.finish(index, task);
      }
  });
}

}  // namespace cpu
}  // namespace softdtw
