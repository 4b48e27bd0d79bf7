// Pairs, and the strips of pairs, to the workers of torch's pool.
#pragma once

#include <algorithm>
#include <atomic>
#include <memory>
#include <vector>

#include "binding/checks.h"
#include "core/problem.h"
#include "flush_to_zero.h"
#include "interrupt.h"

namespace softdtw {
namespace cpu {

// Bytes of scratch memory, aligned to a cache line. Of a small call its thread keeps them for the next one: given back, they
// would go to the system, and every call would pay for their pages again.
class Memory {
 public:
  Memory(const Tensor& like, int64_t count) {
    char* unaligned;
    if (count <= kKeptBytes && !kept().is_taken) {
      unaligned = kept().at_least(count + kLine);
      takes_kept_ = kept().is_taken = true;
    } else {
      tensor_ = new_bytes(like, count + kLine);
      unaligned = static_cast<char*>(tensor_->mutable_data_ptr());
    }
    base_ = unaligned + (kLine - reinterpret_cast<uintptr_t>(unaligned) % kLine) % kLine;
  }
  ~Memory() {
    if (takes_kept_) kept().is_taken = false;
  }
  Memory(const Memory&) = delete;
  Memory& operator=(const Memory&) = delete;
  char* operator+(int64_t offset) const { return base_ + offset; }

 private:
  static constexpr int64_t kLine = 64, kKeptBytes = 1 << 20;
  struct Kept {
    std::unique_ptr<char[]> bytes;
    int64_t count = 0;
    bool is_taken = false;

    char* at_least(int64_t wanted) {
      if (wanted > count) {
        bytes.reset(new char[wanted]);
        count = wanted;
      }
      return bytes.get();
    }
  };
  static Kept& kept() {
    static thread_local Kept kept;
    return kept;
  }

  bool takes_kept_ = false;
  OptionalTensor tensor_;
  char* base_;
};

// Work is counted in cells of the forward sweep of float32 in one dimension, of which a thread does some 2500 in a microsecond.
// The work in a cell of every pair's table, as far as it lies in the band:
template <typename T>
double work_of(const Problem<T>& problem) {
  const int64_t shift = problem.m > problem.n ? problem.m - problem.n : problem.n - problem.m;
  const bool has_band = problem.bandwidth >= 0 && problem.bandwidth < problem.m;
  const int64_t columns = has_band ? std::min(problem.m, 2 * problem.bandwidth + 1 + shift) : problem.m;
  const double of_cell = double(sizeof(T)) / sizeof(float) * (1 + double(problem.dim) / 16);
  return double(problem.batch) * double(problem.n) * double(columns) * of_cell;
}

// Less work stays on the calling thread. A thread of the pool that sleeps takes some 50 microseconds to come, and where its core is
// busy some milliseconds, for which the caller has to wait even if nothing is left to do.
constexpr double kLeastShared = 1.3e5;
inline int64_t threads_for_work(double work) { return work < kLeastShared ? 1 : torch::stable::get_num_threads(); }

// Lets `workers` threads work until all of `count` items are done: work(worker) returns how many of them it has done. Returns
// whether they came to the end (interrupt.h).
template <class Work>
bool run_workers(int64_t workers, int64_t count, const Work& work) {
  Interrupt interrupt;
  std::atomic<int64_t> done{0};
  torch::stable::parallel_for(0, workers, 1, [&](int64_t begin, int64_t end) {
    Watch watch(interrupt);
    int64_t own = 0;
    for (int64_t worker = begin; worker < end; ++worker) own += work(worker);
    done.fetch_add(own, std::memory_order_release);
    if (interrupt.is_caller()) interrupt.wait(done, count);
  });
  return !interrupt.stopped();
}

// Workers claim pairs one by one: lengths may differ. Calls pair(index, memory), of so many bytes.
template <class Pair>
bool run_pairs(int64_t count, int64_t bytes, double work, const Tensor& like, const Pair& pair) {
  const int64_t workers = std::min<int64_t>(count, threads_for_work(work));
  const Memory memory(like, workers * bytes);
  std::atomic<int64_t> next{0};
  return run_workers(workers, count, [&](int64_t worker) {
    int64_t own = 0;
    for (int64_t index = next++; index < count && !stop_asked(0); index = next++, ++own)
      pair(index, memory + worker * bytes);
    return own;
  });
}

// Threads across pairs, or across the strips of pairs where there are fewer pairs than threads. The caller alone prepares and
// finishes those few pairs: to wait for the others three times in a call costs more.
//
// A Pass says what is done with one pair:
//   Task                                       a pair that is being worked at
//   pair_bytes(), worker_bytes()               the memory for a pair, and for a worker whatever pair it works at
//   void prepare(index, memory, Task&) const   sets task.turns, the number of its turns, 0 if there is nothing to do
//   void turn(task, turn, memory) const        a strip
//   void finish(task) const                    unless task.turns is 0
// useful_threads: how many can work at the turns of one pair at once. turn_cells: about how many cells a turn has. work: in all.
//
// Where they share pairs, workers claim turns: the first of every pair, the second of every pair, and so on. A turn waits for
// earlier turns of its pair only. Those have been claimed before it, by workers that run, and the earliest turn that is not done
// waits for nothing; so this ends with any number of threads, one included. What a turn computes does not depend on who runs it
// when.
template <class Pass>
bool run(const Pass& pass, int64_t count, int64_t useful_threads, int64_t turn_cells, double work, const Tensor& like) {
  const int64_t pair_bytes = pass.pair_bytes(), worker_bytes = pass.worker_bytes();
  const int64_t threads = threads_for_work(work);
  if (count >= threads || useful_threads == 1)
    return run_pairs(count, pair_bytes + worker_bytes, work, like, [&](int64_t index, char* memory) {
      typename Pass::Task task;
      pass.prepare(index, memory, task);
      const FlushToZero flush;
      for (int64_t turn = 0; turn < task.turns && !stop_asked(turn_cells); ++turn)
        pass.turn(task, turn, memory + pair_bytes);
      if (task.turns > 0 && !stop_asked(0)) pass.finish(task);
    });

  const int64_t workers = std::min(count * useful_threads, threads);
  const Memory pair_memory(like, count * pair_bytes), worker_memory(like, workers * worker_bytes);
  std::vector<typename Pass::Task> tasks(count);
  for (int64_t index = 0; index < count; ++index) pass.prepare(index, pair_memory + index * pair_bytes, tasks[index]);
  int64_t most = 0;
  for (const auto& task : tasks) most = std::max(most, task.turns);
  // A turn that has been claimed is computed in any case: others wait for it.
  std::atomic<int64_t> next{0};
  const bool is_done = run_workers(workers, most * count, [&](int64_t worker) {
    const FlushToZero flush;
    int64_t own = 0;
    for (; !stop_asked(turn_cells); ++own) {
      const int64_t ticket = next++;
      if (ticket >= most * count) break;
      auto& task = tasks[ticket % count];
      if (ticket / count < task.turns) pass.turn(task, ticket / count, worker_memory + worker * worker_bytes);
    }
    return own;
  });
  if (!is_done) return false;
  for (const auto& task : tasks)
    if (task.turns > 0) pass.finish(task);
  return true;
}

}  // namespace cpu
}  // namespace softdtw
