// Elastic measures on CUDA: memory, a device and the caller's stream for the kernels of kernels/elastic.
#include <torch/csrc/stable/library.h>

#include "binding/elastic/elastic_entry.h"
#include "cuda/kernels/elastic/elastic_kernels.h"
#include "cuda/kernels/elastic/twed_terms/twed_terms_kernels.h"
#include "launch.h"

namespace softdtw {
namespace {

struct ElasticCudaBackend {
  // Strips take what they can unless anti-diagonals are asked for. The code says what a soft forward pass has saved.
  struct Plan {
    bool is_by_diagonals, has_soft_strips;
    int code() const { return has_soft_strips ? 2 : 1; }
  };

  template <typename T>
  static Plan plan(const ElasticProblem<T>& problem, const std::string& kernel) {
    STD_TORCH_CHECK(
        kernel == "auto" || kernel == "diagonal", "kernel: expected 'auto' or 'diagonal' for CUDA tensors, got '", kernel,
        "'");
    const bool is_by_diagonals = kernel == "diagonal";
    return {is_by_diagonals, !is_by_diagonals && !problem.is_hard() && has_soft_strips(problem)};
  }
  static Plan plan_from_code(int code) {
    STD_TORCH_CHECK(code == 1 || code == 2, "saved: expected what forward with save=True returns on CUDA");
    return {code == 1, code == 2};
  }

  // Dimension-major, so that neighbours in time are neighbours in memory.
  static Tensor arrange(const Tensor& series) { return dimension_major(series); }

  template <typename T>
  static int64_t saved_bytes(const ElasticProblem<T>& problem, const Plan& plan) {
    return plan.has_soft_strips ? soft_strips_bytes(problem) : elastic_diagonal_bytes(problem);
  }

  template <typename T>
  static void forward(const ElasticProblem<T>& problem, const Plan& plan, T* value, void* saved, const Tensor& like) {
    const torch::stable::accelerator::DeviceGuard guard(like.get_device());
    ScratchTensor scratch(like);
    const cudaStream_t stream = current_stream(like);
    const bool has_strips = problem.is_hard() && !plan.is_by_diagonals;
    Span* const spans = static_cast<Span*>(saved);
    const cudaError_t error =
        has_strips && has_elastic_univariate(problem) ? elastic_univariate_forward(problem, value, spans, scratch, stream)
        : has_strips && has_elastic_dense(problem)    ? elastic_dense_forward(problem, value, spans, scratch, stream)
        : plan.has_soft_strips                        ? soft_strips_forward(problem, value, saved, scratch, stream)
                                                      : elastic_diagonal_forward(problem, value, saved, scratch, stream);
    check(error, "elastic", "forward");
  }

  template <typename T>
  static void backward(
      const ElasticProblem<T>& problem, const Plan& plan, const ElasticGradient<T>& gradient, const void* saved,
      const Tensor& like) {
    const torch::stable::accelerator::DeviceGuard guard(like.get_device());
    ScratchTensor scratch(like);
    const cudaStream_t stream = current_stream(like);
    const cudaError_t error = problem.is_hard()
                                  ? elastic_path_backward(problem, gradient, static_cast<const Span*>(saved), stream)
                              : plan.has_soft_strips ? soft_strips_backward(problem, gradient, saved, scratch, stream)
                                                     : elastic_diagonal_backward(problem, gradient, saved, scratch, stream);
    check(error, "elastic", "backward");
  }

  template <typename T>
  static void twed_terms(const TwedTerms<T>& terms, const TwedTermsOut<T>& out, const Tensor& like) {
    const torch::stable::accelerator::DeviceGuard guard(like.get_device());
    check(twed_terms_forward(terms, out, current_stream(like)), "twed_terms", "forward");
  }
  template <typename T>
  static void twed_terms_gradient(const TwedTerms<T>& terms, const TwedTermsGradient<T>& gradient, const Tensor& like) {
    const torch::stable::accelerator::DeviceGuard guard(like.get_device());
    check(twed_terms_backward(terms, gradient, current_stream(like)), "twed_terms", "backward");
  }
};

}  // namespace
}  // namespace softdtw

SOFTDTW_REGISTER_ELASTIC(CUDA, softdtw::ElasticCudaBackend, "cuda_elastic_saved_size")
