// Unit vectors on the CPU: threads over blocks of vectors.
#include <algorithm>

#include <torch/csrc/stable/library.h>

#include "binding/unit_vectors_entry.h"
#include "cpu/threads/schedule.h"

namespace softdtw {
namespace cpu {
namespace {

struct UnitVectorsBackend {
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

  static void forward(const UnitVectors (&both)[2], const Tensor& like) {
    for (const UnitVectors& one : both)
      run(one.vectors, like, [&](int64_t index) {
        const Vectors& vectors = one.vectors;
        const float* const own = vectors.numbers + index * vectors.dim;
        double sum = 0;
        for (int64_t d = 0; d < vectors.dim; ++d) sum += double(own[d]) * own[d];
        const double inverse = one.inverse[index] = inverse_length(sum);
        float* const unit = one.unit + index * vectors.width;
        for (int64_t d = 0; d < vectors.dim; ++d) unit[d] = unit_number(own[d], inverse);
        for (int64_t d = vectors.dim; d < vectors.width; ++d) unit[d] = flag_number(vectors, d, inverse);
      });
  }

  static void backward(const UnitGradient (&both)[2], const Tensor& like) {
    for (const UnitGradient& one : both)
      run(one.unit, like, [&](int64_t index) {
        const Vectors& vectors = one.unit;
        const float* const own = vectors.numbers + index * vectors.width;
        const float* const gradient = one.grad_unit + index * vectors.width;
        double along = 0;
        for (int64_t d = 0; d < vectors.dim; ++d) along += double(own[d]) * gradient[d];
        for (int64_t d = 0; d < vectors.dim; ++d)
          one.grad[index * vectors.dim + d] = across(gradient[d], own[d], along, one.inverse[index]);
      });
  }
};

}  // namespace
}  // namespace cpu
}  // namespace softdtw

SOFTDTW_REGISTER_UNIT_VECTORS(CPU, softdtw::cpu::UnitVectorsBackend)
