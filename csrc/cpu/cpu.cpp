// The CPU backend; the instruction set is chosen at run time.
#include <cstdlib>
#include <string>
#include <thread>

#include <torch/csrc/stable/library.h>

#include "binding/entry.h"
#include "cpu/soft/passes.h"
#include "kernels.h"

namespace softdtw {
namespace cpu {
namespace {

#define SOFTDTW_PARTS_OF(isa, dtype)                                                                               \
  {isa::soft_kernels.dtype, isa::hard_kernels.dtype, isa::elastic_kernels.dtype, isa::elastic_lanes_kernels.dtype, \
   isa::soft_elastic_kernels.dtype}
#define SOFTDTW_WHOLE(isa) {SOFTDTW_PARTS_OF(isa, for_float), SOFTDTW_PARTS_OF(isa, for_double)}

// TORCHSOFTDTW_CPU_ISA=plain|avx2|avx512 lowers the choice; it cannot raise it beyond the processor.
Isa choose_isa() {
#if defined(__x86_64__)
  const char* const variable = std::getenv("TORCHSOFTDTW_CPU_ISA");
  const std::string wanted = variable ? variable : "";
  const bool has_avx2 = __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma");
  const bool has_avx512 = has_avx2 && __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512dq") &&
                          __builtin_cpu_supports("avx512vl") && __builtin_cpu_supports("avx512bw");
  if (wanted == "plain") return SOFTDTW_WHOLE(plain);
  if (has_avx512 && wanted != "avx2") return SOFTDTW_WHOLE(avx512);
  if (has_avx2) return SOFTDTW_WHOLE(avx2);
#endif
  return SOFTDTW_WHOLE(plain);
}

}  // namespace

const Isa& chosen_isa() {
  static const Isa isa = choose_isa();
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
    bool needs_zeros() const { return false; }  // forward clears what it keeps
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
    return problem.batch * Table<T>::bytes(table_shape(problem));
  }

  template <typename T>
  static void forward(const Problem<T>& problem, const Plan&, T* value, void* saved, const Tensor& like) {
    run_exactly<ForwardPass>(problem, value, static_cast<char*>(saved), like);
  }

  template <typename T>
  static void backward(
      const Problem<T>& problem, const Plan&, const Gradient<T>& gradient, const void* saved, const Tensor& like) {
    run_exactly<BackwardPass>(problem, gradient, const_cast<char*>(static_cast<const char*>(saved)), like);
  }
};

}  // namespace cpu
}  // namespace softdtw

SOFTDTW_REGISTER(CPU, softdtw::cpu::CpuBackend, "cpu_saved_size")
