// How the strips of a pair wait for each other where several threads share it.
#pragma once

#include <cstdint>

#include "exactness.h"

namespace softdtw {
namespace cpu {

constexpr int64_t kNone = INT64_MIN, kAll = INT64_MAX;

// What a strip tells the others. A cache line each, as neighbours may be written by different threads.
struct alignas(64) StripState {
  int64_t down;  // forward: columns of the strip's last row that the strip below may read
  int64_t up;    // backward: minus the step down to which the strip has handed E to the strip above
  double total;  // of the last strip, after forward: R[N,M] / (gamma ln 2)
  Range range;   // after forward
};

// Lets another thread have the core for a moment; the more so the longer a wait has lasted.
void rest(int64_t round);

// Only for a word that a running thread advances without waiting for the caller, directly or not. Returns what it has reached.
inline int64_t wait_for(const int64_t* word, int64_t wanted) {
  for (int64_t round = 0;; ++round) {
    const int64_t reached = __atomic_load_n(word, __ATOMIC_ACQUIRE);
    if (reached >= wanted) return reached;
    rest(round);
  }
}

// Asks for the bytes [begin, end), which another core has written.
inline void prefetch(const void* begin, const void* end) {
  for (const char* line = static_cast<const char*>(begin); line < end; line += 64) __builtin_prefetch(line);
}

inline void publish(int64_t* word, int64_t reached) { __atomic_store_n(word, reached, __ATOMIC_RELEASE); }

}  // namespace cpu
}  // namespace softdtw
