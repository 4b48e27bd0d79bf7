// The backend of hard DTW on the CPU.
#include <torch/csrc/stable/library.h>

#include "binding/hard_entry.h"
#include "cpu/groups/group_pass.h"
#include "cpu/hard/hard_group_pack.h"
#include "cpu/hard/hard_pass.h"

namespace softdtw {
namespace cpu {
namespace {

struct HardCpuBackend {
  static Tensor arrange(const Tensor& series, Cost) { return series; }

  template <typename T>
  static void forward(const Problem<T>& problem, bool open_ends, T* value, Span* spans, const Tensor& like) {
    const HardPass<T> alone(problem, open_ends, value, spans);
    const auto run_groups = [&](auto wide) {
      return GroupPass(HardPacking<T, decltype(wide)>{problem}, alone, value).run(like);
    };
    const bool has_values_alone = !spans && !open_ends;
    if (!has_values_alone || !(problem.dim == 1 ? run_groups(double{}) : run_groups(T{}))) alone.run(like);
  }

  template <typename T>
  static void backward(const Problem<T>& problem, const HardGradient<T>& gradient, const Tensor&) {
    const double of_path = 16.0 * double(problem.n + problem.m) * double(problem.dim + 1);
    const int64_t grain = threads_for_work(of_path * double(problem.batch)) > 1 ? 1 : problem.batch;
    torch::stable::parallel_for(0, problem.batch, grain, [&](int64_t begin, int64_t end) {
      for (int64_t b = begin; b < end; ++b) {
        if (gradient.cost.data)
          for (int64_t row = 0; row < problem.n; ++row) path_gradient_of_cost(problem, gradient, b, int(row), 0, 1);
        if (gradient.x.data)
          for (int64_t row = 0; row < problem.n; ++row) path_gradient<true>(problem, gradient, b, int(row));
        if (gradient.y.data)
          for (int64_t column = 0; column < problem.m; ++column) path_gradient<false>(problem, gradient, b, int(column));
      }
    });
  }
};

}  // namespace
}  // namespace cpu
}  // namespace softdtw

SOFTDTW_REGISTER_HARD(CPU, softdtw::cpu::HardCpuBackend)
