// The backend of elastic measures on the CPU.
#include <torch/csrc/stable/library.h>

#include "binding/elastic/elastic_entry.h"
#include "cpu/elastic/elastic_group_pack.h"
#include "cpu/elastic/elastic_pass.h"
#include "cpu/elastic/gradients/elastic_along.h"
#include "cpu/elastic/gradients/twed_terms.h"
#include "cpu/groups/group_pass.h"
#include "cpu/soft_elastic/soft_elastic_pass.h"

namespace softdtw {
namespace cpu {
namespace {

struct ElasticCpuBackend {
  struct Plan {  // there is one
    int code() const { return 0; }
  };

  template <typename T>
  static Plan plan(const ElasticProblem<T>&, const std::string& kernel) {
    STD_TORCH_CHECK(
        kernel == "cpu" || kernel == "auto", "kernel: '", kernel,
        "' runs on CUDA only; for CPU tensors expected 'cpu' (or 'auto')");
    return {};
  }
  static Plan plan_from_code(int) { return {}; }
  static Tensor arrange(const Tensor& series) { return series; }

  template <typename T>
  static int64_t saved_bytes(const ElasticProblem<T>& problem, const Plan&) {
    return problem.batch * SoftElasticWork<T, T>::kept_bytes(problem);
  }

  template <typename T>
  static void forward(const ElasticProblem<T>& problem, const Plan&, T* value, void* saved, const Tensor& like) {
    if (!problem.is_hard()) return run_exactly<SoftElasticForward>(problem, value, static_cast<char*>(saved), like);
    const ElasticForward<T> alone(problem, value, static_cast<Span*>(saved));
    if (saved || !GroupPass(ElasticPacking<T>{problem}, alone, value).run(like)) alone.run(like);
  }

  template <typename T>
  static void backward(
      const ElasticProblem<T>& problem, const Plan&, const ElasticGradient<T>& gradient, const void* saved,
      const Tensor& like) {
    if (!problem.is_hard())
      return run_exactly<SoftElasticBackward>(problem, gradient, const_cast<char*>(static_cast<const char*>(saved)), like);
    const Span* const spans = static_cast<const Span*>(saved);
    torch::stable::parallel_for(0, problem.batch, 1, [&](int64_t begin, int64_t end) {
      for (int64_t b = begin; b < end; ++b)
        gradient_along<T>({problem, gradient, b, problem.extent(b)}, spans + b * (problem.n + 1));
    });
  }

  template <typename T>
  static void twed_terms(const TwedTerms<T>& terms, const TwedTermsOut<T>& out, const Tensor&) {
    cpu::twed_terms(terms, out);
  }
  template <typename T>
  static void twed_terms_gradient(const TwedTerms<T>& terms, const TwedTermsGradient<T>& gradient, const Tensor&) {
    cpu::twed_terms_gradient(terms, gradient);
  }
};

}  // namespace
}  // namespace cpu
}  // namespace softdtw

SOFTDTW_REGISTER_ELASTIC(CPU, softdtw::cpu::ElasticCpuBackend, "cpu_elastic_saved_size")
