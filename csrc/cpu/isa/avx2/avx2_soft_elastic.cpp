#if defined(__x86_64__)
#include "avx2.h"

#include "cpu/isa/soft_elastic_kernels.h"

#include "cpu/isa/end.h"
#endif
