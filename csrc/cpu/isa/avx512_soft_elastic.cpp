#if defined(__x86_64__)
#include "avx512.h"

#include "soft_elastic_kernels.h"

#include "end.h"
#endif
