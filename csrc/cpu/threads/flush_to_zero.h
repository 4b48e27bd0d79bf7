// Results too small for the normal numbers of their type become zero while one of these lives, on its thread. Table entries run
// out of float32 where paths contribute nothing; many processors take a hundred cycles for each number on the way there. What a
// pass reads is left as it is.
//
// A share that is lost below 2^-126 of the smallest entry, and not below 2^-149, only shortens the chain of exactness.h.
#pragma once

#if defined(__x86_64__)
#include <xmmintrin.h>
#endif

namespace softdtw {
namespace cpu {

class FlushToZero {
#if defined(__x86_64__)
 public:
  FlushToZero() : before_(_mm_getcsr()) { _mm_setcsr(before_ | _MM_FLUSH_ZERO_ON); }
  ~FlushToZero() { _mm_setcsr(before_); }

 private:
  const unsigned before_;
#else
 public:
  FlushToZero() {}
#endif

 public:
  FlushToZero(const FlushToZero&) = delete;
  FlushToZero& operator=(const FlushToZero&) = delete;
};

}  // namespace cpu
}  // namespace softdtw
