// What the current CUDA device is like, asked once of each device, and the errors of this package's own.
#pragma once

#include <cuda_runtime_api.h>

#include <atomic>
#include <mutex>
#include <stdexcept>
#include <string>

#include "cuda/select/device.h"

namespace softdtw {

// Of launch_kernel(): a number that CUDA does not use.
constexpr cudaError_t kTooManyBlocks = static_cast<cudaError_t>(cudaErrorApiFailureBase + 1);

inline std::string in_words(cudaError_t error) {
  if (error == kTooManyBlocks) return "it needs more blocks than a grid can have; split the batch";
  return cudaGetErrorString(error);
}

// An error that is reported here is not to be found by whoever asks for the last one next.
inline cudaError_t taken(cudaError_t error) {
  if (error != cudaSuccess) cudaGetLastError();
  return error;
}

struct DeviceProperties : Device {
  int number;
  int processor_bytes;  // shared memory of a multiprocessor
};

// Throws std::runtime_error if CUDA does not answer. From any number of threads.
inline const DeviceProperties& current_device() {
  constexpr int kMostDevices = 256;
  static DeviceProperties known[kMostDevices];
  static std::atomic<bool> is_known[kMostDevices];
  static std::mutex mutex;

  const auto require = [](cudaError_t error, const char* what) {
    if (taken(error) != cudaSuccess)
      throw std::runtime_error(std::string("could not ask CUDA for ") + what + ": " + in_words(error));
  };
  int number = 0;
  require(cudaGetDevice(&number), "the current device");
  if (number >= kMostDevices) throw std::runtime_error("CUDA devices from number 256 on are not supported");
  if (is_known[number].load(std::memory_order_acquire)) return known[number];

  const auto attribute = [&](cudaDeviceAttr which, const char* what) {
    int value = 0;
    require(cudaDeviceGetAttribute(&value, which, number), what);
    return value;
  };
  DeviceProperties asked;
  asked.number = number;
  asked.capability = 10 * attribute(cudaDevAttrComputeCapabilityMajor, "a device's compute capability") +
                     attribute(cudaDevAttrComputeCapabilityMinor, "a device's compute capability");
  asked.processors = attribute(cudaDevAttrMultiProcessorCount, "the number of multiprocessors");
  asked.block_bytes = attribute(cudaDevAttrMaxSharedMemoryPerBlockOptin, "the shared memory of a block");
  asked.processor_bytes = attribute(cudaDevAttrMaxSharedMemoryPerMultiprocessor, "the shared memory of a multiprocessor");
  asked.float64_ratio = attribute(cudaDevAttrSingleToDoublePrecisionPerfRatio, "the speed of float64");

  const std::lock_guard<std::mutex> lock(mutex);
  if (!is_known[number].load(std::memory_order_relaxed)) {
    known[number] = asked;
    is_known[number].store(true, std::memory_order_release);
  }
  return known[number];
}

}  // namespace softdtw
