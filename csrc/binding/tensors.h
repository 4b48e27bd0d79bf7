// Tensors that an op makes, by way of PyTorch's C interface alone: torch::stable's functions of the same names look the op up by
// its name first, which takes longer than a small kernel.
#pragma once

#include <torch/csrc/inductor/aoti_torch/c/shim.h>
#include <torch/csrc/stable/ops.h>
#include <torch/csrc/stable/tensor.h>

#include <initializer_list>

namespace softdtw {

using torch::headeronly::ScalarType;
using torch::stable::Tensor;

inline int32_t type_of(const Tensor& tensor) {
  int32_t type = 0;
  STABLE_TORCH_ERROR_CODE_CHECK(aoti_torch_get_dtype(tensor.get(), &type));
  return type;
}

// Uninitialised, on the device of `like`.
inline Tensor new_strided(
    const Tensor& like, std::initializer_list<int64_t> sizes, std::initializer_list<int64_t> strides, int32_t type) {
  int32_t device_type = 0, device_index = 0;
  AtenTensorHandle handle = nullptr;
  STABLE_TORCH_ERROR_CODE_CHECK(aoti_torch_get_device_type(like.get(), &device_type));
  STABLE_TORCH_ERROR_CODE_CHECK(aoti_torch_get_device_index(like.get(), &device_index));
  STABLE_TORCH_ERROR_CODE_CHECK(aoti_torch_empty_strided(
      static_cast<int64_t>(sizes.size()), sizes.begin(), strides.begin(), type, device_type, device_index, &handle));
  return Tensor(handle);
}

inline Tensor new_vector(const Tensor& like, int64_t count) { return new_strided(like, {count}, {1}, type_of(like)); }

// (B, N, M); `zero_filled`: not uninitialised after all.
inline Tensor new_table(const Tensor& like, int64_t batch, int64_t rows, int64_t columns, bool zero_filled = false) {
  if (!zero_filled) return new_strided(like, {batch, rows, columns}, {rows * columns, columns, 1}, type_of(like));
  const int64_t shape[] = {batch, rows, columns};
  return torch::stable::new_zeros(like, shape);
}

inline Tensor new_bytes(const Tensor& like, int64_t count, bool zero_filled = false) {
  return zero_filled ? torch::stable::new_zeros(like, {count}, ScalarType::Byte)
                     : new_strided(like, {count}, {1}, aoti_torch_dtype_uint8());
}

inline Tensor packed(const Tensor& tensor) { return tensor.is_contiguous() ? tensor : torch::stable::contiguous(tensor); }

// (B, L, D) series whose neighbours in time are neighbours in memory.
inline Tensor dimension_major(const Tensor& series) {
  if (series.size(2) == 1 || series.stride(1) == 1) return series;
  return torch::stable::transpose(torch::stable::contiguous(torch::stable::transpose(series, 1, 2)), 1, 2);
}

}  // namespace softdtw
