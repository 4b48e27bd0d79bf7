// What the choice of a kernel has to know of a GPU. No CUDA header: hardware/device.h asks the driver, tests make up their own.
#pragma once

#include <cstdint>

namespace softdtw {

struct Device {
  int capability = 0;       // 10 major + minor: 90 is sm_90
  int processors = 1;       // multiprocessors
  int64_t block_bytes = 0;  // of shared memory that a block may have, where it is asked for
  int float64_ratio = 64;   // operations of float32 in the time of one of float64

  // Barriers in shared memory, asynchronous copies, and tensor cores that multiply float32.
  bool has_pipelines() const { return capability >= 80; }
  bool has_fast_float64() const { return float64_ratio <= 2; }
};

}  // namespace softdtw
