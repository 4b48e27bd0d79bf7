// The kernels for any processor: whatever the compiler's default target has.
#include "pair.h"

#define SOFTDTW_VECTOR_BYTES 16
#define SOFTDTW_ISA kPlain
#define SOFTDTW_ISA_NAME "plain"
#include "kernels.h"
