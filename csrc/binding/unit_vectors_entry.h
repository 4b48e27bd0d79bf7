// The ops of core/unit_vectors.h: what both devices share.
#pragma once

#include <string>
#include <tuple>

#include "checks.h"
#include "core/unit_vectors.h"

namespace softdtw {

inline void check_series_of_vectors(const Tensor& tensor, const char* name) {
  STD_TORCH_CHECK(
      tensor.dim() == 3 && tensor.scalar_type() == ScalarType::Float, name,
      ": expected a float32 tensor (batch, length, dim)");
}

template <class Backend>
std::tuple<Tensor, Tensor> unit_vectors_entry(Tensor series, int64_t flag, int64_t width) {
  check_series_of_vectors(series, "series");
  const int64_t batch = series.size(0), length = series.size(1), dim = series.size(2);
  STD_TORCH_CHECK(flag == 0 || flag == 1, "flag: expected 0 or 1, got ", flag);
  STD_TORCH_CHECK(width >= dim + 2, "width: expected at least ", dim + 2, ", got ", width);
  const Tensor numbers = packed(series);
  const Tensor unit = new_strided(series, {batch, length, width}, {length * width, width, 1}, type_of(series));
  const Tensor inverse = new_strided(series, {batch, length}, {length, 1}, aoti_torch_dtype_float64());
  const Vectors vectors = {numbers.const_data_ptr<float>(), batch * length, dim, width, flag};
  if (vectors.count > 0)
    Backend::forward(vectors, unit.mutable_data_ptr<float>(), inverse.mutable_data_ptr<double>(), series);
  return {unit, inverse};
}

// The gradient to a series of vectors of D numbers, from that to unit vectors: what is across the unit vector, divided by the length.
template <class Backend>
Tensor unit_vectors_backward_entry(Tensor grad_unit, Tensor unit, Tensor inverse, int64_t dim) {
  check_series_of_vectors(grad_unit, "grad_unit");
  check_series_of_vectors(unit, "unit");
  const int64_t batch = unit.size(0), length = unit.size(1), width = unit.size(2);
  const auto has_shape = [&](const Tensor& tensor) {
    return tensor.size(0) == batch && tensor.size(1) == length && tensor.device() == unit.device();
  };
  STD_TORCH_CHECK(
      has_shape(grad_unit) && grad_unit.size(2) == width, "grad_unit: expected the shape and the device of unit");
  STD_TORCH_CHECK(
      inverse.dim() == 2 && inverse.scalar_type() == ScalarType::Double && has_shape(inverse),
      "inverse: expected a float64 tensor (batch, length) on the device of unit");
  STD_TORCH_CHECK(dim >= 1 && dim + 2 <= width, "dim: expected 1 to ", width - 2, ", got ", dim);
  STD_TORCH_CHECK(unit.is_contiguous() && inverse.is_contiguous(), "unit, inverse: expected contiguous tensors");
  const Tensor gradient = packed(grad_unit);
  const Tensor grad = new_strided(unit, {batch, length, dim}, {length * dim, dim, 1}, type_of(unit));
  const Vectors vectors = {unit.const_data_ptr<float>(), batch * length, dim, width, 0};
  if (vectors.count > 0)
    Backend::backward(
        vectors, gradient.const_data_ptr<float>(), inverse.const_data_ptr<double>(), grad.mutable_data_ptr<float>(), unit);
  return grad;
}

}  // namespace softdtw

#define SOFTDTW_REGISTER_UNIT_VECTORS(device, Backend)                                          \
  STABLE_TORCH_LIBRARY_IMPL(torchsoftdtw, device, m) {                                          \
    m.impl("unit_vectors", TORCH_BOX(&softdtw::unit_vectors_entry<Backend>));                   \
    m.impl("unit_vectors_backward", TORCH_BOX(&softdtw::unit_vectors_backward_entry<Backend>)); \
  }
