// What every launch needs of PyTorch: the caller's device and stream, and an error that says which kernel failed.
#pragma once

#include <cuda_runtime_api.h>
#include <torch/csrc/stable/accelerator.h>

#include "../checks.h"

namespace softdtw {

inline cudaStream_t current_stream(const Tensor& like) {
  void* stream = nullptr;
  STD_TORCH_CHECK(
      aoti_torch_get_current_cuda_stream(like.get_device(), &stream) == 0, "could not get the current CUDA stream");
  return static_cast<cudaStream_t>(stream);
}

inline void check(cudaError_t error, const char* kernel, const char* direction) {
  STD_TORCH_CHECK(
      error == cudaSuccess, "the ", kernel, " kernel's ", direction, " pass failed: ", cudaGetErrorString(error));
}

}  // namespace softdtw
