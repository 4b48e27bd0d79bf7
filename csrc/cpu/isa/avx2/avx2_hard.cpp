#if defined(__x86_64__)
#include "avx2.h"

#include "cpu/isa/hard_kernels.h"

#include "cpu/isa/end.h"
#endif
