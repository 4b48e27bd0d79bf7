// For AVX-512. The target is set after every other header, so that nothing shared is compiled for it.
#include "cpu/kernels.h"

#include <immintrin.h>
#if !defined(__clang__)
#pragma GCC diagnostic ignored "-Wmaybe-uninitialized"  // of the intrinsics' own headers
#endif
#if defined(__clang__)
#pragma clang attribute push(__attribute__((target("avx512f,avx512dq,avx512vl,avx512bw,avx2,fma"))), apply_to = function)
#else
#pragma GCC target("avx512f,avx512dq,avx512vl,avx512bw,avx2,fma")
#endif
#define SOFTDTW_VECTOR_BYTES 64
#define SOFTDTW_ISA avx512
