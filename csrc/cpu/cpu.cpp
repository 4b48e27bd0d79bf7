// The CPU backend: pairs to workers of torch's pool, one pair to one worker; the instruction set is chosen at run time.
#include <atomic>
#include <cmath>
#include <cstdlib>
#include <cstring>
#include <string>

#include <torch/csrc/stable/library.h>

#include "../entry.h"
#include "pack.h"

namespace softdtw {
namespace cpu {
namespace {

// TORCHSOFTDTW_CPU_ISA=plain|avx2|avx512 lowers the choice; it cannot raise it beyond the processor.
const Isa& choose_isa() {
#if defined(__x86_64__)
  const char* const variable = std::getenv("TORCHSOFTDTW_CPU_ISA");
  const std::string wanted = variable ? variable : "";
  const bool has_avx2 = __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma");
  const bool has_avx512 = has_avx2 && __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512dq") &&
                          __builtin_cpu_supports("avx512vl") && __builtin_cpu_supports("avx512bw");
  if (wanted == "plain") return kPlain;
  if (has_avx512 && wanted != "avx2") return kAvx512;
  if (has_avx2) return kAvx2;
#endif
  return kPlain;
}

const Kernels<float>& kernels(float) {
  static const Isa& isa = choose_isa();
  return isa.for_float;
}

const Kernels<double>& kernels(double) {
  static const Isa& isa = choose_isa();
  return isa.for_double;
}

// Calls work(pair, workspace memory of the worker) for every pair. Workers claim pairs one by one: lengths may differ.
template <typename F>
void for_every_pair(int64_t batch, int64_t workspace_bytes, const Tensor& like, const F& work) {
  const int64_t threads = torch::stable::get_num_threads();
  const int64_t workers = batch < threads ? batch : threads;
  const Tensor memory = new_bytes(like, workers * workspace_bytes + 64);
  char* const unaligned = static_cast<char*>(memory.mutable_data_ptr());
  char* const base = unaligned + (64 - reinterpret_cast<uintptr_t>(unaligned) % 64) % 64;
  std::atomic<int64_t> next{0};
  torch::stable::parallel_for(0, workers, 1, [&](int64_t begin, int64_t end) {
    for (int64_t worker = begin; worker < end; ++worker)
      for (int64_t b = next++; b < batch; b = next++) work(b, base + worker * workspace_bytes);
  });
}

}  // namespace

struct CpuBackend {
  static Tensor arrange(const Tensor& series) { return series; }  // pack() reads any strides

  static void check(const Plan& plan) {
    STD_TORCH_CHECK(
        plan.kernel == "cpu", "kernel: '", plan.kernel, "' runs on CUDA only; for CPU tensors expected 'cpu' (or 'auto')");
  }

  template <typename T>
  static int64_t saved_bytes(const Problem<T>& problem, const Plan& plan) {
    check(plan);
    return problem.batch * Table<T>::bytes(problem.n, problem.m);
  }

  template <typename T>
  static void forward(const Problem<T>& problem, const Plan& plan, T* value, void* saved, const Tensor& like) {
    check(plan);
    const int64_t table_bytes = Table<T>::bytes(problem.n, problem.m);
    const Kernels<T>& run = kernels(T{});
    Workspace<T> sizes;
    for_every_pair(problem.batch, sizes.carve(problem, !saved, false, nullptr), like, [&](int64_t b, char* memory) {
      const Extent extent = problem.extent(b);
      if (!extent.valid()) {
        value[b] = std::numeric_limits<T>::quiet_NaN();
        return;
      }
      Workspace<T> workspace;
      workspace.carve(problem, !saved, false, memory);
      Table<T> table{workspace.edge_m, nullptr, workspace.edge_s, nullptr, 0, 0};
      const Pair<T> pair = pack(problem, b, extent, workspace);
      if (saved) {
        char* const kept = static_cast<char*>(saved) + b * table_bytes;
        table = Table<T>::saved(kept, problem.n, problem.m);
        if (!problem.ragged()) table.clear_rest(kept, problem.n, problem.m, strip_of(pair, (pair.n - 1) / kRows * kRows));
      }
      value[b] = run.forward(pair, table);
    });
  }

  template <typename T>
  static void backward(
      const Problem<T>& problem, const Plan& plan, const Gradient<T>& gradient, const void* saved, const Tensor& like) {
    check(plan);
    const int64_t table_bytes = Table<T>::bytes(problem.n, problem.m);
    const Kernels<T>& run = kernels(T{});
    Workspace<T> sizes;
    for_every_pair(problem.batch, sizes.carve(problem, false, true, nullptr), like, [&](int64_t b, char* memory) {
      const Extent extent = problem.extent(b);
      if (!extent.valid() || !std::isfinite(gradient.value[b])) {
        spoil_gradient(problem, b, extent, gradient);
        return;
      }
      Workspace<T> workspace;
      workspace.carve(problem, false, true, memory);
      std::memset(workspace.scratch.dx, 0, workspace.x_size * sizeof(T));
      std::memset(workspace.scratch.dy, 0, workspace.y_size * sizeof(T));
      const Pair<T> pair = pack(problem, b, extent, workspace);
      workspace.scratch.dcost = gradient.cost.pair(b);
      workspace.scratch.factor = gradient.grad_value[b];
      // Only read from here on.
      char* const kept = const_cast<char*>(static_cast<const char*>(saved)) + b * table_bytes;
      run.backward(pair, Table<T>::saved(kept, problem.n, problem.m), workspace.scratch);
      if (problem.cost != Cost::kMatrix) unpack_gradient(problem, b, pair, workspace, gradient);
    });
  }
};

}  // namespace cpu
}  // namespace softdtw

SOFTDTW_REGISTER(CPU, softdtw::cpu::CpuBackend)
