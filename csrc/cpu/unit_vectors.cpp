// Unit vectors on the CPU: threads over blocks of vectors.
#include <algorithm>

#include <torch/csrc/stable/library.h>

#include "binding/unit_vectors_entry.h"
#include "cpu/threads/schedule.h"

namespace softdtw {
namespace cpu {
namespace {

struct UnitVectors {
  static constexpr int64_t kBlock = 256;

  // Calls of_vector(index) for all of them.
  template <class OfVector>
  static void run(const Vectors& vectors, const Tensor& like, const OfVector& of_vector) {
    const int64_t blocks = (vectors.count + kBlock - 1) / kBlock;
    const double work = double(vectors.count) * double(vectors.dim) * 4;
    run_pairs(blocks, 0, work, like, [&](int64_t block, char*) {
      const int64_t end = std::min((block + 1) * kBlock, vectors.count);
      for (int64_t index = block * kBlock; index < end; ++index) of_vector(index);
    });
  }

  static void forward(const Vectors& vectors, float* unit, double* inverse, const Tensor& like) {
    run(vectors, like, [&](int64_t index) {
      const float* const own = vectors.numbers + index * vectors.dim;
      double sum = 0;
      for (int64_t d = 0; d < vectors.dim; ++d) sum += double(own[d]) * own[d];
      inverse[index] = inverse_length(sum);
      for (int64_t d = 0; d < vectors.width; ++d)
        unit[index * vectors.width + d] = unit_number(vectors, own, d, inverse[index]);
    });
  }

  static void backward(
      const Vectors& vectors, const float* grad_unit, const double* inverse, float* grad, const Tensor& like) {
    run(vectors, like, [&](int64_t index) {
      const float* const own = vectors.numbers + index * vectors.width;
      const float* const gradient = grad_unit + index * vectors.width;
      double along = 0;
      for (int64_t d = 0; d < vectors.dim; ++d) along += double(own[d]) * gradient[d];
      for (int64_t d = 0; d < vectors.dim; ++d)
        grad[index * vectors.dim + d] = across(gradient[d], own[d], along, inverse[index]);
    });
  }
};

}  // namespace
}  // namespace cpu
}  // namespace softdtw

SOFTDTW_REGISTER_UNIT_VECTORS(CPU, softdtw::cpu::UnitVectors)
