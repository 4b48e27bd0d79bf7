// What is done with one pair in forward and in backward, as schedule.h wants it. Input is the dtype of the caller, T that of
// the sweep: float32 pairs that float32 cannot hold (exactness.h) are swept again in double.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstring>
#include <vector>

#include "cpu/kernels.h"
#include "cpu/threads/schedule.h"
#include "series/pack.h"

namespace softdtw {
namespace cpu {

template <typename T>
struct PairTask {
  int64_t turns, b;
  Pair<T> pair;
  Table<T> table;
  Workspace<T> workspace;
};

// The pairs of a pass: all, or some. Bytes and not bits, because threads write neighbours.
struct Selection {
  const std::vector<int64_t>* some = nullptr;
  int64_t pair(int64_t index) const { return some ? (*some)[index] : index; }
};

inline std::vector<int64_t> marked(const std::vector<char>& marks) {
  std::vector<int64_t> indices;
  for (size_t b = 0; b < marks.size(); ++b)
    if (marks[b]) indices.push_back(int64_t(b));
  return indices;
}

inline void start_states(StripState* states, int64_t strips, int64_t down) {
  for (int64_t i = 0; i < strips; ++i) states[i] = {down, kNone, 0, {}};
}

// How many threads can share a pair: a strip follows the one above it at a distance of about 2 kRows steps or more.
inline int64_t threads_for(int64_t n, int64_t m) {
  return std::max<int64_t>(1, std::min(ceil_div(n, kRows), (m - kRows) / (2 * kRows)));
}

inline Range range_of(const StripState* states, int64_t strips) {
  Range range;
  for (int64_t i = 0; i < strips; ++i) {
    range.least_lost = std::min(range.least_lost, states[i].range.least_lost);
    range.least_cost = std::min(range.least_cost, states[i].range.least_cost);
  }
  return range;
}

template <typename T, typename Input>
struct ForwardPass {
  using Task = PairTask<T>;

  const Problem<Input>& problem;
  const Kernels<T>& kernels;
  Selection selection;
  Input* value;
  char* saved;    // the tables of all pairs, or null
  char* unsound;  // per pair, or null: a mark for those to be swept in double

  typename Workspace<T>::Needs needs() const { return {!saved, false, false}; }
  double sweeps() const { return sizeof(T) / sizeof(Input); }  // in forward sweeps of Input
  int64_t pair_bytes() const { return Workspace<T>().carve(problem, needs(), nullptr); }
  int64_t worker_bytes() const { return 0; }

  void prepare(int64_t index, char* memory, Task& task) const {
    const int64_t b = task.b = selection.pair(index);
    const Extent extent = problem.extent(b);
    task.turns = 0;
    if (saved && problem.ragged()) std::memset(kept(b), 0, Table<T>::bytes(table_shape(problem)));
    if (!extent.valid()) {
      value[b] = std::numeric_limits<Input>::quiet_NaN();
      return;
    }
    Workspace<T>& workspace = task.workspace;
    workspace.carve(problem, needs(), memory);
    task.pair = pack(problem, b, extent, workspace);
    task.table = {workspace.edge_m, nullptr, workspace.edge_s, nullptr, 0, 0};
    if (saved) {
      task.table = Table<T>::saved(kept(b), table_shape(problem));
      const Strip last = strip_of(task.pair, (task.pair.n - 1) / kRows * kRows);
      if (!problem.ragged()) task.table.clear_rest(kept(b), table_shape(problem), last);
    }
    task.turns = task.pair.strips();
    start_states(workspace.states, task.turns, kNone);
  }

  void turn(Task& task, int64_t turn, char*) const { kernels.forward(task.pair, task.table, task.workspace.states, turn); }

  void finish(const Task& task) const {
    const StripState* const states = task.workspace.states;
    const double total = states[task.turns - 1].total;
    value[task.b] = Input(total / task.pair.scale);
    if (!unsound || sound(range_of(states, task.turns), total, task.pair.n + task.pair.m)) return;
    unsound[task.b] = 1;
    if (saved) task.table.clear_unsound(kept(task.b), table_shape(problem));
  }

  char* kept(int64_t b) const { return saved + b * Table<T>::bytes(table_shape(problem)); }
};

template <typename T, typename Input>
struct BackwardPass {
  using Task = PairTask<T>;

  const Problem<Input>& problem;
  const Kernels<T>& kernels;
  Selection selection;
  const Gradient<Input>& gradient;
  char* saved;    // the tables of all pairs, only read; null: sweep forward first
  char* unsound;  // per pair, or null: a mark for those to be swept in double

  typename Workspace<T>::Needs needs() const { return {false, !saved, true}; }
  double sweeps() const { return (saved ? 2.0 : 3.0) * (sizeof(T) / sizeof(Input)); }
  int64_t pair_bytes() const { return Workspace<T>().carve(problem, needs(), nullptr); }
  int64_t worker_bytes() const { return Workspace<T>::weights_bytes(); }

  void prepare(int64_t index, char* memory, Task& task) const {
    const int64_t b = task.b = selection.pair(index);
    const Extent extent = problem.extent(b);
    task.turns = 0;
    if (!extent.valid() || !std::isfinite(gradient.value[b])) return spoil_gradient(problem, gradient, extent, b, 0, 1);
    Workspace<T>& workspace = task.workspace;
    workspace.carve(problem, needs(), memory);
    char* const kept = saved ? saved + b * Table<T>::bytes(table_shape(problem)) : workspace.table;
    task.table = Table<T>::saved(kept, table_shape(problem));
    if (unsound && task.table.unsound()) {
      unsound[b] = 1;
      return;
    }
    Scratch<T>& scratch = workspace.scratch;
    std::memset(scratch.incoming, 0, extent.m * sizeof(T));
    std::memset(scratch.dx, 0, workspace.x_size * sizeof(T));
    std::memset(scratch.dy, 0, workspace.y_size * sizeof(T));
    task.pair = pack(problem, b, extent, workspace);
    scratch.dcost.set(gradient.cost.pair(b));
    scratch.factor = T(gradient.arriving(b));
    start_states(workspace.states, task.pair.strips(), saved ? kAll : kNone);
    task.turns = (saved ? 1 : 2) * task.pair.strips();
  }

  void turn(Task& task, int64_t turn, char* memory) const {
    StripState* const states = task.workspace.states;
    const int64_t strips = task.pair.strips(), left = task.turns - 1 - turn;
    if (left >= strips) return kernels.forward(task.pair, task.table, states, turn);
    Scratch<T> scratch = task.workspace.scratch;
    scratch.weights = reinterpret_cast<T*>(memory);
    kernels.backward(task.pair, task.table, scratch, states, left);
  }

  void finish(const Task& task) const {
    if (problem.cost != Cost::kMatrix) unpack_gradient(problem, task.b, task.pair, task.workspace.scratch, gradient);
  }
};

// A pass over all pairs, and once more in double over those that T cannot hold. `out`: what the pass writes.
template <template <typename, typename> class Pass, template <typename> class AnyProblem, typename T, class Out>
void run_exactly(const AnyProblem<T>& problem, const Out& out, char* saved, const Tensor& like) {
  const auto run_pass = [&](const auto& pass, int64_t count) {
    const double work = work_of(problem) * pass.sweeps() * double(count) / double(problem.batch);
    return run(pass, count, threads_for(problem.n, problem.m), kRows * problem.m, work, like);
  };
  constexpr bool kCanFail = sizeof(T) < sizeof(double);
  std::vector<char> unsound(kCanFail ? problem.batch : 0);
  const Pass<T, T> pass = {problem, kernels(T{}), {}, out, saved, kCanFail ? unsound.data() : nullptr};
  if (!run_pass(pass, problem.batch)) return;
  const std::vector<int64_t> again = marked(unsound);
  if (again.empty()) return;
  run_pass(Pass<double, T>{problem, kernels(double{}), {&again}, out, nullptr, nullptr}, again.size());
}

}  // namespace cpu
}  // namespace softdtw
