// Forward and backward of soft elastic measures: passes as those of passes.h.
#pragma once

#include "cpu/soft/passes.h"
#include "soft_elastic_pack.h"
#include "soft_elastic_unpack.h"

namespace softdtw {
namespace cpu {

template <typename T>
struct SoftElasticTask {
  int64_t turns, b;
  Pair<T> table;
  SoftElastic<T> pair;
  Table<T> entries;
  ElasticScratch<T> scratch;
  StripState* states;
  double least_gap;
};

template <typename T, typename Input>
struct SoftElasticForward {
  using Task = SoftElasticTask<T>;
  using Work = SoftElasticWork<T, Input>;

  const ElasticProblem<Input>& problem;
  const Kernels<T>& kernels;
  Selection selection;
  Input* value;
  char* saved;    // the tables of all pairs, or null
  char* unsound;  // per pair, or null: a mark for those to be swept in double

  typename Work::Needs needs() const { return {!saved, false, nullptr}; }
  double sweeps() const { return sizeof(T) / sizeof(Input); }
  int64_t worker_bytes() const { return 0; }
  int64_t pair_bytes() const { return Work(problem).carve(needs(), nullptr); }

  void prepare(int64_t index, char* memory, Task& task) const {
    const int64_t b = task.b = selection.pair(index);
    task.turns = 0;
    value[b] = std::numeric_limits<Input>::quiet_NaN();
    if (!problem.extent(b).valid()) return;
    Work work(problem);
    work.carve(needs(), memory);
    if (!work.enter(b, kernels, task.table, task.pair)) return;
    task.entries = saved ? work.kept(kept(b)) : work.edge;
    if (saved && !problem.ragged()) work.clear_rest(task.table, kept(b));
    task.least_gap = work.least_gap();
    task.states = work.states;
    task.turns = task.table.strips();
    start_states(task.states, task.turns, kNone);
  }

  void turn(Task& task, int64_t turn, char*) const { kernels.soft_elastic(task.pair, task.entries, task.states, turn); }

  void finish(const Task& task) const {
    const double total = task.states[task.turns - 1].total;
    value[task.b] = Input(total / task.table.scale);
    if (!unsound) return;
    Range range = range_of(task.states, task.turns);
    range.least_cost = std::min(range.least_cost, task.least_gap);
    if (sound(range, total, task.table.n + task.table.m)) return;
    unsound[task.b] = 1;
    if (saved) Work(problem).clear_unsound(kept(task.b));
  }

  char* kept(int64_t b) const { return saved + b * Work::kept_bytes(problem); }
};

template <typename T, typename Input>
struct SoftElasticBackward {
  using Task = SoftElasticTask<T>;
  using Work = SoftElasticWork<T, Input>;

  const ElasticProblem<Input>& problem;
  const Kernels<T>& kernels;
  Selection selection;
  const ElasticGradient<Input>& gradient;
  char* saved;    // the tables of all pairs, only read; null: sweep forward first
  char* unsound;  // per pair, or null: a mark for those to be swept in double

  typename Work::Needs needs() const { return {false, !saved, &gradient}; }
  double sweeps() const { return (saved ? 2.0 : 3.0) * (sizeof(T) / sizeof(Input)); }
  int64_t pair_bytes() const { return Work(problem).carve(needs(), nullptr); }
  int64_t worker_bytes() const { return Workspace<T>::weights_bytes(); }

  void prepare(int64_t index, char* memory, Task& task) const {
    const int64_t b = task.b = selection.pair(index);
    const Extent extent = problem.extent(b);
    task.turns = 0;
    if (!extent.valid() || !std::isfinite(gradient.value[b]))
      return ElasticOut<Input>{problem, gradient, b, extent}.spoil();
    if (has_counts() && !gradient.gamma) return;  // which have no other gradient
    Work work(problem);
    work.carve(needs(), memory);
    task.entries = work.kept(saved ? saved + b * Work::kept_bytes(problem) : work.table_memory);
    if (unsound && task.entries.unsound()) {
      unsound[b] = 1;
      return;
    }
    work.clear_sums();
    work.enter(b, kernels, task.table, task.pair);
    task.scratch = work.scratch;
    task.scratch.tables.set(b, gradient);
    task.scratch.factor = T(gradient.arriving(b));
    task.states = work.states;
    start_states(task.states, task.table.strips(), saved ? kAll : kNone);
    task.turns = (saved ? 1 : 2) * task.table.strips();
  }

  void turn(Task& task, int64_t turn, char* memory) const {
    const int64_t strips = task.table.strips(), left = task.turns - 1 - turn;
    if (left >= strips) return kernels.soft_elastic(task.pair, task.entries, task.states, turn);
    ElasticScratch<T> scratch = task.scratch;
    scratch.weights = reinterpret_cast<T*>(memory);
    kernels.soft_elastic_backward(task.pair, task.entries, scratch, task.states, left);
  }

  void finish(const Task& task) const {
    SoftElasticUnpack<T, Input>{problem, gradient, task.b, task.table, task.scratch}();
  }

 private:
  bool has_counts() const { return problem.measure == Measure::kEdr || problem.measure == Measure::kLcss; }
};

}  // namespace cpu
}  // namespace softdtw
