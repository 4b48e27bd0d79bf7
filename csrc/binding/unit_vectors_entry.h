// The ops of core/unit_vectors.h: what both devices share.
#pragma once

#include <string>
#include <tuple>

#include "checks.h"
#include "core/unit_vectors.h"

namespace softdtw {

inline void check_series_of_vectors(const Tensor& tensor, const std::string& name) {
  STD_TORCH_CHECK(
      tensor.dim() == 3 && tensor.scalar_type() == ScalarType::Float, name,
      ": expected a float32 tensor (batch, length, dim)");
}

// Both series of a call at once: a kernel's start takes as long as a small one's vectors.
template <class Backend>
std::tuple<Tensor, Tensor, Tensor, Tensor> unit_vectors_entry(Tensor x, Tensor y, int64_t width) {
  check_series_of_vectors(x, "x");
  check_series_of_vectors(y, "y");
  STD_TORCH_CHECK(x.device() == y.device(), "y: expected the device of x");
  STD_TORCH_CHECK(y.size(2) == x.size(2), "y: expected ", x.size(2), " dimensions, as x has, got ", y.size(2));
  STD_TORCH_CHECK(width >= x.size(2) + 2, "width: expected at least ", x.size(2) + 2, ", got ", width);
  const Tensor series[] = {packed(x), packed(y)};
  Tensor unit[2], inverse[2];
  UnitVectors vectors[2];
  for (int i = 0; i < 2; ++i) {
    const Tensor& own = series[i];
    const int64_t batch = own.size(0), length = own.size(1), dim = own.size(2);
    unit[i] = new_strided(own, {batch, length, width}, {length * width, width, 1}, type_of(own));
    inverse[i] = new_strided(own, {batch, length}, {length, 1}, aoti_torch_dtype_float64());
    vectors[i] = {
        {own.const_data_ptr<float>(), batch * length, dim, width, i},
        unit[i].mutable_data_ptr<float>(),
        inverse[i].mutable_data_ptr<double>()};
  }
  if (vectors[0].vectors.count + vectors[1].vectors.count > 0) Backend::forward(vectors, x);
  return {unit[0], inverse[0], unit[1], inverse[1]};
}

// `name`: of the series that the gradient is to.
inline void check_unit_gradient(
    const Tensor& grad_unit, const Tensor& unit, const Tensor& inverse, int64_t dim, const std::string& name) {
  check_series_of_vectors(grad_unit, "grad_unit_" + name);
  check_series_of_vectors(unit, "unit_" + name);
  const auto has_shape = [&](const Tensor& tensor) {
    return tensor.size(0) == unit.size(0) && tensor.size(1) == unit.size(1) && tensor.device() == unit.device();
  };
  const int64_t width = unit.size(2);
  STD_TORCH_CHECK(
      has_shape(grad_unit) && grad_unit.size(2) == width, "grad_unit_", name,
      ": expected the shape and the device of unit_", name);
  STD_TORCH_CHECK(
      inverse.dim() == 2 && inverse.scalar_type() == ScalarType::Double && has_shape(inverse), "inverse_", name,
      ": expected a float64 tensor (batch, length) on the device of unit_", name);
  STD_TORCH_CHECK(dim >= 1 && dim + 2 <= width, "dim: expected 1 to ", width - 2, ", got ", dim);
  STD_TORCH_CHECK(
      unit.is_contiguous() && inverse.is_contiguous(), "unit_", name, ", inverse_", name, ": expected contiguous tensors");
}

// The gradients to series of vectors of D numbers, from those to unit vectors: what is across the unit vector, divided by the length. An
// empty tensor where none comes.
template <class Backend>
std::tuple<Tensor, Tensor> unit_vectors_backward_entry(
    OptionalTensor grad_unit_x, OptionalTensor grad_unit_y, Tensor unit_x, Tensor inverse_x, Tensor unit_y,
    Tensor inverse_y, int64_t dim) {
  const OptionalTensor arriving[] = {grad_unit_x, grad_unit_y};
  const Tensor units[] = {unit_x, unit_y}, inverses[] = {inverse_x, inverse_y};
  Tensor packed_ones[2], grads[2];
  UnitGradient gradients[2] = {};
  int64_t count = 0;
  for (int i = 0; i < 2; ++i) {
    const Tensor& unit = units[i];
    if (!arriving[i].has_value()) {
      grads[i] = new_vector(unit, 0);
      continue;
    }
    check_unit_gradient(*arriving[i], unit, inverses[i], dim, i == 0 ? "x" : "y");
    const int64_t batch = unit.size(0), length = unit.size(1), width = unit.size(2);
    packed_ones[i] = packed(*arriving[i]);
    grads[i] = new_strided(unit, {batch, length, dim}, {length * dim, dim, 1}, type_of(unit));
    gradients[i] = {
        {unit.const_data_ptr<float>(), batch * length, dim, width, i},
        packed_ones[i].const_data_ptr<float>(),
        inverses[i].const_data_ptr<double>(),
        grads[i].mutable_data_ptr<float>()};
    count += batch * length;
  }
  STD_TORCH_CHECK(unit_x.device() == unit_y.device(), "unit_y: expected the device of unit_x");
  if (count > 0) Backend::backward(gradients, unit_x);
  return {grads[0], grads[1]};
}

}  // namespace softdtw

#define SOFTDTW_REGISTER_UNIT_VECTORS(device, Backend)                                          \
  STABLE_TORCH_LIBRARY_IMPL(torchsoftdtw, device, m) {                                          \
    m.impl("unit_vectors", TORCH_BOX(&softdtw::unit_vectors_entry<Backend>));                   \
    m.impl("unit_vectors_backward", TORCH_BOX(&softdtw::unit_vectors_backward_entry<Backend>)); \
  }
