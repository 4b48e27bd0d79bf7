// What every launch needs of PyTorch: the caller's device and stream, and an error that says which kernel failed.
#pragma once

#include <cuda_runtime_api.h>
#include <torch/csrc/stable/accelerator.h>

#include <optional>

#include "binding/checks.h"
#include "cuda/hardware/device.h"
#include "cuda/scratch.h"

namespace softdtw {

class ScratchTensor : public Scratch {
  const Tensor& like;
  std::optional<Tensor> tensor;

  char* take(int64_t bytes) override {
    tensor.reset();
    if (bytes == 0) return nullptr;
    tensor = new_bytes(like, bytes);
    return static_cast<char*>(tensor->mutable_data_ptr());
  }

 public:
  explicit ScratchTensor(const Tensor& like_) : like(like_) {}
};

inline cudaStream_t current_stream(const Tensor& like) {
  void* stream = nullptr;
  STD_TORCH_CHECK(
      aoti_torch_get_current_cuda_stream(like.get_device(), &stream) == 0, "could not get the current CUDA stream");
  return static_cast<cudaStream_t>(stream);
}

inline void check(cudaError_t error, const char* kernel, const char* direction) {
  STD_TORCH_CHECK(taken(error) == cudaSuccess, "the ", kernel, " kernel's ", direction, " pass failed: ", in_words(error));
}

}  // namespace softdtw
