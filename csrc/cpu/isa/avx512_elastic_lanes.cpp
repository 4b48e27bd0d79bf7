#if defined(__x86_64__)
#include "avx512.h"

#include "elastic_lanes_kernels.h"

#include "end.h"
#endif
