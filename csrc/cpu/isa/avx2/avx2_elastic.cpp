#if defined(__x86_64__)
#include "avx2.h"

#include "cpu/isa/elastic_kernels.h"

#include "cpu/isa/end.h"
#endif
