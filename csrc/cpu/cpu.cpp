// The CPU backend; the instruction set is chosen at run time.
#include <cstdlib>
#include <string>
#include <thread>
#include <vector>

#include <torch/csrc/stable/library.h>

#include "binding/entry.h"
#include "passes.h"
#include "schedule.h"

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

const Kernels<float>& kernels(float) { return chosen_isa().for_float; }
const Kernels<double>& kernels(double) { return chosen_isa().for_double; }

// Whether a pair may turn out to need a wider dtype.
template <typename T>
constexpr bool kCanFail = sizeof(T) < sizeof(double);

}  // namespace

const Isa& chosen_isa() {
  static const Isa& isa = choose_isa();
  return isa;
}

void rest(int64_t round) {
#if defined(__x86_64__)
  if (round < 64) return __builtin_ia32_pause();
#endif
  (void)round;
  std::this_thread::yield();
}

struct CpuBackend {
  struct Plan {  // there is one
    int code() const { return 0; }
  };

  static Plan plan(const Call&, const std::string& kernel, int64_t, int) {
    STD_TORCH_CHECK(
        kernel == "cpu" || kernel == "auto", "kernel: '", kernel,
        "' runs on CUDA only; for CPU tensors expected 'cpu' (or 'auto')");
    return {};
  }
  static Plan plan_from_code(int) { return {}; }
  static Order order(const Call&, const Plan&, Pass) { return Order::kDimensionMajor; }
  static Order gradient_order(const Call&, const Plan&) { return Order::kDimensionMajor; }
  static Tensor arrange(const Tensor& series, Order) { return series; }  // pack() reads any strides
  static std::pair<bool, bool> adds_up(const Call&, const Plan&) { return {false, false}; }

  template <typename T>
  static int64_t saved_bytes(const Problem<T>& problem, const Plan&) {
    return problem.batch * Table<T>::bytes(problem.n, problem.m);
  }

  template <typename T>
  static void forward(const Problem<T>& problem, const Plan&, T* value, void* saved, const Tensor& like) {
    char* const tables = static_cast<char*>(saved);
    std::vector<char> unsound(kCanFail<T> ? problem.batch : 0);
    const ForwardPass<T, T> pass = {problem, kernels(T{}), {}, value, tables, kCanFail<T> ? unsound.data() : nullptr};
    if (!run(pass, problem.batch, like)) return;
    const std::vector<int64_t> again = marked(unsound);
    if (again.empty()) return;
    run(ForwardPass<double, T>{problem, kernels(double{}), {&again}, value, nullptr, nullptr}, again.size(), like);
  }

  template <typename T>
  static void backward(
      const Problem<T>& problem, const Plan&, const Gradient<T>& gradient, const void* saved, const Tensor& like) {
    char* const tables = const_cast<char*>(static_cast<const char*>(saved));
    std::vector<char> unsound(kCanFail<T> ? problem.batch : 0);
    const BackwardPass<T, T> pass = {problem, kernels(T{}), {}, gradient, tables, kCanFail<T> ? unsound.data() : nullptr};
    if (!run(pass, problem.batch, like)) return;
    const std::vector<int64_t> again = marked(unsound);
    if (again.empty()) return;
    run(BackwardPass<double, T>{problem, kernels(double{}), {&again}, gradient, nullptr, nullptr}, again.size(), like);
  }
};

}  // namespace cpu
}  // namespace softdtw

SOFTDTW_REGISTER(CPU, softdtw::cpu::CpuBackend, "cpu_saved_size")
