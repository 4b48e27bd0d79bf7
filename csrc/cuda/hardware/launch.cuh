// The one place that launches kernels.
#pragma once

#include <cstdint>
#include <set>
#include <utility>

#include "device.h"

namespace softdtw {

// Of a grid, counted before they are cut to what a launch takes.
struct Blocks {
  static constexpr int64_t kMostX = INT32_MAX, kMostY = 65535;
  int64_t x, y = 1;

  Blocks(int64_t x_, int64_t y_ = 1) : x(x_), y(y_) {}
};

// Lets a kernel have all the shared memory that a block can get beside what the kernel declares. Once for a kernel and a device, and
// not what one call needs: another thread may be about to launch the same kernel with more.
template <class Kernel>
cudaError_t allow_most_shared_memory(Kernel kernel) {
  static std::mutex mutex;
  static std::set<std::pair<const void*, int>> allowed;
  const DeviceProperties& device = current_device();
  const std::pair<const void*, int> key(reinterpret_cast<const void*>(kernel), device.number);
  const std::lock_guard<std::mutex> lock(mutex);
  if (allowed.count(key) > 0) return cudaSuccess;
  cudaFuncAttributes attributes{};
  cudaError_t error = cudaFuncGetAttributes(&attributes, kernel);
  if (error != cudaSuccess) return error;
  const int most = static_cast<int>(device.block_bytes) - static_cast<int>(attributes.sharedSizeBytes);
  error = cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, most);
  if (error == cudaSuccess) allowed.insert(key);
  return error;
}

enum class Start { kAfterKernelBefore, kOverlapping };

// `bytes`: of shared memory, beside what the kernel declares. Returns what this launch came to, whatever error was there before it.
template <class... Parameters, class... Arguments>
cudaError_t launch_kernel_at(
    Start at, void (*kernel)(Parameters...), const Blocks& blocks, dim3 threads, int64_t bytes, cudaStream_t stream,
    const Arguments&... arguments) {
  constexpr int64_t kNeedsNoPermission = 32 * 1024;  // 48 KiB with what kernels declare, at most 16 KiB
  if (blocks.x > Blocks::kMostX || blocks.y > Blocks::kMostY) return kTooManyBlocks;
  if (bytes > kNeedsNoPermission) {
    const cudaError_t error = allow_most_shared_memory(kernel);
    if (error != cudaSuccess) return error;
  }
  const dim3 grid(static_cast<unsigned>(blocks.x), static_cast<unsigned>(blocks.y));
  const auto start = [&](Parameters... parameters) {
    void* pointers[] = {&parameters...};
    if (at == Start::kAfterKernelBefore)
      return cudaLaunchKernel(kernel, grid, threads, pointers, static_cast<size_t>(bytes), stream);
    cudaLaunchAttribute attribute{};
    attribute.id = cudaLaunchAttributeProgrammaticStreamSerialization;
    attribute.val.programmaticStreamSerializationAllowed = 1;
    cudaLaunchConfig_t config{};
    config.gridDim = grid;
    config.blockDim = threads;
    config.dynamicSmemBytes = static_cast<size_t>(bytes);
    config.stream = stream;
    config.attrs = &attribute;
    config.numAttrs = 1;
    return cudaLaunchKernelEx(&config, kernel, parameters...);
  };
  return start(arguments...);
}

template <class Kernel, class... Arguments>
cudaError_t launch_kernel(
    Kernel kernel, const Blocks& blocks, dim3 threads, int64_t bytes, cudaStream_t stream, const Arguments&... arguments) {
  return launch_kernel_at(Start::kAfterKernelBefore, kernel, blocks, threads, bytes, stream, arguments...);
}
// May start while the kernel before it in the stream, which is of this package, is still at work, once all blocks of that have said
// ptx::let_next_kernel_start(). One of its blocks at least has to say ptx::wait_for_kernel_before(), so that what comes after it in
// the stream comes after both. Where GPUs cannot do so, it starts later.
inline Start overlapping() { return current_device().capability >= 90 ? Start::kOverlapping : Start::kAfterKernelBefore; }

}  // namespace softdtw
