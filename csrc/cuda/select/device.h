// What the choice of a kernel has to know of a GPU. No CUDA header: hardware/device.h asks the driver, tests make up their own.
#pragma once

#include <cstdint>

namespace softdtw {

struct Device {
  int capability = 0;         // 10 major + minor: 90 is sm_90
  int processors = 1;         // multiprocessors
  int64_t block_bytes = 0;  // bytes that a block may have, with permission
  int float64_ratio = 64;     // operations of float32 in the time of one of float64

  bool has_fast_float64() const { return float64_ratio <= 2; }
};

}  // namespace softdtw
