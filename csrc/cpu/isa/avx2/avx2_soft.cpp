#if defined(__x86_64__)
#include "avx2.h"

#include "cpu/isa/soft_kernels.h"

#include "cpu/isa/end.h"
#endif
