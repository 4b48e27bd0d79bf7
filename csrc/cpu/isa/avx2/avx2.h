// For AVX2 with FMA. The target is set after every other header, so that nothing shared is compiled for it.
#include "cpu/kernels.h"

#include <immintrin.h>
#if defined(__clang__)
#pragma clang attribute push(__attribute__((target("avx2,fma"))), apply_to = function)
#else
#pragma GCC target("avx2,fma")
#endif
#define SOFTDTW_VECTOR_BYTES 32
#define SOFTDTW_ISA avx2
