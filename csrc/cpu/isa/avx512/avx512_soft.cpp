#if defined(__x86_64__)
#include "avx512.h"

#include "cpu/isa/soft_kernels.h"

#include "cpu/isa/end.h"
#endif
