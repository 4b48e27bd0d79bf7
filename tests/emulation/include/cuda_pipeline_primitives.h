// Copies to shared memory that run beside the lane that starts them.
#pragma once

#include "../cuda.h"

inline void __pipeline_memcpy_async(void* to, const void* from, size_t bytes) {
  emulation::machine().copy_beside(to, from, bytes);
}
inline void __pipeline_commit() { emulation::machine().commit_copies(); }
inline void __pipeline_wait_prior(size_t newest) { emulation::machine().wait_for_copies(newest); }
