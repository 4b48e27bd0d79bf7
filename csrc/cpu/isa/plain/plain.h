// For any processor: whatever the compiler's default target has.
#include "cpu/kernels.h"

#define SOFTDTW_VECTOR_BYTES 16
#define SOFTDTW_ISA plain
