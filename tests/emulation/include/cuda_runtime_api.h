// The functions of CUDA's runtime that the package calls, of an emulated H200.
#pragma once

#include <cstring>
#include <functional>
#include <map>
#include <string>
#include <utility>

#include "../cuda.h"

enum cudaError_t {
  cudaSuccess = 0,
  cudaErrorInvalidValue = 1,
  cudaErrorInvalidConfiguration = 9,
  cudaErrorInvalidDevice = 101,
  cudaErrorLaunchFailure = 719,
  cudaErrorApiFailureBase = 10000,
};
enum cudaDeviceAttr {
  cudaDevAttrMultiProcessorCount = 16,
  cudaDevAttrComputeCapabilityMajor = 75,
  cudaDevAttrComputeCapabilityMinor = 76,
  cudaDevAttrMaxSharedMemoryPerMultiprocessor = 81,
  cudaDevAttrSingleToDoublePrecisionPerfRatio = 87,
  cudaDevAttrMaxSharedMemoryPerBlockOptin = 97,
};
enum cudaFuncAttribute {
  cudaFuncAttributeMaxDynamicSharedMemorySize = 8,
  cudaFuncAttributePreferredSharedMemoryCarveout = 9
};
enum { cudaSharedmemCarveoutMaxShared = 100 };
struct cudaFuncAttributes {
  size_t sharedSizeBytes = 0;
};
using cudaStream_t = void*;

namespace emulation {

constexpr int kBlockBytes = 227 << 10, kBytesUnasked = 48 << 10;  // of a block's shared memory

// What the process has asked for and what it would be told: CUDA keeps the last error until somebody takes it.
struct Runtime {
  cudaError_t last = cudaSuccess;
  int failing_queries = 0;                        // so many questions for a device are not answered
  std::map<const void*, int> most_dynamic_bytes;  // of a kernel
  std::function<void()> before_launch = [] {};    // what another thread does just then, once

  cudaError_t noted(cudaError_t error) {
    if (error != cudaSuccess) last = error;
    return error;
  }
  cudaError_t answer() { return noted(failing_queries > 0 ? (--failing_queries, cudaErrorInvalidDevice) : cudaSuccess); }
};
inline Runtime& runtime() {
  static Runtime runtime;
  return runtime;
}

template <class... Parameters, size_t... kIndices>
void call(void (*kernel)(Parameters...), void** arguments, std::index_sequence<kIndices...>) {
  kernel(*static_cast<Parameters*>(arguments[kIndices])...);
}

}  // namespace emulation

inline cudaError_t cudaGetDevice(int* device) { return *device = 0, emulation::runtime().answer(); }
inline cudaError_t cudaDeviceGetAttribute(int* value, cudaDeviceAttr attribute, int) {
  switch (attribute) {
    case cudaDevAttrMultiProcessorCount:
      *value = 132;
      break;
    case cudaDevAttrComputeCapabilityMajor:
      *value = 9;
      break;
    case cudaDevAttrComputeCapabilityMinor:
      *value = 0;
      break;
    case cudaDevAttrMaxSharedMemoryPerMultiprocessor:
      *value = 228 << 10;
      break;
    case cudaDevAttrSingleToDoublePrecisionPerfRatio:
      *value = 2;
      break;
    case cudaDevAttrMaxSharedMemoryPerBlockOptin:
      *value = emulation::kBlockBytes;
      break;
    default:
      return emulation::runtime().noted(cudaErrorInvalidValue);
  }
  return emulation::runtime().answer();
}
template <class Kernel>
cudaError_t cudaFuncSetAttribute(Kernel kernel, cudaFuncAttribute attribute, int value) {
  if (attribute != cudaFuncAttributeMaxDynamicSharedMemorySize) return cudaSuccess;
  if (value < 0 || value > emulation::kBlockBytes) return emulation::runtime().noted(cudaErrorInvalidValue);
  emulation::runtime().most_dynamic_bytes[reinterpret_cast<const void*>(kernel)] = value;
  return cudaSuccess;
}
template <class Kernel>
cudaError_t cudaFuncGetAttributes(cudaFuncAttributes*, Kernel) {
  return cudaSuccess;
}
// Returns when the grid has come to its end, or failed.
template <class... Parameters>
cudaError_t cudaLaunchKernel(
    void (*kernel)(Parameters...), dim3 grid, dim3 block, void** arguments, size_t bytes, cudaStream_t) {
  emulation::Runtime& runtime = emulation::runtime();
  std::exchange(runtime.before_launch, [] {})();
  if (grid.x == 0 || grid.x > INT32_MAX || grid.y == 0 || grid.y > 65535)
    return runtime.noted(cudaErrorInvalidConfiguration);
  const auto allowed = runtime.most_dynamic_bytes.find(reinterpret_cast<const void*>(kernel));
  const int most = allowed == runtime.most_dynamic_bytes.end() ? 0 : allowed->second;
  if (bytes > static_cast<size_t>(std::max(most, emulation::kBytesUnasked))) return runtime.noted(cudaErrorInvalidValue);
  emulation::machine().run(
      grid, block, bytes, [&] { emulation::call(kernel, arguments, std::index_sequence_for<Parameters...>()); });
  return runtime.noted(emulation::machine().failure().empty() ? cudaSuccess : cudaErrorLaunchFailure);
}
// One that may overlap with the kernel before it comes after that here.
enum cudaLaunchAttributeID { cudaLaunchAttributeProgrammaticStreamSerialization = 6 };
struct cudaLaunchAttribute {
  cudaLaunchAttributeID id;
  struct {
    int programmaticStreamSerializationAllowed;
  } val;
};
struct cudaLaunchConfig_t {
  dim3 gridDim, blockDim;
  size_t dynamicSmemBytes;
  cudaStream_t stream;
  cudaLaunchAttribute* attrs;
  unsigned numAttrs;
};
template <class... Parameters>
cudaError_t cudaLaunchKernelEx(const cudaLaunchConfig_t* config, void (*kernel)(Parameters...), Parameters... parameters) {
  void* arguments[] = {&parameters...};
  return cudaLaunchKernel(kernel, config->gridDim, config->blockDim, arguments, config->dynamicSmemBytes, config->stream);
}
inline cudaError_t cudaGetLastError() { return std::exchange(emulation::runtime().last, cudaSuccess); }
inline const char* cudaGetErrorString(cudaError_t error) {
  static std::string message;
  message = error == cudaErrorLaunchFailure ? emulation::machine().take_failure()
                                            : "CUDA's error " + std::to_string(static_cast<int>(error));
  return message.c_str();
}
inline cudaError_t cudaMemsetAsync(void* memory, int value, size_t bytes, cudaStream_t) {
  std::memset(memory, value, bytes);
  return cudaSuccess;
}
