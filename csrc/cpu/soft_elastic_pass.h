// Values of soft elastic measures: a pass as those of passes.h.
#pragma once

#include "passes.h"
#include "soft_elastic_pack.h"

namespace softdtw {
namespace cpu {

template <typename T>
struct SoftElasticTask {
  int64_t turns, b;
  Pair<T> table;
  SoftElastic<T> pair;
  Table<T> entries;
  StripState* states;
  double least_gap;
};

template <typename T, typename Input>
struct SoftElasticForward {
  using Task = SoftElasticTask<T>;

  const ElasticProblem<Input>& problem;
  const Kernels<T>& kernels;
  Selection selection;
  Input* value;
  char* saved;    // SoftElasticEdges of all pairs, or null
  char* unsound;  // per pair, or null: a mark for those to be swept in double

  double sweeps() const { return sizeof(T) / sizeof(Input); }
  int64_t worker_bytes() const { return 0; }
  int64_t pair_bytes() const {
    SoftElasticWork<T, Input> work(problem);
    Table<T> entries;
    return carve(work, entries, nullptr);
  }

  void prepare(int64_t index, char* memory, Task& task) const {
    const int64_t b = task.b = selection.pair(index);
    task.turns = 0;
    value[b] = std::numeric_limits<Input>::quiet_NaN();
    const SoftElasticEdges kept(problem.n, problem.m);
    char* const own = saved ? saved + b * kept.bytes() : nullptr;
    if (saved) std::memset(own, 0, kept.bytes());
    if (!problem.extent(b).valid()) return;
    SoftElasticWork<T, Input> work(problem);
    carve(work, task.entries, memory);
    if (saved) task.entries = kept.start<T>(own, problem.sum_border ? 1 : 0);
    if (!work.enter(b, kernels, task.table, task.pair)) return;
    task.least_gap = work.least_gap();
    task.states = work.states();
    task.turns = task.table.strips();
    start_states(task.states, task.turns, kNone);
  }

  void turn(Task& task, int64_t turn, char*) const {
    task.pair.table = &task.table;
    kernels.soft_elastic(task.pair, task.entries, task.states, turn);
  }

  void finish(const Task& task) const {
    const double total = task.states[task.turns - 1].total;
    value[task.b] = Input(total / task.table.scale);
    if (!unsound) return;
    Range range = range_of(task.states, task.turns);
    range.least_cost = std::min(range.least_cost, task.least_gap);
    unsound[task.b] = !sound(range, total, task.table.n + task.table.m);
  }

 private:
  // Where nothing is kept one edge, which every strip writes over.
  int64_t carve(SoftElasticWork<T, Input>& work, Table<T>& entries, char* memory) const {
    const int64_t own = work.carve(memory);
    Parts parts{memory ? memory + own : nullptr};
    entries = {};
    entries.edge_m = parts.take<double>(saved ? 0 : work.m());
    entries.edge_s = parts.take<T>(saved ? 0 : work.m());
    return own + parts.used;
  }
};

// Over all pairs, and once more in double over those that T cannot hold.
template <typename T>
void soft_elastic_values(const ElasticProblem<T>& problem, T* value, char* saved, const Tensor& like) {
  const int64_t threads = threads_for(problem.n, problem.m);
  const auto run_pass = [&](const auto& pass, int64_t count) {
    const double work = work_of(problem) * pass.sweeps() * double(count) / double(problem.batch);
    return run(pass, count, threads, kRows * problem.m, work, like);
  };
  constexpr bool kCanFail = sizeof(T) < sizeof(double);
  std::vector<char> unsound(kCanFail ? problem.batch : 0);
  const SoftElasticForward<T, T> pass = {problem, kernels(T{}), {}, value, saved, kCanFail ? unsound.data() : nullptr};
  if (!run_pass(pass, problem.batch)) return;
  const std::vector<int64_t> again = marked(unsound);
  if (again.empty()) return;
  run_pass(SoftElasticForward<double, T>{problem, kernels(double{}), {&again}, value, saved, nullptr}, again.size());
}

}  // namespace cpu
}  // namespace softdtw
